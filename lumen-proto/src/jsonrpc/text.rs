//! JSON strings: where their plain runs end, what they decode to, and how to write one.

use alloc::borrow::Cow;
use alloc::string::String;

use bytes::{BufMut, BytesMut};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;

/// Marks, by its high bit, the first byte of a little-endian word that ends a plain run. Bytes after the first
/// may be marked wrongly (a borrow runs upwards), which is why only the lowest mark counts.
const fn run_ends(word: u64) -> u64 {
    // With bit 1 flipped the quote lands on 0x20, next to the control characters, and only the quote does: one
    // comparison finds both.
    let flipped = word ^ (ONES * 0x02);
    let backslash = word ^ (ONES * b'\\' as u64);
    let found = (flipped.wrapping_sub(ONES * 0x21) & !flipped) | (backslash.wrapping_sub(ONES) & !backslash);
    found & HIGHS
}

const fn ends_run(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns the offset of the first quote, backslash or control character at or after `at`, or the length.
#[inline(always)]
pub(super) fn plain_end(text: &[u8], mut at: usize) -> usize {
    let Some(mut rest) = text.get(at..) else { return text.len() };
    // Keys and most values end within a few words; only longer runs are worth the wide loop.
    let mut words = 0;
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        let found = run_ends(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
        rest = after;
        words += 1;
        if words == 4 {
            // Written without an early exit inside the block, so that it compiles to vector compares.
            while let Some((block, after)) = rest.split_first_chunk::<32>() {
                if block.iter().fold(false, |any, &byte| any | ends_run(byte)) {
                    break;
                }
                at += 32;
                rest = after;
            }
        }
    }
    at + rest.iter().position(|&byte| ends_run(byte)).unwrap_or(rest.len())
}

/// One part of a string token.
pub(super) enum Piece<'a> {
    /// Bytes that stand for themselves.
    Plain(&'a [u8]),
    /// An escape, decoded; a surrogate only when its other half is missing.
    Point(u32),
    /// Something that no valid token holds.
    Malformed,
}

/// The parts of a string token.
pub(super) struct Pieces<'a> {
    rest: &'a [u8],
}

/// Returns the parts of `token`, or `None` if it has no quotes around it.
pub(super) fn pieces(token: &[u8]) -> Option<Pieces<'_>> {
    let rest = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(Pieces { rest })
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let run = memchr::memchr(b'\\', self.rest).unwrap_or(self.rest.len());
        if run > 0 {
            let (plain, rest) = self.rest.split_at(run);
            self.rest = rest;
            return Some(Piece::Plain(plain));
        }
        match escape(self.rest) {
            Some((point, len)) => {
                self.rest = self.rest.get(len..).unwrap_or_default();
                Some(Piece::Point(point))
            }
            None => {
                self.rest = &[];
                Some(Piece::Malformed)
            }
        }
    }
}

/// Decodes the escape at the start of `text`; returns the code point and the number of bytes it took.
fn escape(text: &[u8]) -> Option<(u32, usize)> {
    let point = match text.get(1)? {
        byte @ (b'"' | b'\\' | b'/') => u32::from(*byte),
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => 0x0a,
        b'r' => 0x0d,
        b't' => 0x09,
        b'u' => {
            let high = hex4(text.get(2..6)?)?;
            if (0xd800..0xdc00).contains(&high) && text.get(6..8) == Some(b"\\u") {
                let low = text.get(8..12).and_then(hex4);
                if let Some(low @ 0xdc00..0xe000) = low {
                    return Some((0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12));
                }
            }
            return Some((high, 6));
        }
        _ => return None,
    };
    Some((point, 2))
}

/// Reads four hexadecimal digits.
fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
}

/// Compares what the string `token` decodes to with `expected`. Allocates nothing.
pub(super) fn is(token: &[u8], expected: &str) -> bool {
    let Some(pieces) = pieces(token) else { return false };
    let mut rest = expected.as_bytes();
    for piece in pieces {
        let mut buffer = [0; 4];
        let part = match piece {
            Piece::Plain(plain) => plain,
            Piece::Point(point) => match char::from_u32(point) {
                Some(char) => char.encode_utf8(&mut buffer).as_bytes(),
                None => return false,
            },
            Piece::Malformed => return false,
        };
        match rest.strip_prefix(part) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Decodes the string `token`; borrowed when it has no escapes.
pub(super) fn decode(token: &[u8]) -> Option<Cow<'_, str>> {
    let inner = pieces(token)?.rest;
    if memchr::memchr(b'\\', inner).is_none() {
        return core::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    let mut decoded = String::with_capacity(inner.len());
    for piece in pieces(token)? {
        match piece {
            Piece::Plain(plain) => decoded.push_str(core::str::from_utf8(plain).ok()?),
            Piece::Point(point) => decoded.push(char::from_u32(point)?),
            Piece::Malformed => return None,
        }
    }
    Some(Cow::Owned(decoded))
}

/// Appends `text` as it stands inside a JSON string, without the quotes.
pub(crate) fn escape_into(out: &mut BytesMut, text: &str) {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let end = plain_end(bytes, at);
        out.extend_from_slice(bytes.get(at..end).unwrap_or_default());
        let Some(&byte) = bytes.get(end) else { return };
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
                out.extend_from_slice(b"\\u00");
                out.put_u8(digit(byte >> 4));
                out.put_u8(digit(byte & 15));
            }
        }
        at = end + 1;
    }
}

#[cfg(test)]
mod tests;
