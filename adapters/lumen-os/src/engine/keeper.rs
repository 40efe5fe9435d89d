//! What stands behind the ports that a machine asked for: processes and connections, and what is remembered of them.

use std::io;
use std::os::fd::OwnedFd;

use lumen_driver::PortMap;
use lumen_proto::{Exit, OpenError, OpenErrorKind, Port, Signal};

use crate::command::nothing_to_open;
use crate::remembered::{Ended, Remembered};
use crate::{ConnectError, Drained, Process, StderrDrain, StderrTail, Target};

/// What was opened.
#[derive(Debug)]
pub enum Opened {
    /// Our ends of a child's pipes, non-blocking.
    Pipes {
        /// Of its standard output.
        read: OwnedFd,
        /// Of its standard input.
        write: OwnedFd,
    },
    /// A connection, non-blocking.
    Socket(OwnedFd),
}

/// Starts processes and connects, serves what belongs to a process besides its streams, and buries it.
#[derive(Debug)]
pub struct Keeper {
    target: Option<Target>,
    open: PortMap<Kept>,
    ended: Remembered,
    open_error: Option<String>,
}

#[derive(Debug, Default)]
struct Kept {
    process: Option<Process>,
    stderr: Option<StderrDrain>,
    ended: Ended,
}

impl Keeper {
    /// Keeps nothing yet. `target` is what is started or connected to; without one that fails.
    pub fn new(target: Option<Target>) -> Self {
        Self { target, open: PortMap::new(), ended: Remembered::default(), open_error: None }
    }

    /// Starts what the target names, or connects to it, which may take up to [`crate::CONNECT_TIMEOUT`].
    ///
    /// # Errors
    /// Why not, in short; [`open_error`](Self::open_error) has the words.
    pub fn open(&mut self, port: Port) -> Result<Opened, OpenError> {
        let opened = match &self.target {
            Some(Target::Command(spec)) => match crate::spawn(spec) {
                Ok(child) => {
                    let stderr = child.stderr.map(StderrDrain::new);
                    let kept = Kept { process: Some(child.process), stderr, ..Kept::default() };
                    self.open.insert(port, kept);
                    Ok(Opened::Pipes { read: child.stdout, write: child.stdin })
                }
                Err(error) => Err((error.open_error(), error.to_string())),
            },
            Some(Target::Unix(path)) => connected(crate::connect_unix(path)),
            Some(Target::Tcp(host_port)) => connected(crate::connect_tcp(host_port)),
            None => Err(nothing_to_open()),
        };
        opened.map_err(|(error, words)| {
            self.open_error = Some(words);
            error
        })
    }

    /// Takes back what was opened, because it cannot be used.
    pub fn refuse(&mut self, port: Port, error: &io::Error) -> OpenError {
        self.open.remove(port);
        self.open_error = Some(format!("cannot watch what was opened: {error}"));
        OpenError { kind: OpenErrorKind::Other, errno: error.raw_os_error().unwrap_or(0) }
    }

    /// Returns the process behind a port that is open.
    pub fn process(&self, port: Port) -> Option<&Process> {
        self.open.get(port)?.process.as_ref()
    }

    /// Returns its standard error, until that has ended.
    pub fn stderr(&self, port: Port) -> Option<&StderrDrain> {
        self.open.get(port)?.stderr.as_ref()
    }

    /// Sends a signal to it and all of its group.
    pub fn signal(&self, port: Port, signal: Signal) {
        if let Some(process) = self.process(port) {
            process.signal(signal);
        }
    }

    /// Returns how the process ended, if it has.
    pub fn try_exit(&mut self, port: Port) -> Option<Exit> {
        let kept = self.open.get_mut(port)?;
        kept.ended.exit = kept.process.as_ref()?.try_exit();
        kept.ended.exit
    }

    /// Reads what has arrived on standard error; `Ended` also if there is none.
    pub fn drain_stderr(&mut self, port: Port) -> Drained {
        let Some(kept) = self.open.get_mut(port) else { return Drained::Ended };
        let Some(stderr) = &mut kept.stderr else { return Drained::Ended };
        let drained = stderr.drain(|line| Target::on_stderr(&mut self.target, line));
        if drained == Drained::Ended
            && let Some(stderr) = kept.stderr.take()
        {
            kept.ended.tail = stderr.into_tail();
        }
        drained
    }

    /// Ends and buries what is behind the port, and remembers how it ended.
    pub fn close(&mut self, port: Port) {
        let Some(mut kept) = self.open.remove(port) else { return };
        if let Some(process) = &mut kept.process {
            kept.ended.exit = Some(process.end());
        }
        if let Some(stderr) = kept.stderr.take() {
            kept.ended.tail = stderr.finish(|line| Target::on_stderr(&mut self.target, line));
        }
        self.ended.push(port, kept.ended);
    }

    /// Returns how the process behind a port ended, while that is open or as long as it is remembered.
    pub fn exit(&self, port: Port) -> Option<Exit> {
        match self.open.get(port) {
            Some(kept) => kept.ended.exit,
            None => self.ended.find(port)?.exit,
        }
    }

    /// Returns the end of its standard error, while that is open or as long as it is remembered.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        match self.open.get(port) {
            Some(kept) => Some(kept.stderr.as_ref().map_or(&kept.ended.tail, StderrDrain::tail)),
            None => Some(&self.ended.find(port)?.tail),
        }
    }

    /// Returns why the last thing that could not be opened could not, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.open_error.as_deref()
    }
}

fn connected(result: Result<OwnedFd, ConnectError>) -> Result<Opened, (OpenError, String)> {
    result.map(Opened::Socket).map_err(|error| (error.open_error(), error.to_string()))
}
