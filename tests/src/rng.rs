//! Numbers that look random and are the same each time.

/// A generator; see splitmix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Makes one whose numbers follow from the seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns true so many times in a hundred.
    pub const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
