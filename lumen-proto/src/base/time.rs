//! The machine's own clock reading: a number the driver passes in, never read from the system.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A point in time: microseconds since an epoch that the driver chose and never changes.
///
/// Wraps a `u64`: 584,000 years at one microsecond. Arithmetic saturates, so no deadline can overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);

    /// Makes an instant from microseconds since the driver's epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Makes an instant from milliseconds since the driver's epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Returns the microseconds since the driver's epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`, or zero if that lies in the future.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Adds a duration, rounding up to a whole microsecond so that a deadline is never early.
    fn add(self, rhs: Duration) -> Self {
        let micros = u64::try_from(rhs.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, rhs: Self) -> Duration {
        self.saturating_since(rhs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_rounds_up_and_saturates() {
        assert_eq!(Instant::ZERO + Duration::from_nanos(1), Instant::from_micros(1));
        assert_eq!(Instant::from_micros(u64::MAX) + Duration::MAX, Instant::from_micros(u64::MAX));
        assert_eq!(Instant::ZERO.saturating_since(Instant::from_millis(1)), Duration::ZERO);
    }
}
