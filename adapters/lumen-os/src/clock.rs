//! The one place where adapters read the system's clock.

use std::time::Duration;

use lumen_proto::Instant;

/// A monotonic clock that counts from its own making.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    /// Makes a clock whose epoch is now.
    pub fn new() -> Self {
        Self { epoch: std::time::Instant::now() }
    }

    /// Returns the time since the epoch, rounded down to a microsecond.
    pub fn now(&self) -> Instant {
        let micros = u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
        Instant::from_micros(micros)
    }

    /// Returns how long it is until `deadline`, zero if it has passed.
    pub fn until(&self, deadline: Instant) -> Duration {
        deadline.saturating_since(self.now())
    }

    /// Returns `deadline` as the standard library counts time, or `None` if that does not fit.
    pub fn std_instant(&self, deadline: Instant) -> Option<std::time::Instant> {
        self.epoch.checked_add(Duration::from_micros(deadline.as_micros()))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_convert_without_being_early() {
        let clock = Clock::new();
        let now = clock.now();
        let deadline = now + Duration::from_secs(3600);
        assert!(clock.until(deadline) <= Duration::from_secs(3600));
        assert_eq!(clock.until(Instant::ZERO), Duration::ZERO);
        let std = clock.std_instant(deadline).unwrap();
        assert_eq!(std - clock.epoch, Duration::from_micros(deadline.as_micros()));
        assert!(clock.now() >= now);
    }
}
