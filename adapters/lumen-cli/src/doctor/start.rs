//! One start of the server: its streams as they are, and every wait with an end.

use std::fs;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use lumen_os::{Clock, CommandSpec, Drained, Process, SpawnError, StderrDrain};
use lumen_proto::limits::READ_CHUNK;
use lumen_proto::{Exit, Instant, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Stop;
use super::cut::{Cutter, Piece};

/// The variable by which what the server has started is found again.
const MARK: &str = "LUMEN_DOCTOR_START";

/// What came of waiting.
#[derive(Debug)]
pub(super) enum Heard {
    Piece(Piece),
    /// The output has ended, or the process has and nobody else wrote since.
    Ended,
    /// The time is over.
    Late,
}

/// A server that runs. Dropping it kills it and its group.
pub(super) struct Start {
    clock: Clock,
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<StderrDrain>,
    process: Process,
    cutter: Cutter,
    mark: String,
    interrupts: Rc<OwnedFd>,
    buf: Box<[u8]>,
}

impl Start {
    /// Starts it. `number` tells this start from the others of this process.
    pub(super) fn new(spec: CommandSpec, number: u32, interrupts: Rc<OwnedFd>) -> Result<Self, SpawnError> {
        let mark = format!("{}-{number}", std::process::id());
        let child = lumen_os::spawn(&spec.stderr(lumen_os::Stderr::Ignore).env(MARK, &mark))?;
        Ok(Self {
            clock: Clock::new(),
            stdin: Some(child.stdin),
            stdout: Some(child.stdout),
            stderr: child.stderr.map(StderrDrain::new),
            process: child.process,
            cutter: Cutter::default(),
            mark,
            interrupts,
            buf: vec![0; READ_CHUNK].into_boxed_slice(),
        })
    }

    /// Writes all of it, which is little, unless nobody reads any more or the time is over.
    pub(super) fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> Result<(), Stop> {
        while let (Some(stdin), false) = (&self.stdin, bytes.is_empty()) {
            match rustix::io::write(stdin, bytes) {
                Ok(len) => bytes = bytes.get(len..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.now() < deadline => {
                    let fds = [(stdin.as_fd(), PollFlags::OUT)];
                    self.wait(&fds, deadline)?;
                }
                // That it has ended is heard on the other stream.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Waits for the next piece of output.
    pub(super) fn hear(&mut self, deadline: Instant) -> Result<Heard, Stop> {
        loop {
            if let Some(piece) = self.cutter.next() {
                return Ok(Heard::Piece(piece));
            }
            self.drain_stderr();
            // Asked before the last read, so that nothing it wrote is missed.
            let has_exited = self.try_exit().is_some();
            let Some(stdout) = &self.stdout else {
                return Ok(self.cutter.finish().map_or(Heard::Ended, Heard::Piece));
            };
            match rustix::io::read(stdout, &mut *self.buf) {
                Ok(len @ 1..) => self.cutter.push(self.buf.get(..len).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !has_exited => {
                    if self.now() >= deadline {
                        return Ok(Heard::Late);
                    }
                    let stderr = self.stderr.as_ref().map(|stderr| (stderr.as_fd(), PollFlags::IN));
                    let fds = [(stdout.as_fd(), PollFlags::IN), (self.process.as_fd(), PollFlags::IN)];
                    let fds: Vec<_> = fds.into_iter().chain(stderr).collect();
                    self.wait(&fds, deadline)?;
                }
                Ok(0) | Err(_) => self.stdout = None,
            }
        }
    }

    /// Closes the server's input.
    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Returns whether the server's input is open.
    pub(super) fn has_input(&self) -> bool {
        self.stdin.is_some()
    }

    /// Waits for the process to end, when no more output comes.
    pub(super) fn wait_exit(&mut self, deadline: Instant) -> Result<Option<Exit>, Stop> {
        loop {
            self.drain_stderr();
            let exit = self.try_exit();
            if exit.is_some() || self.now() >= deadline {
                return Ok(exit);
            }
            let stderr = self.stderr.as_ref().map(|stderr| (stderr.as_fd(), PollFlags::IN));
            let fds: Vec<_> = [(self.process.as_fd(), PollFlags::IN)].into_iter().chain(stderr).collect();
            self.wait(&fds, deadline)?;
        }
    }

    pub(super) fn terminate(&self) {
        self.process.signal(Signal::Terminate);
    }

    /// Returns the end of what it wrote to its standard error.
    pub(super) fn stderr_tail(&self) -> String {
        self.stderr.as_ref().map(|stderr| stderr.tail().text()).unwrap_or_default()
    }

    /// Returns the time since the start.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn try_exit(&self) -> Option<Exit> {
        self.process.try_exit()
    }

    /// Returns the processes that the server has started, by its group and by what they inherited, without itself.
    pub(super) fn descendants(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}", self.mark);
        let own = self.process.id();
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(|&id| id != own && (is_in_group(id, own) || carries(id, mark.as_bytes()))).collect()
    }

    fn drain_stderr(&mut self) {
        if let Some(stderr) = &mut self.stderr {
            // What is left of a flood is read the next time.
            let _: Drained = stderr.drain(|_| {});
        }
    }

    fn wait(&self, fds: &[(BorrowedFd<'_>, PollFlags)], deadline: Instant) -> Result<(), Stop> {
        let left = self.clock.until(deadline).min(Duration::from_secs(3600));
        let left = Timespec::try_from(left).unwrap_or_default();
        let mut fds: Vec<_> = fds.iter().map(|&(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        fds.push(PollFd::new(&self.interrupts, PollFlags::IN));
        match poll(&mut fds, Some(&left)) {
            Ok(_) if fds.last().is_some_and(|fd| !fd.revents().is_empty()) => Err(Stop::Interrupted),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Stop::Broken(errno.into())),
        }
    }
}

/// Reads `/proc/ID/stat`: after the name in parentheses come state, parent and group.
fn is_in_group(id: u32, group: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let is_alive = fields.next().is_some_and(|state| state != "Z");
    is_alive && fields.nth(1).and_then(|text| text.parse().ok()) == Some(group)
}

fn carries(id: u32, mark: &[u8]) -> bool {
    fs::read(format!("/proc/{id}/environ"))
        .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|pair| pair == mark))
}
