//! What an engine works for: the pump, the time, and what stands behind the ports.

use std::cell::Cell;
use std::io;
use std::thread;
use std::time::Duration;

use lumen_driver::spin::Spin;
use lumen_driver::{Done, Outcome, Pump, is_gone};
use lumen_proto::{Instant, Machine, Port};

use crate::{Clock, Drained, Target};

use super::Keeper;

/// How often it is looked between two looks at the clock, which take a tenth as long.
const LOOKS: u8 = 4;

/// All of a loop but its engine.
#[derive(Debug)]
pub struct Core<M: Machine> {
    /// Wants operations, and is told what came of them.
    pub(super) pump: Pump<M>,
    clock: Clock,
    /// When the clock was last read.
    now: Cell<Instant>,
    pub(super) keeper: Keeper,
    pub(super) write_error: Option<io::ErrorKind>,
    spin: Cell<Spin>,
}

impl<M: Machine> Core<M> {
    pub(super) fn new(machine: M, target: Option<Target>) -> Self {
        Self {
            pump: Pump::new(machine),
            clock: Clock::new(),
            now: Cell::new(Instant::ZERO),
            keeper: Keeper::new(target),
            write_error: None,
            spin: Cell::new(Spin::new(Duration::ZERO, 1)),
        }
    }

    pub(super) fn set_spin(&mut self, bound: Duration) {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        self.spin.set(Spin::new(bound, cores));
    }

    /// Waits with `waiter`: looks as long as that may pay, and if there was nothing, sleeps. `look` says whether there is
    /// something. Both know the deadline; nobody looks beyond it.
    ///
    /// # Errors
    /// What one of the two said.
    pub fn wait<T>(
        &self,
        waiter: &mut T,
        deadline: Option<Instant>,
        look: impl FnMut(&mut T) -> io::Result<bool>,
        sleep: impl FnOnce(&mut T) -> io::Result<()>,
    ) -> io::Result<()> {
        let result = self.look_or_sleep(waiter, deadline, look, sleep);
        self.read_clock();
        result
    }

    fn look_or_sleep<T>(
        &self,
        waiter: &mut T,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut T) -> io::Result<bool>,
        sleep: impl FnOnce(&mut T) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut spin = self.spin.get();
        let left = deadline.map(|deadline| self.clock.until(deadline));
        if left == Some(Duration::ZERO) || !spin.is_on() {
            return sleep(waiter);
        }
        // What is there already says nothing about looking.
        if look(waiter)? {
            return Ok(());
        }
        let began = std::time::Instant::now();
        let budget = left.map_or(spin.budget(), |left| left.min(spin.budget()));
        while began.elapsed() < budget {
            for _ in 0..LOOKS {
                if look(waiter)? {
                    spin.on_found();
                    self.spin.set(spin);
                    return Ok(());
                }
            }
        }
        sleep(waiter)?;
        spin.on_slept(began.elapsed());
        self.spin.set(spin);
        Ok(())
    }

    /// Returns whether the next wait begins with looking, if there is nothing yet.
    pub const fn is_looking(&self) -> bool {
        !self.spin.get().budget().is_zero()
    }

    /// Tells what became of an operation. It takes the time of the last wait for now: what does not wait takes none, and a
    /// clock that is read for each operation is what a small message notices.
    pub fn complete(&mut self, done: Done<'_>) {
        self.pump.complete(self.now.get(), done);
    }

    /// Reads the clock, after whatever may have taken long.
    pub(super) fn read_clock(&self) -> Instant {
        self.now.set(self.clock.now());
        self.now.get()
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

#[cfg(test)]
mod tests {
    use lumen_proto::endpoint::Peer;

    use super::*;

    /// A core that may look for so long, with the calls that it makes.
    fn waited(
        bound: Duration,
        cores: usize,
        deadline: Option<Instant>,
        found_at: usize,
    ) -> (Core<Peer>, Vec<char>) {
        let core = Core::new(Peer::server(), None);
        core.spin.set(Spin::new(bound, cores));
        let mut calls = Vec::new();
        let look = |calls: &mut Vec<char>| {
            calls.push('l');
            Ok(calls.len() == found_at)
        };
        let sleep = |calls: &mut Vec<char>| {
            calls.push('s');
            Ok(())
        };
        core.wait(&mut calls, deadline, look, sleep).unwrap();
        (core, calls)
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn it_looks_until_there_is_something_and_sleeps_only_if_there_was_nothing() {
        assert_eq!(waited(LONG, 2, None, 3).1, ['l', 'l', 'l']);
        let (core, calls) = waited(Duration::from_nanos(1), 2, None, usize::MAX);
        assert_eq!((calls.first(), calls.last()), (Some(&'l'), Some(&'s')));
        assert!(core.spin.get().budget().is_zero());
    }

    #[test]
    fn it_sleeps_at_once_on_one_core_and_when_it_is_not_to_wait() {
        assert_eq!(waited(LONG, 1, None, 1).1, ['s']);
        assert_eq!(waited(LONG, 2, Some(Instant::ZERO), 1).1, ['s']);
        let soon = Instant::ZERO + Duration::from_millis(1);
        assert_eq!(waited(LONG, 2, Some(soon), usize::MAX).1.last(), Some(&'s'));
    }

    #[test]
    fn what_was_there_already_says_nothing_about_looking() {
        let (core, calls) = waited(LONG, 2, None, 1);
        assert_eq!((calls, core.spin.get()), (vec!['l'], Spin::new(LONG, 2)));
    }
}
