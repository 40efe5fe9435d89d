//! Starting a command that outlives this process and everything around it: in a session of its own, without a terminal,
//! and nobody's child here.
//!
//! It is started by way of another process, which makes the session, starts it, and is gone at once. A program that
//! detaches commands must call [`run`] when it is started as what it gave to [`spawn`].
//!
//! Descriptors that this process was given and that are not close-on-exec are inherited, as by any command: what they hold,
//! such as a lock on a file, is held until the command ends.
//!
//! A process that has made itself subreaper above this one still adopts it; a [guard](crate::guard) ends it with the rest.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, setsid};

use crate::guard::wait_readable;

/// A command that was detached. Dropping it does nothing to that.
#[derive(Debug)]
pub struct Detached {
    id: u32,
    /// None if it has ended already.
    pidfd: Option<OwnedFd>,
}

impl Detached {
    /// Returns the process id.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Returns whether it has ended.
    ///
    /// # Errors
    /// What the system said, which is out of memory.
    pub fn has_ended(&self) -> io::Result<bool> {
        match &self.pidfd {
            Some(pidfd) => Ok(wait_readable(pidfd.as_fd(), Duration::ZERO)?),
            None => Ok(true),
        }
    }

    /// Returns a descriptor that can be read when it has ended; `None` if it has.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }
}

/// Starts a command detached. `helper` is the process in between: this program with its word for [`run`] and the
/// command's words as arguments. Environment, directory and standard error are the command's as well; standard input and
/// output lead nowhere.
///
/// # Errors
/// The helper could not be started, or could not start the command; it has said why on that standard error.
pub fn spawn(helper: &mut Command) -> io::Result<Detached> {
    let child = helper.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = child.wait_with_output()?;
    let told = std::str::from_utf8(&output.stdout).ok().and_then(|told| told.trim_end().parse::<i32>().ok());
    let pid = told.and_then(Pid::from_raw).filter(|_| output.status.success());
    let pid = pid.ok_or_else(|| io::Error::other("it could not be detached"))?;
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Some(pidfd),
        Err(Errno::SRCH) => None,
        Err(errno) => return Err(errno.into()),
    };
    Ok(Detached { id: pid.as_raw_nonzero().get().unsigned_abs(), pidfd })
}

/// Does the helper's work: makes a session, starts `program` in it, and tells its process id.
///
/// # Errors
/// This process was not started for that, or the system refused.
pub fn run(program: impl AsRef<OsStr>, words: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    setsid()?;
    let mut command = Command::new(program);
    command.arg0("lumen").args(words).stdin(Stdio::null()).stdout(Stdio::null());
    // It is left to whoever adopts it.
    let id = command.spawn()?.id();
    let mut stdout = io::stdout();
    writeln!(stdout, "{id}")?;
    stdout.flush()
}
