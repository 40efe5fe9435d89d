//! What is exchanged in a message when it leaves.

use alloc::vec::Vec;

use super::Value;
use crate::jsonrpc::{Message, Patch, Patches, Span, Token, find};
use crate::value::Profile;
use crate::value::transcode::Transcoder;

/// Where a value is: a key for each level from the root.
pub type Path = &'static [&'static str];

/// What is exchanged in one message: the id of a request, wherever it stands. Everything around it leaves as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    places: &'static [Path],
    token: Token,
}

impl Edits {
    /// Makes an empty set; allocates nothing.
    pub const fn none() -> Self {
        Self { places: &[], token: Token::new() }
    }

    /// Exchanges the values at these places for the JSON text `token`, which is not checked. Where there is no value,
    /// none is put.
    pub fn put(places: &'static [Path], token: impl Into<Token>) -> Self {
        Self { places, token: token.into() }
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the bytes of the token.
    pub fn token_len(&self) -> usize {
        self.token.len()
    }

    /// Returns what the value at the end of `path` is exchanged for, if it is.
    pub fn token(&self, path: &[&str]) -> Option<&Token> {
        self.places.contains(&path).then_some(&self.token)
    }

    /// Returns the patches that make these edits in a message of text.
    pub(crate) fn in_text(&self, message: &Message) -> Patches {
        self.patches(|path| message.find(path))
    }

    /// Returns the patches that make these edits in a text that was not parsed, but is known to be a message without
    /// white space around it.
    pub(crate) fn in_bare_text(&self, text: &[u8]) -> Patches {
        let whole = Span::new(0, text.len());
        self.patches(|path| find(text, whole, path))
    }

    /// Returns the patches that make these edits in a value. `None` if this receiver would not get the same of them
    /// as out of text.
    pub(crate) fn in_value(
        &self,
        value: &Value,
        profile: &Profile,
        transcoder: &mut Transcoder,
    ) -> Option<Patches> {
        let mut made = Patches::new();
        if self.is_empty() {
            return Some(made);
        }
        let mut token = Vec::new();
        let needs = transcoder.encode(&self.token, &mut token).ok()?;
        // A container would stand deeper in the message than alone.
        let is_good = needs.depth == 0 && profile.takes(&needs);
        let token = Token::from(&token[..]);
        for place in self.places {
            let Some(at) = value.find(place) else { continue };
            if !is_good {
                return None;
            }
            made.try_add(Patch { at, with: token.clone() }).ok()?;
        }
        Some(made)
    }

    fn patches(&self, find: impl Fn(&[&str]) -> Option<Span>) -> Patches {
        let mut made = Patches::new();
        for place in self.places {
            if let Some(at) = find(place) {
                // What lies in another exchanged value is gone with that.
                let _ = made.try_add(Patch { at, with: self.token.clone() });
            }
        }
        made
    }
}
