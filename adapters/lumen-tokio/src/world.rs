//! What tokio offers to the driver: processes, connections, and the timer.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lumen_driver::status::{MAX_LINES, Process as Known};
use lumen_driver::{Processes, World};
use lumen_os::{CONNECT_TIMEOUT, CommandSpec, ConnectError, Drained, MAX_UNIX_PATH, Process};
use lumen_os::{StderrDrain, StderrTail, Target};
use lumen_proto::{Exit, Instant, OpenError, OpenErrorKind, Port, Signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep_until, timeout};

use crate::Stream;
use crate::register::register;

/// Closed ports of which the exit and the tail of standard error are still known. Worst case: one [`StderrTail`]
/// each.
pub const MAX_ENDED: usize = 8;

/// A connection in the making.
type Connecting = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

#[derive(Debug)]
pub(crate) struct Runtime {
    /// The epoch. Tokio's own clock, so that paused time in a test is paused here too.
    epoch: tokio::time::Instant,
    target: Option<Target>,
    ports: BTreeMap<Port, Entry>,
    ended: VecDeque<(Port, Ended)>,
    open_error: Option<String>,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// What stands behind a port that the machine had asked for.
#[derive(Default)]
struct Entry {
    connecting: Option<Connecting>,
    process: Option<AsyncFd<Process>>,
    stderr: Option<AsyncFd<StderrDrain>>,
    ended: Ended,
}

/// What is remembered of a closed port.
#[derive(Debug, Default)]
struct Ended {
    exit: Option<Exit>,
    tail: StderrTail,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("process", &self.process)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    pub(crate) fn new(target: Option<Target>) -> Self {
        Self {
            epoch: tokio::time::Instant::now(),
            target,
            ports: BTreeMap::new(),
            ended: VecDeque::new(),
            open_error: None,
            sleep: None,
        }
    }

    pub(crate) fn exit(&self, port: Port) -> Option<Exit> {
        match self.ports.get(&port) {
            Some(entry) => entry.ended.exit,
            None => self.ended(port)?.exit,
        }
    }

    pub(crate) fn child_id(&self, port: Port) -> Option<u32> {
        self.ports.get(&port)?.process.as_ref().map(|process| process.get_ref().id())
    }

    pub(crate) fn tail(&self, port: Port) -> Option<&StderrTail> {
        match self.ports.get(&port) {
            Some(Entry { stderr: Some(stderr), .. }) => Some(stderr.get_ref().tail()),
            Some(entry) => Some(&entry.ended.tail),
            None => Some(&self.ended(port)?.tail),
        }
    }

    pub(crate) fn open_error(&self) -> Option<&str> {
        self.open_error.as_deref()
    }

    fn ended(&self, port: Port) -> Option<&Ended> {
        self.ended.iter().find_map(|(ended, what)| (*ended == port).then_some(what))
    }

    /// Opens `port`, or says why not, for the machine and in words.
    fn poll_target(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Result<Stream, (OpenError, String)>> {
        let Some(entry) = self.ports.get_mut(&port) else { return Poll::Pending };
        let connecting = match &self.target {
            None => {
                let error = OpenError { kind: OpenErrorKind::NotFound, errno: 0 };
                let words = "there is nothing to start or to connect to".to_owned();
                return Poll::Ready(Err((error, words)));
            }
            Some(Target::Command(spec)) => return Poll::Ready(entry.spawn(spec)),
            Some(Target::Unix(path)) => {
                entry.connecting.get_or_insert_with(|| Box::pin(connect_unix(path.clone())))
            }
            Some(Target::Tcp(address)) => {
                entry.connecting.get_or_insert_with(|| Box::pin(connect_tcp(address.clone())))
            }
        };
        let result = ready!(connecting.as_mut().poll(cx));
        entry.connecting = None;
        Poll::Ready(result.map_err(|error| (error.open_error(), error.to_string())))
    }
}

impl World for Runtime {
    type Stream = Stream;

    fn now(&self) -> Instant {
        Instant::from_micros(u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn start_open(&mut self, port: Port) {
        self.ports.insert(port, Entry::default());
    }

    fn poll_open(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Result<Stream, OpenError>> {
        let result = ready!(self.poll_target(cx, port));
        Poll::Ready(result.map_err(|(error, words)| {
            self.ports.remove(&port);
            self.open_error = Some(words);
            error
        }))
    }

    fn poll_process(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Exit> {
        let Some(entry) = self.ports.get_mut(&port) else { return Poll::Pending };
        let mut on_line = |line: &[u8]| on_stderr(&mut self.target, line);
        entry.drain_stderr(cx, &mut on_line);
        let (Some(process), None) = (&entry.process, entry.ended.exit) else { return Poll::Pending };
        // An error means that the runtime is going down; then nothing more is told.
        let Ok(mut guard) = ready!(process.poll_read_ready(cx)) else { return Poll::Pending };
        let Some(exit) = process.get_ref().try_exit() else {
            guard.clear_ready();
            // Its readiness came before it was taken back, so it may have come for good in between.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        entry.ended.exit = Some(exit);
        // What it said last may have come after the drain above.
        entry.drain_stderr(cx, &mut on_line);
        Poll::Ready(exit)
    }

    fn signal(&mut self, port: Port, signal: Signal) {
        if let Some(process) = self.ports.get(&port).and_then(|entry| entry.process.as_ref()) {
            process.get_ref().signal(signal);
        }
    }

    fn start_close(&mut self, port: Port) {
        self.signal(port, Signal::Kill);
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<()> {
        if let Some(process) = self.ports.get(&port).and_then(|entry| entry.process.as_ref()) {
            // Only for the wait: an error means that there will be no more news, so the end has to wait itself.
            let _ = ready!(process.poll_read_ready(cx));
        }
        let Some(mut entry) = self.ports.remove(&port) else { return Poll::Ready(()) };
        if let Some(process) = &mut entry.process {
            entry.ended.exit = Some(process.get_mut().end());
        }
        if let Some(stderr) = entry.stderr.take() {
            entry.ended.tail = stderr.into_inner().finish(|line| on_stderr(&mut self.target, line));
        }
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((port, entry.ended));
        Poll::Ready(())
    }

    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()> {
        // A time that the clock cannot tell is as good as never.
        let until = until.and_then(|until| self.epoch.checked_add(Duration::from_micros(until.as_micros())));
        let Some(until) = until else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx)
    }
}

impl Processes for Runtime {
    fn process(&self, port: Port) -> Known {
        let stderr = self.tail(port).map_or_else(Vec::new, |tail| tail.last_lines(MAX_LINES));
        Known { pid: self.child_id(port), stderr }
    }
}

impl Entry {
    fn spawn(&mut self, spec: &CommandSpec) -> Result<Stream, (OpenError, String)> {
        let child = lumen_os::spawn(spec).map_err(|error| (error.open_error(), error.to_string()))?;
        let describe = |error: io::Error| {
            let errno = error.raw_os_error().unwrap_or(0);
            let words = format!("cannot watch {:?}: {error}", spec.program());
            (OpenError { kind: OpenErrorKind::Other, errno }, words)
        };
        // Dropping the process on the way out ends and buries it.
        let process = register(child.process, Interest::READABLE).map_err(describe)?;
        let stderr = child.stderr.map(StderrDrain::new);
        let stderr = stderr.map(|drain| register(drain, Interest::READABLE));
        let stderr = stderr.transpose().map_err(describe)?;
        let stream = Stream::pipes(child.stdout, child.stdin).map_err(describe)?;
        (self.process, self.stderr) = (Some(process), stderr);
        Ok(stream)
    }

    fn drain_stderr(&mut self, cx: &mut Context<'_>, on_line: &mut impl FnMut(&[u8])) {
        while let Some(stderr) = &mut self.stderr {
            let Poll::Ready(Ok(mut guard)) = stderr.poll_read_ready_mut(cx) else { return };
            match guard.get_inner_mut().drain(&mut *on_line) {
                Drained::WouldBlock => guard.clear_ready(),
                Drained::More => {
                    cx.waker().wake_by_ref();
                    return;
                }
                Drained::Ended => {
                    self.ended.tail =
                        self.stderr.take().map(|fd| fd.into_inner().into_tail()).unwrap_or_default();
                }
            }
        }
    }
}

fn on_stderr(target: &mut Option<Target>, line: &[u8]) {
    if let Some(Target::Command(spec)) = target {
        spec.stderr_mut().on_line(line);
    }
}

async fn connect_unix(path: std::path::PathBuf) -> Result<Stream, ConnectError> {
    let len = path.as_os_str().len();
    if len > MAX_UNIX_PATH {
        return Err(ConnectError::PathTooLong { path, len });
    }
    let connected = in_time(UnixStream::connect(&path)).await;
    connected.map(Stream::from).map_err(|source| refused(Path::display(&path).to_string(), source))
}

async fn connect_tcp(address: String) -> Result<Stream, ConnectError> {
    let connected = in_time(TcpStream::connect(&address)).await;
    connected.map(Stream::from).map_err(|source| refused(address, source))
}

async fn in_time<T>(connect: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(CONNECT_TIMEOUT, connect).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn refused(target: String, source: io::Error) -> ConnectError {
    ConnectError::Refused { target, source }
}
