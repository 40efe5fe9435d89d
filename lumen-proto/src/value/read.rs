//! Tokens of a value, read from the front of a slice.

use super::problem::{Invalid, Problem};
use super::text::utf8;
use super::{dict, tag};
use crate::varint;

/// A string as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// A word that every peer knows.
    Static(&'static str),
    /// An id of the session's table, 80 to FE; whether it is taken is for the table to say.
    Session(u8),
    /// The string itself.
    Inline(&'a str),
}

/// Takes one token after the other from the front of the bytes of a value.
///
/// Knows the parts, not the whole: which part comes next, the depth and the number of members are the
/// caller's. After an error the position has no meaning.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    /// Takes one byte: a tag, or the id of a key.
    ///
    /// # Errors
    /// [`Problem::Truncated`] at the end.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Invalid> {
        let Some((&byte, rest)) = self.rest.split_first() else { return Err(self.truncated()) };
        self.rest = rest;
        Ok(byte)
    }

    /// Takes what follows [`tag::BOOL`].
    ///
    /// # Errors
    /// [`Problem::BadBool`], or [`Problem::Truncated`].
    #[inline]
    pub fn bool(&mut self) -> Result<bool, Invalid> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.before(Problem::BadBool(other))),
        }
    }

    /// Takes what follows [`tag::FLOAT`].
    ///
    /// # Errors
    /// [`Problem::NotFinite`], or [`Problem::Truncated`].
    #[inline]
    pub fn float(&mut self) -> Result<f64, Invalid> {
        let Some((bits, rest)) = self.rest.split_first_chunk() else { return Err(self.truncated()) };
        let float = f64::from_le_bytes(*bits);
        if !float.is_finite() {
            return Err(self.here(Problem::NotFinite));
        }
        self.rest = rest;
        Ok(float)
    }

    /// Takes what follows [`tag::INT`].
    ///
    /// # Errors
    /// [`Problem::BadInt`], or [`Problem::Truncated`].
    #[inline]
    pub fn int(&mut self) -> Result<i64, Invalid> {
        match tag::decode_int(self.rest) {
            Ok(Some((value, len))) => {
                self.skip(len);
                Ok(value)
            }
            Ok(None) => Err(self.truncated()),
            Err(_) => Err(self.here(Problem::BadInt)),
        }
    }

    /// Takes what follows [`tag::WORD`].
    ///
    /// # Errors
    /// [`Problem::UnknownId`] for FF, which is no id, or [`Problem::Truncated`].
    #[inline]
    pub fn word(&mut self) -> Result<Text<'a>, Invalid> {
        let id = self.byte()?;
        match dict::static_word(id) {
            Some(word) => Ok(Text::Static(word)),
            None if id == tag::INLINE_KEY => Err(self.before(Problem::UnknownId(id))),
            None => Ok(Text::Session(id)),
        }
    }

    /// Takes a key.
    ///
    /// # Errors
    /// As [`str`](Self::str).
    #[inline]
    pub fn key(&mut self) -> Result<Text<'a>, Invalid> {
        let id = self.byte()?;
        if id == tag::INLINE_KEY {
            return self.str().map(Text::Inline);
        }
        Ok(dict::static_word(id).map_or(Text::Session(id), Text::Static))
    }

    /// Takes what follows [`tag::STR`], without a look at its UTF-8.
    ///
    /// # Errors
    /// [`Problem::BadLength`], or [`Problem::Truncated`].
    #[inline]
    pub fn str_bytes(&mut self) -> Result<&'a [u8], Invalid> {
        let len = self.length()?;
        match usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len)) {
            Some((text, rest)) => {
                self.rest = rest;
                Ok(text)
            }
            None => {
                self.rest = &[];
                Err(self.truncated())
            }
        }
    }

    /// Takes what follows [`tag::STR`].
    ///
    /// # Errors
    /// [`Problem::NotUtf8`] at the first byte that is not, [`Problem::BadLength`] or [`Problem::Truncated`].
    #[inline]
    pub fn str(&mut self) -> Result<&'a str, Invalid> {
        let bytes = self.str_bytes()?;
        utf8(bytes).map_err(|valid| Invalid {
            offset: self.offset() - bytes.len() + valid,
            problem: Problem::NotUtf8,
        })
    }

    /// Takes the count that follows [`tag::ARRAY`]. Each member takes a byte at least.
    ///
    /// # Errors
    /// [`Problem::TooMany`], [`Problem::BadLength`] or [`Problem::Truncated`].
    ///
    /// # Bounds
    /// What is returned is no more than the bytes that remain.
    #[inline]
    pub fn array(&mut self) -> Result<usize, Invalid> {
        self.count(1)
    }

    /// Takes the count that follows [`tag::OBJECT`]. Each member takes two bytes at least.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    ///
    /// # Bounds
    /// What is returned is no more than half the bytes that remain.
    #[inline]
    pub fn object(&mut self) -> Result<usize, Invalid> {
        self.count(2)
    }

    /// Checks that nothing follows, or one line feed.
    ///
    /// # Errors
    /// [`Problem::Trailing`] at the first byte that should not be there.
    #[inline]
    pub fn end(&self) -> Result<(), Invalid> {
        match self.rest {
            [] | [b'\n'] => Ok(()),
            [b'\n', ..] => Err(Invalid { offset: self.offset() + 1, problem: Problem::Trailing }),
            _ => Err(self.here(Problem::Trailing)),
        }
    }

    /// Returns the next byte without taking it.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Returns how many bytes have been taken.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Returns how many bytes have not been taken yet.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Says that something is wrong with the next byte.
    #[inline]
    pub const fn here(&self, problem: Problem) -> Invalid {
        Invalid { offset: self.offset(), problem }
    }

    /// Says that something is wrong with the byte just taken.
    #[inline]
    pub const fn before(&self, problem: Problem) -> Invalid {
        Invalid { offset: self.offset().saturating_sub(1), problem }
    }

    #[inline]
    fn count(&mut self, least: usize) -> Result<usize, Invalid> {
        let offset = self.offset();
        let count = self.length()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() / least => Ok(count),
            _ => Err(Invalid { offset, problem: Problem::TooMany }),
        }
    }

    #[inline]
    fn length(&mut self) -> Result<u64, Invalid> {
        match varint::decode(self.rest) {
            Ok(Some((value, len))) => {
                self.skip(len);
                Ok(value)
            }
            Ok(None) => Err(self.truncated()),
            Err(_) => Err(self.here(Problem::BadLength)),
        }
    }

    #[inline]
    fn skip(&mut self, len: usize) {
        self.rest = self.rest.get(len..).unwrap_or_default();
    }

    #[cold]
    const fn truncated(&self) -> Invalid {
        Invalid { offset: self.len, problem: Problem::Truncated }
    }
}
