//! The virtual clock: it stands still until somebody moves it, and never goes back.

use lumen_proto::Instant;

/// Virtual time of one world.
#[derive(Debug, Default)]
pub struct Clock(Instant);

impl Clock {
    /// Moves on to `to`.
    ///
    /// # Panics
    /// If `to` lies in the past.
    pub fn advance_to(&mut self, to: Instant) {
        assert!(to >= self.0, "the virtual clock must not go back from {:?} to {to:?}", self.0);
        self.0 = to;
    }

    /// Returns the time.
    pub fn now(&self) -> Instant {
        self.0
    }
}
