//! Tokens of a value, appended to a buffer.
//!
//! Each function writes one token; a value is whole when every array and object has got as many members as its
//! head announced. Strings and keys that are static words always become their ids.

use alloc::vec::Vec;

use super::{Table, dict, tag};
use crate::varint;

/// Appends `null`.
#[inline]
pub fn null(out: &mut Vec<u8>) {
    out.push(tag::NULL);
}

/// Appends a boolean.
#[inline]
pub fn bool(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(&[tag::BOOL, u8::from(value)]);
}

/// Appends an integer.
#[inline]
pub fn int(value: i64, out: &mut Vec<u8>) {
    if let Ok(small @ 0..=0x7f) = u8::try_from(tag::zigzag(value)) {
        out.extend_from_slice(&[tag::INT, small]);
        return;
    }
    let mut body = [0; tag::MAX_INT_LEN];
    let len = tag::encode_int(value, &mut body);
    out.push(tag::INT);
    out.extend_from_slice(&body[..len]);
}

/// Appends a float. It must be finite: decoders refuse others.
#[inline]
pub fn float(value: f64, out: &mut Vec<u8>) {
    debug_assert!(value.is_finite());
    let mut token = [tag::FLOAT; 9];
    token[1..].copy_from_slice(&value.to_le_bytes());
    out.extend_from_slice(&token);
}

/// Appends a string.
#[inline]
pub fn str(text: &str, out: &mut Vec<u8>) {
    match dict::static_id(text.as_bytes()) {
        Some(id) => out.extend_from_slice(&[tag::WORD, id]),
        None => inline(tag::STR, text, out),
    }
}

/// Appends a string, as an id if it is static or in the session's table.
#[inline]
pub fn str_in_session(text: &str, table: &mut Table, out: &mut Vec<u8>) {
    match dict::static_id(text.as_bytes()).or_else(|| table.id(text)) {
        Some(id) => out.extend_from_slice(&[tag::WORD, id]),
        None => inline(tag::STR, text, out),
    }
}

/// Appends a key.
#[inline]
pub fn key(text: &str, out: &mut Vec<u8>) {
    match dict::static_id(text.as_bytes()) {
        Some(id) => out.push(id),
        None => inline(tag::INLINE_KEY, text, out),
    }
}

/// Appends a key, as an id if it is static or in the session's table.
#[inline]
pub fn key_in_session(text: &str, table: &mut Table, out: &mut Vec<u8>) {
    match dict::static_id(text.as_bytes()).or_else(|| table.id(text)) {
        Some(id) => out.push(id),
        None => inline(tag::INLINE_KEY, text, out),
    }
}

/// Appends the head of an array of `count` values.
#[inline]
pub fn array(count: usize, out: &mut Vec<u8>) {
    head(tag::ARRAY, count, out);
}

/// Appends the head of an object of `count` members.
#[inline]
pub fn object(count: usize, out: &mut Vec<u8>) {
    head(tag::OBJECT, count, out);
}

#[inline]
fn inline(lead: u8, text: &str, out: &mut Vec<u8>) {
    head(lead, text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

#[inline]
fn head(lead: u8, len: usize, out: &mut Vec<u8>) {
    match u8::try_from(len) {
        Ok(short @ 0..=0x3f) => out.extend_from_slice(&[lead, short]),
        _ => long_head(lead, len, out),
    }
}

/// Apart, so that [`head`] is small enough to become part of its callers.
#[inline(never)]
fn long_head(lead: u8, len: usize, out: &mut Vec<u8>) {
    let mut body = [0; varint::MAX_LEN];
    let taken = varint::encode(len as u64, &mut body);
    out.push(lead);
    out.extend_from_slice(&body[..taken]);
}
