//! F4: how long to wait before something that failed is tried again.
//!
//! Deterministic, without jitter: whoever waits here is one process that starts its own child, so there is no herd
//! to spread out.

use core::time::Duration;

use crate::Instant;
use crate::limits::{BACKOFF_BASE, BACKOFF_CAP, BACKOFF_RESET_AFTER};

/// How the waits grow, and when they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The wait after the first failure; doubled after each further one.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// How long health must have lasted for the failures before it to be forgotten.
    pub reset_after: Duration,
    /// After how many failures in a row to give up; never, if there is no such number.
    pub ceiling: Option<u32>,
}

impl Default for Config {
    /// 3, 6, 12, 24, 30, 30 s and so on for ever; forgotten after 30 s of health.
    fn default() -> Self {
        Self { base: BACKOFF_BASE, cap: BACKOFF_CAP, reset_after: BACKOFF_RESET_AFTER, ceiling: None }
    }
}

/// Counts failures in a row and says how long to wait after each.
///
/// Being started is not health: a thing that dies as soon as it is asked something would be started every 3 s for
/// ever. Only a run of `reset_after` from [`handle_ready`](Self::handle_ready) to the failure resets the count.
#[derive(Clone, Debug)]
pub struct Backoff {
    config: Config,
    failures: u32,
    healthy_since: Option<Instant>,
}

impl Backoff {
    /// Makes one that has seen no failure.
    pub const fn new(config: Config) -> Self {
        Self { config, failures: 0, healthy_since: None }
    }

    /// Takes the fact that it works: its health counts from `now`, unless it counts already.
    pub fn handle_ready(&mut self, now: Instant) {
        self.healthy_since.get_or_insert(now);
    }

    /// Takes the fact that it has failed or ended, and returns how long to wait, or `None` to give up.
    pub fn handle_ended(&mut self, now: Instant) -> Option<Duration> {
        if self.healthy_since.take().is_some_and(|since| now - since >= self.config.reset_after) {
            self.failures = 0;
        }
        let wait = self.config.base.saturating_mul(2u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        let given_up = self.config.ceiling.is_some_and(|ceiling| self.failures >= ceiling);
        (!given_up).then_some(wait.min(self.config.cap))
    }

    /// Returns how many failures in a row there have been.
    pub const fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn waits(backoff: &mut Backoff, count: usize) -> Vec<Option<u64>> {
        (0..count).map(|_| backoff.handle_ended(Instant::ZERO).map(|wait| wait.as_secs())).collect()
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let mut backoff = Backoff::new(Config::default());
        assert_eq!(waits(&mut backoff, 7), [3, 6, 12, 24, 30, 30, 30].map(Some));
        assert!(
            (0..1000).all(|_| backoff.handle_ended(Instant::ZERO) == Some(30 * SECOND)),
            "and never overflow"
        );
        backoff.failures = u32::MAX;
        assert_eq!(waits(&mut backoff, 2), [Some(30), Some(30)]);
    }

    #[test]
    fn only_enough_health_resets_it() {
        let mut backoff = Backoff::new(Config::default());
        assert_eq!(waits(&mut backoff, 2), [Some(3), Some(6)]);
        let ready = Instant::from_millis(100_000);
        backoff.handle_ready(ready);
        let almost = Instant::from_micros((ready + 30 * SECOND).as_micros() - 1);
        assert_eq!(backoff.handle_ended(almost), Some(12 * SECOND));
        // A life without health is not counted from the health before it.
        assert_eq!(backoff.handle_ended(ready + 300 * SECOND), Some(24 * SECOND));
        backoff.handle_ready(ready);
        backoff.handle_ready(almost);
        assert_eq!(backoff.handle_ended(ready + 30 * SECOND), Some(3 * SECOND));
        assert_eq!(backoff.failures(), 1);
        assert_eq!(waits(&mut backoff, 1), [Some(6)]);
    }

    #[test]
    fn a_ceiling_counts_failures_in_a_row() {
        let config = Config { ceiling: Some(3), ..Config::default() };
        let mut backoff = Backoff::new(config);
        assert_eq!(waits(&mut backoff, 4), [Some(3), Some(6), None, None]);
        let mut backoff = Backoff::new(config);
        assert_eq!(waits(&mut backoff, 2), [Some(3), Some(6)]);
        backoff.handle_ready(Instant::ZERO);
        assert_eq!(backoff.handle_ended(Instant::ZERO + 30 * SECOND), Some(3 * SECOND));
        for ceiling in [0, 1] {
            let mut backoff = Backoff::new(Config { ceiling: Some(ceiling), ..config });
            assert_eq!(waits(&mut backoff, 1), [None]);
        }
    }
}
