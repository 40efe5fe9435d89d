//! What a reactor offers to the driver: processes, connections, and the timer.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::task::{Context, Poll, ready};

use lumen_driver::status::{MAX_LINES, Process as Known};
use lumen_driver::{Processes, World};
use lumen_proto::{Exit, Instant, OpenError, OpenErrorKind, Port, Signal};

use crate::command::nothing_to_open;
use crate::remembered::{Ended, Remembered};
use crate::stderr::StderrLines;
use crate::{CommandSpec, ConnectError, Drained, MAX_UNIX_PATH, Process, StderrTail, Target};

use super::connect::Connect;
use super::{Interest, Reactor, Watched};

#[derive(Debug)]
pub(super) struct Ports<R: Reactor> {
    reactor: R,
    target: Option<Target>,
    ports: BTreeMap<Port, Entry<R>>,
    ended: Remembered,
    open_error: Option<String>,
}

/// What stands behind a port that the machine had asked for.
struct Entry<R: Reactor> {
    connect: Option<Connect<R>>,
    process: Option<R::Fd<Process>>,
    stderr: Option<R::Fd<OwnedFd>>,
    lines: StderrLines,
    exit: Option<Exit>,
}

impl<R: Reactor> fmt::Debug for Entry<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("process", &self.process)
            .field("exit", &self.exit)
            .finish_non_exhaustive()
    }
}

impl<R: Reactor> Ports<R> {
    pub(super) fn new(target: Option<Target>) -> Self {
        Self {
            reactor: R::default(),
            target,
            ports: BTreeMap::new(),
            ended: Remembered::default(),
            open_error: None,
        }
    }

    pub(super) fn exit(&self, port: Port) -> Option<Exit> {
        match self.ports.get(&port) {
            Some(entry) => entry.exit,
            None => self.ended.find(port)?.exit,
        }
    }

    pub(super) fn child_id(&self, port: Port) -> Option<u32> {
        self.ports.get(&port)?.process.as_ref().map(|process| process.as_inner().id())
    }

    pub(super) fn tail(&self, port: Port) -> Option<&StderrTail> {
        match self.ports.get(&port) {
            Some(entry) => Some(entry.lines.tail()),
            None => Some(&self.ended.find(port)?.tail),
        }
    }

    pub(super) fn open_error(&self) -> Option<&str> {
        self.open_error.as_deref()
    }

    /// Opens `port`, or says why not, for the machine and in words.
    fn poll_target(
        &mut self,
        cx: &mut Context<'_>,
        port: Port,
    ) -> Poll<Result<R::Stream, (OpenError, String)>> {
        let Some(entry) = self.ports.get_mut(&port) else { return Poll::Pending };
        let (connected, target) = match &self.target {
            None => return Poll::Ready(Err(nothing_to_open())),
            Some(Target::Command(spec)) => return Poll::Ready(entry.spawn(spec)),
            Some(Target::Unix(path)) => {
                let len = path.as_os_str().as_bytes().len();
                if len > MAX_UNIX_PATH {
                    return Poll::Ready(Err(describe(&ConnectError::PathTooLong {
                        path: path.clone(),
                        len,
                    })));
                }
                let connect = entry.connect.get_or_insert_with(Connect::new);
                (ready!(connect.poll_unix(cx, path)), path.display().to_string())
            }
            Some(Target::Tcp(address)) => {
                let connect = entry.connect.get_or_insert_with(Connect::new);
                (ready!(connect.poll_tcp(cx, address)), address.clone())
            }
        };
        entry.connect = None;
        Poll::Ready(connected.map_err(|source| describe(&ConnectError::Refused { target, source })))
    }
}

impl<R: Reactor> World for Ports<R> {
    type Stream = R::Stream;

    fn now(&self) -> Instant {
        self.reactor.now()
    }

    fn start_open(&mut self, port: Port) {
        self.ports.insert(port, Entry::new());
    }

    fn poll_open(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Result<R::Stream, OpenError>> {
        let result = ready!(self.poll_target(cx, port));
        Poll::Ready(result.map_err(|(error, words)| {
            self.ports.remove(&port);
            self.open_error = Some(words);
            error
        }))
    }

    fn poll_process(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Exit> {
        let Some(entry) = self.ports.get_mut(&port) else { return Poll::Pending };
        let mut on_line = |line: &[u8]| Target::on_stderr(&mut self.target, line);
        entry.drain_stderr(cx, &mut on_line);
        if entry.exit.is_some() {
            return Poll::Pending;
        }
        let Some(exit) = ready!(entry.poll_exit(cx)) else { return Poll::Pending };
        entry.exit = Some(exit);
        // What it said last may have come after the drain above.
        entry.drain_stderr(cx, &mut on_line);
        Poll::Ready(exit)
    }

    fn signal(&mut self, port: Port, signal: Signal) {
        if let Some(process) = self.ports.get(&port).and_then(|entry| entry.process.as_ref()) {
            process.as_inner().signal(signal);
        }
    }

    fn start_close(&mut self, port: Port) {
        self.signal(port, Signal::Kill);
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<()> {
        let Some(entry) = self.ports.get_mut(&port) else { return Poll::Ready(()) };
        // Only for the wait: if there will be no more news, the end has to wait itself.
        ready!(entry.poll_exit(cx));
        let Some(mut entry) = self.ports.remove(&port) else { return Poll::Ready(()) };
        // What cannot be taken out is dropped, and so ended and buried too.
        if let Some(Ok(mut process)) = entry.process.take().map(Watched::into_inner) {
            entry.exit = Some(process.end());
        }
        if let Some(stderr) = entry.stderr.take() {
            entry.lines.finish(stderr.as_inner().as_fd(), |line| Target::on_stderr(&mut self.target, line));
        }
        self.ended.push(port, Ended { exit: entry.exit, tail: entry.lines.into_tail() });
        Poll::Ready(())
    }

    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()> {
        self.reactor.poll_sleep(cx, until)
    }
}

impl<R: Reactor> Processes for Ports<R> {
    fn process(&self, port: Port) -> Known {
        let stderr = self.tail(port).map_or_else(Vec::new, |tail| tail.last_lines(MAX_LINES));
        Known { pid: self.child_id(port), stderr }
    }
}

impl<R: Reactor> Entry<R> {
    fn new() -> Self {
        Self { connect: None, process: None, stderr: None, lines: StderrLines::default(), exit: None }
    }

    fn spawn(&mut self, spec: &CommandSpec) -> Result<R::Stream, (OpenError, String)> {
        let child = crate::spawn(spec).map_err(|error| (error.open_error(), error.to_string()))?;
        let describe = |error: io::Error| {
            let errno = error.raw_os_error().unwrap_or(0);
            let words = format!("cannot watch {:?}: {error}", spec.program());
            (OpenError { kind: OpenErrorKind::Other, errno }, words)
        };
        // Dropping the process on the way out ends and buries it.
        let process = R::watch(child.process, Interest::Readable).map_err(describe)?;
        let stderr = child.stderr.map(|stderr| R::watch(stderr, Interest::Readable));
        let stderr = stderr.transpose().map_err(describe)?;
        let stream = R::pipes(child.stdout, child.stdin).map_err(describe)?;
        (self.process, self.stderr) = (Some(process), stderr);
        Ok(stream)
    }

    /// Is ready when the process has ended; with `None` if there is none, or if the runtime is going down and will not
    /// tell of it.
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<Option<Exit>> {
        let Some(process) = &mut self.process else { return Poll::Ready(None) };
        let exit =
            process.poll_with(cx, |process| process.try_exit().ok_or(io::ErrorKind::WouldBlock.into()));
        exit.map(Result::ok)
    }

    fn drain_stderr(&mut self, cx: &mut Context<'_>, on_line: &mut impl FnMut(&[u8])) {
        let Some(stderr) = &mut self.stderr else { return };
        let lines = &mut self.lines;
        let drained = stderr.poll_with(cx, |fd| match lines.drain(fd.as_fd(), &mut *on_line) {
            Drained::WouldBlock => Err(io::ErrorKind::WouldBlock.into()),
            drained => Ok(drained),
        });
        match drained {
            Poll::Ready(Ok(Drained::Ended)) => self.stderr = None,
            Poll::Ready(Ok(_)) => cx.waker().wake_by_ref(),
            Poll::Ready(Err(_)) | Poll::Pending => {}
        }
    }
}

fn describe(error: &ConnectError) -> (OpenError, String) {
    (error.open_error(), error.to_string())
}
