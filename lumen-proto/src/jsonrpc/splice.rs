//! Changing a few bytes of a text and leaving all others as they came.

use bytes::{BufMut, BytesMut};
use smallvec::SmallVec;

use super::{Member, Span, Token, text};

/// Bytes that take the place of a range; an empty range inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// What is replaced.
    pub at: Span,
    /// By what.
    pub with: Token,
}

/// The patches for one text: in order, none overlapping another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patches(SmallVec<[Patch; 2]>);

impl Patches {
    /// Makes an empty set; allocates nothing, nor do the first two patches.
    pub fn new() -> Self {
        Self(SmallVec::new())
    }

    /// Adds a patch. One that inserts where others insert comes after them; where another range begins, before
    /// it.
    ///
    /// # Errors
    /// Gives the patch back if it overlaps another. Two removals of neighbours may both claim the comma between
    /// them.
    pub fn try_add(&mut self, patch: Patch) -> Result<(), Patch> {
        let overlaps = |other: &Patch| other.at.start() < patch.at.end() && patch.at.start() < other.at.end();
        if patch.at.start() > patch.at.end() || self.0.iter().any(overlaps) {
            return Err(patch);
        }
        let order = |patch: &Patch| (patch.at.start(), patch.at.end());
        let place = self.0.partition_point(|other| order(other) <= order(&patch));
        self.0.insert(place, patch);
        Ok(())
    }

    /// Returns the patches in the order of their places.
    pub fn as_slice(&self) -> &[Patch] {
        &self.0
    }

    /// Returns how long a text of `len` bytes is with the patches in place.
    pub fn patched_len(&self, len: usize) -> usize {
        let removed: usize = self.0.iter().map(|patch| patch.at.len()).sum();
        let added: usize = self.0.iter().map(|patch| patch.with.len()).sum();
        len.saturating_sub(removed) + added
    }

    /// Returns whether a raw CR or LF is put in.
    pub(super) fn has_newline(&self) -> bool {
        self.0.iter().any(|patch| patch.with.iter().any(|byte| matches!(byte, b'\r' | b'\n')))
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends `text` to `out` with the patches in place. Bytes outside of the patched ranges are not touched. A
/// range that reaches beyond the text is cut there.
pub fn apply(text: &[u8], patches: &Patches, out: &mut BytesMut) {
    let added: usize = patches.0.iter().map(|patch| patch.with.len()).sum();
    out.reserve(text.len() + added);
    let mut at = 0;
    for patch in &patches.0 {
        let start = patch.at.start().min(text.len());
        out.extend_from_slice(text.get(at..start).unwrap_or_default());
        out.extend_from_slice(&patch.with);
        at = patch.at.end().min(text.len());
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
}

/// Makes the patch that adds a member at the end of the object at `object`, with the comma that it needs.
///
/// `value` is JSON text and is not checked. The comma is chosen by the text as it is: to exchange a member,
/// replace its value instead of removing and inserting, and insert only once into an object. If there is no
/// object, the patch changes nothing.
pub fn insert_member(text: &[u8], object: Span, key: &str, value: &[u8]) -> Patch {
    let token = object.of(text);
    let Some(inner) = token.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")) else {
        return Patch { at: Span::empty(object.start()), with: Token::new() };
    };
    let mut with = BytesMut::with_capacity(key.len() + value.len() + 4);
    if !inner.iter().all(|&byte| is_blank(byte)) {
        with.put_u8(b',');
    }
    with.put_u8(b'"');
    text::escape_into(&mut with, key);
    with.extend_from_slice(b"\":");
    with.extend_from_slice(value);
    Patch { at: Span::empty(object.end().saturating_sub(1)), with: with.freeze().into() }
}

/// Makes the patch that takes `member` out of the object at `object`, with exactly one comma: the one after it,
/// or the one before it if it is the last. White space before the member or after it stays.
pub fn remove_member(text: &[u8], object: Span, member: &Member) -> Patch {
    let (start, end) = (member.key.start(), member.value.end());
    let after = text.get(end..object.end()).unwrap_or_default();
    let before = text.get(object.start()..start).unwrap_or_default();
    let is_not_blank = |byte: &u8| !is_blank(*byte);
    let next = after.iter().position(is_not_blank).filter(|&at| after.get(at) == Some(&b','));
    let previous = before.iter().rposition(is_not_blank).filter(|&at| before.get(at) == Some(&b','));
    let at = match (next, previous) {
        (Some(comma), _) => Span::new(start, end + comma + 1),
        (None, Some(comma)) => Span::new(object.start() + comma, end),
        (None, None) => Span::new(start, end),
    };
    Patch { at, with: Token::new() }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests;
