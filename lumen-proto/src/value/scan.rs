//! Finds the id of a value too large to keep, piece by piece, in bounded memory.

use alloc::vec::Vec;

use bytes::Bytes;

use super::transcode::Transcoder;
use super::{dict, tag};
use crate::{Reason, limits, varint};

/// What was found in a value that was not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// The top-level id as JSON text has it, if there is one that an answer can carry.
    pub id: Option<Bytes>,
    /// Whether a top-level method was found: without it nobody awaits an answer.
    pub has_method: bool,
}

/// Reads one value in pieces and remembers only its id and whether it has a method.
///
/// The bytes are checked no further than it takes to follow them. Where they cannot be followed any more, by
/// their form or their depth, the scan ends with what it has found.
///
/// # Bounds
/// One entry for each open container, so at most [`limits::MAX_VALUE_DEPTH`], and one token of at most
/// [`limits::MAX_ID`] and a few bytes; at its end six times that while it is written as text.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    next: Next,
    /// How many values are still to come in the innermost container, and whether it is an object. Around
    /// everything is a make-believe array whose one value, the root, is under way.
    left: u64,
    object: bool,
    /// The same of the containers around it.
    around: Vec<(u64, bool)>,
    /// The beginning of a head that was cut.
    head: [u8; MAX_HEAD],
    head_len: usize,
    /// How much of a string is still to come, and whether it goes into `token`.
    text_left: u64,
    keeps: bool,
    /// A key's text, or the bytes of the id.
    token: Vec<u8>,
    /// Whether the last key was that of the id.
    is_id: bool,
    has_id: bool,
    found: Scanned,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// The head of a value.
    #[default]
    Value,
    /// The head of a key.
    Key,
    /// The text of a value.
    ValueText,
    /// The text of a key.
    KeyText,
    /// Nothing: the value has come to its end.
    End,
    /// Nothing that could be told.
    Lost,
}

/// What stands before the bytes of a string or the members of a container; of anything else it is the whole.
enum Head {
    /// `null` or a boolean.
    Plain,
    Number,
    Word(u8),
    Text(u64),
    Open {
        count: u64,
        object: bool,
    },
}

/// The bytes are no head.
struct Astray;

impl From<Reason> for Astray {
    fn from(_: Reason) -> Self {
        Self
    }
}

/// The most bytes of a head: a tag and a length.
const MAX_HEAD: usize = 1 + varint::MAX_LEN;

/// The longest key that counts.
const MAX_KEY: u64 = 6;

impl Scan {
    /// Starts before the value.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece, however it was cut.
    pub fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let taken = match self.next {
                Next::Value | Next::Key => self.on_head(piece),
                Next::ValueText | Next::KeyText => self.on_text(piece),
                Next::End | Next::Lost => return,
            };
            piece = piece.get(taken..).unwrap_or_default();
        }
    }

    /// Returns what was found.
    pub fn finish(self) -> Scanned {
        self.found
    }

    /// Returns whether the value has come to its end, so that nothing in it was missed.
    pub fn is_complete(&self) -> bool {
        self.next == Next::End
    }

    /// Takes bytes of a head; returns how many.
    fn on_head(&mut self, piece: &[u8]) -> usize {
        if self.head_len == 0
            && let Some(taken) = self.try_head(piece)
        {
            return taken;
        }
        // Byte by byte, so that none of what follows is taken. Only a cut head comes here.
        if let (Some(slot), Some(byte)) = (self.head.get_mut(self.head_len), piece.first()) {
            *slot = *byte;
            self.head_len += 1;
            let head = self.head;
            if self.try_head(head.get(..self.head_len).unwrap_or_default()).is_some() {
                self.head_len = 0;
            }
        }
        1
    }

    /// Takes the head that `bytes` start with; returns how long it is, or `None` if it goes on behind them.
    fn try_head(&mut self, bytes: &[u8]) -> Option<usize> {
        let is_key = self.next == Next::Key;
        let (head, len) = match if is_key { key_head(bytes) } else { value_head(bytes) } {
            Ok(found) => found?,
            Err(Astray) => {
                self.next = Next::Lost;
                return Some(bytes.len());
            }
        };
        if is_key {
            self.on_key_head(&head);
        } else {
            self.on_value_head(&head, bytes.get(..len).unwrap_or_default());
        }
        Some(len)
    }

    fn on_key_head(&mut self, head: &Head) {
        match *head {
            Head::Text(len) => {
                self.token.clear();
                self.begin_text(Next::KeyText, len, self.is_member() && len <= MAX_KEY);
            }
            Head::Word(id) => {
                let word = dict::static_word(id).filter(|_| self.is_member());
                self.on_key(word.unwrap_or_default().as_bytes());
            }
            Head::Plain | Head::Number | Head::Open { .. } => {}
        }
    }

    /// Takes what stands before the rest of a value; `bytes` are those of the head.
    fn on_value_head(&mut self, head: &Head, bytes: &[u8]) {
        // The first id counts, as it does in text.
        let is_id = self.is_id && !self.has_id;
        self.has_id |= is_id;
        if is_id {
            self.token.clear();
            self.token.extend_from_slice(bytes);
        }
        match *head {
            Head::Text(len) => {
                self.begin_text(Next::ValueText, len, is_id && len <= limits::MAX_ID as u64);
            }
            Head::Open { .. } if self.around.len() >= limits::MAX_VALUE_DEPTH => self.next = Next::Lost,
            Head::Open { count, object } => {
                self.around.push((self.left, self.object));
                (self.left, self.object) = (count, object);
                self.on_value_end();
            }
            Head::Number | Head::Word(_) => {
                if is_id {
                    self.on_id();
                }
                self.on_value_end();
            }
            Head::Plain => self.on_value_end(),
        }
    }

    fn begin_text(&mut self, next: Next, len: u64, keeps: bool) {
        (self.next, self.text_left, self.keeps) = (next, len, keeps);
        // It may be empty, and then has ended.
        self.on_text(&[]);
    }

    /// Takes bytes of a string; returns how many.
    fn on_text(&mut self, piece: &[u8]) -> usize {
        let taken = usize::try_from(self.text_left).unwrap_or(usize::MAX).min(piece.len());
        if self.keeps {
            self.token.extend_from_slice(piece.get(..taken).unwrap_or_default());
        }
        self.text_left -= taken as u64;
        if self.text_left > 0 {
            return taken;
        }
        let keeps = core::mem::take(&mut self.keeps);
        if self.next == Next::KeyText {
            let key = core::mem::take(&mut self.token);
            self.on_key(if keeps { &key } else { b"" });
            self.token = key;
        } else {
            if keeps {
                self.on_id();
            }
            self.on_value_end();
        }
        taken
    }

    /// A key has ended; it is empty if it does not count.
    fn on_key(&mut self, key: &[u8]) {
        self.is_id = key == b"id";
        self.found.has_method |= key == b"method";
        self.next = Next::Value;
    }

    /// The id is in `token`. What makes it no value makes it no id either.
    fn on_id(&mut self) {
        let mut text = Vec::new();
        if Transcoder::new().decode_within(&self.token, None, limits::MAX_ID, &mut text).is_ok() {
            self.found.id = Some(Bytes::from(text));
        }
    }

    /// A value has ended, or a container begun: finds out what comes next.
    fn on_value_end(&mut self) {
        while self.left == 0 {
            let Some(around) = self.around.pop() else {
                self.next = Next::End;
                return;
            };
            (self.left, self.object) = around;
        }
        self.left -= 1;
        self.next = if self.object { Next::Key } else { Next::Value };
    }

    /// Returns whether a key here is one of the root.
    fn is_member(&self) -> bool {
        self.around.len() == 1
    }
}

/// Reads the head of a key; returns it with its length, or `None` if more bytes are needed.
fn key_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Astray> {
    Ok(match bytes.split_first() {
        Some((&tag::INLINE_KEY, body)) => {
            varint::decode(body)?.map(|(len, width)| (Head::Text(len), 1 + width))
        }
        Some((&id, _)) => Some((Head::Word(id), 1)),
        None => None,
    })
}

/// Reads the head of a value; returns it with its length, or `None` if more bytes are needed.
fn value_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Astray> {
    let Some((&tag, body)) = bytes.split_first() else { return Ok(None) };
    let found = match tag {
        tag::NULL => Some((Head::Plain, 0)),
        tag::BOOL => body.first().map(|_| (Head::Plain, 1)),
        tag::FLOAT => body.first_chunk::<8>().map(|_| (Head::Number, 8)),
        tag::INT => tag::decode_int(body)?.map(|(_, len)| (Head::Number, len)),
        tag::WORD => body.first().map(|&id| (Head::Word(id), 1)),
        tag::STR => varint::decode(body)?.map(|(len, width)| (Head::Text(len), width)),
        tag::ARRAY | tag::OBJECT => varint::decode(body)?
            .map(|(count, width)| (Head::Open { count, object: tag == tag::OBJECT }, width)),
        _ => return Err(Astray),
    };
    Ok(found.map(|(head, len)| (head, 1 + len)))
}

#[cfg(test)]
mod tests;
