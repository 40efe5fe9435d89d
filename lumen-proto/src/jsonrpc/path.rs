//! Nested values on demand. Made for texts whose grammar was checked; of any other text they find less, or
//! nothing, but never panic.

use alloc::borrow::Cow;

use super::cursor::Cursor;
use super::{Span, text};

/// One member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The key, with its quotes.
    pub key: Span,
    /// The value.
    pub value: Span,
}

/// Iterates over the members of an object in their order; see [`members`].
#[derive(Clone)]
pub struct Members<'a> {
    cursor: Cursor<'a>,
    first: bool,
    done: bool,
}

/// Returns the members of the object at `object`, with ranges in `text`. There are none if it is no object.
pub fn members(text: &[u8], object: Span) -> Members<'_> {
    let text = text.get(..object.end()).unwrap_or_default();
    let mut cursor = Cursor::new(text, object.start());
    let done = cursor.peek() != Some(b'{') || cursor.open(true).is_none();
    Members { cursor, first: true, done }
}

impl Iterator for Members<'_> {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        if self.done {
            return None;
        }
        let mut step = || {
            let (key, _) = self.cursor.next_key(self.first)??;
            let start = self.cursor.at;
            self.cursor.value()?;
            Some(Member { key, value: Span::new(start, self.cursor.at) })
        };
        let member = step();
        self.first = false;
        self.done = member.is_none();
        member
    }
}

/// Returns the value at the end of `path`, a key for each level below `within`. Keys are compared decoded. Of
/// members with the same key the last counts, as it does for serde_json and `JSON.parse`.
pub fn find(text: &[u8], within: Span, path: &[&str]) -> Option<Span> {
    path.iter().try_fold(within, |object, name| {
        let named = members(text, object).filter(|member| text_is(member.key.of(text), name));
        named.last().map(|member| member.value)
    })
}

/// Compares what a string token (quotes included) decodes to with `expected`. Allocates nothing.
pub fn text_is(token: &[u8], expected: &str) -> bool {
    text::is(token, expected)
}

/// Decodes a string token (quotes included); borrowed when it has no escapes. `None` if it is no string, or holds
/// a lone surrogate, which no Rust string can.
pub fn decode_str(token: &[u8]) -> Option<Cow<'_, str>> {
    text::decode(token)
}

#[cfg(test)]
mod tests;
