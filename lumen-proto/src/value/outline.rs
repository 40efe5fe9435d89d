//! A value checked in one walk that also tells the members of its root.

use core::ops::Range;

use super::needs::Needs;
use super::problem::Invalid;
use super::read::{Reader, Text};
use super::walk::{Scalar, Stack, Str, Visit, walk};

/// Checks that `bytes` are one value, which may be followed by one line feed; tells `on_member` the key and the
/// place of each member of the root, if that is an object. Returns what a receiver must be able to take, and where
/// the root ends if it is an array or an object.
///
/// There is no session: its ids are unknown.
///
/// # Errors
/// The first byte that is wrong, and why. What was told by then is void.
pub fn outline(bytes: &[u8], on_member: impl FnMut(&str, Range<usize>)) -> Result<(Needs, usize), Invalid> {
    let mut outline = Outline { bytes, depth: 0, key: None, end: 0, on_member };
    let needs = walk(bytes, None, &mut Stack::new(), &mut outline)?;
    Ok((needs, outline.end))
}

struct Outline<'a, F> {
    bytes: &'a [u8],
    depth: usize,
    /// Where the key of the root's member that is under way stands.
    key: Option<usize>,
    /// Where the last container that was closed ends.
    end: usize,
    on_member: F,
}

impl<F: FnMut(&str, Range<usize>)> Outline<'_, F> {
    /// A member of the root has ended before `end`, if there is one.
    #[inline(always)]
    fn end_member(&mut self, end: usize) {
        let Some(start) = self.key.take() else { return };
        let mut reader = Reader::new(self.bytes.get(start..end).unwrap_or_default());
        if let Ok(Text::Static(key) | Text::Inline(key)) = reader.key() {
            (self.on_member)(key, start + reader.offset()..end);
        }
    }
}

impl<F: FnMut(&str, Range<usize>)> Visit for Outline<'_, F> {
    #[inline(always)]
    fn on_open(&mut self, _: usize, _: bool) {
        self.depth += 1;
    }

    #[inline(always)]
    fn on_close(&mut self, at: usize, _: bool) {
        if self.depth == 1 {
            self.end_member(at);
        }
        self.depth -= 1;
        self.end = at;
    }

    #[inline(always)]
    fn on_key(&mut self, at: usize, _: Str<'_>) {
        if self.depth == 1 {
            self.end_member(at);
            self.key = Some(at);
        }
    }

    #[inline(always)]
    fn on_scalar(&mut self, _: Scalar<'_>) {}
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::*;
    use crate::value::transcode::Transcoder;

    fn members(bytes: &[u8]) -> Vec<(String, Range<usize>)> {
        let mut members = Vec::new();
        outline(bytes, |key, value| members.push((key.to_string(), value))).unwrap();
        members
    }

    #[test]
    fn members_of_the_root_are_told_with_their_places_and_no_others() {
        let mut bytes = Vec::new();
        let text = br#"{"id":1,"x":{"id":2,"y":[{"id":3}]},"":[],"id":"\u0001"}"#;
        Transcoder::new().encode(text, &mut bytes).unwrap();
        for end in ["", "\n"] {
            let bytes = [&bytes, end.as_bytes()].concat();
            let texts: Vec<_> = members(&bytes)
                .into_iter()
                .map(|(key, at)| {
                    let mut text = Vec::new();
                    Transcoder::new().decode(&bytes[at], None, &mut text).unwrap();
                    (key, String::from_utf8(text).unwrap())
                })
                .collect();
            let expected =
                [("id", "1"), ("x", r#"{"id":2,"y":[{"id":3}]}"#), ("", "[]"), ("id", r#""\u0001""#)];
            assert_eq!(texts, expected.map(|(key, text)| (key.to_string(), text.to_string())));
        }
    }

    #[test]
    fn other_roots_have_no_members() {
        for bytes in [&b"\xe0"[..], b"\xe7\x00", b"\xe6\x01\xe7\x01\x04\xe0"] {
            assert_eq!(members(bytes), []);
        }
        assert!(outline(b"\xe7\x01\x80\xe0", |_, _| {}).is_err());
    }
}
