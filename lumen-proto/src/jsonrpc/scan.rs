//! Finds the id of an object too large to keep, piece by piece, in bounded memory.

use alloc::vec::Vec;

use bytes::Bytes;

use super::IdKey;
use super::envelope::Name;
use crate::limits;

/// What was found in a text that was not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// The top-level id as spelled, if there is one that an answer can carry.
    pub id: Option<Bytes>,
    /// Whether a top-level method was found: without it nobody awaits an answer.
    pub has_method: bool,
}

/// Reads one JSON object in pieces and remembers only its id and whether it has a method.
///
/// The grammar is not checked: a text that is none gives some answer, never a panic.
///
/// # Bounds
/// One token of at most [`limits::MAX_ID`] + 1 bytes.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    depth: u64,
    /// Whether the root is an object; an array has no members.
    is_object: bool,
    place: Place,
    in_string: bool,
    after_backslash: bool,
    /// Whether the bytes that come go into `token`.
    keeps: bool,
    token: Vec<u8>,
    has_id: bool,
    found: Scanned,
}

/// Where the scan is among the top-level members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the object.
    #[default]
    Start,
    /// Before or in a key.
    Key,
    /// Between the key `id` and the end of its value.
    Id,
    /// Anywhere else before the next comma, or in an array.
    Other,
    /// After the object.
    End,
}

impl Scan {
    /// Starts before the object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece, however it was cut.
    pub fn push(&mut self, mut piece: &[u8]) {
        while let Some((&byte, rest)) = piece.split_first() {
            if self.place == Place::End {
                return;
            }
            if self.in_string {
                piece = self.on_string(piece);
            } else {
                self.on_byte(byte);
                piece = rest;
            }
        }
    }

    /// Returns what was found.
    pub fn finish(self) -> Scanned {
        self.found
    }

    /// Returns whether the object has come to its end.
    pub fn is_complete(&self) -> bool {
        self.place == Place::End
    }

    /// Takes a part of a string; returns what follows.
    fn on_string<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let plain = if self.after_backslash {
            self.after_backslash = false;
            1
        } else {
            match memchr::memchr2(b'"', b'\\', piece) {
                None => piece.len(),
                Some(0) if piece.first() == Some(&b'"') => {
                    self.keep(b"\"");
                    self.in_string = false;
                    self.on_string_end();
                    return piece.get(1..).unwrap_or_default();
                }
                Some(0) => {
                    self.after_backslash = true;
                    1
                }
                Some(run) => run,
            }
        };
        let (run, rest) = piece.split_at(plain.min(piece.len()));
        self.keep(run);
        rest
    }

    fn on_string_end(&mut self) {
        match self.place {
            Place::Key if self.keeps => {
                self.keeps = false;
                let escaped = self.token.contains(&b'\\');
                let name = Name::of(&self.token, escaped);
                self.found.has_method |= name == Some(Name::Method);
                self.place = if name == Some(Name::Id) { Place::Id } else { Place::Other };
            }
            Place::Id if self.keeps => self.on_id_end(),
            _ => {}
        }
    }

    /// Takes a byte outside of strings.
    fn on_byte(&mut self, byte: u8) {
        let is_member = self.depth == 1;
        match byte {
            b'"' => {
                self.in_string = true;
                self.begin(is_member && matches!(self.place, Place::Key | Place::Id));
                self.keep(b"\"");
            }
            b'{' | b'[' => {
                self.has_id |= is_member && self.place == Place::Id;
                self.depth += 1;
                if self.place == Place::Start {
                    self.is_object = byte == b'{';
                    self.place = if self.is_object { Place::Key } else { Place::Other };
                }
            }
            b'}' | b']' | b',' => {
                if is_member && self.keeps {
                    self.on_id_end();
                }
                if byte != b',' {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.place = Place::End;
                    }
                } else if is_member && self.is_object {
                    self.place = Place::Key;
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {
                if is_member && self.keeps {
                    self.on_id_end();
                }
            }
            b':' => {}
            _ => {
                if is_member && self.place == Place::Id && !self.keeps {
                    self.begin(true);
                }
                self.keep(&[byte]);
            }
        }
    }

    fn begin(&mut self, keeps: bool) {
        self.keeps = keeps;
        self.token.clear();
    }

    /// The first id counts, as it does in an envelope.
    fn on_id_end(&mut self) {
        self.keeps = false;
        self.place = Place::Other;
        if !self.has_id && IdKey::from_token(&self.token).is_ok() {
            self.found.id = Some(Bytes::copy_from_slice(&self.token));
        }
        self.has_id = true;
    }

    /// Keeps one byte more than an id may have, which tells that it is too long.
    fn keep(&mut self, bytes: &[u8]) {
        if self.keeps {
            let room = (limits::MAX_ID + 1).saturating_sub(self.token.len());
            self.token.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }
}

#[cfg(test)]
mod tests;
