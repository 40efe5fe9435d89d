//! A value checked once and then read in place.
//!
//! [`Tape::parse`] walks over all bytes, and keeps for each array and object where it ends: everything else can
//! be stepped over by looking at it, so nothing else has to be kept. Afterwards [`Tape::root`] answers
//! questions about the same bytes without decoding the rest, by ranges into them. A tape is used again and again, and
//! then allocates nothing.

use alloc::vec::Vec;
use core::ops::Range;

use super::needs::Needs;
use super::problem::{Invalid, Problem};
use super::read::{Reader, Text};
use super::table::Table;
use super::tag;
use super::walk::{Scalar, Stack, Str, Visit, walk};

/// One array or object, in the order of their tags.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Where its last byte is followed.
    end: u32,
    /// The first container after it that is not inside. While it is open: the one around it.
    next: u32,
}

/// The reused memory of a checked value.
///
/// # Bounds
/// Eight bytes for each array and object, so four times the input at worst. Inputs of 4 GiB and above are
/// refused as [`Problem::TooMany`].
#[derive(Clone, Debug, Default)]
pub struct Tape {
    extents: Vec<Extent>,
    stack: Stack,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// A float.
    Float,
    /// A string.
    Str,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// One value among checked bytes.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    place: Place<'a>,
    end: usize,
    /// The index of the first container after this value.
    next: u32,
}

/// Where a value starts.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    tape: &'a Tape,
    bytes: &'a [u8],
    table: Option<&'a Table>,
    at: usize,
    /// The index of the first container at or after `at`.
    extent: u32,
}

/// The members of an object, each key with its value, in their order.
#[derive(Clone, Debug)]
pub struct Members<'a>(Children<'a>);

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a>(Children<'a>);

#[derive(Clone, Debug)]
struct Children<'a> {
    place: Place<'a>,
    end: usize,
}

impl Tape {
    /// Makes a tape without memory.
    pub const fn new() -> Self {
        Self { extents: Vec::new(), stack: Stack::new() }
    }

    /// Checks that `bytes` are one value, which may be followed by one line feed, and returns what a receiver must
    /// be able to take. Ids of a session are looked up in `table`; without one they are unknown.
    ///
    /// # Errors
    /// The first byte that is wrong, and why.
    pub fn parse(&mut self, bytes: &[u8], table: Option<&Table>) -> Result<Needs, Invalid> {
        self.extents.clear();
        if u32::try_from(bytes.len()).is_err() {
            return Err(Invalid { offset: 0, problem: Problem::TooMany });
        }
        let mut recorder = Recorder { extents: &mut self.extents, open: u32::MAX };
        walk(bytes, table, &mut self.stack, &mut recorder)
    }

    /// Returns the value that was parsed last; `bytes` and `table` must be those that were given to
    /// [`parse`](Self::parse), and it must have succeeded. Other bytes give other values, or `None`.
    pub fn root<'a>(&'a self, bytes: &'a [u8], table: Option<&'a Table>) -> Option<Node<'a>> {
        Place { tape: self, bytes, table, at: 0, extent: 0 }.node()
    }
}

impl<'a> Node<'a> {
    /// Returns what it is.
    pub fn kind(&self) -> Kind {
        match self.place.bytes.get(self.place.at) {
            Some(&tag::BOOL) => Kind::Bool,
            Some(&tag::FLOAT) => Kind::Float,
            Some(&tag::INT) => Kind::Int,
            Some(&(tag::WORD | tag::STR)) => Kind::Str,
            Some(&tag::ARRAY) => Kind::Array,
            Some(&tag::OBJECT) => Kind::Object,
            _ => Kind::Null,
        }
    }

    /// Returns where its bytes stand, the tag included.
    pub const fn range(&self) -> Range<usize> {
        self.place.at..self.end
    }

    /// Returns the boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        self.body(tag::BOOL)?.bool().ok()
    }

    /// Returns the integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        self.body(tag::INT)?.int().ok()
    }

    /// Returns the float, if it is one. An integer is none.
    pub fn as_float(&self) -> Option<f64> {
        self.body(tag::FLOAT)?.float().ok()
    }

    /// Returns the string, if it is one.
    pub fn as_str(&self) -> Option<&'a str> {
        if let Some(mut body) = self.body(tag::STR) {
            return body.str().ok();
        }
        self.place.word(self.body(tag::WORD)?.word().ok()?)
    }

    /// Returns the members of an object; there are none in anything else.
    pub fn members(&self) -> Members<'a> {
        Members(self.children(tag::OBJECT))
    }

    /// Returns the elements of an array; there are none in anything else.
    pub fn elements(&self) -> Elements<'a> {
        Elements(self.children(tag::ARRAY))
    }

    /// Returns the value of the first member with this key.
    pub fn member(&self, key: &str) -> Option<Self> {
        self.members().find_map(|(name, node)| (name == key).then_some(node))
    }

    fn children(&self, container: u8) -> Children<'a> {
        let mut place = self.place;
        let head = self.body(container).and_then(|mut body| {
            // Members of objects are pairs, but it is only passed here.
            body.array().ok()?;
            Some(self.place.at + 1 + body.offset())
        });
        place.at = head.unwrap_or(self.end);
        place.extent += u32::from(head.is_some());
        Children { place, end: self.end }
    }

    /// Returns what follows the tag, if it is this one.
    fn body(&self, tag: u8) -> Option<Reader<'a>> {
        let (first, body) = self.place.bytes.get(self.place.at..self.end)?.split_first()?;
        (*first == tag).then(|| Reader::new(body))
    }
}

impl<'a> Place<'a> {
    /// Finds the end of the value that starts here.
    fn node(self) -> Option<Node<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let mut reader = Reader::new(rest);
        match reader.byte().ok()? {
            tag::NULL => {}
            tag::BOOL => drop(reader.bool().ok()?),
            tag::INT => drop(reader.int().ok()?),
            tag::FLOAT => drop(reader.float().ok()?),
            tag::WORD => drop(reader.word().ok()?),
            tag::STR => drop(reader.str_bytes().ok()?),
            tag::ARRAY | tag::OBJECT => {
                let extent = self.tape.extents.get(self.extent as usize)?;
                let end = extent.end as usize;
                // Forward only, whatever bytes these are.
                return (end > self.at).then_some(Node { place: self, end, next: extent.next });
            }
            _ => return None,
        }
        Some(Node { place: self, end: self.at + reader.offset(), next: self.extent })
    }

    fn word(&self, text: Text<'a>) -> Option<&'a str> {
        match text {
            Text::Static(word) => Some(word),
            Text::Inline(text) => Some(text),
            Text::Session(id) => self.table?.word(id),
        }
    }
}

impl<'a> Children<'a> {
    fn next(&mut self) -> Option<Node<'a>> {
        if self.place.at >= self.end {
            return None;
        }
        let node = self.place.node()?;
        self.place.at = node.end;
        self.place.extent = node.next;
        Some(node)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let Children { place, end } = &mut self.0;
        let mut reader = Reader::new(place.bytes.get(place.at..*end)?);
        let key = place.word(reader.key().ok()?)?;
        place.at += reader.offset();
        Some((key, self.0.next()?))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// Writes down where containers end.
struct Recorder<'a> {
    extents: &'a mut Vec<Extent>,
    /// The innermost one that is open; each open one names the one around it.
    open: u32,
}

impl Visit for Recorder<'_> {
    #[inline(always)]
    fn on_open(&mut self, _: usize, _: bool) {
        let index = as_u32(self.extents.len());
        self.extents.push(Extent { end: 0, next: self.open });
        self.open = index;
    }

    #[inline(always)]
    fn on_close(&mut self, at: usize, _: bool) {
        let next = as_u32(self.extents.len());
        if let Some(extent) = self.extents.get_mut(self.open as usize) {
            self.open = extent.next;
            *extent = Extent { end: as_u32(at), next };
        }
    }

    #[inline(always)]
    fn on_key(&mut self, _: usize, _: Str<'_>) {}

    #[inline(always)]
    fn on_scalar(&mut self, _: Scalar<'_>) {}
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "offsets and counts are below the length, which was checked"
)]
#[inline(always)]
const fn as_u32(value: usize) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests;
