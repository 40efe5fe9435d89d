//! How long to look for something to do before sleeping, by whether that has paid.
//!
//! A core that sleeps is woken tens of microseconds after there is something to do; one that looks on sees it at once, and
//! does nothing else meanwhile. So a driver looks on for a while when that finds something, and sleeps at once when it does
//! not: because nothing comes for long, or because whoever is waited for has no other core to run on.

use std::time::Duration;

/// A budget that is halved below this is none.
pub const MIN_SPIN: Duration = Duration::from_micros(2);

/// How much later than what it was woken for a sleeper may be back. A wait that was no longer than the bound and this might
/// have been spent looking.
pub const WAKE_UP: Duration = Duration::from_micros(60);

/// How many such waits are slept through before looking is tried again: at first, and at most after it failed again and
/// again. A try that fails costs about twice the bound.
pub const REST: (u32, u32) = (8, 4096);

/// Decides how long to look before each sleep, from what came of the waits before it.
///
/// # Bounds
/// Never longer than what it was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    bound: Duration,
    budget: Duration,
    /// Waits to sleep through before the next try, and how many it will be the next time.
    rest: u32,
    next_rest: u32,
}

impl Spin {
    /// Makes one that looks for `bound` at most; never, if there are not at least two cores to run on: whoever is waited for
    /// would have to wait for the one who looks.
    pub const fn new(bound: Duration, cores: usize) -> Self {
        let bound = if cores > 1 { bound } else { Duration::ZERO };
        Self { bound, budget: bound, rest: 0, next_rest: REST.0 }
    }

    /// Returns whether it may ever look.
    pub const fn is_on(&self) -> bool {
        !self.bound.is_zero()
    }

    /// Returns how long to look before sleeping; zero is not at all.
    pub const fn budget(&self) -> Duration {
        self.budget
    }

    /// Takes that looking found something, which doubles the budget, up to the bound.
    pub fn on_found(&mut self) {
        self.budget = (self.budget * 2).min(self.bound);
        self.next_rest = REST.0;
    }

    /// Takes that looking found nothing and it was slept, and how long that took together.
    ///
    /// It halves the budget, in the end to nothing; then it takes some waits that were short enough before the whole bound
    /// is tried again, and ever more of them.
    pub fn on_slept(&mut self, waited: Duration) {
        if self.budget > MIN_SPIN {
            self.budget /= 2;
        } else if !self.budget.is_zero() {
            self.budget = Duration::ZERO;
            self.rest = self.next_rest;
            self.next_rest = (self.next_rest * 2).min(REST.1);
        } else if waited <= self.bound + WAKE_UP {
            self.rest = self.rest.saturating_sub(1);
            if self.rest == 0 {
                self.budget = self.bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_micros(100);
    const SHORT: Duration = Duration::from_micros(48);
    const LONG: Duration = Duration::from_millis(5);

    /// Waits until it looks again; returns how many waits that took.
    fn waits_until_it_looks(spin: &mut Spin) -> u32 {
        (1..)
            .find(|_| {
                spin.on_slept(SHORT);
                !spin.budget().is_zero()
            })
            .unwrap()
    }

    #[test]
    fn it_never_looks_on_one_core_or_without_a_bound() {
        for mut spin in [Spin::new(BOUND, 1), Spin::new(Duration::ZERO, 8)] {
            assert!(!spin.is_on());
            for waited in [SHORT; 100] {
                spin.on_slept(waited);
                assert_eq!(spin.budget(), Duration::ZERO);
            }
        }
    }

    #[test]
    fn misses_halve_the_budget_to_nothing_and_long_waits_leave_it_there() {
        let mut spin = Spin::new(BOUND, 2);
        let mut budgets = Vec::new();
        for _ in 0..8 {
            budgets.push(spin.budget().as_nanos());
            spin.on_slept(LONG);
        }
        assert_eq!(budgets, [100_000, 50_000, 25_000, 12_500, 6_250, 3_125, 1_562, 0]);
        (0..100).for_each(|_| spin.on_slept(LONG));
        assert_eq!(spin.budget(), Duration::ZERO);
    }

    #[test]
    fn short_waits_bring_the_bound_back_but_seldom_where_that_never_pays() {
        let mut spin = Spin::new(BOUND, 2);
        let (mut rests, mut looked) = (Vec::new(), Duration::ZERO);
        for _ in 0..12 {
            while !spin.budget().is_zero() {
                looked += spin.budget();
                spin.on_slept(SHORT);
            }
            rests.push(waits_until_it_looks(&mut spin));
        }
        assert_eq!(rests, [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096]);
        assert!(looked < 12 * 2 * BOUND);
    }

    #[test]
    fn finds_bring_the_bound_back_and_end_the_long_rests() {
        let mut spin = Spin::new(BOUND, 2);
        for _ in 0..3 {
            spin.on_slept(LONG);
        }
        let mut budgets = Vec::new();
        for _ in 0..4 {
            spin.on_found();
            budgets.push(spin.budget().as_nanos());
        }
        assert_eq!(budgets, [25_000, 50_000, 100_000, 100_000]);
        for rest in [8, 16] {
            while !spin.budget().is_zero() {
                spin.on_slept(SHORT);
            }
            assert_eq!(waits_until_it_looks(&mut spin), rest);
        }
        spin.on_found();
        while !spin.budget().is_zero() {
            spin.on_slept(SHORT);
        }
        assert_eq!(waits_until_it_looks(&mut spin), 8);
    }
}
