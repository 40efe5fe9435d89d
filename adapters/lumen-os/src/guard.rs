//! A guard: a process between this one and a command, which ends all that the command has started, also when this
//! process was killed and can no longer do so itself.
//!
//! The guard adopts every orphan among its descendants, whatever group or session they moved to. It starts the command
//! with the streams that were meant for it and keeps no copy of them, so no byte passes through it. A line, one socket,
//! connects the two: down it go the command's standard input and perhaps the order to kill, up it come whether the
//! command was started and how it ended. When the line closes because this process is gone, the tree is given a step to
//! see the end of its input, a step after SIGTERM, and is then killed.
//!
//! A program that has its commands guarded must call [`run`] when it is started with the word that it gave to
//! [`CommandSpec::guarded_by`](crate::CommandSpec::guarded_by).

mod inside;
mod word;

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use lumen_proto::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, IoSlice};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    recv, send, sendmsg, socketpair,
};

pub use inside::{ignored_signals, run};
use word::{LEN, Word};

/// How long a guard may take to say whether the command was started.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a guard may take to end the tree after it was told to. Then it is killed itself.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The one byte that goes with the command's standard input, and the one that orders to kill.
const NOTE: &[u8] = b"!";

/// How a guard is started.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) program: OsString,
    pub(crate) word: OsString,
}

impl Guard {
    /// Returns the guard's own command up to the guarded program, with `end` as its end of the line.
    pub(crate) fn command(&self, program: &OsStr, end: OwnedFd) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0("lumen").arg(&self.word).arg(program).stdin(end);
        command
    }
}

/// This process's end of the line to a guard.
#[derive(Debug)]
pub(crate) struct Line(OwnedFd);

impl Line {
    /// Returns both ends. The first is this process's, and stays in it.
    pub(crate) fn pair() -> Result<(Self, OwnedFd), Errno> {
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(own), other))
    }

    /// Gives the guard the command's standard input, waits until it has started the command, and returns the command's
    /// process id.
    ///
    /// # Errors
    /// What the system said to the guard when it started the command, or in words what is wrong with the guard.
    pub(crate) fn start(&self, stdin: BorrowedFd<'_>) -> io::Result<i32> {
        let fds = [stdin];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        match sendmsg(&self.0, &[IoSlice::new(NOTE)], &mut control, SendFlags::NOSIGNAL) {
            // If it is gone, that is told below.
            Ok(_) | Err(Errno::PIPE) => {}
            Err(errno) => return Err(errno.into()),
        }
        if !wait_readable(self.0.as_fd(), START_LIMIT)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its guard does not start"));
        }
        match self.heard(RecvFlags::empty()) {
            Heard::Word(Word::Started(pid)) => Ok(pid),
            Heard::Word(Word::NotStarted(errno)) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::Error::other("its guard has ended")),
        }
    }

    /// Has the guard kill all that there is, and end. It may be gone already.
    pub(crate) fn kill(&self) {
        let _ = send(&self.0, NOTE, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Returns what is known of the command's end. As often as one likes.
    pub(crate) fn fate(&self) -> Fate {
        match self.heard(RecvFlags::PEEK) {
            Heard::Word(Word::Ended(exit)) => Fate::Ended(exit),
            Heard::Nothing => Fate::Runs,
            _ => Fate::Unguarded,
        }
    }

    fn heard(&self, flags: RecvFlags) -> Heard {
        let mut bytes = [0; LEN];
        loop {
            return match recv(&self.0, &mut bytes, flags | RecvFlags::DONTWAIT) {
                Ok((LEN, _)) => Word::decode(bytes).map_or(Heard::End, Heard::Word),
                Err(Errno::AGAIN) => Heard::Nothing,
                // The second says once that the guard did not read everything; what it wrote comes after that.
                Err(Errno::INTR | Errno::CONNRESET) => continue,
                Ok(_) | Err(_) => Heard::End,
            };
        }
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Line {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// What is known of a guarded command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It has not ended.
    Runs,
    /// It has ended so; what it started may not.
    Ended(Exit),
    /// The guard is gone and has told nothing.
    Unguarded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Nothing,
    Word(Word),
    End,
}

/// Waits for the end of a guard that was told to end. It may not have ended after that.
pub(crate) fn wait_ended(pidfd: BorrowedFd<'_>) {
    // An error is the same as a wait in vain: what is left is killed.
    let _ = wait_readable(pidfd, END_LIMIT);
}

/// Returns whether something can be read within `limit`, or the end.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, limit: Duration) -> Result<bool, Errno> {
    let limit = Timespec::try_from(limit).map_err(|_| Errno::INVAL)?;
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&limit)) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
            Ok(count) => return Ok(count > 0),
        }
    }
}
