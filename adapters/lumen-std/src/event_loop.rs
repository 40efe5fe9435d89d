//! The loop: operations of the pump against descriptors, and `poll(2)` for those that would block.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use lumen_driver::{Counters, Done, Op, Outcome, Pump, is_gone};
use lumen_os::{Clock, ConnectError, Drained, Process, StderrDrain, StderrTail, Target};
use lumen_proto::limits::READ_CHUNK;
use lumen_proto::{Exit, Instant, Machine, OpenError, OpenErrorKind, Port};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::Stream;

/// Closed ports of which the exit, the counters and the tail of standard error are still known. Worst case: one
/// [`StderrTail`] each.
pub const MAX_ENDED: usize = 8;

/// Operations started in one turn, so that two busy ports cannot keep a turn from ever looking at the rest.
const TURN_OPS: usize = 64;

/// Drives one machine on the thread that calls it.
///
/// # The loop
/// The owner calls [`turn`](Self::turn) and takes the events with [`poll_event`](Self::poll_event), or leaves
/// both to [`run_until`](Self::run_until). Commands go through [`with`](Self::with); what they lead to starts in
/// the next turn.
///
/// # Bounds
/// One buffer of [`READ_CHUNK`] bytes for all ports. A turn starts at most 64 operations before it looks at every
/// descriptor again. Starting a process or connecting happens inside the turn and holds it up: a connection for
/// up to [`lumen_os::CONNECT_TIMEOUT`].
///
/// Dropping it closes everything, and ends and buries the processes.
pub struct Loop<M: Machine> {
    pump: Pump<M>,
    clock: Clock,
    target: Option<Target>,
    ports: BTreeMap<Port, Entry>,
    ended: VecDeque<(Port, Ended)>,
    /// One event that had to be taken to see whether there was one.
    event: Option<M::Event>,
    open_error: Option<String>,
    write_error: Option<io::ErrorKind>,
    watched: Option<OwnedFd>,
    woken: bool,
    /// A descriptor whose readiness is only told.
    looked_at: Option<OwnedFd>,
    is_looking: bool,
    is_readable: bool,
    buf: Box<[u8]>,
}

/// An open port.
#[derive(Debug)]
struct Entry {
    stream: Stream,
    process: Option<Process>,
    exit: Option<Exit>,
    stderr: Option<StderrDrain>,
    tail: StderrTail,
    /// Bytes to read once there are some.
    reading: Option<usize>,
    /// The last read was as long as it might be, so the next is worth trying without asking.
    is_full: bool,
    /// A write waits for room.
    is_writing: bool,
}

/// What is remembered of a closed port.
#[derive(Debug)]
struct Ended {
    exit: Option<Exit>,
    tail: StderrTail,
    counters: Counters,
}

/// What a descriptor in the poll set stands for.
#[derive(Clone, Copy, Debug)]
enum Ready {
    Read(Port),
    Write(Port),
    Exit(Port),
    Stderr(Port),
    Watched,
    LookedAt,
}

impl<M: Machine> Loop<M> {
    /// Makes a loop. `target` is what the machine's `Spawn` starts or connects to; without one it fails.
    pub fn new(machine: M, target: Option<Target>) -> Self {
        Self {
            pump: Pump::new(machine),
            clock: Clock::new(),
            target,
            ports: BTreeMap::new(),
            ended: VecDeque::new(),
            event: None,
            open_error: None,
            write_error: None,
            watched: None,
            woken: false,
            looked_at: None,
            is_looking: true,
            is_readable: false,
            buf: vec![0; READ_CHUNK].into_boxed_slice(),
        }
    }

    /// Gives the machine a port that is open already.
    pub fn attach(&mut self, port: Port, stream: Stream) {
        self.ports.insert(port, Entry::new(stream));
        self.pump.complete(self.clock.now(), Done::Opened(port, Ok(())));
    }

    /// Lets this descriptor end a [`turn`](Self::turn) when something can be read from it, such as the pipe a
    /// signal handler writes to. What arrives is read and thrown away; [`take_woken`](Self::take_woken) tells.
    /// It replaces an earlier one.
    pub fn watch(&mut self, fd: impl Into<OwnedFd>) {
        self.watched = Some(fd.into());
    }

    /// Lets this descriptor end a [`turn`](Self::turn) when it can be read, without reading it, such as a socket that
    /// listens; [`take_readable`](Self::take_readable) tells.
    pub fn look_at(&mut self, fd: impl Into<OwnedFd>) {
        self.looked_at = Some(fd.into());
    }

    /// Sets whether that descriptor ends a turn, for the next turns.
    pub fn set_looking(&mut self, is_looking: bool) {
        self.is_looking = is_looking;
    }

    /// Returns whether the descriptor that is looked at could be read since this was last asked.
    pub fn take_readable(&mut self) -> bool {
        std::mem::take(&mut self.is_readable)
    }

    /// Returns whether the watched descriptor had something to read since this was last asked.
    pub fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.woken)
    }

    /// Gives the machine a command.
    pub fn with<R>(&mut self, command: impl FnOnce(&mut M) -> R) -> R {
        self.pump.with(self.clock.now(), command)
    }

    /// Returns the machine's next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<M::Event> {
        self.event.take().or_else(|| self.pump.poll_event())
    }

    /// Starts what the machine wants done, waits until something happened, and reports that to the machine.
    /// Does not wait when an event is there to be taken, or beyond `deadline`.
    ///
    /// # Errors
    /// `Deadlock` if there is nothing to wait for; else what `poll(2)` said, which is out of memory.
    pub fn turn(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let was_settled = self.pump.is_settled();
        let is_all = self.start_ops();
        if self.event.is_none() {
            self.event = self.pump.poll_event();
        }
        // That the last port was closed is something that happened.
        let is_waiting = is_all && self.event.is_none() && (was_settled || !self.pump.is_settled());
        self.look(if is_waiting { deadline } else { Some(Instant::ZERO) })
    }

    /// Turns until the machine has an event. `None` means that there is nothing left to wait for: no port is
    /// open, nothing is watched and no deadline is set.
    ///
    /// # Errors
    /// What `poll(2)` said, which is out of memory.
    pub fn next_event(&mut self) -> io::Result<Option<M::Event>> {
        loop {
            if let Some(event) = self.poll_event() {
                return Ok(Some(event));
            }
            match self.turn(None) {
                Err(error) if error.kind() == io::ErrorKind::Deadlock => return Ok(None),
                other => other?,
            }
        }
    }

    /// Does all the work until `is_done`, and takes no event meanwhile; returns whether it came to that. Not, if
    /// there was nothing left to wait for.
    ///
    /// A machine whose events nobody takes stops reading at some point, and then its peer may stop too: where that
    /// can be, take the events instead and ask in between.
    ///
    /// # Errors
    /// What `poll(2)` said, which is out of memory.
    pub fn wait_until(&mut self, mut is_done: impl FnMut(&Pump<M>) -> bool) -> io::Result<bool> {
        loop {
            let is_all = self.start_ops();
            if is_done(&self.pump) {
                return Ok(true);
            }
            match self.look(if is_all { None } else { Some(Instant::ZERO) }) {
                Err(error) if error.kind() == io::ErrorKind::Deadlock => return Ok(false),
                other => other?,
            }
        }
    }

    /// Turns until `is_done` returns something. It is asked before the first turn and after each, and should take
    /// all events.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn run_until<T>(&mut self, mut is_done: impl FnMut(&mut Self) -> Option<T>) -> io::Result<T> {
        loop {
            if let Some(result) = is_done(self) {
                return Ok(result);
            }
            self.turn(None)?;
        }
    }

    /// Closes every port, and ends and buries the processes. The machine hears of none of it.
    pub fn close_all(&mut self) {
        self.pump.close_all(self.clock.now());
        while !self.start_ops() {}
    }

    /// Returns the loop's time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns the machine, to look at it.
    pub fn machine(&self) -> &M {
        self.pump.machine()
    }

    /// Returns whether no port is open and nothing is being done.
    pub fn is_settled(&self) -> bool {
        self.pump.is_settled()
    }

    /// Returns how the process behind `port` ended, while it is open or as long as it is remembered.
    pub fn child_exit(&self, port: Port) -> Option<Exit> {
        match self.ports.get(&port) {
            Some(entry) => entry.exit,
            None => self.ended(port)?.exit,
        }
    }

    /// Returns the id of the process behind `port` while that is open.
    pub fn child_id(&self, port: Port) -> Option<u32> {
        self.ports.get(&port)?.process.as_ref().map(Process::id)
    }

    /// Returns the end of what the process behind `port` wrote to its standard error, while it is open or as long
    /// as it is remembered. Empty if standard error is inherited.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        match self.ports.get(&port) {
            Some(entry) => Some(entry.stderr.as_ref().map_or(&entry.tail, StderrDrain::tail)),
            None => Some(&self.ended(port)?.tail),
        }
    }

    /// Returns what went through `port`, while it is open or as long as it is remembered.
    pub fn counters(&self, port: Port) -> Counters {
        match self.ended(port) {
            Some(ended) => ended.counters,
            None => self.pump.counters(port),
        }
    }

    /// Returns why the last process could not be started, or the last connection not be made, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.open_error.as_deref()
    }

    /// Waits until a descriptor is ready or a deadline has come, the machine's or the given one, and tells the
    /// machine.
    fn look(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let deadline = match (self.pump.poll_timeout(), deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for ready in self.wait(deadline)? {
            self.on_ready(ready);
        }
        let now = self.clock.now();
        if self.pump.poll_timeout().is_some_and(|due| due <= now) {
            self.pump.handle_timeout(now);
        }
        Ok(())
    }

    /// Returns why the first write failed that failed for another reason than that its reader had gone: a full
    /// disk, say. The machine only knows that nothing more can be delivered.
    pub fn write_error(&self) -> Option<io::ErrorKind> {
        self.write_error
    }

    fn ended(&self, port: Port) -> Option<&Ended> {
        self.ended.iter().find_map(|(ended, what)| (*ended == port).then_some(what))
    }

    /// Returns whether all operations are started; else the turn's share is used up.
    fn start_ops(&mut self) -> bool {
        for _ in 0..TURN_OPS {
            match self.pump.poll_op() {
                Some(op) => self.start(op),
                None => return true,
            }
        }
        false
    }

    fn start(&mut self, op: Op) {
        match op {
            Op::Open(port) => self.open(port),
            Op::Read(port, most) => {
                if let Some(entry) = self.ports.get_mut(&port) {
                    entry.reading = Some(most);
                    // After a short read there is mostly nothing more: asking first saves the failed attempt.
                    if entry.is_full {
                        self.read(port);
                    }
                }
            }
            Op::Write(port) => self.write(port),
            Op::Finish(port) => {
                if let Some(entry) = self.ports.get_mut(&port) {
                    entry.stream.finish();
                }
                self.complete(Done::Finished(port));
            }
            Op::Signal(port, signal) => {
                if let Some(process) = self.ports.get(&port).and_then(|entry| entry.process.as_ref()) {
                    process.signal(signal);
                }
            }
            Op::Close(port) => self.close(port),
        }
    }

    fn open(&mut self, port: Port) {
        let opened = match &self.target {
            Some(Target::Command(spec)) => match lumen_os::spawn(spec) {
                Ok(child) => {
                    let mut entry = Entry::new(Stream::pipes(child.stdout, child.stdin));
                    entry.process = Some(child.process);
                    entry.stderr = child.stderr.map(StderrDrain::new);
                    Ok(entry)
                }
                Err(error) => Err((error.open_error(), error.to_string())),
            },
            Some(Target::Unix(path)) => connected(lumen_os::connect_unix(path)),
            Some(Target::Tcp(host_port)) => connected(lumen_os::connect_tcp(host_port)),
            None => Err((
                OpenError { kind: OpenErrorKind::NotFound, errno: 0 },
                "there is nothing to start or to connect to".to_owned(),
            )),
        };
        let result = match opened {
            Ok(entry) => {
                self.ports.insert(port, entry);
                Ok(())
            }
            Err((error, words)) => {
                self.open_error = Some(words);
                Err(error)
            }
        };
        self.complete(Done::Opened(port, result));
    }

    fn read(&mut self, port: Port) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        let Some(most) = entry.reading else { return };
        let most = most.min(self.buf.len());
        let buf = self.buf.get_mut(..most).unwrap_or_default();
        let outcome = match entry.stream.read(buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                entry.is_full = false;
                return;
            }
            Err(_) => Outcome::Failed,
            Ok(len) => {
                entry.is_full = len == most;
                Outcome::Ok(self.buf.get(..len).unwrap_or_default())
            }
        };
        entry.reading = None;
        let is_hung_up = matches!(outcome, Outcome::Ok([]) | Outcome::Failed) && entry.stream.is_hung_up();
        self.pump.complete(self.clock.now(), Done::Read(port, outcome));
        if is_hung_up {
            self.complete(Done::HungUp(port));
        }
    }

    fn write(&mut self, port: Port) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        let outcome = match entry.stream.write(self.pump.write_bytes(port)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                entry.is_writing = true;
                return;
            }
            Err(error) => {
                if !is_gone(error.kind()) {
                    self.write_error.get_or_insert(error.kind());
                }
                Outcome::Failed
            }
            Ok(len) => Outcome::Ok(len),
        };
        entry.is_writing = false;
        self.complete(Done::Wrote(port, outcome));
    }

    fn close(&mut self, port: Port) {
        if let Some(mut entry) = self.ports.remove(&port) {
            if let Some(process) = &mut entry.process {
                entry.exit = Some(process.end());
            }
            if let Some(stderr) = entry.stderr.take() {
                entry.tail = stderr.finish(|line| on_stderr(&mut self.target, line));
            }
            if self.ended.len() == MAX_ENDED {
                self.ended.pop_front();
            }
            let counters = self.pump.counters(port);
            self.ended.push_back((port, Ended { exit: entry.exit, tail: entry.tail, counters }));
        }
        self.complete(Done::Closed(port));
    }

    fn complete(&mut self, done: Done<'_>) {
        self.pump.complete(self.clock.now(), done);
    }

    /// Waits for a descriptor that something depends on. Descriptors that nobody asks about are left out: one
    /// whose peer hung up would end every wait at once.
    fn wait(&self, deadline: Option<Instant>) -> io::Result<Vec<Ready>> {
        let mut keys = Vec::new();
        let mut fds = Vec::new();
        for (&port, entry) in &self.ports {
            if entry.reading.is_some() {
                keys.push(Ready::Read(port));
                fds.push(PollFd::from_borrowed_fd(entry.stream.read_fd(), PollFlags::IN));
            }
            if let (true, Some(fd)) = (entry.is_writing, entry.stream.write_fd()) {
                keys.push(Ready::Write(port));
                fds.push(PollFd::from_borrowed_fd(fd, PollFlags::OUT));
            }
            if let (None, Some(process)) = (entry.exit, &entry.process) {
                keys.push(Ready::Exit(port));
                fds.push(PollFd::new(process, PollFlags::IN));
            }
            // After the exit, so that what a process said last is read in the turn that sees its end.
            if let Some(stderr) = &entry.stderr {
                keys.push(Ready::Stderr(port));
                fds.push(PollFd::new(stderr, PollFlags::IN));
            }
        }
        if let Some(watched) = &self.watched {
            keys.push(Ready::Watched);
            fds.push(PollFd::new(watched, PollFlags::IN));
        }
        if let (Some(fd), true) = (&self.looked_at, self.is_looking) {
            keys.push(Ready::LookedAt);
            fds.push(PollFd::new(fd, PollFlags::IN));
        }
        if fds.is_empty() && deadline.is_none() {
            return Err(io::ErrorKind::Deadlock.into());
        }
        loop {
            // Anew after an interruption, so that signals cannot prolong the wait.
            let left = deadline.map(|deadline| self.clock.until(deadline));
            // A wait that is too long to be told is as good as none at all.
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut fds, timeout.as_ref()) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => break,
            }
        }
        let ready = keys.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(&key, _)| key).collect())
    }

    fn on_ready(&mut self, ready: Ready) {
        match ready {
            Ready::Read(port) => self.read(port),
            Ready::Write(port) => self.write(port),
            Ready::Exit(port) => self.on_exit(port),
            Ready::Stderr(port) => self.drain_stderr(port),
            Ready::Watched => self.on_watched(),
            Ready::LookedAt => self.is_readable = true,
        }
    }

    fn on_exit(&mut self, port: Port) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        let Some(exit) = entry.process.as_ref().and_then(Process::try_exit) else { return };
        entry.exit = Some(exit);
        self.complete(Done::Exited(port, exit));
    }

    fn drain_stderr(&mut self, port: Port) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        let Some(stderr) = &mut entry.stderr else { return };
        if stderr.drain(|line| on_stderr(&mut self.target, line)) == Drained::Ended
            && let Some(stderr) = entry.stderr.take()
        {
            entry.tail = stderr.into_tail();
        }
    }

    fn on_watched(&mut self) {
        self.woken = true;
        let Some(fd) = &self.watched else { return };
        match rustix::io::read(fd, &mut [0; 64]) {
            Ok(1..) | Err(Errno::AGAIN | Errno::INTR) => {}
            // Its other end is gone, so it would end every wait from now on.
            Ok(0) | Err(_) => self.watched = None,
        }
    }
}

impl<M: Machine + fmt::Debug> fmt::Debug for Loop<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop")
            .field("machine", self.pump.machine())
            .field("target", &self.target)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

impl Entry {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            process: None,
            exit: None,
            stderr: None,
            tail: StderrTail::default(),
            reading: None,
            is_full: false,
            is_writing: false,
        }
    }
}

fn connected(result: Result<OwnedFd, ConnectError>) -> Result<Entry, (OpenError, String)> {
    match result {
        Ok(fd) => Ok(Entry::new(Stream::connected(fd))),
        Err(error) => Err((error.open_error(), error.to_string())),
    }
}

fn on_stderr(target: &mut Option<Target>, line: &[u8]) {
    if let Some(Target::Command(spec)) = target {
        spec.stderr_mut().on_line(line);
    }
}

#[cfg(test)]
mod tests;
