//! The bytes of a value to JSON text.

use alloc::vec::Vec;

use crate::value::needs::Needs;
use crate::value::number::{write_float, write_int};
use crate::value::problem::Invalid;
use crate::value::table::Table;
use crate::value::text::copy_plain;
use crate::value::walk::{Scalar, Stack, Str, Visit, walk};

pub(super) fn write(
    bytes: &[u8],
    table: Option<&Table>,
    stack: &mut Stack,
    out: &mut Vec<u8>,
) -> Result<Needs, Invalid> {
    walk(bytes, table, stack, &mut Writer { bytes, out, first: true })
}

struct Writer<'a> {
    bytes: &'a [u8],
    out: &'a mut Vec<u8>,
    /// Whether no comma belongs before what comes next.
    first: bool,
}

impl Visit for Writer<'_> {
    #[inline(always)]
    fn on_open(&mut self, _: usize, object: bool) {
        self.comma();
        self.out.push(if object { b'{' } else { b'[' });
        self.first = true;
    }

    #[inline(always)]
    fn on_close(&mut self, _: usize, object: bool) {
        self.out.push(if object { b'}' } else { b']' });
        self.first = false;
    }

    #[inline(always)]
    fn on_key(&mut self, key: Str<'_>) {
        self.comma();
        self.string(key);
        self.out.push(b':');
        self.first = true;
    }

    #[inline(always)]
    fn on_scalar(&mut self, scalar: Scalar<'_>) {
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

impl Writer<'_> {
    #[inline(always)]
    fn comma(&mut self) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
    }

    #[inline(always)]
    fn string(&mut self, text: Str<'_>) {
        self.out.push(b'"');
        match text {
            Str::Inline(range) => escape(self.bytes, range.start, range.end, self.out),
            Str::Word(word) => escape(word.as_bytes(), 0, word.len(), self.out),
        }
        self.out.push(b'"');
    }
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
