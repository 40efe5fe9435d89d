//! The ids that requests have on the shared wire.

use core::fmt;
use core::ops::Deref;

/// The id of a request on the shared wire: 1, 2, 3 and so on, each used once.
///
/// # Bounds
/// At most 2^53 - 1, the largest integer that every JSON reader keeps exact. At a million requests a second they
/// last for 285 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireId(u64);

/// Digits of the largest id.
const MAX_DIGITS: usize = 16;

impl WireId {
    /// The first id there is.
    pub const FIRST: Self = Self(1);
    /// The last id there is.
    pub const LAST: Self = Self((1 << 53) - 1);

    /// Returns the id after this one, unless it is the last.
    pub(super) fn successor(self) -> Option<Self> {
        (self < Self::LAST).then(|| Self(self.0 + 1))
    }

    /// Returns how many ids later this one is than `first`; `None` if it is an earlier one.
    #[cfg(feature = "alloc")]
    pub(super) const fn since(self, first: Self) -> Option<u64> {
        self.0.checked_sub(first.0)
    }

    /// Reads an id token. Only what [`token`](Self::token) writes is taken: digits without a leading zero. All
    /// other spellings and values are none of ours.
    pub fn from_token(token: &[u8]) -> Option<Self> {
        if token.len() > MAX_DIGITS || token.first() == Some(&b'0') {
            return None;
        }
        let value = token.iter().try_fold(0, |value: u64, byte| {
            byte.is_ascii_digit().then(|| value * 10 + u64::from(byte - b'0'))
        })?;
        let id = Self(value);
        (Self::FIRST..=Self::LAST).contains(&id).then_some(id)
    }

    /// Returns the id as a JSON number.
    pub fn token(self) -> Token {
        let mut digits = [0; MAX_DIGITS];
        let mut start = MAX_DIGITS;
        let mut rest = self.0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            start -= 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        Token { digits, start }
    }
}

impl fmt::Display for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The JSON text of a [`WireId`], on the stack.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    digits: [u8; MAX_DIGITS],
    start: usize,
}

impl Deref for Token {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.digits.get(self.start..).unwrap_or_default()
    }
}
