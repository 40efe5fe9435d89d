//! The guard process itself: one thread, which mostly sleeps.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lumen_proto::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, IoSliceMut};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use super::word::Word;

/// How long the tree has to notice the end of its input, and again to obey SIGTERM. Both together stay well below two
/// seconds, after which nothing may be left.
const STEP: Duration = Duration::from_millis(500);

/// What is meant for the guarded group must not end the guard. These are taken instead of ignored, because what is
/// ignored would be ignored by the command too.
const TAKEN: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM];

/// Does a guard's work: starts `command`, tells how it ends, and ends all that it has started when told to, or when
/// the process that started the guard has gone. Returns after that.
///
/// It is for a process that [`spawn`](crate::spawn) has started for a [guarded](crate::CommandSpec::guarded_by)
/// command; its standard input is the line to that one. It changes the process it runs in: all its orphans become
/// children, signals are taken, standard output and standard error are closed.
///
/// # Errors
/// The process was not started in that way, or the system refused what a guard needs.
pub fn run(command: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    let stdin = io::stdin();
    let line = stdin.as_fd();
    let Some(input) = received(line)? else { return Ok(()) };
    // Only a name for people.
    let _ = fs::write("/proc/self/comm", "lumen-guard");
    set_child_subreaper(Some(getpid()))?;
    let nowhere = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let (signals, write) = UnixStream::pair()?;
    signals.set_nonblocking(true)?;
    // What is ignored already ends nobody, and the command is to ignore it as well.
    let ignored = ignored_signals()?;
    let taken = TAKEN.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    for signal in taken.chain([SIGCHLD]) {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    let mut words = command.into_iter();
    let started =
        Command::new(words.next().unwrap_or_default()).args(words).stdin(Stdio::from(input)).spawn();
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
            tell(line, Word::NotStarted(errno));
            return Ok(());
        }
    };
    let pid = Pid::from_child(&child);
    let mut tree = Tree { line, signals, command: Some(pid) };
    // From here on nothing is an excuse to leave the tree alone.
    let closed = dup2_stdout(&nowhere).and_then(|()| dup2_stderr(&nowhere));
    let order = closed.and_then(|()| {
        tell(line, Word::Started(pid.as_raw_nonzero().get()));
        tree.wait_for_order()
    });
    tree.end(order == Ok(Order::Abandoned));
    order?;
    Ok(())
}

/// Returns the signals that this process ignores, the lowest bit for signal 1. Catching one would undo what whoever started
/// this process has asked for, as by `nohup`.
///
/// # Errors
/// The system does not say.
pub fn ignored_signals() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.ok_or_else(|| io::Error::other("the system does not say which signals are ignored"))
}

/// Receives the command's standard input; `None` if who wanted to send it is gone.
fn received(line: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut note = [0; 1];
    loop {
        match recvmsg(line, &mut [IoSliceMut::new(&mut note)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(_) => break,
        }
    }
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    }))
}

/// If nobody hears it, the end of the line is noticed next.
fn tell(line: BorrowedFd<'_>, word: Word) {
    let _ = send(line, &word.encode(), SendFlags::NOSIGNAL);
}

/// Why the tree is to be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// It shall be killed.
    Kill,
    /// Nobody is there any more to say so.
    Abandoned,
}

/// The command and all its descendants.
struct Tree<'a> {
    line: BorrowedFd<'a>,
    /// Has a byte after each signal.
    signals: UnixStream,
    /// The command, until it has been reaped.
    command: Option<Pid>,
}

impl Tree<'_> {
    /// Lives with the tree until it is to be ended.
    fn wait_for_order(&mut self) -> Result<Order, Errno> {
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(self.line, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            if let Err(errno) = poll(&mut fds, None)
                && errno != Errno::INTR
            {
                return Err(errno);
            }
            self.reap();
            match recv(self.line, &mut [0; 1], RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Ok((1.., _)) => return Ok(Order::Kill),
                Ok((0, _)) | Err(_) => return Ok(Order::Abandoned),
            }
        }
    }

    /// Ends everything. Only descendants that have become another user's may be left.
    fn end(&mut self, is_gentle: bool) {
        if is_gentle {
            self.wait_until(Instant::now() + STEP, || {});
            let mut told = HashSet::new();
            self.wait_until(Instant::now() + STEP, || {
                // Each, also those that are adopted meanwhile, is told once: a second signal may mean something else.
                for pid in children().filter(|&pid| told.insert(pid)) {
                    let _ = kill_process(pid, Signal::TERM);
                }
            });
        }
        // What dies leaves its own children to this process, so this comes to an end.
        while !self.reap() {
            let killed = children().filter(|&pid| kill_process(pid, Signal::KILL).is_ok()).count();
            if killed == 0 {
                break;
            }
            for _ in 0..killed {
                if let Ok(Some((pid, status))) = wait(WaitOptions::empty()) {
                    self.on_reaped(pid, status);
                }
            }
        }
    }

    /// Waits until there are no children left, or until `deadline`, and calls `on_change` first and after each change.
    fn wait_until(&mut self, deadline: Instant, mut on_change: impl FnMut()) {
        while !self.reap() {
            on_change();
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).unwrap_or_default();
            match poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&timeout)) {
                Ok(1..) | Err(Errno::INTR) => {}
                Ok(0) | Err(_) => break,
            }
        }
    }

    /// Buries all who have ended. Returns whether that were the last.
    fn reap(&mut self) -> bool {
        // Before the look at who has ended, so that nobody who ends after that is missed.
        while matches!(rustix::io::read(&self.signals, &mut [0; 64]), Ok(1..) | Err(Errno::INTR)) {}
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.on_reaped(pid, status),
                Err(Errno::INTR) => {}
                Ok(None) => return false,
                // There are no children.
                Err(_) => return true,
            }
        }
    }

    fn on_reaped(&mut self, pid: Pid, status: WaitStatus) {
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => return,
        };
        if self.command == Some(pid) {
            self.command = None;
            tell(self.line, Word::Ended(exit));
        }
    }
}

/// Returns the children of this process, zombies too. They stay children until this process buries them, so a signal to
/// one reaches no stranger.
fn children() -> impl Iterator<Item = Pid> {
    let own = getpid().as_raw_nonzero().get();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(move |&pid| parent(pid) == Some(own)).filter_map(Pid::from_raw)
}

/// Returns the parent of a process, if it is still there.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, also parentheses and what is no text.
    let after = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(stat.get(after + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}
