//! The grammar of JSON (RFC 8259) as a walk over bytes: no tree, no recursion, no allocation.
//!
//! UTF-8 is checked elsewhere; to the grammar a byte above 0x7f inside a string is a byte like any other.
//!
//! The steps are inlined into [`Cursor::value`] by force: with them the place stays in a register, which makes a
//! text of many short strings twice as fast to read.

use super::Span;
use crate::base::plain::plain_end;
use crate::{Reason, limits};

const WORDS: usize = limits::MAX_DEPTH.div_ceil(64);

/// A place in a text. Its methods return `None` where the text stops being JSON, and leave `at` there.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    pub(super) at: usize,
    /// Whether a raw CR or LF was passed. Valid JSON has them between tokens only.
    pub(super) newline: bool,
    too_deep: bool,
    depth: usize,
    /// One bit for each open container: set for an object.
    objects: [u64; WORDS],
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at, newline: false, too_deep: false, depth: 0, objects: [0; WORDS] }
    }

    /// Returns why a method returned `None`.
    pub(super) const fn reason(&self) -> Reason {
        if self.too_deep { Reason::TooDeep { at: self.at } } else { Reason::NotJson { at: self.at } }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Returns whether nothing is left.
    pub(super) const fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Passes `word` if it stands here; returns whether it does.
    #[inline(always)]
    pub(super) fn pass(&mut self, word: &[u8]) -> bool {
        let stands = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word));
        self.at += if stands { word.len() } else { 0 };
        stands
    }

    /// Passes white space.
    #[inline(always)]
    pub(super) fn blanks(&mut self) {
        // One comparison tells what follows most tokens: no white space.
        while let Some(byte @ ..=b' ') = self.peek() {
            match byte {
                b' ' | b'\t' => {}
                b'\n' | b'\r' => self.newline = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Passes `byte`.
    #[inline(always)]
    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// Passes an opening bracket or brace.
    #[inline(always)]
    pub(super) fn open(&mut self, object: bool) -> Option<()> {
        let Some(word) = self.objects.get_mut(self.depth / 64) else {
            self.too_deep = true;
            return None;
        };
        let bit = 1 << (self.depth % 64);
        *word = if object { *word | bit } else { *word & !bit };
        self.depth += 1;
        self.at += 1;
        Some(())
    }

    /// Passes a closing bracket or brace; returns whether the container around it is an object.
    #[inline(always)]
    pub(super) fn close(&mut self) -> bool {
        self.at += 1;
        self.depth = self.depth.saturating_sub(1);
        let top = self.depth.wrapping_sub(1);
        self.objects.get(top / 64).is_some_and(|word| word >> (top % 64) & 1 == 1)
    }

    /// Passes what stands before the next member of an open object, its key and its colon. Returns the key and
    /// whether it has escapes, or `Some(None)` after the object's end.
    #[inline(always)]
    pub(super) fn next_key(&mut self, first: bool) -> Option<Option<(Span, bool)>> {
        self.blanks();
        match self.peek()? {
            b'}' => {
                self.close();
                return Some(None);
            }
            b',' if !first => {
                self.at += 1;
                self.blanks();
            }
            _ if first => {}
            _ => return None,
        }
        let start = self.at;
        let (end, escaped) = self.key()?;
        Some(Some((Span::new(start, end), escaped)))
    }

    /// Passes what stands before the next element of an open array. Returns whether there is one; if not, the
    /// array's end was passed.
    pub(super) fn next_element(&mut self, first: bool) -> Option<bool> {
        self.blanks();
        match self.peek()? {
            b']' => {
                self.close();
                return Some(false);
            }
            b',' if !first => {
                self.at += 1;
                self.blanks();
            }
            _ if first => {}
            _ => return None,
        }
        Some(true)
    }

    /// Passes one value. Most are strings and numbers, for which nothing is called.
    #[inline(always)]
    pub(super) fn value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.nested(),
        }
    }

    /// Passes one value, whatever it is.
    fn nested(&mut self) -> Option<()> {
        let floor = self.depth;
        let mut in_object = false;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b'{' => {
                    self.open(true)?;
                    in_object = true;
                    self.blanks();
                    if self.peek()? != b'}' {
                        self.key()?;
                        continue;
                    }
                    in_object = self.close();
                }
                b'[' => {
                    self.open(false)?;
                    in_object = false;
                    self.blanks();
                    if self.peek()? != b']' {
                        continue;
                    }
                    in_object = self.close();
                }
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return None,
            }
            // A value has ended, and with it perhaps containers.
            loop {
                if self.depth == floor {
                    return Some(());
                }
                self.blanks();
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        self.blanks();
                        if in_object {
                            self.key()?;
                        }
                        break;
                    }
                    b'}' if in_object => in_object = self.close(),
                    b']' if !in_object => in_object = self.close(),
                    _ => return None,
                }
            }
        }
    }

    /// Passes a key, its colon and the blanks around that; returns where the key ended and whether it has
    /// escapes.
    #[inline(always)]
    fn key(&mut self) -> Option<(usize, bool)> {
        if self.peek()? != b'"' {
            return None;
        }
        let escaped = self.string()?;
        let end = self.at;
        self.blanks();
        self.expect(b':')?;
        self.blanks();
        Some((end, escaped))
    }

    /// Passes a string, from its opening quote on; returns whether it has escapes.
    #[inline(always)]
    pub(super) fn string(&mut self) -> Option<bool> {
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at = plain_end(self.text, self.at);
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(escaped);
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return None,
            }
        }
    }

    #[inline(always)]
    fn escape(&mut self) -> Option<()> {
        match self.text.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = self.text.get(self.at + 2..self.at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    /// Passes a number.
    #[inline(always)]
    pub(super) fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    #[inline(always)]
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    #[inline(always)]
    fn literal(&mut self, word: &[u8]) -> Option<()> {
        self.pass(word).then_some(())
    }
}

/// Returns whether `text` is one JSON value with nothing but white space around it.
pub(super) fn is_json(text: &[u8]) -> bool {
    let mut cursor = Cursor::new(text, 0);
    cursor.blanks();
    let whole = cursor.value().is_some();
    cursor.blanks();
    whole && cursor.is_at_end()
}
