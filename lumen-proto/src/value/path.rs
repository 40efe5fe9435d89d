//! Nested values on demand, among bytes that were checked and hold no ids of a session. Of any other bytes they
//! find less, or nothing, but never panic.
//!
//! A [`tape`](super::tape) steps over what is in the way at once but has to be kept; this walks over it and keeps
//! nothing.

use core::ops::Range;

use super::read::{Reader, Text};
use super::tag;

/// Returns where the value at `at` ends.
///
/// Keys and values are counted alike, for without ids of a session no key starts as a value does. So nothing has
/// to be remembered of the containers that are open.
fn skip(bytes: &[u8], at: usize) -> Option<usize> {
    let mut reader = Reader::new(bytes.get(at..)?);
    let mut left = 1_usize;
    while left > 0 {
        left -= 1;
        match reader.byte().ok()? {
            tag::NULL => {}
            tag::BOOL | tag::WORD => drop(reader.byte().ok()?),
            tag::FLOAT => drop(reader.float().ok()?),
            tag::INT => drop(reader.int().ok()?),
            tag::STR | tag::INLINE_KEY => drop(reader.str_bytes().ok()?),
            tag::ARRAY => left += reader.array().ok()?,
            tag::OBJECT => left += 2 * reader.object().ok()?,
            0..tag::FIRST_SESSION_ID => {}
            _ => return None,
        }
    }
    Some(at + reader.offset())
}

/// Iterates over the members of an object in their order; see [`members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
}

/// Returns the members of the object at `object`: keys, and ranges of values in `bytes`. There are none if it is
/// no object.
pub fn members(bytes: &[u8], object: Range<usize>) -> Members<'_> {
    let (at, left) = head(bytes, &object, tag::OBJECT);
    Members { bytes: bytes.get(..object.end).unwrap_or_default(), at, left }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut reader = Reader::new(self.bytes.get(self.at..)?);
        let (Text::Static(key) | Text::Inline(key)) = reader.key().ok()? else { return None };
        let start = self.at + reader.offset();
        self.at = skip(self.bytes, start)?;
        Some((key, start..self.at))
    }
}

/// Iterates over the elements of an array in their order; see [`elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
}

/// Returns the elements of the array at `array` as ranges in `bytes`. There are none if it is no array.
pub fn elements(bytes: &[u8], array: Range<usize>) -> Elements<'_> {
    let (at, left) = head(bytes, &array, tag::ARRAY);
    Elements { bytes: bytes.get(..array.end).unwrap_or_default(), at, left }
}

impl Iterator for Elements<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        self.left = self.left.checked_sub(1)?;
        let start = self.at;
        self.at = skip(self.bytes, start)?;
        Some(start..self.at)
    }
}

/// Returns the value at the end of `path`, a key for each level below `within`. Of members with the same key the
/// last counts, as it does in text.
pub fn find(bytes: &[u8], within: Range<usize>, path: &[&str]) -> Option<Range<usize>> {
    path.iter().try_fold(within, |object, name| {
        members(bytes, object).filter(|(key, _)| key == name).last().map(|(_, value)| value)
    })
}

/// Returns the string at `at`, if it is one.
pub fn str(bytes: &[u8], at: Range<usize>) -> Option<&str> {
    let mut reader = Reader::new(bytes.get(at)?);
    match reader.byte().ok()? {
        tag::STR => reader.str().ok(),
        tag::WORD => match reader.word().ok()? {
            Text::Static(word) => Some(word),
            _ => None,
        },
        _ => None,
    }
}

/// Returns where the members of a container of this tag start, and how many there are.
fn head(bytes: &[u8], container: &Range<usize>, tag: u8) -> (usize, usize) {
    let read = || {
        let mut reader = Reader::new(bytes.get(container.clone())?);
        if reader.byte().ok()? != tag {
            return None;
        }
        let count = if tag == tag::OBJECT { reader.object() } else { reader.array() };
        let count = count.ok()?;
        Some((container.start + reader.offset(), count))
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::super::model::any_tree;
    use super::super::tape::{Node, Tape};
    use super::*;

    /// Compares with a tape all the way down.
    fn assert_same(bytes: &[u8], node: &Node<'_>) {
        assert_eq!(str(bytes, node.range()), node.as_str());
        let elements: Vec<_> = elements(bytes, node.range()).collect();
        assert_eq!(elements, node.elements().map(|element| element.range()).collect::<Vec<_>>());
        let members: Vec<_> = members(bytes, node.range()).collect();
        assert_eq!(members, node.members().map(|(key, value)| (key, value.range())).collect::<Vec<_>>());
        for (key, _) in &members {
            let last = node.members().filter(|(name, _)| name == key).last().map(|(_, value)| value.range());
            assert_eq!(find(bytes, node.range(), &[key]), last);
        }
        node.elements()
            .chain(node.members().map(|(_, value)| value))
            .for_each(|node| assert_same(bytes, &node));
    }

    proptest! {
        #[test]
        fn everything_is_where_a_tape_has_it(tree in any_tree()) {
            let mut bytes = Vec::new();
            tree.encode(&mut bytes);
            let mut tape = Tape::new();
            tape.parse(&bytes, None).unwrap();
            assert_same(&bytes, &tape.root(&bytes, None).unwrap());
        }

        #[test]
        fn other_bytes_give_less_or_nothing(bytes in proptest::collection::vec(
            prop_oneof![0xe0_u8..0xe8, any::<u8>(), 0_u8..5], 0..60), start in 0_usize..60, end in 0_usize..70) {
            let _ = members(&bytes, start..end).count() + elements(&bytes, start..end).count();
            let _ = (find(&bytes, start..end, &["id", "x"]), str(&bytes, start..end));
        }
    }
}
