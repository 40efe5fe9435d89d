//! The one validating walk over the bytes of a value. What is done on the way is the visitor's; it is compiled
//! into the walk, so nothing is called through a pointer and nothing is collected first.

use alloc::vec::Vec;
use core::ops::Range;

use super::dict::Quoted;
use super::problem::{Invalid, Problem};
use super::read::Reader;
use super::text::{is_utf8, utf8};
use super::{dict, tag};
use super::{needs::Needs, table::Table};
use crate::limits::MAX_VALUE_DEPTH;

/// A string: where it stands in the input, checked to be UTF-8, or a word of a dictionary.
pub(super) enum Str<'t> {
    Inline(Range<usize>),
    /// Of the dictionary that all have.
    Static(&'static Quoted),
    /// Of the session's.
    Word(&'t str),
}

/// Any value but a container.
pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Str<'t>),
}

/// What happens on the way, in the order of the bytes.
pub(super) trait Visit {
    /// A container starts; its tag stands at `at`.
    fn on_open(&mut self, at: usize, object: bool);
    /// The innermost container has ended before `at`.
    fn on_close(&mut self, at: usize, object: bool);
    /// A member of an object starts with its key at `at`.
    fn on_key(&mut self, at: usize, key: Str<'_>);
    /// A value that is no container.
    fn on_scalar(&mut self, scalar: Scalar<'_>);
}

/// The containers around a place: how many values are still to come in each, and whether it is an object.
/// Kept between walks for its memory.
///
/// # Bounds
/// [`MAX_VALUE_DEPTH`] entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack(Vec<(usize, bool)>);

impl Stack {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }
}

/// Walks over one value, which may be followed by one line feed.
///
/// # Errors
/// The first byte that is wrong, and why.
///
/// # Bounds
/// [`MAX_VALUE_DEPTH`]; a container has no more members than the bytes that remain can hold.
#[inline(always)]
pub(super) fn walk(
    bytes: &[u8],
    table: Option<&Table>,
    stack: &mut Stack,
    visit: &mut impl Visit,
) -> Result<Needs, Invalid> {
    let stack = &mut stack.0;
    stack.clear();
    let mut reader = Reader::new(bytes);
    let mut needs = Needs::default();
    // Of the innermost container; around everything is a make-believe array of the one root.
    let (mut left, mut object) = (1_usize, false);
    loop {
        while left == 0 {
            let Some(around) = stack.pop() else {
                reader.end()?;
                return Ok(needs);
            };
            visit.on_close(reader.offset(), object);
            (left, object) = around;
        }
        left -= 1;
        if object {
            let at = reader.offset();
            let key = match reader.byte()? {
                tag::INLINE_KEY => {
                    let range = inline(&mut reader)?;
                    needs.on_key(bytes.get(range.clone()).unwrap_or_default());
                    Str::Inline(range)
                }
                id => word(&reader, id, table, &mut needs)?,
            };
            visit.on_key(at, key);
        }
        let at = reader.offset();
        match reader.byte()? {
            tag::NULL => visit.on_scalar(Scalar::Null),
            tag::BOOL => visit.on_scalar(Scalar::Bool(reader.bool()?)),
            tag::INT => {
                let value = reader.int()?;
                needs.on_int(value);
                visit.on_scalar(Scalar::Int(value));
            }
            tag::FLOAT => {
                let value = reader.float()?;
                needs.on_float(value);
                visit.on_scalar(Scalar::Float(value));
            }
            tag::WORD => {
                let id = reader.byte()?;
                visit.on_scalar(Scalar::Str(word(&reader, id, table, &mut needs)?));
            }
            tag::STR => {
                let range = inline(&mut reader)?;
                needs.on_str(bytes.get(range.clone()).unwrap_or_default());
                visit.on_scalar(Scalar::Str(Str::Inline(range)));
            }
            tag @ (tag::ARRAY | tag::OBJECT) => {
                let is_object = tag == tag::OBJECT;
                let count = if is_object { reader.object()? } else { reader.array()? };
                if stack.len() >= MAX_VALUE_DEPTH {
                    return Err(Invalid { offset: at, problem: Problem::TooDeep });
                }
                visit.on_open(at, is_object);
                stack.push((left, object));
                needs.on_container(count, stack.len());
                (left, object) = (count, is_object);
            }
            other => return Err(reader.before(Problem::UnknownTag(other))),
        }
    }
}

/// Takes a string's length and bytes, and returns where the bytes stand.
#[inline(always)]
fn inline(reader: &mut Reader<'_>) -> Result<Range<usize>, Invalid> {
    let text = reader.str_bytes()?;
    let end = reader.offset();
    let start = end - text.len();
    if !is_utf8(text) {
        return Err(not_utf8(text, start));
    }
    Ok(start..end)
}

/// Finds the word of the id just taken.
#[inline(always)]
fn word<'t>(
    reader: &Reader<'_>,
    id: u8,
    table: Option<&'t Table>,
    needs: &mut Needs,
) -> Result<Str<'t>, Invalid> {
    if let Some(word) = dict::quoted_word(id) {
        return Ok(Str::Static(word));
    }
    needs.session_ids = true;
    let word = table.and_then(|table| table.word(id));
    let word = word.ok_or_else(|| reader.before(Problem::UnknownId(id)))?;
    needs.on_key(word.as_bytes());
    Ok(Str::Word(word))
}

#[cold]
fn not_utf8(text: &[u8], start: usize) -> Invalid {
    Invalid { offset: start + utf8(text).err().unwrap_or_default(), problem: Problem::NotUtf8 }
}
