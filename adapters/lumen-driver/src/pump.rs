//! The pump: from a machine's wishes to operations, and from their results to a machine's inputs.

use std::collections::VecDeque;

use bytes::BytesMut;
use lumen_proto::limits::READ_CHUNK;
use lumen_proto::{Action, ChildEvent, Exit, Input, Instant, Machine, OpenError, Port, Signal};

use crate::PortMap;

mod port;
#[cfg(test)]
mod tests;

pub use port::Counters;
use port::{Output, Phase, State};

/// Bytes of frames gathered for one write before it is started. Worst case: this plus one frame, on each port
/// that has a write in flight.
pub const WRITE_GATHER: usize = 64 * 1024;

/// Frames one port may gather in a turn, so that a port with very many tiny ones cannot keep the others waiting.
pub const TURN_FRAMES: usize = 256;

/// Closed ports of which the [`Counters`] are still known.
pub const MAX_REMEMBERED: usize = 8;

/// An operation to start. Each is counted in [`Pump::in_flight`] until its [`Done`] arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Op {
    /// Start the process or make the connection; answered by [`Done::Opened`].
    Open(Port),
    /// Read at most so many bytes; answered by [`Done::Read`]. Carries no buffer: bindings may share one.
    Read(Port, usize),
    /// Write any prefix of [`Pump::write_bytes`], or of what [`Pump::lend_write`] lends; answered by [`Done::Wrote`].
    /// Those bytes neither move nor change until then.
    Write(Port),
    /// Close the writing half; answered by [`Done::Finished`], also when that failed or was cancelled.
    Finish(Port),
    /// Send a signal. Not counted, no answer.
    Signal(Port, Signal),
    /// Drop everything of the port, end and reap its process tree; answered by [`Done::Closed`], after which
    /// nothing follows. What is outstanding of the port completes before that, whether as
    /// [`Outcome::Cancelled`] or with a result, or else counts as done with it.
    Close(Port),
}

/// What became of an operation, or what happened to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done<'a> {
    /// The port is open, or could not be opened. Also reported, unasked, for a port that exists from the start.
    Opened(Port, Result<(), OpenError>),
    /// Bytes were read. `Ok` of none is the end of the stream, and so is `Failed`.
    Read(Port, Outcome<&'a [u8]>),
    /// So many bytes were written. `Failed`, or `Ok(0)`, means that nothing more can be delivered.
    Wrote(Port, Outcome<usize>),
    /// The writing half is closed.
    Finished(Port),
    /// The peer has closed both directions: nothing can be delivered any more. At any time while the port is open; not
    /// counted.
    HungUp(Port),
    /// The process ended. At any time while the port is open; not counted.
    Exited(Port, Exit),
    /// Nothing of the port is left: whatever was outstanding of it counts as done.
    Closed(Port),
}

/// How a read or a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It did this much.
    Ok(T),
    /// The operating system refused it; the same would happen again.
    Failed,
    /// It was taken back before it did anything. On a port that stays open it is started again.
    Cancelled,
}

/// Owns a [`Machine`], hands out the operations it needs and feeds it their results.
///
/// # The loop
/// 1. Report what happened: [`complete`](Self::complete), [`with`](Self::with) for commands,
///    [`handle_timeout`](Self::handle_timeout).
/// 2. Start every operation of [`poll_op`](Self::poll_op) until it returns `None`.
/// 3. Take every event of [`poll_event`](Self::poll_event). If there was one, go to 2: room for events may
///    have let the machine go on.
/// 4. Read [`poll_timeout`](Self::poll_timeout) and sleep until then or until something happened; go to 1.
///
/// # Order
/// A machine is asked for actions, then for ready ports, after everything it was told; for the output of a
/// port only when that port has no write in flight; for events only when the owner asks.
///
/// # Bounds
/// One read and one write in flight a port. A turn costs what is active, not how many ports are open.
#[derive(Debug)]
pub struct Pump<M: Machine> {
    machine: M,
    now: Instant,
    ports: PortMap<State>,
    /// Ports that may have something to start, each at most once ([`State::queued`]).
    ready: VecDeque<Port>,
    /// What actions asked for, in their order; goes before reads and writes.
    asked: VecDeque<Op>,
    in_flight: usize,
    /// An event was taken, so room for events may have let the machine go on; or it has not been asked for anything yet.
    heard: bool,
    shut: bool,
    /// The last ports that were closed, the oldest first.
    closed: VecDeque<(Port, Counters)>,
}

impl<M: Machine> Pump<M> {
    /// Makes a pump with no port open.
    pub fn new(machine: M) -> Self {
        Self {
            machine,
            now: Instant::ZERO,
            ports: PortMap::new(),
            ready: VecDeque::new(),
            asked: VecDeque::new(),
            in_flight: 0,
            heard: true,
            shut: false,
            closed: VecDeque::new(),
        }
    }

    /// Gives the machine a command, and drains it afterwards.
    pub fn with<R>(&mut self, now: Instant, command: impl FnOnce(&mut M) -> R) -> R {
        self.advance(now);
        let result = command(&mut self.machine);
        self.drain();
        result
    }

    /// Takes the result of an operation. One that was not outstanding, or of a port that is gone, is ignored.
    pub fn complete(&mut self, now: Instant, done: Done<'_>) {
        self.advance(now);
        match done {
            Done::Opened(port, Ok(())) => self.on_opened(port),
            Done::Opened(port, Err(error)) => self.on_open_failed(port, error),
            Done::Read(port, outcome) => self.on_read(port, outcome),
            Done::Wrote(port, outcome) => {
                if self.on_wrote(port, outcome) {
                    return;
                }
            }
            Done::Finished(port) => {
                if let Some(state) = self.ports.get_mut(port)
                    && settle(&mut self.in_flight, &mut state.finishing)
                    && state.phase == Phase::Open
                {
                    self.machine.handle_input(self.now, Input::Finished(port));
                }
            }
            Done::HungUp(port) => self.on_hung_up(port),
            Done::Exited(port, exit) => {
                if self.ports.get(port).is_some_and(|state| state.phase == Phase::Open) {
                    self.machine.handle_input(self.now, Input::Child(port, ChildEvent::Exited(exit)));
                }
            }
            Done::Closed(port) => {
                if let Some(state) = self.ports.remove(port) {
                    self.in_flight -= state.outstanding();
                    if self.closed.len() == MAX_REMEMBERED {
                        self.closed.pop_front();
                    }
                    self.closed.push_back((port, state.counters));
                }
            }
        }
        self.drain();
    }

    /// Tells the machine the time. Needed when [`poll_timeout`](Self::poll_timeout) is due; early is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.machine.handle_timeout(self.now);
        self.drain();
    }

    /// Returns the next operation to start: first what actions asked for, then reads and writes, one port
    /// after the other.
    pub fn poll_op(&mut self) -> Option<Op> {
        if std::mem::take(&mut self.heard) {
            self.drain();
        }
        loop {
            if let Some(op) = self.asked.pop_front() {
                return Some(op);
            }
            let port = self.ready.pop_front()?;
            if let Some(op) = self.take_turn(port) {
                return Some(op);
            }
        }
    }

    /// Returns the machine's next event; the machine bounds how many wait.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<M::Event> {
        let event = self.machine.poll_event();
        self.heard |= event.is_some();
        event
    }

    /// Ends every port that is still open; for an owner that drops the session. The machine hears of none of
    /// it, and what it asks to start from now on is not started.
    pub fn close_all(&mut self, now: Instant) {
        self.advance(now);
        self.drain();
        self.shut = true;
        let open: Vec<Port> = self.ports.iter().map(|(port, _)| port).collect();
        for port in open {
            self.close(port);
        }
    }

    /// Returns the machine, to look at it.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is next due. Valid once
    /// [`poll_op`](Self::poll_op) and [`poll_event`](Self::poll_event) have returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    /// Returns what the write in flight on `port` is to write; empty if there is none.
    pub fn write_bytes(&self, port: Port) -> &[u8] {
        self.ports.get(port).map_or(&[], State::unwritten)
    }

    /// Lends the buffer of the write in flight on `port`, to an operation that must own what it writes: all from the
    /// given offset on. Give it back before the write is completed; [`write_bytes`](Self::write_bytes) is empty meanwhile.
    pub fn lend_write(&mut self, port: Port) -> (BytesMut, usize) {
        self.ports.get_mut(port).map_or_else(Default::default, State::lend)
    }

    /// Takes a lent buffer back. It is dropped if its port is gone.
    pub fn give_back_write(&mut self, port: Port, buffer: BytesMut) {
        if let Some(state) = self.ports.get_mut(port) {
            state.give_back(buffer);
        }
    }

    /// Returns how many operations are started or about to be, and not completed.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns whether nothing is in flight and no port is open.
    pub fn is_settled(&self) -> bool {
        self.in_flight == 0 && self.ports.is_empty()
    }

    /// Returns whether all that the machine had to write is written, on every port.
    pub fn is_written(&self) -> bool {
        self.ports.iter().all(|(_, state)| state.is_written())
    }

    /// Returns what went through `port` so far. Zero for one that is not among the last [`MAX_REMEMBERED`] closed.
    pub fn counters(&self, port: Port) -> Counters {
        match self.ports.get(port) {
            Some(state) => state.counters,
            None => {
                self.closed.iter().find(|(closed, _)| *closed == port).map_or_else(Counters::default, |c| c.1)
            }
        }
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Actions before ready ports: an `Abort` makes the output of its port void.
    fn drain(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Spawn(port) => self.open(port),
                Action::Signal(port, signal) => {
                    if self.ports.get(port).is_some_and(|state| state.phase == Phase::Open) {
                        self.asked.push_back(Op::Signal(port, signal));
                    }
                }
                Action::Abort(port) => self.close(port),
            }
        }
        while let Some(port) = self.machine.poll_ready() {
            if let Some(state) = self.ports.get_mut(port) {
                if state.output == Output::Idle {
                    state.output = Output::Waiting;
                }
                self.queue(port);
            }
        }
    }

    fn open(&mut self, port: Port) {
        if !self.shut && !self.ports.contains(port) {
            self.ports.insert(port, State::new(Phase::Opening));
            self.asked.push_back(Op::Open(port));
            self.in_flight += 1;
        }
    }

    fn close(&mut self, port: Port) {
        let Some(state) = self.ports.get_mut(port) else { return };
        if state.phase == Phase::Opening
            && let Some(at) = self.asked.iter().position(|op| *op == Op::Open(port))
        {
            // Nobody has begun to open it, so there is nothing to close.
            self.asked.remove(at);
            self.ports.remove(port);
            self.in_flight -= 1;
            return;
        }
        if let Phase::Opening | Phase::Open = state.phase {
            state.close();
            self.asked.push_back(Op::Close(port));
            self.in_flight += 1;
        }
    }

    fn queue(&mut self, port: Port) {
        if let Some(state) = self.ports.get_mut(port)
            && !state.queued
        {
            state.queued = true;
            self.ready.push_back(port);
        }
    }

    /// Starts one operation of a port and puts it behind the others if it may have another.
    fn take_turn(&mut self, port: Port) -> Option<Op> {
        let state = self.ports.get_mut(port)?;
        state.queued = false;
        if state.phase == Phase::Open && state.wants_fill() {
            state.fill(&mut self.machine, self.now, port);
            self.drain();
        }
        let state = self.ports.get_mut(port)?;
        if state.phase != Phase::Open {
            return None;
        }
        let op = if let Some(op) = state.try_output(port) {
            op
        } else {
            let wanted = self.machine.wants_input(port).min(READ_CHUNK);
            state.try_read(port, wanted)?
        };
        self.in_flight += 1;
        self.queue(port);
        Some(op)
    }

    fn on_opened(&mut self, port: Port) {
        match self.ports.get_mut(port) {
            Some(state) => {
                settle(&mut self.in_flight, &mut state.opening);
                if state.phase != Phase::Opening {
                    return;
                }
                state.phase = Phase::Open;
            }
            None if self.shut => return,
            None => {
                self.ports.insert(port, State::new(Phase::Open));
            }
        }
        self.machine.handle_input(self.now, Input::Opened(port));
        self.queue(port);
    }

    fn on_open_failed(&mut self, port: Port, error: OpenError) {
        let Some(state) = self.ports.get_mut(port) else { return };
        settle(&mut self.in_flight, &mut state.opening);
        if state.phase == Phase::Opening {
            self.ports.remove(port);
            self.machine.handle_input(self.now, Input::Child(port, ChildEvent::Failed(error)));
        }
    }

    fn on_read(&mut self, port: Port, outcome: Outcome<&[u8]>) {
        let Some(state) = self.ports.get_mut(port) else { return };
        if !settle(&mut self.in_flight, &mut state.reading) || state.phase != Phase::Open {
            return;
        }
        match outcome {
            Outcome::Ok(bytes) if !bytes.is_empty() => {
                state.counters.reads += 1;
                state.counters.bytes_read += bytes.len() as u64;
                self.machine.handle_input(self.now, Input::Data(port, bytes));
            }
            Outcome::Ok(_) | Outcome::Failed => {
                state.ended = true;
                self.machine.handle_input(self.now, Input::Eof(port));
            }
            Outcome::Cancelled => {}
        }
        self.queue(port);
    }

    /// Returns whether all is written that there was: then there is nothing to start, and nothing that the machine has heard
    /// of.
    fn on_wrote(&mut self, port: Port, outcome: Outcome<usize>) -> bool {
        let Some(state) = self.ports.get_mut(port) else { return false };
        if !settle(&mut self.in_flight, &mut state.writing) {
            return false;
        }
        if state.phase != Phase::Open {
            state.drop_output();
            return false;
        }
        match outcome {
            Outcome::Ok(count) if count > 0 => {
                state.on_written(count);
                if state.is_written() {
                    return true;
                }
            }
            Outcome::Ok(_) | Outcome::Failed => {
                let is_news = state.output != Output::Ended;
                state.drop_output();
                if is_news {
                    self.machine.handle_input(self.now, Input::Lost(port));
                }
            }
            Outcome::Cancelled => {}
        }
        self.queue(port);
        false
    }

    fn on_hung_up(&mut self, port: Port) {
        let Some(state) = self.ports.get_mut(port) else { return };
        if state.phase != Phase::Open || state.output == Output::Ended {
            return;
        }
        // A write in flight reads the buffer; it will fail by itself.
        if state.writing {
            state.output = Output::Ended;
        } else {
            state.drop_output();
        }
        self.machine.handle_input(self.now, Input::Lost(port));
    }
}

/// Takes one operation off the count, if it was outstanding.
fn settle(in_flight: &mut usize, outstanding: &mut bool) -> bool {
    let was = std::mem::take(outstanding);
    *in_flight -= usize::from(was);
    was
}
