//! The driver: any machine, driven by the task that awaits its events.

use std::future::poll_fn;

use lumen_driver::{Counters, PollIo, Pump};
use lumen_proto::{Exit, Instant, Machine, Port};

use crate::{StderrTail, Target};

use super::Reactor;
use super::world::Ports;

/// Drives one machine inside the task that awaits [`next_event`](Self::next_event).
///
/// Nothing happens while nobody awaits it: no bytes move and no deadline passes. Dropping it closes everything,
/// and ends and buries the processes it started, each with its whole group.
///
/// # Bounds
/// One buffer of [`READ_CHUNK`](lumen_proto::limits::READ_CHUNK) bytes for all ports.
#[derive(Debug)]
pub struct Driver<M: Machine, R: Reactor> {
    io: PollIo<M, Ports<R>>,
}

impl<M: Machine, R: Reactor> Driver<M, R> {
    /// Makes a driver. `target` is what the machine's `Spawn` starts or connects to; without one it fails.
    pub fn new(machine: M, target: Option<Target>) -> Self {
        Self { io: PollIo::new(machine, Ports::new(target)) }
    }

    /// Gives the machine a port that is open already.
    pub fn attach(&mut self, port: Port, stream: R::Stream) {
        self.io.attach(port, stream);
    }

    /// Gives the machine a command. What it leads to is done by the next [`next_event`](Self::next_event).
    pub fn with<T>(&mut self, command: impl FnOnce(&mut M) -> T) -> T {
        self.io.with(command)
    }

    /// Gives the machine a command that needs the time.
    pub(super) fn with_time<T>(&mut self, command: impl FnOnce(&mut M, Instant) -> T) -> T {
        self.io.with_time(command)
    }

    /// Does all the work, until the machine has an event. `None` means that there is nothing left to wait for:
    /// no port is open, nothing is in flight and no deadline is set.
    ///
    /// Safe to drop at any point, as in `select!`: what was begun is kept, and the next call goes on with it.
    ///
    /// # Panics
    /// Where the runtime has to be around and is not: outside of a tokio runtime with I/O and time enabled.
    pub async fn next_event(&mut self) -> Option<M::Event> {
        poll_fn(|cx| R::poll_budgeted(cx, |cx| self.io.poll_event(cx))).await
    }

    /// Does all the work until `is_done`, and takes no event meanwhile; returns whether it came to that. Not, if
    /// there was nothing left to wait for. Like [`next_event`](Self::next_event), safe to drop.
    ///
    /// A machine whose events nobody takes stops reading at some point, and then its peer may stop too: where that
    /// can be, take the events instead and ask in between.
    pub async fn wait_until(&mut self, mut is_done: impl FnMut(&Pump<M>) -> bool) -> bool {
        let mut is_done = |pump: &mut Pump<M>| is_done(pump).then_some(());
        let done = poll_fn(|cx| R::poll_budgeted(cx, |cx| self.io.poll_until(cx, &mut is_done)));
        done.await.is_some()
    }

    /// Closes every port, ends and buries the processes, and returns when that is done. The machine hears of none
    /// of it; events it still has are dropped. Like [`next_event`](Self::next_event), safe to drop.
    pub async fn close(&mut self) {
        self.io.close_all();
        while self.next_event().await.is_some() {}
    }

    /// Returns the driver's time, for commands that ask for it.
    pub fn now(&self) -> Instant {
        self.io.now()
    }

    /// Returns the machine, to look at it.
    pub fn machine(&self) -> &M {
        self.io.machine()
    }

    /// Returns what went through `port`, while it is open or as long as it is remembered.
    pub fn counters(&self, port: Port) -> Counters {
        self.io.counters(port)
    }

    /// Returns why the first write failed that failed for another reason than that its reader had gone: a full disk,
    /// say. The machine only knows that nothing more can be delivered.
    pub const fn write_error(&self) -> Option<std::io::ErrorKind> {
        self.io.write_error()
    }

    /// Returns how the process behind `port` ended, while it is open or as long as it is remembered.
    pub fn child_exit(&self, port: Port) -> Option<Exit> {
        self.io.world().exit(port)
    }

    /// Returns the id of the process behind `port` while that is open.
    pub fn child_id(&self, port: Port) -> Option<u32> {
        self.io.world().child_id(port)
    }

    /// Returns the end of what the process behind `port` wrote to its standard error, while it is open or as long
    /// as it is remembered. Empty if standard error is inherited.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        self.io.world().tail(port)
    }

    /// Returns why the last process could not be started, or the last connection not be made, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.io.world().open_error()
    }
}
