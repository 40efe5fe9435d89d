//! Values into Rust types.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::super::to_vec;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let hex: Vec<char> = hex.chars().filter(|digit| *digit != ' ').collect();
    hex.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap()).collect()
}

/// Whatever is asked for, bytes that are no value are refused in the same way.
fn problem(hex: &str) -> (Problem, usize) {
    let wire = bytes(hex);
    let error = from_slice::<Value>(&wire).unwrap_err();
    let ignored = from_slice::<IgnoredAny>(&wire).unwrap_err();
    assert_eq!((error.problem(), error.offset()), (ignored.problem(), ignored.offset()), "{hex}");
    (error.problem().unwrap(), error.offset())
}

#[test]
fn bytes_that_are_no_value_are_refused_where_it_shows() {
    let cases = [
        ("", Problem::Truncated, 0),
        ("00", Problem::UnknownTag(0), 0),
        ("df", Problem::UnknownTag(0xdf), 0),
        ("e602e0e8", Problem::UnknownTag(0xe8), 3),
        ("ff", Problem::UnknownTag(0xff), 0),
        ("e1", Problem::Truncated, 1),
        ("e102", Problem::BadBool(2), 1),
        ("e1ff", Problem::BadBool(0xff), 1),
        ("e2000000000000f0", Problem::Truncated, 8),
        ("e2000000000000f07f", Problem::NotFinite, 1),
        ("e2000000000000f0ff", Problem::NotFinite, 1),
        ("e2010000000000f87f", Problem::NotFinite, 1),
        ("e3", Problem::Truncated, 1),
        ("e380", Problem::Truncated, 2),
        ("e38000", Problem::BadInt, 1),
        ("e3ffffffffffffffffff02", Problem::BadInt, 1),
        ("e3ffffffffffffffffff8001", Problem::BadInt, 1),
        ("e4", Problem::Truncated, 1),
        ("e480", Problem::UnknownId(0x80), 1),
        ("e4fe", Problem::UnknownId(0xfe), 1),
        ("e4ff", Problem::UnknownId(0xff), 1),
        ("e701 81 e0", Problem::UnknownId(0x81), 2),
        ("e5", Problem::Truncated, 1),
        ("e50361", Problem::Truncated, 3),
        ("e541", Problem::BadLength, 1),
        ("e540ffffffffffffffffff0161", Problem::Truncated, 13),
        ("e540ffffffffffffffffff7f", Problem::BadLength, 1),
        ("e503 61ff62", Problem::NotUtf8, 3),
        ("e503 eda080", Problem::NotUtf8, 2),
        ("e601", Problem::TooMany, 1),
        ("e6 80ffff e0", Problem::TooMany, 1),
        ("e6 c0ffffffff e0e0", Problem::TooMany, 1),
        ("e6 40ffffffffffffffffff01 e0", Problem::TooMany, 1),
        ("e701 00", Problem::TooMany, 1),
        ("e701 ff02c328 e0", Problem::NotUtf8, 4),
        // Two members are still to come outside, so the inner array cannot have both bytes.
        ("e603 e602 e0e0", Problem::TooMany, 3),
        ("e702 00 e701 00e0", Problem::TooMany, 4),
        ("e0e0", Problem::Trailing, 1),
        ("e00d0a", Problem::Trailing, 1),
        ("e00a0a", Problem::Trailing, 2),
        ("e00a00", Problem::Trailing, 2),
    ];
    for (hex, expected, offset) in cases {
        assert_eq!(problem(hex), (expected, offset), "{hex}");
    }
}

#[test]
fn one_line_feed_may_follow() {
    assert_eq!(from_slice::<Value>(&bytes("e701 04 e302 0a")).unwrap(), json!({"id": 1}));
}

#[test]
fn lengths_may_be_longer_than_they_have_to() {
    for hex in ["e601e0", "e6800100e0", "e6c001000000e0", "e64001e0"] {
        assert_eq!(from_slice::<Value>(&bytes(hex)).unwrap(), json!([null]), "{hex}");
    }
    assert_eq!(from_slice::<Value>(&bytes("e580010061")).unwrap(), json!("a"));
}

#[test]
fn the_last_of_two_members_of_one_name_counts_in_a_map() {
    assert_eq!(from_slice::<Value>(&bytes("e702 04e302 04e304")).unwrap(), json!({"id": 2}));
}

#[test]
fn nesting_ends_at_the_limit() {
    for (open, offset) in [("e601", 2), ("e70104", 3)] {
        let at_limit = open.repeat(MAX_VALUE_DEPTH) + "e0";
        from_slice::<Value>(&bytes(&at_limit)).unwrap();
        from_slice::<IgnoredAny>(&bytes(&at_limit)).unwrap();
        let above = open.repeat(MAX_VALUE_DEPTH + 1) + "e0";
        assert_eq!(problem(&above), (Problem::TooDeep, offset * MAX_VALUE_DEPTH));
        problem(&open.repeat(100_000));
    }
    // Depth is that of what is open, not of all there is.
    let beside = format!("e6802c01{}", "e600".repeat(300));
    assert_eq!(from_slice::<Vec<Vec<u8>>>(&bytes(&beside)).unwrap().len(), 300);
}

#[test]
fn strings_are_borrowed_from_the_input_or_static() {
    let wire = to_vec(&json!({"tool": "name", "own": "words"})).unwrap();
    let map = from_slice::<BTreeMap<&str, &str>>(&wire).unwrap();
    assert_eq!(map, BTreeMap::from([("tool", "name"), ("own", "words")]));
    assert!(wire.as_ptr_range().contains(&map["own"].as_ptr()));
    let raw = to_vec("words").unwrap();
    assert_eq!(from_slice::<&[u8]>(&raw).unwrap(), b"words");
}

#[test]
fn words_of_a_session_are_looked_up() {
    let wire = bytes("e701 81 e481");
    let mut table = Table::new();
    let error = from_slice_in_session::<Value>(&wire, &table).unwrap_err();
    assert_eq!((error.problem(), error.offset()), (Some(Problem::UnknownId(0x81)), 2));
    table.register("foo", 0x81);
    assert_eq!(from_slice_in_session::<Value>(&wire, &table).unwrap(), json!({"foo": "foo"}));
    assert!(from_slice::<Value>(&wire).is_err());
}

#[test]
fn values_of_another_type_are_refused_with_what_was_expected() {
    let wire = to_vec(&json!({"list": [1, "two"]})).unwrap();
    let error = from_slice::<BTreeMap<String, Vec<u8>>>(&wire).unwrap_err();
    assert_eq!(error.problem(), None);
    assert_eq!(error.offset(), 7);
    assert_eq!(error.to_string(), "invalid type: string \"two\", expected u8 at byte 7");
    for (value, error) in [
        (json!([1, 2, 3]), "1 members more than expected at byte 0"),
        (json!([1]), "invalid length 1, expected a tuple of size 2 at byte 0"),
        (json!(300), "invalid type: integer `300`, expected a tuple of size 2 at byte 0"),
        (json!(-1.5), "invalid type: floating point `-1.5`, expected a tuple of size 2 at byte 0"),
    ] {
        let wire = to_vec(&value).unwrap();
        assert_eq!(from_slice::<(u8, u8)>(&wire).unwrap_err().to_string(), error);
    }
    assert_eq!(from_slice::<f64>(&bytes("e302")).unwrap(), 1.0);
    assert!(from_slice::<u8>(&bytes("e301")).is_err());
}

#[test]
fn variants_are_strings_or_objects_of_one_member() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    enum Variant {
        #[serde(rename = "tool")]
        Tool,
        One(u8),
        Two(u8, u8),
        Named {
            id: u8,
        },
    }
    let of =
        |value: Value| from_slice::<Variant>(&to_vec(&value).unwrap()).map_err(|error| error.to_string());
    assert_eq!(of(json!("tool")), Ok(Variant::Tool));
    assert_eq!(of(json!({"tool": null})), Ok(Variant::Tool));
    assert_eq!(of(json!({"One": 1})), Ok(Variant::One(1)));
    assert_eq!(of(json!({"Two": [1, 2]})), Ok(Variant::Two(1, 2)));
    assert_eq!(of(json!({"Named": {"id": 3}})), Ok(Variant::Named { id: 3 }));
    for wrong in [
        json!("One"),
        json!("Two"),
        json!("Named"),
        json!({}),
        json!({"One": 1, "Two": [1, 2]}),
        json!({"Two": [1, 2, 3]}),
        json!({"tool": 1}),
        json!({"Three": 1}),
        json!(1),
        json!(null),
    ] {
        let theirs = serde_json::from_value::<Variant>(wrong.clone());
        assert!(of(wrong.clone()).is_err() && theirs.is_err(), "{wrong}");
    }
}

/// Values, and the same with some bytes changed, cut off, doubled or put in.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let values = super::super::ser::tests::values().prop_map(|value| to_vec(&value).unwrap());
    let edit =
        (any::<prop::sample::Index>(), 0..4_u8, prop_oneof![any::<u8>(), 0xe0..=0xe7_u8, 0x7e..=0x82_u8]);
    (values, prop::collection::vec(edit, 0..6)).prop_map(|(mut wire, edits)| {
        for (index, kind, byte) in edits {
            if wire.is_empty() {
                break;
            }
            let at = index.index(wire.len());
            match kind {
                0 => wire[at] = byte,
                1 => wire.insert(at, byte),
                2 => drop(wire.remove(at)),
                _ => wire.truncate(at),
            }
        }
        wire
    })
}

fn takes_or_refuses(wire: &[u8]) {
    let tree = from_slice::<Value>(wire);
    let ignored = from_slice::<IgnoredAny>(wire);
    match (&tree, &ignored) {
        (Ok(tree), Ok(_)) => {
            // What was taken is a value: it comes back the same when it is written and read again.
            let again = to_vec(tree).unwrap();
            assert_eq!(from_slice::<Value>(&again).unwrap(), *tree);
        }
        (Err(tree), Err(ignored)) => {
            assert_eq!((tree.problem(), tree.offset()), (ignored.problem(), ignored.offset()));
            assert!(tree.problem().is_some() && tree.offset() <= wire.len());
        }
        _ => panic!("{tree:?} but {ignored:?}"),
    }
}

proptest! {
    #[test]
    fn random_bytes_are_taken_or_refused(wire: Vec<u8>) {
        takes_or_refuses(&wire);
    }

    #[test]
    fn random_tokens_are_taken_or_refused(wire in prop::collection::vec(
        prop_oneof![0xdf..=0xe8_u8, 0..4_u8, any::<u8>()], 0..40)
    ) {
        takes_or_refuses(&wire);
    }

    #[test]
    fn mutated_values_are_taken_or_refused(wire in mutated()) {
        takes_or_refuses(&wire);
        let _ = from_slice::<BTreeMap<String, Vec<Option<i64>>>>(&wire);
        let _ = from_slice::<(Option<String>, BTreeMap<i8, bool>)>(&wire);
    }

    #[test]
    fn every_cut_is_refused(value in super::super::ser::tests::values()) {
        let wire = to_vec(&value).unwrap();
        for cut in (0..wire.len()).take(200) {
            prop_assert!(from_slice::<IgnoredAny>(&wire[..cut]).is_err());
        }
    }
}

/// Sums up what all arrays and objects that are open announce.
struct Announced<'s> {
    open: usize,
    most: &'s mut usize,
}

impl Announced<'_> {
    fn inside(&mut self, more: Option<usize>) -> Announced<'_> {
        let open = self.open + more.unwrap();
        *self.most = open.max(*self.most);
        Announced { open, most: self.most }
    }
}

impl<'de> DeserializeSeed<'de> for Announced<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Announced<'_> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        loop {
            let left = seq.size_hint();
            if seq.next_element_seed(self.inside(left))?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_map<A: de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        loop {
            let left = map.size_hint();
            if map.next_key::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
            map.next_value_seed(self.inside(left))?;
        }
    }
}

fn most_announced(wire: &[u8]) -> (usize, Result<(), Error>) {
    let mut most = 0;
    let mut deserializer = Deserializer { reader: Reader::new(wire), table: None, depth: 0, owed: 0 };
    let result = Announced { open: 0, most: &mut most }.deserialize(&mut deserializer);
    (most, result)
}

proptest! {
    #[test]
    fn announced_members_never_exceed_the_bytes(wire in mutated()) {
        prop_assert!(most_announced(&wire).0 <= wire.len());
    }
}

#[test]
fn members_announced_at_many_levels_count_together() {
    // Arrays that each announce as much as there is left.
    let mut wire = vec![];
    for level in 1..=100 {
        wire.extend([tag::ARRAY, 0x80]);
        wire.extend((1200_u16 - level * 4).to_le_bytes());
    }
    wire.resize(1200, tag::NULL);
    let (most, refused) = most_announced(&wire);
    let refused = refused.unwrap_err();
    assert_eq!((refused.problem(), refused.offset()), (Some(Problem::TooMany), 5));
    assert_eq!(most, 1196);
}
