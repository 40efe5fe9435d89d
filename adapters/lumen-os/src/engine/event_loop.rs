//! The loop: a machine, driven by the thread that calls it.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use lumen_driver::{Counters, Done, Op, Pump};
use lumen_proto::{Exit, Instant, Machine, Port};

use crate::{Process, StderrTail, Target};

use super::{Core, Engine};

/// Operations started in one turn, so that two busy ports cannot keep a turn from ever looking at the rest.
const TURN_OPS: usize = 64;

/// How long is waited for a port to close when all are closed at once.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Drives one machine on the thread that calls it.
///
/// # The loop
/// The owner calls [`turn`](Self::turn) and takes the events with [`poll_event`](Self::poll_event), or leaves
/// both to [`run_until`](Self::run_until). Commands go through [`with`](Self::with); what they lead to starts in
/// the next turn.
///
/// # Bounds
/// Those of its engine. A turn starts at most 64 operations before it looks at every port again. Starting a process or
/// connecting happens inside the turn and holds it up: a connection for up to [`CONNECT_TIMEOUT`](crate::CONNECT_TIMEOUT).
///
/// Dropping it closes everything, and ends and buries the processes.
pub struct Loop<M: Machine, E: Engine> {
    // Goes first: the processes see the end of their streams before they are ended.
    engine: E,
    core: Core<M>,
    /// One event that had to be taken to see whether there was one.
    event: Option<M::Event>,
}

impl<M: Machine, E: Engine> Loop<M, E> {
    /// Makes a loop. `target` is what the machine's `Spawn` starts or connects to; without one it fails.
    pub fn new(machine: M, target: Option<Target>) -> E::Made<Self> {
        E::make(|engine| Self::over(engine, machine, target))
    }

    /// As [`new`](Self::new), for whoever does not know which engine it is.
    ///
    /// # Errors
    /// There is no engine.
    pub fn try_new(machine: M, target: Option<Target>) -> io::Result<Self> {
        Ok(Self::over(E::try_new()?, machine, target))
    }

    pub(super) fn over(engine: E, machine: M, target: Option<Target>) -> Self {
        Self { engine, core: Core::new(machine, target), event: None }
    }

    /// Gives the machine a port that is open already.
    pub fn attach(&mut self, port: Port, stream: E::Stream) {
        self.engine.attach(port, stream);
        self.core.read_clock();
        self.core.complete(Done::Opened(port, Ok(())));
    }

    /// Lets this descriptor end a [`turn`](Self::turn) when something can be read from it, such as the pipe a
    /// signal handler writes to. What arrives is read and thrown away; [`take_woken`](Self::take_woken) tells.
    /// It replaces an earlier one.
    pub fn watch(&mut self, fd: impl Into<OwnedFd>) {
        self.engine.watch(fd.into());
    }

    /// Lets this descriptor end a [`turn`](Self::turn) when it can be read, without reading it, such as a socket that
    /// listens; [`take_readable`](Self::take_readable) tells.
    pub fn look_at(&mut self, fd: impl Into<OwnedFd>) {
        self.engine.look_at(fd.into());
    }

    /// Sets whether that descriptor ends a turn, for the next turns.
    pub fn set_looking(&mut self, is_looking: bool) {
        self.engine.set_looking(is_looking);
    }

    /// Returns whether the descriptor that is looked at could be read since this was last asked.
    pub fn take_readable(&mut self) -> bool {
        self.engine.take_readable()
    }

    /// Returns whether the watched descriptor had something to read since this was last asked.
    pub fn take_woken(&mut self) -> bool {
        self.engine.take_woken()
    }

    /// Lets it look for up to so long whether something has happened, before it sleeps until something has: waking up takes
    /// tens of microseconds. It does so while that pays, and not at all if there is only one core to run on. Zero, as it
    /// starts out, is never.
    pub fn set_spin(&mut self, bound: Duration) {
        self.core.set_spin(bound);
    }

    /// Gives the machine a command.
    pub fn with<R>(&mut self, command: impl FnOnce(&mut M) -> R) -> R {
        self.with_time(|machine, _| command(machine))
    }

    /// Gives the machine a command that needs the time.
    pub(super) fn with_time<R>(&mut self, command: impl FnOnce(&mut M, Instant) -> R) -> R {
        let now = self.core.read_clock();
        self.core.pump.with(now, |machine| command(machine, now))
    }

    /// Returns the machine's next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<M::Event> {
        self.event.take().or_else(|| self.core.pump.poll_event())
    }

    /// Starts what the machine wants done, waits until something happened, and reports that to the machine.
    /// Does not wait when an event is there to be taken, or beyond `deadline`.
    ///
    /// # Errors
    /// `Deadlock` if there is nothing to wait for; else what the system said, which is out of memory.
    pub fn turn(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let was_settled = self.is_settled();
        let is_all = self.start_ops();
        if self.event.is_none() {
            self.event = self.core.pump.poll_event();
        }
        // That the last port was closed is something that happened.
        let is_waiting = is_all && self.event.is_none() && (was_settled || !self.is_settled());
        self.look(if is_waiting { deadline } else { Some(Instant::ZERO) })
    }

    /// Turns until the machine has an event. `None` means that there is nothing left to wait for: no port is
    /// open, nothing is watched and no deadline is set.
    ///
    /// # Errors
    /// What the system said, which is out of memory.
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
    /// What the system said, which is out of memory.
    pub fn wait_until(&mut self, mut is_done: impl FnMut(&Pump<M>) -> bool) -> io::Result<bool> {
        loop {
            let is_all = self.start_ops();
            if is_done(&self.core.pump) {
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
        let now = self.core.read_clock();
        self.core.pump.close_all(now);
        let deadline = now + CLOSE_TIMEOUT;
        loop {
            while !self.start_ops() {}
            if self.is_settled() || deadline <= self.now() || self.look(Some(deadline)).is_err() {
                return;
            }
        }
    }

    /// Returns the loop's time.
    pub fn now(&self) -> Instant {
        self.core.read_clock()
    }

    /// Returns the machine, to look at it.
    pub fn machine(&self) -> &M {
        self.core.pump.machine()
    }

    /// Returns whether no port is open and nothing is being done.
    pub fn is_settled(&self) -> bool {
        self.core.pump.is_settled()
    }

    /// Returns how the process behind `port` ended, while it is open or as long as it is remembered.
    pub fn child_exit(&self, port: Port) -> Option<Exit> {
        self.core.keeper.exit(port)
    }

    /// Returns the id of the process behind `port` while that is open.
    pub fn child_id(&self, port: Port) -> Option<u32> {
        self.core.keeper.process(port).map(Process::id)
    }

    /// Returns the end of what the process behind `port` wrote to its standard error, while it is open or as long
    /// as it is remembered. Empty if standard error is inherited.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        self.core.keeper.stderr_tail(port)
    }

    /// Returns what went through `port`, while it is open or as long as it is remembered.
    pub fn counters(&self, port: Port) -> Counters {
        self.core.pump.counters(port)
    }

    /// Returns why the last process could not be started, or the last connection not be made, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.core.keeper.open_error()
    }

    /// Returns why the first write failed that failed for another reason than that its reader had gone: a full
    /// disk, say. The machine only knows that nothing more can be delivered.
    pub const fn write_error(&self) -> Option<io::ErrorKind> {
        self.core.write_error
    }

    /// Waits until something happened or a deadline has come, the machine's or the given one, and tells the machine.
    fn look(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let deadline = match (self.core.pump.poll_timeout(), deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.engine.wait(&mut self.core, deadline)?;
        if let Some(due) = self.core.pump.poll_timeout() {
            let now = self.core.read_clock();
            if due <= now {
                self.core.pump.handle_timeout(now);
            }
        }
        Ok(())
    }

    /// Returns whether all operations are started; else the turn's share is used up.
    fn start_ops(&mut self) -> bool {
        for _ in 0..TURN_OPS {
            match self.core.pump.poll_op() {
                Some(op) => self.start(op),
                None => return true,
            }
        }
        false
    }

    fn start(&mut self, op: Op) {
        match op {
            Op::Open(port) => self.open(port),
            Op::Read(port, most) => self.engine.start_read(&mut self.core, port, most),
            Op::Write(port) => self.engine.start_write(&mut self.core, port),
            Op::Finish(port) => {
                self.engine.finish(port);
                self.core.complete(Done::Finished(port));
            }
            Op::Signal(port, signal) => self.core.keeper.signal(port, signal),
            Op::Close(port) => self.engine.start_close(&mut self.core, port),
        }
    }

    fn open(&mut self, port: Port) {
        let keeper = &mut self.core.keeper;
        let result = keeper.open(port).and_then(|opened| {
            let watched = self.engine.open(keeper, port, opened);
            watched.map_err(|error| keeper.refuse(port, &error))
        });
        self.core.read_clock();
        self.core.complete(Done::Opened(port, result));
    }
}

impl<M: Machine + fmt::Debug, E: Engine> fmt::Debug for Loop<M, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop")
            .field("machine", self.machine())
            .field("keeper", &self.core.keeper)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}
