//! What a peer says it can do.

use core::fmt;

/// A set of capability names, as listed in a probe, an ACK or an offer. Unknown names are not kept.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Caps(u8);

impl Caps {
    /// No capability: messages travel as plain JSON frames.
    pub const NONE: Self = Self(0);
    /// Takes frames whose payload is the value codec.
    pub const COMPRESSION: Self = Self(1);
    /// Takes STREAM frames.
    pub const STREAMING: Self = Self(2);
    /// Takes encrypted frames.
    pub const ENCRYPTION: Self = Self(4);
    /// Takes every value this codec can hold exactly; a name of this project.
    pub const EXACT: Self = Self(8);

    /// What this build can do, and so what it lists in its own probes, in ACKs and in offers.
    pub const OURS: Self = Self::COMPRESSION.union(Self::EXACT);

    const NAMES: [(Self, &'static str); 4] = [
        (Self::COMPRESSION, "compression"),
        (Self::STREAMING, "streaming"),
        (Self::ENCRYPTION, "encryption"),
        (Self::EXACT, "exact"),
    ];

    /// Returns the set with `other` added.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the names in this set, in a fixed order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(cap, _)| self.contains(*cap)).map(|(_, name)| *name)
    }

    /// Returns the capability that `is` recognises, or the empty set.
    #[cfg(feature = "alloc")]
    pub(crate) fn named(is: impl Fn(&str) -> bool) -> Self {
        Self::NAMES.iter().find(|(_, name)| is(name)).map_or(Self::NONE, |(cap, _)| *cap)
    }
}

impl fmt::Debug for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
