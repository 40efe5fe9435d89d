//! The loop: operations of the pump become operations of the ring, one to one.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use lumen_driver::{Counters, Done, Op, Outcome, Pump, is_gone};
use lumen_os::{Clock, Drained, Process, StderrTail, Target};
use lumen_proto::limits::READ_CHUNK;
use lumen_proto::{Exit, Instant, Machine, Port};
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::Unavailable;
use crate::keeper::{Keeper, Opened};
use crate::ring::{self, CLOSE_TIMEOUT, Completion, OpId, Ring};
use crate::stream::{Stream, duplicate};

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
/// 64 buffers of 32 KiB for what is read on all ports together, and one of [`READ_CHUNK`] if a standard stream is read. A
/// port that waits for its peer has no buffer. Starting a process or connecting happens inside the turn and holds it up: a
/// connection for up to [`lumen_os::CONNECT_TIMEOUT`].
///
/// Dropping it closes everything, and ends and buries the processes. It stays on the thread that made it.
pub struct Loop<M: Machine> {
    // Goes before the descriptors and the processes.
    ring: Ring<Key>,
    pump: Pump<M>,
    clock: Clock,
    keeper: Keeper,
    ports: BTreeMap<Port, Entry>,
    /// One event that had to be taken to see whether there was one.
    event: Option<M::Event>,
    write_error: Option<io::ErrorKind>,
    watched: Option<Watch>,
    woken: bool,
    /// A descriptor whose readiness is only told.
    looked_at: Option<Watch>,
    is_looking: bool,
    is_readable: bool,
    /// What standard streams are read into.
    buf: Vec<u8>,
}

/// What an operation of the ring is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Port(Role, Port),
    Watched,
    LookedAt,
}

/// What it is for on its port, which has one of each at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Read,
    Write,
    Exit,
    Stderr,
}

/// An open port.
#[derive(Debug)]
struct Entry {
    stream: Stream,
    exit_fd: Option<Rc<OwnedFd>>,
    stderr_fd: Option<Rc<OwnedFd>>,
    /// How much the read that was started may bring.
    most: usize,
    ops: Vec<(Role, OpId)>,
    is_closing: bool,
}

/// A descriptor that is watched, and the operation that does it.
#[derive(Debug)]
struct Watch {
    fd: Rc<OwnedFd>,
    op: Option<OpId>,
}

impl<M: Machine> Loop<M> {
    /// Makes a loop. `target` is what the machine's `Spawn` starts or connects to; without one it fails.
    ///
    /// # Errors
    /// There is no ring to be had.
    pub fn new(machine: M, target: Option<Target>) -> Result<Self, Unavailable> {
        Ok(Self {
            ring: Ring::new()?,
            pump: Pump::new(machine),
            clock: Clock::new(),
            keeper: Keeper::new(target),
            ports: BTreeMap::new(),
            event: None,
            write_error: None,
            watched: None,
            woken: false,
            looked_at: None,
            is_looking: true,
            is_readable: false,
            buf: Vec::new(),
        })
    }

    /// Gives the machine a port that is open already.
    pub fn attach(&mut self, port: Port, stream: Stream) {
        self.ports.insert(port, Entry::new(stream));
        self.complete(Done::Opened(port, Ok(())));
    }

    /// Lets this descriptor end a [`turn`](Self::turn) when something can be read from it, such as the pipe a
    /// signal handler writes to. What arrives is read and thrown away; [`take_woken`](Self::take_woken) tells.
    /// It replaces an earlier one.
    pub fn watch(&mut self, fd: impl Into<OwnedFd>) {
        let earlier = self.watched.replace(Watch::new(fd.into()));
        if let Some(op) = earlier.and_then(|watch| watch.op) {
            self.ring.cancel(op);
        }
    }

    /// Lets this descriptor end a [`turn`](Self::turn) when it can be read, without reading it, such as a socket that
    /// listens; [`take_readable`](Self::take_readable) tells.
    pub fn look_at(&mut self, fd: impl Into<OwnedFd>) {
        let earlier = self.looked_at.replace(Watch::new(fd.into()));
        if let Some(op) = earlier.and_then(|watch| watch.op) {
            self.ring.cancel(op);
        }
    }

    /// Sets whether that descriptor ends a turn, for the next turns.
    pub fn set_looking(&mut self, is_looking: bool) {
        self.is_looking = is_looking;
        if let (false, Some(watch)) = (is_looking, &mut self.looked_at)
            && let Some(op) = watch.op.take()
        {
            self.ring.cancel(op);
        }
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
    /// `Deadlock` if there is nothing to wait for; else what the kernel said, which is out of memory.
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
    /// As [`turn`](Self::turn), but for `Deadlock`.
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
    /// As [`turn`](Self::turn), but for `Deadlock`.
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
        let deadline = self.clock.now() + CLOSE_TIMEOUT;
        loop {
            while !self.start_ops() {}
            // What the kernel does not give back in this time is left to the ring.
            if self.pump.is_settled() || deadline <= self.clock.now() || self.look(Some(deadline)).is_err() {
                return;
            }
        }
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
        self.keeper.exit(port)
    }

    /// Returns the id of the process behind `port` while that is open.
    pub fn child_id(&self, port: Port) -> Option<u32> {
        self.keeper.process(port).map(Process::id)
    }

    /// Returns the end of what the process behind `port` wrote to its standard error, while it is open or as long
    /// as it is remembered. Empty if standard error is inherited.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        self.keeper.stderr_tail(port)
    }

    /// Returns what went through `port`, while it is open or as long as it is remembered.
    pub fn counters(&self, port: Port) -> Counters {
        self.pump.counters(port)
    }

    /// Returns why the last process could not be started, or the last connection not be made, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.keeper.open_error()
    }

    /// Returns why the first write failed that failed for another reason than that its reader had gone: a full
    /// disk, say. The machine only knows that nothing more can be delivered.
    pub fn write_error(&self) -> Option<io::ErrorKind> {
        self.write_error
    }

    /// Waits until an operation has completed or a deadline has come, the machine's or the given one, and tells the
    /// machine.
    fn look(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let deadline = match (self.pump.poll_timeout(), deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.watch_on();
        if self.ring.in_flight() == 0 && deadline.is_none() {
            return Err(io::ErrorKind::Deadlock.into());
        }
        self.ring.wait(deadline.map(|deadline| self.clock.until(deadline)))?;
        while let Some(completion) = self.ring.next() {
            self.on_completion(completion);
        }
        let now = self.clock.now();
        if self.pump.poll_timeout().is_some_and(|due| due <= now) {
            self.pump.handle_timeout(now);
        }
        Ok(())
    }

    fn watch_on(&mut self) {
        if let Some(watch) = &mut self.watched {
            watch.start(&mut self.ring, Key::Watched);
        }
        if let (Some(watch), true) = (&mut self.looked_at, self.is_looking) {
            watch.start(&mut self.ring, Key::LookedAt);
        }
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
                    entry.most = most;
                    entry.start_read(&mut self.ring, port);
                }
            }
            Op::Write(port) => self.write(port),
            Op::Finish(port) => {
                if let Some(entry) = self.ports.get_mut(&port) {
                    entry.stream.finish();
                }
                self.complete(Done::Finished(port));
            }
            Op::Signal(port, signal) => self.keeper.signal(port, signal),
            Op::Close(port) => self.close(port),
        }
    }

    fn open(&mut self, port: Port) {
        let opened = self
            .keeper
            .open(port)
            .and_then(|opened| self.entry(port, opened).map_err(|error| self.keeper.refuse(port, &error)));
        let result = opened.map(|mut entry| {
            entry.await_exit(&mut self.ring, port);
            entry.await_stderr(&mut self.ring, port);
            self.ports.insert(port, entry);
        });
        self.complete(Done::Opened(port, result));
    }

    fn entry(&self, port: Port, opened: Opened) -> io::Result<Entry> {
        Ok(match opened {
            Opened::Socket(fd) => Entry::new(Stream::connected(fd)?),
            Opened::Pipes { read, write } => Entry {
                exit_fd: self.keeper.process(port).map(|process| duplicate(process.as_fd())).transpose()?,
                stderr_fd: self.keeper.stderr(port).map(|stderr| duplicate(stderr.as_fd())).transpose()?,
                ..Entry::new(Stream::pipes(read, write)?)
            },
        })
    }

    fn write(&mut self, port: Port) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        if !entry.stream.is_written_by_ring() {
            let result = entry.stream.write(self.pump.write_bytes(port));
            return match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.await_write(port),
                result => self.on_wrote(port, result),
            };
        }
        let (bytes, from) = self.pump.lend_write(port);
        match entry.stream.start_write(&mut self.ring, Key::Port(Role::Write, port), bytes, from) {
            Ok(op) => entry.ops.push((Role::Write, op)),
            Err(bytes) => {
                self.pump.give_back_write(port, bytes);
                self.complete(Done::Wrote(port, Outcome::Failed));
            }
        }
    }

    fn await_write(&mut self, port: Port) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        if let Some(op) = entry.stream.await_write(&mut self.ring, Key::Port(Role::Write, port)) {
            entry.ops.push((Role::Write, op));
        }
    }

    fn close(&mut self, port: Port) {
        match self.ports.get_mut(&port) {
            Some(entry) if !entry.ops.is_empty() => {
                entry.is_closing = true;
                for (_, op) in &entry.ops {
                    self.ring.cancel(*op);
                }
            }
            _ => self.on_closed(port),
        }
    }

    /// Nothing of the port is in the ring any more.
    fn on_closed(&mut self, port: Port) {
        self.ports.remove(&port);
        self.keeper.close(port);
        self.complete(Done::Closed(port));
    }

    fn on_completion(&mut self, completion: Completion<Key>) {
        let Completion { id, key, outcome } = completion;
        match key {
            Key::Port(role, port) => {
                let Some(entry) = self.ports.get_mut(&port) else { return };
                entry.ops.retain(|(_, op)| *op != id);
                if !entry.is_closing {
                    self.on_port(role, port, outcome);
                } else if entry.ops.is_empty() {
                    self.on_closed(port);
                }
            }
            Key::Watched => {
                if self.watched.as_mut().is_some_and(|watch| watch.ends(id)) {
                    self.on_watched();
                }
            }
            Key::LookedAt => {
                self.is_readable |= self.looked_at.as_mut().is_some_and(|watch| watch.ends(id));
            }
        }
    }

    fn on_port(&mut self, role: Role, port: Port, outcome: ring::Outcome) {
        match (role, outcome) {
            (_, ring::Outcome::Read(Ok(filled))) => {
                self.on_read(port, Outcome::Ok(filled.as_deref().unwrap_or_default()));
            }
            (_, ring::Outcome::Read(Err(Errno::AGAIN))) => {
                if let Some(entry) = self.ports.get_mut(&port) {
                    entry.ops.push((
                        Role::Read,
                        entry.stream.await_read(&mut self.ring, Key::Port(Role::Read, port)),
                    ));
                }
            }
            (_, ring::Outcome::Read(Err(errno))) => {
                self.on_read(port, if is_void(errno) { Outcome::Cancelled } else { Outcome::Failed });
            }
            (_, ring::Outcome::Wrote(bytes, result)) => {
                self.pump.give_back_write(port, bytes);
                match result {
                    Err(Errno::AGAIN) => self.await_write(port),
                    Err(errno) if is_void(errno) => self.complete(Done::Wrote(port, Outcome::Cancelled)),
                    result => self.on_wrote(port, result.map_err(io::Error::from)),
                }
            }
            (Role::Read, ring::Outcome::Ready) => self.read_directly(port),
            (Role::Write, ring::Outcome::Ready) => self.write(port),
            (Role::Exit, ring::Outcome::Ready) => self.on_exit(port),
            (Role::Stderr, ring::Outcome::Ready) => self.drain_stderr(port),
        }
    }

    fn on_read(&mut self, port: Port, outcome: Outcome<&[u8]>) {
        let is_end = matches!(outcome, Outcome::Ok([]) | Outcome::Failed);
        self.pump.complete(self.clock.now(), Done::Read(port, outcome));
        if is_end && self.ports.get(&port).is_some_and(|entry| entry.stream.is_hung_up()) {
            self.complete(Done::HungUp(port));
        }
    }

    fn read_directly(&mut self, port: Port) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        let mut buf = std::mem::take(&mut self.buf);
        buf.resize(READ_CHUNK, 0);
        let most = entry.most.min(buf.len());
        match entry.stream.read(buf.get_mut(..most).unwrap_or_default()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => entry.start_read(&mut self.ring, port),
            Err(_) => self.on_read(port, Outcome::Failed),
            Ok(len) => self.on_read(port, Outcome::Ok(buf.get(..len).unwrap_or_default())),
        }
        self.buf = buf;
    }

    fn on_wrote(&mut self, port: Port, result: io::Result<usize>) {
        if let Err(error) = &result
            && !is_gone(error.kind())
        {
            self.write_error.get_or_insert(error.kind());
        }
        self.complete(Done::Wrote(port, result.map_or(Outcome::Failed, Outcome::Ok)));
    }

    fn on_exit(&mut self, port: Port) {
        match self.keeper.try_exit(port) {
            Some(exit) => self.complete(Done::Exited(port, exit)),
            None => {
                if let Some(entry) = self.ports.get_mut(&port) {
                    entry.await_exit(&mut self.ring, port);
                }
            }
        }
    }

    fn drain_stderr(&mut self, port: Port) {
        if self.keeper.drain_stderr(port) != Drained::Ended
            && let Some(entry) = self.ports.get_mut(&port)
        {
            entry.await_stderr(&mut self.ring, port);
        }
    }

    fn on_watched(&mut self) {
        self.woken = true;
        let Some(watch) = &self.watched else { return };
        match rustix::io::read(&watch.fd, &mut [0; 64]) {
            Ok(1..) | Err(Errno::AGAIN | Errno::INTR) => {}
            // Its other end is gone, so it would end every wait from now on.
            Ok(0) | Err(_) => self.watched = None,
        }
    }

    fn complete(&mut self, done: Done<'_>) {
        self.pump.complete(self.clock.now(), done);
    }
}

impl<M: Machine + fmt::Debug> fmt::Debug for Loop<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop")
            .field("machine", self.pump.machine())
            .field("keeper", &self.keeper)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

impl Entry {
    fn new(stream: Stream) -> Self {
        Self { stream, exit_fd: None, stderr_fd: None, most: 0, ops: Vec::new(), is_closing: false }
    }

    fn start_read(&mut self, ring: &mut Ring<Key>, port: Port) {
        self.ops.push((Role::Read, self.stream.start_read(ring, Key::Port(Role::Read, port), self.most)));
    }

    fn await_exit(&mut self, ring: &mut Ring<Key>, port: Port) {
        self.await_readable(ring, self.exit_fd.clone(), Role::Exit, port);
    }

    fn await_stderr(&mut self, ring: &mut Ring<Key>, port: Port) {
        self.await_readable(ring, self.stderr_fd.clone(), Role::Stderr, port);
    }

    fn await_readable(&mut self, ring: &mut Ring<Key>, fd: Option<Rc<OwnedFd>>, role: Role, port: Port) {
        if let Some(fd) = fd {
            self.ops.push((role, ring.poll(Key::Port(role, port), fd, PollFlags::IN)));
        }
    }
}

impl Watch {
    fn new(fd: OwnedFd) -> Self {
        Self { fd: Rc::new(fd), op: None }
    }

    fn start(&mut self, ring: &mut Ring<Key>, key: Key) {
        if self.op.is_none() {
            self.op = Some(ring.poll(key, Rc::clone(&self.fd), PollFlags::IN));
        }
    }

    /// Returns whether it was this operation that watched.
    fn ends(&mut self, id: OpId) -> bool {
        self.op.take_if(|op| *op == id).is_some()
    }
}

/// Whether an operation that ended like this did nothing: it was cancelled, there was no buffer for it, or a signal came.
fn is_void(errno: Errno) -> bool {
    matches!(errno, Errno::CANCELED | Errno::NOBUFS | Errno::INTR)
}

#[cfg(test)]
mod tests;
