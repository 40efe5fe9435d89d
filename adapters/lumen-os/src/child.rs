//! Starting a child in a process group of its own, and ending the whole group.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lumen_proto::{Exit, Signal};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};

use crate::guard::{self, Fate, Line};
use crate::{CommandSpec, SpawnError, Stderr};

/// A child that was started: our ends of its streams, each non-blocking, and the process itself.
///
/// The parts are separate so that a binding can move each descriptor into a type of its runtime. The child's
/// own ends are blocking pipes, as programs expect.
#[derive(Debug)]
pub struct Child {
    /// Writes to the child's standard input; dropping it is the child's end of file.
    pub stdin: OwnedFd,
    /// Reads the child's standard output.
    pub stdout: OwnedFd,
    /// Reads the child's standard error, unless that is inherited.
    pub stderr: Option<OwnedFd>,
    /// The process, its group, and the duty to bury it.
    pub process: Process,
}

/// Starts a command in a process group of its own.
///
/// Its descriptors are close-on-exec here, so no sibling inherits them. For a guarded command this waits until the guard
/// has started it, at most ten seconds.
///
/// # Errors
/// What the system refused, in words that tell a missing program from a missing directory. Nothing stays
/// behind: no process and no descriptor.
pub fn spawn(spec: &CommandSpec) -> Result<Child, SpawnError> {
    let refused =
        |source: Errno| SpawnError::Refused { program: PathBuf::from(&spec.program), source: source.into() };
    let (mut command, guarded) = match &spec.guard {
        None => {
            let mut command = Command::new(&spec.program);
            command.stdin(Stdio::piped());
            (command, None)
        }
        Some(guard) => {
            let (line, end) = Line::pair().map_err(refused)?;
            let stdin = pipe_with(PipeFlags::CLOEXEC).map_err(refused)?;
            (guard.command(&spec.program, end), Some((line, stdin)))
        }
    };
    command.args(&spec.args).stdout(Stdio::piped()).process_group(0);
    command.stderr(match spec.stderr {
        Stderr::Inherit => Stdio::inherit(),
        Stderr::Ignore | Stderr::Lines(_) => Stdio::piped(),
    });
    if spec.env_clear {
        command.env_clear();
    }
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    let spawned = command.spawn();
    // With it goes the guard's end of the line, so that the line ends when the guard does.
    drop(command);
    let mut child = spawned.map_err(|source| match (explain(spec, source), &spec.guard) {
        (
            SpawnError::ProgramNotFound { program, source }
            | SpawnError::InterpreterNotFound { program, source },
            Some(guard),
        ) => {
            let source = io::Error::other(format!("its guard {:?}: {source}", guard.program));
            SpawnError::Refused { program, source }
        }
        (error, _) => error,
    })?;
    let pid = Pid::from_child(&child);
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) => {
            // Without a pidfd nobody would notice its end, so it must not live. Errors here mean it is gone.
            let _ = kill_process_group(pid, rustix::process::Signal::KILL);
            let _ = child.wait();
            return Err(refused(errno));
        }
    };
    let mut process = Process { leader: pid, pidfd, line: None, id: child.id(), ended: None };
    let stdin = match guarded {
        None => child.stdin.take().map(OwnedFd::from),
        Some((line, (read, write))) => {
            let started = process.line.insert(line).start(read.as_fd());
            process.id = started.map_err(|source| explain(spec, source))?.unsigned_abs();
            Some(write)
        }
    };
    let (Some(stdin), Some(stdout)) = (stdin, child.stdout.take()) else {
        return Err(refused(Errno::BADF));
    };
    let child =
        Child { stdin, stdout: stdout.into(), stderr: child.stderr.take().map(OwnedFd::from), process };
    for fd in [Some(&child.stdin), Some(&child.stdout), child.stderr.as_ref()].into_iter().flatten() {
        set_nonblocking(fd.as_fd()).map_err(refused)?;
    }
    Ok(child)
}

/// A child process and its group. Dropping it ends and buries it.
///
/// Until it is buried, which only [`end`](Self::end) and `Drop` do, its id stays taken and so does the
/// group's, so no signal can reach a stranger. `AsFd` is readable once the process has exited.
///
/// # Bounds
/// Without a [guard](CommandSpec::guarded_by), a descendant that moves into another process group or session is not
/// reached; and if this process is killed, nothing is: its children then only see the end of their input.
#[derive(Debug)]
pub struct Process {
    /// This process's child, which leads the group: the command, or the guard if there is one.
    leader: Pid,
    /// The leader's.
    pidfd: OwnedFd,
    line: Option<Line>,
    /// The command's.
    id: u32,
    ended: Option<Exit>,
}

impl Process {
    /// Sends a signal to the process and to all of its group. One that has already ended is not an error.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_some() {
            return;
        }
        match (signal, &self.line) {
            (Signal::Terminate, _) => self.signal_group(rustix::process::Signal::TERM),
            (Signal::Kill, None) => self.signal_group(rustix::process::Signal::KILL),
            // The guard finds also those who left the group, so it must outlive them.
            (Signal::Kill, Some(line)) => line.kill(),
        }
    }

    /// Kills what is left of the group or, with a guard, of the whole tree; buries the process, and says how it ended. A
    /// second call only says it again.
    ///
    /// Waits until the kernel has ended the process: that is at once, unless it sits in a system call that no
    /// signal interrupts. A guard has two seconds to end the tree.
    pub fn end(&mut self) -> Exit {
        if let Some(exit) = self.ended {
            return exit;
        }
        if let Some(line) = &self.line {
            line.kill();
            guard::wait_ended(self.pidfd.as_fd());
        }
        self.signal_group(rustix::process::Signal::KILL);
        let mut exit = loop {
            match waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED) {
                Ok(Some(status)) => break exit_of(&status),
                Ok(None) | Err(Errno::INTR) => {}
                // Somebody else has buried it (SIGCHLD ignored): how it ended is lost, that it ended is sure.
                Err(_) => break Exit::Signal(rustix::process::Signal::KILL.as_raw()),
            }
        };
        if let Some(Fate::Ended(command)) = self.line.as_ref().map(Line::fate) {
            exit = command;
        }
        self.ended = Some(exit);
        exit
    }

    /// Returns how the process ended, or `None` while it runs. Does not bury it.
    pub fn try_exit(&self) -> Option<Exit> {
        if self.ended.is_some() {
            return self.ended;
        }
        let mut options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match self.line.as_ref().map(Line::fate) {
            None => {}
            Some(Fate::Runs) => return None,
            Some(Fate::Ended(exit)) => return Some(exit),
            // It is dying, and who waits for this process was woken for the last time.
            Some(Fate::Unguarded) => options.remove(WaitIdOptions::NOHANG),
        }
        match waitid(WaitId::PidFd(self.pidfd.as_fd()), options) {
            Ok(status) => status.as_ref().map(exit_of),
            Err(Errno::CHILD) => Some(Exit::Signal(rustix::process::Signal::KILL.as_raw())),
            Err(_) => None,
        }
    }

    /// Returns the command's process id. It is the group's id too, unless there is a guard, which leads the group then.
    pub fn id(&self) -> u32 {
        self.id
    }

    fn signal_group(&self, signal: rustix::process::Signal) {
        // ESRCH: all have ended. EPERM: only processes with other rights are left; there is nothing to be done.
        let _ = kill_process_group(self.leader, signal);
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_ref().map_or(self.pidfd.as_fd(), Line::as_fd)
    }
}

impl AsRawFd for Process {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn exit_of(status: &rustix::process::WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Signal(0),
    }
}

/// Sets the flag on an open file description that nobody else holds.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)
}

fn explain(spec: &CommandSpec, source: io::Error) -> SpawnError {
    let program = PathBuf::from(&spec.program);
    if let Some(cwd) = &spec.cwd
        && !cwd.is_dir()
    {
        return SpawnError::CwdNotFound { cwd: cwd.clone(), source };
    }
    if source.kind() != io::ErrorKind::NotFound {
        return SpawnError::Refused { program, source };
    }
    let is_path = program.components().count() > 1 || program.is_absolute();
    if is_path && spec.cwd.as_deref().unwrap_or(Path::new("")).join(&program).exists() {
        return SpawnError::InterpreterNotFound { program, source };
    }
    SpawnError::ProgramNotFound { program, source }
}
