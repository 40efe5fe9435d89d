//! How long to look for something to do before sleeping, by whether that has paid.
//!
//! A core that sleeps is woken tens of microseconds after there is something to do; one that looks on sees it at once, and
//! does nothing else meanwhile. So a driver looks on for a while when what it waits for tends to come soon, and sleeps at
//! once when it does not.

use std::time::Duration;

/// The least that a driver looks on for, when it does.
pub const MIN_SPIN: Duration = Duration::from_micros(2);

/// How much later than what it was woken for a sleeper may be back. A wait that was no longer than the bound and this might
/// have been spent looking.
pub const WAKE_UP: Duration = Duration::from_micros(60);

/// Decides how long to look before each sleep, from how long the waits before it were.
///
/// # Bounds
/// Never longer than what it was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    bound: Duration,
    budget: Duration,
}

impl Spin {
    /// Makes one that looks for `bound` at most; never, if there are not at least two cores to run on: whoever is waited for
    /// would have to wait for the one who looks.
    pub const fn new(bound: Duration, cores: usize) -> Self {
        let bound = if cores > 1 { bound } else { Duration::ZERO };
        Self { bound, budget: bound }
    }

    /// Returns whether it may ever look.
    pub const fn is_on(&self) -> bool {
        !self.bound.is_zero()
    }

    /// Returns how long to look before sleeping; zero is not at all.
    pub const fn budget(&self) -> Duration {
        self.budget
    }

    /// Takes how long a wait was, the looking and the sleeping together.
    ///
    /// What came while it looked keeps the budget. What came so soon after that more looking might have found it doubles it,
    /// up to the bound; what took longer halves it, to nothing.
    pub fn on_waited(&mut self, waited: Duration) {
        if waited <= self.budget {
            return;
        }
        self.budget = if waited <= self.bound + WAKE_UP {
            (self.budget * 2).max(MIN_SPIN).min(self.bound)
        } else if self.budget > MIN_SPIN {
            self.budget / 2
        } else {
            Duration::ZERO
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_micros(100);
    const LONG: Duration = Duration::from_millis(5);

    const fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn it_never_looks_on_one_core_or_without_a_bound() {
        for mut spin in [Spin::new(BOUND, 1), Spin::new(Duration::ZERO, 8)] {
            for waited in [micros(0), micros(1), micros(50), LONG] {
                spin.on_waited(waited);
                assert_eq!(spin.budget(), Duration::ZERO);
            }
        }
    }

    #[test]
    fn long_waits_halve_the_budget_to_nothing_and_it_stays_there() {
        let mut spin = Spin::new(BOUND, 2);
        let mut budgets = Vec::new();
        for _ in 0..8 {
            budgets.push(spin.budget().as_nanos());
            spin.on_waited(LONG);
        }
        assert_eq!(budgets, [100_000, 50_000, 25_000, 12_500, 6_250, 3_125, 1_562, 0]);
        spin.on_waited(LONG);
        assert_eq!(spin.budget(), Duration::ZERO);
    }

    #[test]
    fn waits_that_looking_would_have_shortened_bring_it_back_up_to_the_bound() {
        let mut spin = Spin::new(BOUND, 2);
        (0..8).for_each(|_| spin.on_waited(LONG));
        let mut budgets = Vec::new();
        for _ in 0..8 {
            // Something came after 3 us, and waking up took 45.
            spin.on_waited(micros(48).max(spin.budget() + micros(1)));
            budgets.push(spin.budget().as_micros());
        }
        assert_eq!(budgets, [2, 4, 8, 16, 32, 64, 100, 100]);
    }

    #[test]
    fn what_is_found_by_looking_keeps_the_budget() {
        let mut spin = Spin::new(BOUND, 2);
        spin.on_waited(LONG);
        for waited in [micros(0), micros(3), micros(50)] {
            spin.on_waited(waited);
            assert_eq!(spin.budget(), micros(50));
        }
    }
}
