//! What the tests of this folder compare with: documents as trees, written and read in the most obvious way.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::dict::{static_id, static_word};
use super::tag::zigzag;
use crate::varint;

/// A document. Numbers are kept as they were written; members keep their order, and keys may occur twice.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Number(String),
    Str(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// The sign, the digits without zeros at either end, and the exponent of the last one; and whether it is written
/// as an integer.
pub(super) fn number(text: &str) -> (bool, String, i64, bool) {
    let integer = !text.contains(['.', 'e', 'E']) && text != "-0";
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let mut exponent: i64 = exponent.parse().unwrap();
    let negative = mantissa.starts_with('-');
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent -= fraction.len() as i64;
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let trimmed = digits.trim_end_matches('0');
    exponent += (digits.len() - trimmed.len()) as i64;
    (negative, trimmed.to_string(), if trimmed.is_empty() { 0 } else { exponent }, integer)
}

/// Whether the codec may hold this number.
pub(super) fn is_exact(text: &str) -> bool {
    let (negative, digits, exponent, integer) = number(text);
    if integer {
        return text.parse::<i64>().is_ok();
    }
    let value: f64 = text.parse().unwrap();
    let back = number(&shortest(value));
    value.is_finite() && (negative, digits, exponent) == (back.0, back.1, back.2)
}

/// The shortest decimal that leads to `value`; of two that are equally near, the one whose last digit is even.
pub(super) fn shortest(value: f64) -> String {
    let text = format!("{value:e}");
    let digits = text.split('e').next().unwrap().bytes().filter(u8::is_ascii_digit).count();
    // core takes the upper one of two. Asked for so many digits of the exact value, it rounds half to even.
    let even = format!("{value:.*e}", digits.saturating_sub(1));
    if even.parse() == Ok(value) { even } else { text }
}

/// Whether two documents are the same: numbers by what they say, all else by equality.
pub(super) fn same(one: &Tree, other: &Tree) -> bool {
    match (one, other) {
        (Tree::Number(one), Tree::Number(other)) => number(one) == number(other),
        (Tree::Array(one), Tree::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Tree::Object(one), Tree::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| one.0 == other.0 && same(&one.1, &other.1))
        }
        _ => one == other,
    }
}

impl Tree {
    pub(super) fn is_exact(&self) -> bool {
        match self {
            Self::Number(text) => is_exact(text),
            Self::Array(elements) => elements.iter().all(Self::is_exact),
            Self::Object(members) => members.iter().all(|(_, value)| value.is_exact()),
            _ => true,
        }
    }

    /// Writes JSON; `noise` picks blanks and spellings, none if it is empty.
    pub(super) fn write(&self, noise: &mut impl Iterator<Item = u8>, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(&value.to_string()),
            Self::Number(text) => out.push_str(text),
            Self::Str(text) => write_str(text, noise, out),
            Self::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    blank(noise, out);
                    element.write(noise, out);
                    blank(noise, out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    blank(noise, out);
                    write_str(key, noise, out);
                    blank(noise, out);
                    out.push(':');
                    blank(noise, out);
                    value.write(noise, out);
                    blank(noise, out);
                }
                out.push('}');
            }
        }
    }

    pub(super) fn plain(&self) -> String {
        let mut out = String::new();
        self.write(&mut core::iter::empty(), &mut out);
        out
    }

    /// Writes the bytes that the codec has for it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(0xe0),
            Self::Bool(value) => out.extend([0xe1, u8::from(*value)]),
            Self::Number(text) => match (number(text).3, text.parse::<i64>()) {
                (true, Ok(int)) => {
                    out.push(0xe3);
                    let mut rest = zigzag(int);
                    while rest > 0x7f {
                        out.push((rest & 0x7f) as u8 | 0x80);
                        rest >>= 7;
                    }
                    out.push((rest & 0x7f) as u8);
                }
                _ => {
                    out.push(0xe2);
                    out.extend(text.parse::<f64>().unwrap().to_bits().to_le_bytes());
                }
            },
            Self::Str(text) => match static_id(text.as_bytes()) {
                Some(id) => out.extend([0xe4, id]),
                None => {
                    out.push(0xe5);
                    encode_bytes(text, out);
                }
            },
            Self::Array(elements) => {
                out.push(0xe6);
                encode_len(elements.len(), out);
                elements.iter().for_each(|element| element.encode(out));
            }
            Self::Object(members) => {
                out.push(0xe7);
                encode_len(members.len(), out);
                for (key, value) in members {
                    match static_id(key.as_bytes()) {
                        Some(id) => out.push(id),
                        None => {
                            out.push(0xff);
                            encode_bytes(key, out);
                        }
                    }
                    value.encode(out);
                }
            }
        }
    }

    /// Reads a value of at most `depth` levels, and returns what follows it.
    pub(super) fn decode(bytes: &[u8], depth: usize) -> Option<(Self, &[u8])> {
        let (&tag, rest) = bytes.split_first()?;
        match tag {
            0xe0 => Some((Self::Null, rest)),
            0xe1 => match rest.split_first()? {
                (0, rest) => Some((Self::Bool(false), rest)),
                (1, rest) => Some((Self::Bool(true), rest)),
                _ => None,
            },
            0xe2 => {
                let (bits, rest) = rest.split_first_chunk()?;
                let value = f64::from_le_bytes(*bits);
                value.is_finite().then(|| (Self::Number(shortest(value)), rest))
            }
            0xe3 => {
                let len = rest.iter().position(|&byte| byte < 0x80)? + 1;
                let (groups, rest) = rest.split_at(len);
                let over_long = len > 1 && groups[len - 1] == 0;
                if len > 10 || over_long {
                    return None;
                }
                let value =
                    groups.iter().rev().fold(0_u128, |value, group| value << 7 | u128::from(group & 0x7f));
                let value = u64::try_from(value).ok()?;
                let value = (value >> 1) as i64 ^ -((value & 1) as i64);
                Some((Self::Number(value.to_string()), rest))
            }
            0xe4 => {
                let (&id, rest) = rest.split_first()?;
                Some((Self::Str(static_word(id)?.into()), rest))
            }
            0xe5 => decode_str(rest).map(|(text, rest)| (Self::Str(text), rest)),
            0xe6 | 0xe7 => {
                let depth = depth.checked_sub(1)?;
                let (count, len) = varint::decode(rest).ok()??;
                let mut rest = &rest[len..];
                if count > rest.len() as u64 {
                    return None;
                }
                let mut keys = Vec::new();
                let mut values = Vec::new();
                for _ in 0..count {
                    if tag == 0xe7 {
                        let (&id, after) = rest.split_first()?;
                        let (key, after) =
                            if id == 0xff { decode_str(after)? } else { (static_word(id)?.into(), after) };
                        keys.push(key);
                        rest = after;
                    }
                    let (value, after) = Self::decode(rest, depth)?;
                    values.push(value);
                    rest = after;
                }
                let tree = match tag {
                    0xe6 => Self::Array(values),
                    _ => Self::Object(keys.into_iter().zip(values).collect()),
                };
                Some((tree, rest))
            }
            _ => None,
        }
    }

    /// Reads a whole value, and the line feed that may follow it.
    pub(super) fn decode_all(bytes: &[u8]) -> Option<Self> {
        let (tree, rest) = Self::decode(bytes, 128)?;
        (rest.is_empty() || rest == b"\n").then_some(tree)
    }
}

fn encode_len(len: usize, out: &mut Vec<u8>) {
    let mut form = [0; varint::MAX_LEN];
    let width = varint::encode(len as u64, &mut form);
    out.extend(&form[..width]);
}

fn encode_bytes(text: &str, out: &mut Vec<u8>) {
    encode_len(text.len(), out);
    out.extend(text.as_bytes());
}

fn decode_str(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (count, len) = varint::decode(bytes).ok()??;
    let text = bytes[len..].get(..usize::try_from(count).ok()?)?;
    Some((String::from_utf8(text.into()).ok()?, &bytes[len + text.len()..]))
}

fn blank(noise: &mut impl Iterator<Item = u8>, out: &mut String) {
    if let Some(byte @ 0..4) = noise.next() {
        out.push([' ', '\n', '\r', '\t'][byte as usize]);
    }
}

fn write_str(text: &str, noise: &mut impl Iterator<Item = u8>, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            _ if noise.next().is_some_and(|byte| byte < 40) => {
                let mut units = [0; 2];
                char.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
            }
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..' ' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            '/' if noise.next().is_some_and(|byte| byte < 128) => out.push_str("\\/"),
            _ => out.push(char),
        }
    }
    out.push('"');
}

fn any_string() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (0_u8..128).prop_map(|id| static_word(id).unwrap().into()),
        2 => "[a-z]{0,20}",
        2 => "\\PC{0,40}",
        1 => vec(prop_oneof![any::<char>(), Just('"'), Just('\\'), (0_u8..0x20).prop_map(char::from)], 0..90)
            .prop_map(|chars| chars.into_iter().collect()),
    ]
}

/// The text of a number, most of them exact.
pub(super) fn any_number() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => any::<i32>().prop_map(|int| int.to_string()),
        2 => any::<i64>().prop_map(|int| int.to_string()),
        3 => any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(shortest),
        2 => "-?(0|[1-9][0-9]{0,6})(\\.[0-9]{1,8})?([eE][+-]?[0-9]{1,2})?",
        1 => "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
    ]
}

pub(super) fn any_tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        any_number().prop_filter("exact", |text| is_exact(text)).prop_map(Tree::Number),
        any_string().prop_map(Tree::Str),
    ];
    leaf.prop_recursive(5, 120, 70, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..70).prop_map(Tree::Array),
            vec((any_string(), inner), 0..70).prop_map(Tree::Object),
        ]
    })
}
