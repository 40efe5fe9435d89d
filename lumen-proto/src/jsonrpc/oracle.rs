//! What the tests of this floor share: JSON texts written in odd ways, and serde_json's opinion of them.

use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::value::RawValue;

/// Returns whether serde_json takes `text` for one JSON value in UTF-8.
///
/// It is asked for a `RawValue`: that checks the grammar without a limit of depth and without reading numbers or
/// surrogates, which a `Value` refuses when they have no Rust counterpart (`1e400`, a lone surrogate). The one
/// known difference left is our limit of depth.
pub(crate) fn takes(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

pub(crate) fn blanks() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \t\r\n]{1,3}"]
}

/// A character in one of the ways it may be spelled.
fn spelled(char: char, how: u8) -> String {
    let mut units = [0; 2];
    match (char, how % 4) {
        ('"', 0) => "\\\"".into(),
        ('\\', 0) => "\\\\".into(),
        ('/', 0) => "\\/".into(),
        ('\n', 0) => "\\n".into(),
        ('\r', 0) => "\\r".into(),
        ('\t', 0) => "\\t".into(),
        ('\u{8}', 0) => "\\b".into(),
        ('\u{c}', 0) => "\\f".into(),
        (char, 0..=2) if char >= ' ' && char != '"' && char != '\\' => char.into(),
        (char, how) => {
            let unit =
                |unit: &u16| if how == 1 { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
            char.encode_utf16(&mut units).iter().map(unit).collect()
        }
    }
}

/// The token of a string, every character spelled at random.
pub(crate) fn token_of(text: impl Strategy<Value = String>) -> impl Strategy<Value = (String, String)> {
    (text, vec(any::<u8>(), 8)).prop_map(|(text, how)| {
        let spell = |(at, char)| spelled(char, how[at % how.len()]);
        let inner: String = text.chars().enumerate().map(spell).collect();
        (text, format!("\"{inner}\""))
    })
}

pub(crate) fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[a-z]{0,12}",
        1 => "\\PC{0,40}",
        1 => vec(any::<char>(), 0..12).prop_map(|chars| chars.into_iter().collect()),
    ]
}

pub(crate) fn number() -> impl Strategy<Value = String> {
    prop_oneof!["-?(0|[1-9][0-9]{0,4})", "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?",]
}

/// A value's text. What serde_json cannot make a `Value` of is left out unless `odd`.
pub(crate) fn value(odd: bool) -> impl Strategy<Value = String> {
    let strange = if odd {
        prop_oneof![Just("\"\\uD800\""), Just("\"x\\udc00\\ud800y\""), Just("1e400"), Just("-0")]
    } else {
        prop_oneof![Just("-0.0"), Just("1E+2"), Just("1e-2"), Just("\"\\u2028\"")]
    };
    let leaf = prop_oneof![
        3 => token_of(any_text()).prop_map(|(_, token)| token),
        2 => number(),
        1 => strange.prop_map(String::from),
        1 => prop_oneof![Just("null"), Just("true"), Just("false")].prop_map(String::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            (vec(inner.clone(), 0..5), blanks(), blanks())
                .prop_map(|(items, a, b)| format!("[{a}{}{b}]", items.join(&format!("{b},{a}")))),
            (vec((key(), inner), 0..5), blanks()).prop_map(|(members, blank)| object(&members, &blank)),
        ]
    })
}

/// A key that often is one of those that count, with its token.
pub(crate) fn key() -> impl Strategy<Value = (String, String)> {
    let counts = prop_oneof![
        Just("id"),
        Just("method"),
        Just("params"),
        Just("result"),
        Just("error"),
        Just("jsonrpc"),
        Just("ID"),
        Just("")
    ];
    token_of(prop_oneof![3 => counts.prop_map(String::from), 1 => any_text()])
}

pub(crate) fn object(members: &[((String, String), String)], blank: &str) -> String {
    let member = |((_, key), value): &((String, String), String)| format!("{key}{blank}:{blank}{value}");
    let members: Vec<String> = members.iter().map(member).collect();
    format!("{{{blank}{}{blank}}}", members.join(&format!("{blank},{blank}")))
}

/// An object's members (key, its token, value token) and its text.
#[derive(Clone, Debug)]
pub(crate) struct Doc {
    pub(crate) members: Vec<((String, String), String)>,
    pub(crate) text: String,
}

impl Doc {
    /// Returns the first value whose key decodes to `name`.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.members.iter().find(|((key, _), _)| key == name).map(|(_, value)| &value[..])
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.members.iter().filter(|((key, _), _)| key == name).count()
    }
}

/// An object that resembles a JSON-RPC message more or less.
pub(crate) fn doc(odd: bool) -> impl Strategy<Value = Doc> {
    let simple = prop_oneof![
        number(),
        token_of(any_text()).prop_map(|(_, token)| token),
        Just("null".into()),
        Just("0".into()),
        Just("\"\"".into())
    ];
    let value = prop_oneof![simple, value(odd)];
    (vec((key(), value), 0..6), blanks(), blanks()).prop_map(|(members, inner, outer)| {
        let text = format!("{outer}{}{outer}", object(&members, &inner));
        Doc { members, text }
    })
}

/// A text with a few bytes of it changed, taken away or added.
pub(crate) fn spoiled(text: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<u8>> {
    let likely = prop::sample::select(b"\"\\{}[]:,0-.eEtfnu \n\r\x00\x1f\x7f\x80\xc3\xed\xff".to_vec());
    let byte = prop_oneof![3 => likely, 1 => any::<u8>()];
    (text, vec((any::<prop::sample::Index>(), 0..4_u8, byte), 1..4)).prop_map(|(text, changes)| {
        let mut bytes = text.into_bytes();
        for (at, how, byte) in changes {
            let at = at.index(bytes.len() + 1);
            match how {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, byte),
                _ if at == bytes.len() => {}
                2 => drop(bytes.remove(at)),
                _ => bytes[at] = byte,
            }
        }
        bytes
    })
}

/// Sizes of pieces to cut an input into; the last one repeats.
pub(crate) fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just([1].to_vec()), Just([usize::MAX].to_vec()), vec(1..20_usize, 1..20)]
}

/// Cuts `input` into pieces.
pub(crate) fn pieces<'a>(mut input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut cuts = cuts.iter().chain(core::iter::repeat(cuts.last().unwrap()));
    while !input.is_empty() {
        let (piece, rest) = input.split_at(input.len().min(*cuts.next().unwrap()));
        pieces.push(piece);
        input = rest;
    }
    pieces
}
