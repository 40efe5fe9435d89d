//! JSON text to the bytes of a value and back, in one pass and without a tree in between.
//!
//! A [`Transcoder`] is memory that is used again; both ways append to a buffer of the caller, and leave it as it
//! was when they fail.

mod from_json;
mod to_json;

pub use from_json::Unfit;

use alloc::vec::Vec;
use core::ops::Range;

use super::needs::Needs;
use super::problem::Invalid;
use super::table::Table;
use super::walk::Stack;

/// The reused memory of both ways.
///
/// # Bounds
/// One entry for each open container, so at most [`MAX_VALUE_DEPTH`](crate::limits::MAX_VALUE_DEPTH), and on the way from
/// JSON one for each container of more than 63 members.
#[derive(Clone, Debug, Default)]
pub struct Transcoder {
    from: from_json::Memory,
    stack: Stack,
}

impl Transcoder {
    /// Makes a transcoder without memory.
    pub const fn new() -> Self {
        Self { from: from_json::Memory::new(), stack: Stack::new() }
    }

    /// Appends the value that the JSON `text` stands for, and returns what a receiver must be able to take.
    ///
    /// Members keep their order, and a key that occurs twice is written twice. Any bytes may be given.
    ///
    /// # Errors
    /// [`Unfit`] at the first thing the codec cannot hold exactly, and for what is no JSON. `out` is then as
    /// it was.
    ///
    /// # Bounds
    /// Appends at most four and a half times the length of the text.
    pub fn encode(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<Needs, Unfit> {
        let start = out.len();
        self.from.encode(text, out).ok_or_else(|| {
            out.truncate(start);
            Unfit
        })
    }

    /// Appends the JSON text that the value `bytes` stands for, without white space, and returns what a receiver of
    /// the value must be able to take. Ids of a session are looked up in `table`.
    ///
    /// Only quotes, backslashes and control characters are escaped, and floats are written with a fraction or an
    /// exponent.
    ///
    /// # Errors
    /// The first byte that is wrong, and why. `out` is then as it was.
    ///
    /// # Bounds
    /// Appends at most 13 times the length of the bytes: an id of two of them may stand for a word of 17.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        table: Option<&Table>,
        out: &mut Vec<u8>,
    ) -> Result<Needs, Invalid> {
        self.decode_within(bytes, table, usize::MAX, out)
    }

    /// Does what [`decode`](Self::decode) does, for a text of at most `max` bytes.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and [`Problem::TooLong`](super::Problem::TooLong).
    ///
    /// # Bounds
    /// `out` grows by at most `max` and 512 KiB, whatever the value would expand to.
    pub fn decode_within(
        &mut self,
        bytes: &[u8],
        table: Option<&Table>,
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<Needs, Invalid> {
        let start = out.len();
        let needs = to_json::write(bytes, table, &mut self.stack, max, out);
        if needs.is_err() {
            out.truncate(start);
        }
        needs
    }

    /// Does what [`decode_within`](Self::decode_within) does, without a session, and tells `on_member` of each member of
    /// the root, if that is an object, the key as it is inside its quotes and the place of the value in `out`.
    ///
    /// # Errors
    /// As [`decode_within`](Self::decode_within). What was told by then is void.
    ///
    /// # Bounds
    /// As [`decode_within`](Self::decode_within).
    pub fn decode_outlined(
        &mut self,
        bytes: &[u8],
        max: usize,
        out: &mut Vec<u8>,
        on_member: impl FnMut(&[u8], Range<usize>),
    ) -> Result<Needs, Invalid> {
        let start = out.len();
        let needs = to_json::write_outlined(bytes, &mut self.stack, max, out, on_member);
        if needs.is_err() {
            out.truncate(start);
        }
        needs
    }
}

#[cfg(test)]
mod tests;
