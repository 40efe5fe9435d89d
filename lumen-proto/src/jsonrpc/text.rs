//! JSON strings: what they decode to, and how to write one.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use bytes::{BufMut, BytesMut};

use crate::base::plain::plain_end;

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
#[inline(always)]
pub(super) fn is(token: &[u8], expected: &str) -> bool {
    let [b'"', inner @ .., b'"'] = token else { return false };
    let expected = expected.as_bytes();
    // Most are told apart by their first byte.
    if inner.first() != expected.first() && inner.first() != Some(&b'\\') {
        return false;
    }
    // An escape is always longer than what it stands for.
    if inner.len() <= expected.len() {
        return inner == expected && !expected.contains(&b'\\');
    }
    decodes_to(Pieces { rest: inner }, expected)
}

fn decodes_to(pieces: Pieces<'_>, expected: &[u8]) -> bool {
    let mut rest = expected;
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

/// Escapes what is formatted into it, as [`escape_into`] does.
pub(crate) struct Escaped<'a>(pub(crate) &'a mut BytesMut);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape_into(self.0, text);
        Ok(())
    }
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
