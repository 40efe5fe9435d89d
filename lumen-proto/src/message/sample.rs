//! Messages made up for tests, piece by piece in both encodings, so that it is known which byte belongs to what.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::value::{dict, encode, tag};
use crate::varint;

/// Numbers that look random and are the same each time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub(crate) const fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// A piece of a message in both encodings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Both {
    pub(crate) text: String,
    pub(crate) value: Vec<u8>,
}

/// A message with two holes in it: for its id, and for its progress token.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pieces: Vec<Piece>,
    /// Whether there is a hole for a progress token.
    pub(crate) has_token: bool,
}

#[derive(Clone, Debug)]
enum Piece {
    Fixed(Both),
    Id,
    Token,
}

/// What fills a hole.
pub(crate) struct Fill {
    pub(crate) text: &'static str,
    pub(crate) value: &'static [u8],
}

pub(crate) const PROGRESS_TOKEN: &[&str] = &["params", "_meta", "progressToken"];

/// Ids as they come and go. Each text is the one that its value is written as.
pub(crate) const FILLS: [Fill; 9] = [
    Fill { text: "0", value: b"\xe3\x00" },
    Fill { text: "-7", value: b"\xe3\x0d" },
    Fill { text: "123456789012345", value: b"\xe3\xf2\xfd\xee\xe0\x90\x92\x38" },
    Fill { text: "1.5", value: b"\xe2\0\0\0\0\0\0\xf8\x3f" },
    Fill { text: "1.0", value: b"\xe2\0\0\0\0\0\0\xf0\x3f" },
    Fill { text: r#""""#, value: b"\xe5\x00" },
    Fill { text: r#""id""#, value: b"\xe4\x04" },
    Fill { text: r#""a\"b\\c\n\u0001""#, value: b"\xe5\x07a\"b\\c\n\x01" },
    Fill { text: "\"\u{2028}\u{1f600}\"", value: b"\xe5\x07\xe2\x80\xa8\xf0\x9f\x98\x80" },
];

impl Sample {
    /// Makes up a message. Values are spelled in all ways that receivers take, not only in the shortest.
    pub(crate) fn new(random: &mut Random) -> Self {
        let mut members = Vec::new();
        let is_request = random.below(2) == 0;
        members.push(member("jsonrpc", fixed(string("2.0", random)), random));
        members.push(member("id", [Piece::Id].into(), random));
        let has_token = is_request && random.below(4) > 0;
        if is_request {
            members.push(member("method", fixed(string("tools/call", random)), random));
            let params = params(has_token, random);
            members.push(member("params", params, random));
        } else {
            let name = if random.below(3) == 0 { "error" } else { "result" };
            members.push(member(name, fixed(anything(4, random)), random));
        }
        if random.below(3) == 0 {
            members.push(member("x", fixed(anything(2, random)), random));
        }
        random.shuffle(&mut members);
        let mut pieces = object(members, random);
        if random.below(4) == 0 {
            pieces.push(Piece::Fixed(Both { text: String::new(), value: b"\n".to_vec() }));
        }
        Self { pieces, has_token }
    }

    pub(crate) fn text(&self, id: &Fill, token: &Fill) -> String {
        let part = |piece: &Piece| match piece {
            Piece::Fixed(both) => both.text.clone(),
            Piece::Id => id.text.to_string(),
            Piece::Token => token.text.to_string(),
        };
        self.pieces.iter().map(part).collect()
    }

    pub(crate) fn value(&self, id: &Fill, token: &Fill) -> Vec<u8> {
        let part = |piece: &Piece| match piece {
            Piece::Fixed(both) => both.value.clone(),
            Piece::Id => id.value.to_vec(),
            Piece::Token => token.value.to_vec(),
        };
        self.pieces.iter().flat_map(part).collect()
    }
}

fn params(has_token: bool, random: &mut Random) -> Vec<Piece> {
    let mut members = Vec::new();
    if has_token {
        let mut meta = Vec::new();
        if random.below(3) == 0 {
            // Of two the last counts.
            meta.push(member("progressToken", fixed(anything(1, random)), random));
        }
        meta.push(member("progressToken", [Piece::Token].into(), random));
        meta.insert(0, member("y", fixed(anything(1, random)), random));
        if random.below(3) == 0 {
            members.push(member("_meta", fixed(anything(2, random)), random));
        }
        let meta = object(meta, random);
        members.push(member("_meta", meta, random));
    }
    for name in ["name", "arguments", "id", ""] {
        if random.below(2) == 0 {
            let at = random.below(members.len() + 1);
            members.insert(at, member(name, fixed(anything(4, random)), random));
        }
    }
    object(members, random)
}

fn fixed(both: Both) -> Vec<Piece> {
    [Piece::Fixed(both)].into()
}

fn blanks(random: &mut Random) -> String {
    ["", "", "", " ", "\t "][random.below(5)].into()
}

/// A length or count, sometimes longer than it has to be.
fn length(len: usize, random: &mut Random, out: &mut Vec<u8>) {
    match random.below(4) {
        0 => out.extend([&[0x80], &u16::try_from(len).unwrap().to_le_bytes()[..]].concat()),
        1 => out.extend([&[0xc0], &u32::try_from(len).unwrap().to_le_bytes()[..]].concat()),
        _ => {
            let mut form = [0; varint::MAX_LEN];
            let width = varint::encode(len as u64, &mut form);
            out.extend(&form[..width]);
        }
    }
}

fn object(members: Vec<Vec<Piece>>, random: &mut Random) -> Vec<Piece> {
    container(tag::OBJECT, members, random)
}

fn container(tag: u8, members: Vec<Vec<Piece>>, random: &mut Random) -> Vec<Piece> {
    let (open, close) = if tag == tag::OBJECT { ('{', '}') } else { ('[', ']') };
    let mut head = Both { text: format!("{open}{}", blanks(random)), value: [tag].into() };
    length(members.len(), random, &mut head.value);
    let mut pieces = fixed(head);
    for (at, member) in members.into_iter().enumerate() {
        if at > 0 {
            let text = format!("{},{}", blanks(random), blanks(random));
            pieces.push(Piece::Fixed(Both { text, value: Vec::new() }));
        }
        pieces.extend(member);
    }
    let text = format!("{}{close}", blanks(random));
    pieces.push(Piece::Fixed(Both { text, value: Vec::new() }));
    pieces
}

fn member(name: &str, value: Vec<Piece>, random: &mut Random) -> Vec<Piece> {
    let mut key = Both { text: format!("{}:{}", spelled(name, random), blanks(random)), value: Vec::new() };
    match dict::static_id(name.as_bytes()) {
        Some(id) if random.below(3) > 0 => key.value.push(id),
        _ => {
            key.value.push(tag::INLINE_KEY);
            length(name.len(), random, &mut key.value);
            key.value.extend(name.bytes());
        }
    }
    let mut pieces = fixed(key);
    pieces.extend(value);
    pieces
}

fn spelled(text: &str, random: &mut Random) -> String {
    let spell = |char: char| match (char, random.below(6)) {
        ('"' | '\\', _) => format!("\\{char}"),
        (char, 0) => char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        (char, _) if char < ' ' => format!("\\u{:04X}", u32::from(char)),
        (char, _) => char.to_string(),
    };
    let inner: String = text.chars().map(spell).collect();
    format!("\"{inner}\"")
}

fn string(text: &str, random: &mut Random) -> Both {
    let mut value = Vec::new();
    match dict::static_id(text.as_bytes()) {
        Some(id) if random.below(3) > 0 => value.extend([tag::WORD, id]),
        _ => {
            value.push(tag::STR);
            length(text.len(), random, &mut value);
            value.extend(text.bytes());
        }
    }
    Both { text: spelled(text, random), value }
}

fn anything(depth: usize, random: &mut Random) -> Both {
    let mut value = Vec::new();
    let text = match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => {
            value.push(tag::NULL);
            "null".into()
        }
        1 => {
            encode::bool(true, &mut value);
            "true".into()
        }
        2 => {
            let int = [0, 1, -1, 64, i64::MAX, i64::MIN, 1 << 53][random.below(7)];
            encode::int(int, &mut value);
            int.to_string()
        }
        3 => {
            let (text, float) =
                [("1e0", 1.0), ("-0", -0.0), ("0.10", 0.1), ("25E-1", 2.5), ("1E+300", 1e300)]
                    [random.below(5)];
            encode::float(float, &mut value);
            text.into()
        }
        4 | 5 => {
            let texts =
                ["", "id", "progressToken", "result", "a\"\\\n\u{1}", "\u{2028}漢\u{1f600}", "\u{feff}"];
            return string(texts[random.below(texts.len())], random);
        }
        6 => {
            let count = if random.below(20) == 0 { 70 } else { random.below(4) };
            let elements = (0..count).map(|_| fixed(anything(depth - 1, random))).collect();
            return flat(container(tag::ARRAY, elements, random));
        }
        _ => {
            let names = ["id", "method", "progressToken", "_meta", "x", "é", "__proto__"];
            let members = (0..random.below(4))
                .map(|_| {
                    let value = fixed(anything(depth - 1, random));
                    member(names[random.below(names.len())], value, random)
                })
                .collect();
            return flat(object(members, random));
        }
    };
    Both { text, value }
}

fn flat(pieces: Vec<Piece>) -> Both {
    let mut whole = Both::default();
    for piece in pieces {
        if let Piece::Fixed(both) = piece {
            whole.text.push_str(&both.text);
            whole.value.extend(both.value);
        }
    }
    whole
}
