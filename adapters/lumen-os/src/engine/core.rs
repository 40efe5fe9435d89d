//! What an engine works for: the pump, the time, and what stands behind the ports.

use std::io;

use lumen_driver::{Done, Outcome, Pump, is_gone};
use lumen_proto::{Machine, Port};

use crate::{Clock, Drained, Target};

use super::Keeper;

/// All of a loop but its engine.
#[derive(Debug)]
pub struct Core<M: Machine> {
    /// Wants operations, and is told what came of them.
    pub(super) pump: Pump<M>,
    pub(super) clock: Clock,
    pub(super) keeper: Keeper,
    pub(super) write_error: Option<io::ErrorKind>,
}

impl<M: Machine> Core<M> {
    pub(super) fn new(machine: M, target: Option<Target>) -> Self {
        Self { pump: Pump::new(machine), clock: Clock::new(), keeper: Keeper::new(target), write_error: None }
    }

    /// Tells what became of an operation.
    pub fn complete(&mut self, done: Done<'_>) {
        self.pump.complete(self.clock.now(), done);
    }

    /// Tells what became of a read; at the end of the stream, `is_hung_up` is asked whether the peer is gone altogether.
    pub fn on_read(&mut self, port: Port, outcome: Outcome<&[u8]>, is_hung_up: impl FnOnce() -> bool) {
        let is_end = matches!(outcome, Outcome::Ok([]) | Outcome::Failed);
        self.complete(Done::Read(port, outcome));
        if is_end && is_hung_up() {
            self.complete(Done::HungUp(port));
        }
    }

    /// Tells what became of a write.
    pub fn on_wrote(&mut self, port: Port, result: io::Result<usize>) {
        if let Err(error) = &result
            && !is_gone(error.kind())
        {
            self.write_error.get_or_insert(error.kind());
        }
        self.complete(Done::Wrote(port, result.map_or(Outcome::Failed, Outcome::Ok)));
    }

    /// Looks whether the process behind a port has ended; returns whether it has.
    pub fn on_exit(&mut self, port: Port) -> bool {
        let exit = self.keeper.try_exit(port);
        if let Some(exit) = exit {
            self.complete(Done::Exited(port, exit));
        }
        exit.is_some()
    }

    /// Reads what has arrived on the standard error of the process behind a port; returns whether that has ended.
    pub fn on_stderr(&mut self, port: Port) -> bool {
        self.keeper.drain_stderr(port) == Drained::Ended
    }

    /// Ends what stands behind a port of which the engine has nothing left.
    pub fn on_closed(&mut self, port: Port) {
        self.keeper.close(port);
        self.complete(Done::Closed(port));
    }

    /// Returns the pump, for the bytes of writes.
    pub const fn pump(&mut self) -> &mut Pump<M> {
        &mut self.pump
    }

    /// Returns what stands behind the ports.
    pub const fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }
}
