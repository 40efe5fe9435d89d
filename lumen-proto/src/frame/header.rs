//! What precedes the payload of a frame.

use super::{Flags, Kind};
use crate::{Reason, varint};

/// The most bytes a header takes: the length, the type and the flags.
pub const MAX_HEADER_LEN: usize = varint::MAX_LEN + 2;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of payload that follow.
    pub len: u64,
    /// The type.
    pub kind: Kind,
    /// The flags.
    pub flags: Flags,
}

impl Header {
    /// Reads a header from the front of `bytes` and returns it with the number of bytes it took, or `None` if
    /// more bytes are needed. What follows the header is not looked at.
    ///
    /// # Errors
    /// [`Reason::BadLength`] if the length is none, as in [`varint::decode`].
    ///
    /// # Bounds
    /// Never asks for more than [`MAX_HEADER_LEN`] bytes.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Reason> {
        let Some((len, at)) = varint::decode(bytes)? else { return Ok(None) };
        Ok(match bytes.get(at..) {
            Some(&[kind, flags, ..]) => Some((Self { len, kind: Kind(kind), flags: Flags(flags) }, at + 2)),
            _ => None,
        })
    }

    /// Writes the header to the front of `out` and returns how many bytes that took.
    #[inline]
    pub fn encode(&self, out: &mut [u8; MAX_HEADER_LEN]) -> usize {
        let [len @ .., _, _] = out;
        let at = varint::encode(self.len, len);
        // `at` is at most `varint::MAX_LEN`, two below the length of `out`.
        out[at] = self.kind.0;
        out[at + 1] = self.flags.0;
        at + 2
    }

    /// Returns how many bytes [`encode`](Self::encode) writes.
    pub const fn encoded_len(&self) -> usize {
        varint::encoded_len(self.len) + 2
    }
}
