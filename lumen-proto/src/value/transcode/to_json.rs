//! The bytes of a value to JSON text.

use alloc::vec::Vec;
use core::ops::Range;

use crate::value::needs::Needs;
use crate::value::number::{write_float, write_int};
use crate::value::problem::{Invalid, Problem};
use crate::value::table::Table;
use crate::value::text::copy_plain;
use crate::value::walk::{Scalar, Stack, Str, Visit, walk};

pub(super) fn write(
    bytes: &[u8],
    table: Option<&Table>,
    stack: &mut Stack,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Needs, Invalid> {
    let end = out.len().saturating_add(max);
    let mut writer = Writer { bytes, out, end, full: false, first: true };
    let needs = walk(bytes, table, stack, &mut writer)?;
    writer.finish(needs)
}

/// Does what [`write`] does, and tells `on_member` the key, as it is inside its quotes, and the place in `out` of each
/// member of the root, if that is an object. What was told of a value that is refused is void.
pub(super) fn write_outlined(
    bytes: &[u8],
    stack: &mut Stack,
    max: usize,
    out: &mut Vec<u8>,
    on_member: impl FnMut(&[u8], Range<usize>),
) -> Result<Needs, Invalid> {
    let end = out.len().saturating_add(max);
    let writer = Writer { bytes, out, end, full: false, first: true };
    let mut outlined = Outlined { writer, depth: 0, member: None, on_member };
    let needs = walk(bytes, None, stack, &mut outlined)?;
    outlined.writer.finish(needs)
}

/// Bytes of a string that are escaped between two looks at the limit.
const PIECE: usize = 64 * 1024;

struct Writer<'a> {
    bytes: &'a [u8],
    out: &'a mut Vec<u8>,
    /// How long `out` may get. It is overstepped by less than a token and a piece of a string.
    end: usize,
    /// It would get longer: nothing is written any more.
    full: bool,
    /// Whether no comma belongs before what comes next.
    first: bool,
}

impl Visit for Writer<'_> {
    #[inline(always)]
    fn on_open(&mut self, _: usize, object: bool) {
        if self.is_full() {
            return;
        }
        self.comma();
        self.out.push(if object { b'{' } else { b'[' });
        self.first = true;
    }

    #[inline(always)]
    fn on_close(&mut self, _: usize, object: bool) {
        if self.is_full() {
            return;
        }
        self.out.push(if object { b'}' } else { b']' });
        self.first = false;
    }

    #[inline(always)]
    fn on_key(&mut self, _: usize, key: Str<'_>) {
        if self.is_full() {
            return;
        }
        self.comma();
        if let Str::Static(word) = key {
            append(&word.padded, word.len, self.out);
        } else {
            self.string(key);
            self.out.push(b':');
        }
        self.first = true;
    }

    #[inline(always)]
    fn on_scalar(&mut self, scalar: Scalar<'_>) {
        if self.is_full() {
            return;
        }
        self.comma();
        match scalar {
            Scalar::Null => self.out.extend_from_slice(b"null"),
            Scalar::Bool(true) => self.out.extend_from_slice(b"true"),
            Scalar::Bool(false) => self.out.extend_from_slice(b"false"),
            Scalar::Int(value) => write_int(value, self.out),
            Scalar::Float(value) => write_float(value, self.out),
            Scalar::Str(text) => self.string(text),
        }
    }
}

/// Writes, and tells of the members of the root.
struct Outlined<'a, F> {
    writer: Writer<'a>,
    depth: usize,
    /// Where the key of the root's member that is under way stands, without its quotes.
    member: Option<Range<usize>>,
    on_member: F,
}

impl<F: FnMut(&[u8], Range<usize>)> Outlined<'_, F> {
    /// A member of the root has ended, if there is one.
    #[inline(always)]
    fn end_member(&mut self) {
        let Some(key) = self.member.take() else { return };
        // Behind the key are its quote and a colon.
        let value = key.end + 2..self.writer.out.len();
        (self.on_member)(self.writer.out.get(key).unwrap_or_default(), value);
    }
}

impl<F: FnMut(&[u8], Range<usize>)> Visit for Outlined<'_, F> {
    #[inline(always)]
    fn on_open(&mut self, at: usize, object: bool) {
        self.depth += 1;
        self.writer.on_open(at, object);
    }

    #[inline(always)]
    fn on_close(&mut self, at: usize, object: bool) {
        if self.depth == 1 {
            self.end_member();
        }
        self.depth -= 1;
        self.writer.on_close(at, object);
    }

    #[inline(always)]
    fn on_key(&mut self, at: usize, key: Str<'_>) {
        if self.depth != 1 {
            return self.writer.on_key(at, key);
        }
        self.end_member();
        let start = self.writer.out.len() + usize::from(!self.writer.first) + 1;
        self.writer.on_key(at, key);
        self.member = Some(start..self.writer.out.len().saturating_sub(2));
    }

    #[inline(always)]
    fn on_scalar(&mut self, scalar: Scalar<'_>) {
        self.writer.on_scalar(scalar);
    }
}

impl Writer<'_> {
    /// Returns `needs`, if all was written.
    fn finish(self, needs: Needs) -> Result<Needs, Invalid> {
        if self.full || self.out.len() > self.end {
            return Err(Invalid { offset: self.bytes.len(), problem: Problem::TooLong });
        }
        Ok(needs)
    }

    #[inline(always)]
    fn is_full(&mut self) -> bool {
        self.full |= self.out.len() > self.end;
        self.full
    }

    #[inline(always)]
    fn comma(&mut self) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
    }

    #[inline(always)]
    fn string(&mut self, text: Str<'_>) {
        if let Str::Static(word) = text {
            // Without the colon.
            return append(&word.padded, word.len - 1, self.out);
        }
        self.out.push(b'"');
        match text {
            Str::Inline(range) if range.len() <= PIECE => {
                escape(self.bytes, range.start, range.end, self.out);
            }
            Str::Inline(range) => {
                let mut at = range.start;
                while at < range.end && !self.is_full() {
                    let end = range.end.min(at + PIECE);
                    escape(self.bytes, at, end, self.out);
                    at = end;
                }
            }
            Str::Static(_) => {}
            Str::Word(word) => escape(word.as_bytes(), 0, word.len(), self.out),
        }
        self.out.push(b'"');
    }
}

/// Appends the first `len` bytes. All are copied and some cut again: a copy of fixed size is a few moves.
#[inline(always)]
fn append<const N: usize>(padded: &[u8; N], len: u8, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(padded);
    out.truncate(start + usize::from(len));
}

/// Appends `text[at..end]` as it stands inside a JSON string.
#[inline(always)]
fn escape(text: &[u8], mut at: usize, end: usize, out: &mut Vec<u8>) {
    loop {
        at = copy_plain(text, at, end, out);
        if at >= end {
            return;
        }
        let Some(&byte) = text.get(at) else { return };
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ => {
                let digit = if byte & 15 < 10 { b'0' + (byte & 15) } else { b'a' - 10 + (byte & 15) };
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), digit]);
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
        at += 1;
    }
}
