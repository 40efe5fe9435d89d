//! The scan against the deserializer of the same bytes, at any cutting.

use std::string::{String, ToString};
use std::vec;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::value::from_slice;
use crate::value::model::{Tree, any_number, any_tree, is_exact};

fn scan(pieces: &[&[u8]]) -> (Scanned, bool) {
    let mut scan = Scan::new();
    for piece in pieces {
        scan.push(piece);
        assert!(scan.around.len() <= limits::MAX_VALUE_DEPTH);
        assert!(scan.token.len() <= limits::MAX_ID + MAX_HEAD);
    }
    let is_complete = scan.is_complete();
    (scan.finish(), is_complete)
}

fn cut<'a>(mut bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for cut in cuts.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at(bytes.len().min(*cut));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

fn any_cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![1]), Just(vec![usize::MAX]), vec(1..20_usize, 1..20)]
}

fn text(text: &str, out: &mut Vec<u8>) {
    let mut form = [0; varint::MAX_LEN];
    let len = varint::encode(text.len() as u64, &mut form);
    out.extend(&form[..len]);
    out.extend(text.as_bytes());
}

/// An object's keys, each with whether it is spelled although it has an id, and the values.
type Members = Vec<((String, bool), Tree)>;

fn object(members: &Members) -> Vec<u8> {
    let mut out = vec![tag::OBJECT, u8::try_from(members.len()).unwrap()];
    for ((key, spelled), value) in members {
        match dict::static_id(key.as_bytes()) {
            Some(id) if !spelled => out.push(id),
            _ => {
                out.push(tag::INLINE_KEY);
                text(key, &mut out);
            }
        }
        value.encode(&mut out);
    }
    out
}

/// An object that resembles a JSON-RPC message more or less.
fn any_members() -> impl Strategy<Value = Members> {
    let key = prop_oneof![
        4 => prop::sample::select(vec!["id", "method", "params", "result", "i", "idx", "methods", ""])
            .prop_map(String::from),
        1 => "\\PC{0,12}",
    ];
    let id = prop_oneof![
        any_number().prop_filter("exact", |text| is_exact(text)).prop_map(Tree::Number),
        "\\PC{0,20}".prop_map(Tree::Str),
        vec(any::<char>(), 0..8).prop_map(|chars| Tree::Str(chars.into_iter().collect())),
        Just(Tree::Str("tool".into())),
        Just(Tree::Null),
    ];
    let nested = vec((prop_oneof![Just("id"), Just("method"), Just("x")], id.clone()), 0..4)
        .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
        .prop_map(Tree::Object);
    let value = prop_oneof![4 => id, 2 => nested, 1 => any_tree()];
    vec(((key, any::<bool>()), value), 0..7)
}

/// What the deserializer makes of the first id: it is compared by value.
fn assert_id(found: Option<&Bytes>, members: &Members) {
    let expected = members.iter().find(|((key, _), _)| key == "id").map(|(_, value)| {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        from_slice::<Value>(&bytes).unwrap()
    });
    let found = found.map(|id| core::str::from_utf8(id).unwrap());
    match expected {
        Some(Value::Number(number)) if number.is_f64() => {
            let found = found.unwrap();
            assert_eq!(found.parse().ok(), number.as_f64());
            assert!(serde_json::from_str::<Value>(found).unwrap().is_number());
        }
        Some(id @ (Value::Number(_) | Value::String(_))) => assert_eq!(found, Some(&id.to_string()[..])),
        _ => assert_eq!(found, None),
    }
}

proptest! {
    #[test]
    fn a_scan_finds_what_a_deserializer_finds(members in any_members(), cuts in any_cuts(), feed: bool) {
        let mut bytes = object(&members);
        let document: Value = from_slice(&bytes).unwrap();
        if feed {
            bytes.push(b'\n');
        }
        let (found, is_complete) = scan(&cut(&bytes, &cuts));
        prop_assert!(is_complete);
        prop_assert_eq!(found.has_method, document.get("method").is_some());
        assert_id(found.id.as_ref(), &members);
    }

    #[test]
    fn any_bytes_are_borne_and_cutting_does_not_matter(
        members in any_members(),
        changes in vec((any::<prop::sample::Index>(), 0..4_u8, prop_oneof![any::<u8>(), 0xe0..=0xff_u8]), 1..5),
        cuts in any_cuts(),
    ) {
        let mut bytes = object(&members);
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
        let (found, is_complete) = scan(&cut(&bytes, &cuts));
        prop_assert_eq!(&(found.clone(), is_complete), &scan(&[&bytes]));
        if let Ok(document) = from_slice::<Value>(&bytes) {
            prop_assert!(is_complete);
            prop_assert_eq!(found.has_method, document.get("method").is_some());
        }
        if let Some(id) = &found.id {
            prop_assert!(id.len() <= limits::MAX_ID);
            let id = core::str::from_utf8(id).unwrap();
            prop_assert!(id.parse::<f64>().is_ok() || serde_json::from_str::<String>(id).is_ok());
        }
    }

    #[test]
    fn noise_is_borne(bytes in vec(prop_oneof![any::<u8>(), 0xe0..=0xe7_u8, 0..8_u8], 0..60), cuts in any_cuts()) {
        prop_assert_eq!(scan(&cut(&bytes, &cuts)), scan(&[&bytes]));
    }

    #[test]
    fn what_is_no_object_has_no_members(members in any_members(), other in any_tree()) {
        let mut bytes = vec![tag::ARRAY, 2];
        bytes.extend(object(&members));
        other.encode(&mut bytes);
        prop_assert_eq!(scan(&[&bytes]), (Scanned::default(), true));
    }
}

/// The ids found in `{"params":{"id":8},"id":<value>,"z":"method"}`, in every cutting.
fn id_of(value: &[u8]) -> Option<Bytes> {
    let bytes = [b"\xe7\x03\x0b\xe7\x01\x04\xe3\x10\x04", value, b"\xff\x01z\xe4\x0a"].concat();
    let (found, _) = scan(&[&bytes]);
    for chunk in [1, 2, 3, 7] {
        assert_eq!(scan(&cut(&bytes, &[chunk])).0, found);
    }
    assert!(!found.has_method);
    found.id
}

fn str_of(len: usize, byte: u8) -> Vec<u8> {
    let mut out = vec![tag::STR];
    text(&String::from_utf8(vec![byte; len]).unwrap(), &mut out);
    out
}

#[test]
fn ids_of_every_kind() {
    for (value, id) in [
        (&b"\xe3\x00"[..], "0"),
        (b"\xe3\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "-9223372036854775808"),
        (b"\xe5\x00", "\"\""),
        (b"\xe5\x03a\"\x01", r#""a\"\u0001""#),
        (b"\xe5\x80\x02\x00hi", "\"hi\""),
        (b"\xe4\x00", "\"tool\""),
        (b"\xe2\x00\x00\x00\x00\x00\x00\xf0\x3f", "1.0"),
    ] {
        assert_eq!(id_of(value).as_deref(), Some(id.as_bytes()), "{value:02x?}");
    }
    for value in [
        &b"\xe0"[..],
        b"\xe1\x01",
        b"\xe6\x01\xe3\x02",
        b"\xe7\x01\x04\xe3\x02",
        // No word, no UTF-8, not finite: none of it could be put into an answer.
        b"\xe4\x80",
        b"\xe4\xff",
        b"\xe5\x01\xff",
        b"\xe2\x00\x00\x00\x00\x00\x00\xf0\x7f",
    ] {
        assert_eq!(id_of(value), None, "{value:02x?}");
    }
}

#[test]
fn ids_of_every_length() {
    let longest = limits::MAX_ID - 2;
    assert_eq!(id_of(&str_of(longest, b'x')).unwrap().len(), limits::MAX_ID);
    assert_eq!(id_of(&str_of(longest / 6, 1)).unwrap().len(), longest / 6 * 6 + 2);
    for value in [str_of(longest + 1, b'x'), str_of(limits::MAX_ID * 70, b'x'), str_of(longest / 6 + 1, 1)] {
        assert_eq!(id_of(&value), None);
    }
}

#[test]
fn the_first_id_counts() {
    for (first, id) in [(&b"\xe3\x02"[..], Some(&b"1"[..])), (b"\xe0", None), (b"\xe6\x00", None)] {
        let bytes = [b"\xe7\x02\x04", first, b"\xff\x02id\xe3\x04"].concat();
        assert_eq!(scan(&[&bytes]).0.id.as_deref(), id, "{first:02x?}");
    }
}

#[test]
fn what_cannot_be_followed_ends_the_scan_with_what_was_found() {
    let found = |id, has_method| Scanned { id, has_method };
    let one = || Some(Bytes::from_static(b"1"));
    // What would come next is an id, had it not gone astray before: `{"id":1,"method":"x","x":..`
    let start = b"\xe7\x09\x04\xe3\x02\x0a\xe5\x01x\xff\x01x";
    for broken in [
        &b"\xdf"[..],
        b"\xe8",
        b"x",
        b"\xe5\x41",
        b"\xe6\xff",
        b"\xe5\x40\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02",
        b"\xe3\x80\x00",
        b"\xe3\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02",
        &[tag::ARRAY, 1].repeat(limits::MAX_VALUE_DEPTH),
    ] {
        let bytes = [start, broken, &b"\xe0\x04\xe3\x04".repeat(20)].concat();
        for chunk in [1, 5, bytes.len()] {
            assert_eq!(scan(&cut(&bytes, &[chunk])), (found(one(), true), false), "{broken:02x?}");
        }
    }
    assert_eq!(scan(&[b"\xe7\x02\x0a\xe8\x04\xe3\x02"]), (found(None, true), false));
    assert_eq!(scan(&[b"\xe7\x02\x04\xe3\x02\xff\xff\x0a\xe0"]), (found(one(), false), false));
    // As deep as may be, an id behind it is found.
    let deep = [tag::ARRAY, 1].repeat(limits::MAX_VALUE_DEPTH - 1);
    let bytes = [b"\xe7\x02\x0b", &deep[..], b"\xe0\x04\xe3\x02"].concat();
    assert!(from_slice::<serde::de::IgnoredAny>(&bytes).is_ok());
    assert_eq!(scan(&[&bytes]), (found(one(), false), true));
    // Counts and lengths of any size cost nothing.
    for head in [tag::ARRAY, tag::OBJECT, tag::STR] {
        let bytes = [&[head, 0x40], &[0xff; 9][..], &[1, tag::INLINE_KEY, 0x3f]].concat();
        assert!(!scan(&[&bytes]).1, "{head:02x}");
    }
}

#[test]
fn what_follows_the_value_is_not_looked_at() {
    for end in [&b"\n"[..], b"\xe7\x01\x04\xe3\x02", b"\xff"] {
        assert_eq!(scan(&[b"\xe7\x00", end]), (Scanned::default(), true));
        assert_eq!(scan(&[&[b"\xe7\x00", end].concat()]), (Scanned::default(), true));
    }
}
