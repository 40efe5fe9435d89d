//! JSON text to the bytes of a value.
//!
//! A container's count stands before its members and is known after them. One byte is left for it, which is
//! enough for 63 members. Larger counts are written down, and room is made for all of them at the end, from the
//! back, so that each byte moves at most once however the containers nest.

use alloc::vec::Vec;
use core::fmt;

use crate::base::plain::plain_end;
use crate::limits::MAX_VALUE_DEPTH;
use crate::value::needs::Needs;
use crate::value::number::{self, Number};
use crate::value::text::{copy, copy_plain, is_utf8};
use crate::value::{dict, encode, tag};
use crate::varint;

/// A text that the codec does not hold exactly; it has to travel as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value codec cannot hold this text exactly")
    }
}

impl core::error::Error for Unfit {}

#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// The containers around the innermost one.
    stack: Vec<Level>,
    wide: Vec<Wide>,
}

/// An open container.
#[derive(Clone, Copy, Debug)]
struct Level {
    object: bool,
    /// Where the byte for the count is.
    at: usize,
    count: usize,
}

/// A count that does not fit the byte left for it.
#[derive(Clone, Copy, Debug)]
struct Wide {
    at: usize,
    count: usize,
}

/// The place in the text, and what has come of it.
struct Pass<'a> {
    text: &'a [u8],
    at: usize,
    out: &'a mut Vec<u8>,
    needs: Needs,
}

impl Memory {
    pub(super) const fn new() -> Self {
        Self { stack: Vec::new(), wide: Vec::new() }
    }

    /// Appends the value; `None` leaves part of it behind.
    pub(super) fn encode(&mut self, text: &[u8], out: &mut Vec<u8>) -> Option<Needs> {
        if !is_utf8(text) {
            return None;
        }
        out.reserve(text.len());
        self.stack.clear();
        self.wide.clear();
        let mut pass = Pass { text, at: 0, out, needs: Needs::default() };
        self.values(&mut pass)?;
        pass.blanks();
        if pass.at != text.len() {
            return None;
        }
        let needs = pass.needs;
        self.widen(out)?;
        Some(needs)
    }

    /// Passes the root value and everything in it.
    #[inline(always)]
    fn values(&mut self, pass: &mut Pass<'_>) -> Option<()> {
        pass.blanks();
        // Around everything is a make-believe array.
        let mut level = Level { object: false, at: 0, count: 0 };
        loop {
            match pass.peek()? {
                b'"' => pass.string(tag::STR)?,
                b'-' | b'0'..=b'9' => pass.number()?,
                bracket @ (b'{' | b'[') => {
                    if self.stack.len() >= MAX_VALUE_DEPTH {
                        return None;
                    }
                    self.stack.push(level);
                    let object = bracket == b'{';
                    pass.out.extend_from_slice(&[if object { tag::OBJECT } else { tag::ARRAY }, 0]);
                    level = Level { object, at: pass.out.len() - 1, count: 0 };
                    pass.at += 1;
                    pass.blanks();
                    match (object, pass.peek()?) {
                        (true, b'}') | (false, b']') => {}
                        (true, _) => {
                            pass.key()?;
                            continue;
                        }
                        (false, _) => continue,
                    }
                    pass.at += 1;
                    level = self.close(level, pass)?;
                }
                b't' => pass.word(b"true", &[tag::BOOL, 1])?,
                b'f' => pass.word(b"false", &[tag::BOOL, 0])?,
                b'n' => pass.word(b"null", &[tag::NULL])?,
                _ => return None,
            }
            // A value has ended, and with it perhaps containers.
            loop {
                level.count += 1;
                if self.stack.is_empty() {
                    return Some(());
                }
                pass.blanks();
                match (pass.peek()?, level.object) {
                    (b',', object) => {
                        pass.at += 1;
                        pass.blanks();
                        if object {
                            pass.key()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        pass.at += 1;
                        level = self.close(level, pass)?;
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Writes the count of the innermost container; returns the one around it.
    #[inline(always)]
    fn close(&mut self, level: Level, pass: &mut Pass<'_>) -> Option<Level> {
        pass.needs.on_container(level.count, self.stack.len());
        match u8::try_from(level.count) {
            Ok(short @ 0..=0x3f) => *pass.out.get_mut(level.at)? = short,
            _ => self.wide.push(Wide { at: level.at, count: level.count }),
        }
        self.stack.pop()
    }

    /// Makes room for the large counts and writes them.
    fn widen(&mut self, out: &mut Vec<u8>) -> Option<()> {
        if self.wide.is_empty() {
            return Some(());
        }
        self.wide.sort_unstable_by_key(|wide| wide.at);
        let mut from = out.len();
        let mut growth: usize = self.wide.iter().map(|wide| varint::encoded_len(wide.count as u64) - 1).sum();
        out.resize(from + growth, 0);
        for wide in self.wide.iter().rev() {
            out.copy_within(wide.at + 1..from, wide.at + 1 + growth);
            let mut form = [0; varint::MAX_LEN];
            let len = varint::encode(wide.count as u64, &mut form);
            growth -= len - 1;
            out.get_mut(wide.at + growth..)?.get_mut(..len)?.copy_from_slice(form.get(..len)?);
            from = wide.at;
        }
        Some(())
    }
}

impl Pass<'_> {
    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline(always)]
    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn word(&mut self, word: &[u8], token: &[u8]) -> Option<()> {
        if !self.text.get(self.at..)?.starts_with(word) {
            return None;
        }
        self.at += word.len();
        self.out.extend_from_slice(token);
        Some(())
    }

    #[inline(always)]
    fn number(&mut self) -> Option<()> {
        let (number, len) = number::parse(self.text.get(self.at..)?)?;
        self.at += len;
        match number {
            Number::Int(value) => {
                self.needs.on_int(value);
                encode::int(value, self.out);
            }
            Number::Float(value) => {
                self.needs.on_float(value);
                encode::float(value, self.out);
            }
            Number::Inexact => return None,
        }
        Some(())
    }

    /// Passes a key, its colon, and the blanks around that.
    #[inline(always)]
    fn key(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.string(tag::INLINE_KEY)?;
        self.blanks();
        if self.peek()? != b':' {
            return None;
        }
        self.at += 1;
        self.blanks();
        Some(())
    }

    /// Passes a string from its opening quote on; `lead` is what stands before its length if it is no word.
    #[inline(always)]
    fn string(&mut self, lead: u8) -> Option<()> {
        let start = self.at + 1;
        let end = plain_end(self.text, start);
        if self.text.get(end)? != &b'"' {
            return self.escaped_string(lead, start, end);
        }
        self.at = end + 1;
        let text = self.text.get(start..end)?;
        match dict::static_id(text) {
            Some(id) => self.static_word(lead, id),
            None => {
                on_str(lead, text, &mut self.needs);
                head(lead, end - start, self.out);
                copy(self.text, start, end, self.out);
            }
        }
        Some(())
    }

    /// Passes a string with escapes, the first at `at`. It is decoded behind the widest head it may need.
    fn escaped_string(&mut self, lead: u8, start: usize, mut at: usize) -> Option<()> {
        let token = self.out.len();
        self.out.extend_from_slice(&[0; 1 + varint::MAX_LEN]);
        let inside = self.out.len();
        copy(self.text, start, at, self.out);
        loop {
            match self.text.get(at)? {
                b'"' => break,
                b'\\' => at = unescape(self.text, at, self.out)?,
                _ => return None,
            }
            at = copy_plain(self.text, at, self.text.len(), self.out);
        }
        self.at = at + 1;
        let text = self.out.get(inside..)?;
        let len = text.len();
        if let Some(id) = dict::static_id(text) {
            self.out.truncate(token);
            self.static_word(lead, id);
            return Some(());
        }
        on_str(lead, text, &mut self.needs);
        let mut form = [0; varint::MAX_LEN];
        let width = varint::encode(len as u64, &mut form);
        *self.out.get_mut(token)? = lead;
        self.out.get_mut(token + 1..)?.get_mut(..width)?.copy_from_slice(form.get(..width)?);
        self.out.copy_within(inside.., token + 1 + width);
        self.out.truncate(token + 1 + width + len);
        Some(())
    }

    #[inline(always)]
    fn static_word(&mut self, lead: u8, id: u8) {
        if lead == tag::STR {
            self.out.push(tag::WORD);
        }
        self.out.push(id);
    }
}

#[inline(always)]
fn on_str(lead: u8, text: &[u8], needs: &mut Needs) {
    if lead == tag::INLINE_KEY {
        needs.on_key(text);
    } else {
        needs.on_str(text);
    }
}

/// Appends a tag, or what stands in a key's place for one, and a length.
#[inline(always)]
fn head(lead: u8, len: usize, out: &mut Vec<u8>) {
    if let Ok(short @ 0..=0x3f) = u8::try_from(len) {
        out.extend_from_slice(&[lead, short]);
        return;
    }
    let mut form = [0; varint::MAX_LEN];
    let width = varint::encode(len as u64, &mut form);
    out.push(lead);
    out.extend_from_slice(form.get(..width).unwrap_or_default());
}

/// Appends what the escape at `at` stands for; returns where it ends. Half a surrogate pair stands for nothing.
#[inline(always)]
fn unescape(text: &[u8], at: usize, out: &mut Vec<u8>) -> Option<usize> {
    let byte = match text.get(at + 1)? {
        byte @ (b'"' | b'\\' | b'/') => *byte,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 0x08,
        b'f' => 0x0c,
        b'u' => return unescape_unicode(text, at, out),
        _ => return None,
    };
    out.push(byte);
    Some(at + 2)
}

fn unescape_unicode(text: &[u8], at: usize, out: &mut Vec<u8>) -> Option<usize> {
    let mut end = at + 6;
    let mut point = hex4(text.get(at + 2..end)?)?;
    if (0xd800..0xdc00).contains(&point) {
        if text.get(end..end + 2)? != b"\\u" {
            return None;
        }
        let low = hex4(text.get(end + 2..end + 6)?)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        point = 0x1_0000 + ((point - 0xd800) << 10) + low;
        end += 6;
    }
    let mut utf8 = [0; 4];
    out.extend_from_slice(char::from_u32(point)?.encode_utf8(&mut utf8).as_bytes());
    Some(end)
}

/// Reads four hexadecimal digits.
#[inline(always)]
fn hex4(digits: &[u8]) -> Option<u32> {
    let value = digits.iter().fold(0, |value, &digit| value << 4 | HEX[usize::from(digit)]);
    (value <= 0xffff).then_some(value)
}

/// What a byte stands for as a hexadecimal digit; any other byte sets bits that four digits do not reach.
static HEX: [u32; 256] = {
    let mut table = [1 << 16; 256];
    let mut digit = 0_u32;
    while digit < 16 {
        let byte = b"0123456789abcdef"[digit as usize];
        table[byte as usize] = digit;
        table[byte.to_ascii_uppercase() as usize] = digit;
        digit += 1;
    }
    table
};
