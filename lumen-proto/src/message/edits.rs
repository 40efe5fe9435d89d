//! What is exchanged in a message when it leaves.

use alloc::vec::Vec;

use bytes::Bytes;

use super::Value;
use crate::jsonrpc::{Message, Patch, Patches, Span, find};
use crate::value::Profile;
use crate::value::transcode::Transcoder;

/// One value to exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edit {
    path: &'static [&'static str],
    token: Bytes,
}

/// What is exchanged in one message: an id, and where else ids stand. Everything around it leaves as it came.
///
/// # Bounds
/// One edit for each path; the paths are constants of the code, a handful.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits(Vec<Edit>);

impl Edits {
    /// Makes an empty set; allocates nothing.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Exchanges the value at the end of `path`, a key for each level from the root, for the JSON text `token`, which is
    /// not checked. If there is no such value, nothing is exchanged. Takes the place of any other edit of this path.
    #[must_use]
    pub fn with(mut self, path: &'static [&'static str], token: impl Into<Bytes>) -> Self {
        self.0.retain(|edit| edit.path != path);
        self.0.push(Edit { path, token: token.into() });
        self
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes of all tokens.
    pub fn tokens_len(&self) -> usize {
        self.0.iter().map(|edit| edit.token.len()).sum()
    }

    /// Returns what the value at the end of `path` is exchanged for, if it is.
    pub fn token(&self, path: &[&str]) -> Option<&Bytes> {
        self.0.iter().find(|edit| edit.path == path).map(|edit| &edit.token)
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
        for edit in &self.0 {
            let Some(at) = value.find(edit.path) else { continue };
            let mut token = Vec::new();
            let needs = transcoder.encode(&edit.token, &mut token).ok()?;
            // A container would stand deeper in the message than alone.
            if needs.depth > 0 || !profile.takes(&needs) {
                return None;
            }
            made.try_add(Patch { at, with: token.into() }).ok()?;
        }
        Some(made)
    }

    fn patches(&self, find: impl Fn(&[&str]) -> Option<Span>) -> Patches {
        let mut made = Patches::new();
        for edit in &self.0 {
            if let Some(at) = find(edit.path) {
                // What lies in another exchanged value is gone with that.
                let _ = made.try_add(Patch { at, with: edit.token.clone() });
            }
        }
        made
    }
}
