//! Names for byte streams.

use core::fmt;

/// One byte stream in both directions, as the machine and its driver call it.
///
/// A port is an index (which place) and a generation (which stream in that place). A respawned child gets the
/// same index and the next generation, so nothing that belongs to the dead one can be taken for its successor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    index: u32,
    generation: u32,
}

impl Port {
    /// Makes the first generation of place `index`.
    pub const fn new(index: u32) -> Self {
        Self { index, generation: 0 }
    }

    /// Returns the port that takes this place after this one. Never the same as any before it: a machine that
    /// has used up 2^32 generations stays at the last.
    #[must_use]
    pub const fn successor(self) -> Self {
        Self { index: self.index, generation: self.generation.saturating_add(1) }
    }

    /// Returns the same generation of another place: how a machine calls the port of a machine inside it.
    #[must_use]
    pub const fn with_index(self, index: u32) -> Self {
        Self { index, generation: self.generation }
    }

    /// Returns the place.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Returns which stream in that place this is, counted from 0.
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port({self})")
    }
}
