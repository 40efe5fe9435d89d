//! The validating walk.

use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::value::model::{self, Tree};

fn tree(node: &Node<'_>) -> Tree {
    match node.kind() {
        Kind::Null => Tree::Null,
        Kind::Bool => Tree::Bool(node.as_bool().unwrap()),
        Kind::Int => Tree::Number(node.as_int().unwrap().to_string()),
        Kind::Float => Tree::Number(model::shortest(node.as_float().unwrap())),
        Kind::Str => Tree::Str(node.as_str().unwrap().into()),
        Kind::Array => Tree::Array(node.elements().map(|node| tree(&node)).collect()),
        Kind::Object => {
            Tree::Object(node.members().map(|(key, node)| (key.to_string(), tree(&node))).collect())
        }
    }
}

fn bytes_of(tree: &Tree) -> Vec<u8> {
    let mut bytes = Vec::new();
    tree.encode(&mut bytes);
    bytes
}

/// {"jsonrpc":"2.0","id":[7,[]],"method":"ping","params":{"x":[1,{"y":[]}],"x":2.5},"z":true}
const CALL: &[u8] =
    b"\xe7\x05\x0c\xe5\x032.0\x04\xe6\x02\xe3\x0e\xe6\x00\x0a\xe5\x04ping\x0b\xe7\x02\xff\x01x\
    \xe6\x02\xe3\x02\xe7\x01\xff\x01y\xe6\x00\xff\x01x\xe2\0\0\0\0\0\0\x04\x40\xff\x01z\xe1\x01";

#[test]
fn members_are_found_with_their_bytes() {
    let mut tape = Tape::new();
    let needs = tape.parse(CALL, None).unwrap();
    assert_eq!(needs, Needs { members: 5, depth: 5, ..Needs::default() });
    let root = tape.root(CALL, None).unwrap();
    assert_eq!(root.range(), 0..CALL.len());
    let keys: Vec<&str> = root.members().map(|(key, _)| key).collect();
    assert_eq!(keys, ["jsonrpc", "id", "method", "params", "z"]);
    assert_eq!(root.member("method").unwrap().as_str(), Some("ping"));
    assert_eq!(&CALL[root.member("id").unwrap().range()], b"\xe6\x02\xe3\x0e\xe6\x00");
    let params = root.member("params").unwrap();
    // The first of two.
    let x = params.member("x").unwrap();
    assert_eq!(x.kind(), Kind::Array);
    assert_eq!(x.elements().next().unwrap().as_int(), Some(1));
    assert_eq!(params.members().last().unwrap().1.as_float(), Some(2.5));
    assert_eq!(root.member("z").unwrap().as_bool(), Some(true));
    assert!(root.member("x").is_none());
}

#[test]
fn questions_of_the_wrong_kind_have_no_answer() {
    let mut tape = Tape::new();
    tape.parse(CALL, None).unwrap();
    let root = tape.root(CALL, None).unwrap();
    assert!(root.elements().next().is_none());
    assert!(root.as_str().is_none() && root.as_int().is_none() && root.as_bool().is_none());
    let id = root.member("id").unwrap();
    assert!(id.members().next().is_none());
    assert!(id.elements().next().unwrap().as_float().is_none());
}

#[test]
fn a_key_may_spell_a_static_word_out() {
    let bytes = b"\xe7\x01\xff\x02id\xe3\x02";
    let mut tape = Tape::new();
    tape.parse(bytes, None).unwrap();
    assert_eq!(tape.root(bytes, None).unwrap().member("id").unwrap().as_int(), Some(1));
}

#[test]
fn words_of_a_session() {
    let mut table = Table::new();
    table.register("foo", 0x81);
    let bytes = b"\xe7\x01\x81\xe4\x81";
    let mut tape = Tape::new();
    assert!(tape.parse(bytes, Some(&table)).unwrap().session_ids);
    let root = tape.root(bytes, Some(&table)).unwrap();
    assert_eq!(root.member("foo").unwrap().as_str(), Some("foo"));
    let unknown = |offset| Err(Invalid { offset, problem: Problem::UnknownId(0x81) });
    assert_eq!(tape.parse(bytes, None), unknown(2));
    assert_eq!(tape.parse(b"\xe4\x81", None), unknown(1));
}

#[test]
fn problems_are_named_where_they_show() {
    for (bytes, offset, problem) in [
        (&b""[..], 0, Problem::Truncated),
        (b"\xe6\x01", 1, Problem::TooMany),
        (b"\xe7\x02\x04\xe0\x04", 1, Problem::TooMany),
        (b"\xe6\xc0\xff\xff\xff\xff\xe0", 1, Problem::TooMany),
        (b"\xe6\x41\xe0", 1, Problem::BadLength),
        (b"\xe8", 0, Problem::UnknownTag(0xe8)),
        (b"\xe6\x02\xe0\x04", 3, Problem::UnknownTag(4)),
        (b"\xe1\x02", 1, Problem::BadBool(2)),
        (b"\xe2\0\0\0\0\0\0\xf0\x7f", 1, Problem::NotFinite),
        (b"\xe3\x80\x00", 1, Problem::BadInt),
        (b"\xe5\x03ab\xff", 4, Problem::NotUtf8),
        (b"\xe5\x03ab", 4, Problem::Truncated),
        (b"\xe0\xe0", 1, Problem::Trailing),
        (b"\xe0\n\n", 2, Problem::Trailing),
    ] {
        assert_eq!(Tape::new().parse(bytes, None), Err(Invalid { offset, problem }), "{bytes:02x?}");
    }
    assert!(Tape::new().parse(b"\xe0\n", None).is_ok());
}

#[test]
fn memory_is_bounded_by_the_input() {
    let mut tape = Tape::new();
    // Nothing is set aside for what a count announces.
    let mut bytes = vec![0xe6, 0xc0, 0, 0, 0x10, 0];
    bytes.resize(1 << 20 | 6, 0xe0);
    tape.parse(&bytes, None).unwrap();
    assert_eq!(tape.extents.capacity(), 4);
    let empty = Tree::Array(vec![Tree::Array(vec![]); 1000]);
    tape.parse(&bytes_of(&empty), None).unwrap();
    assert_eq!(tape.extents.len(), 1001);
    let before = tape.extents.as_ptr();
    tape.parse(&bytes_of(&empty), None).unwrap();
    assert_eq!(tape.extents.as_ptr(), before);
}

proptest! {
    // Documents are large and take long to make.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_value_is_there(document in model::any_tree()) {
        let bytes = bytes_of(&document);
        let mut tape = Tape::new();
        tape.parse(&bytes, None).unwrap();
        let root = tape.root(&bytes, None).unwrap();
        prop_assert_eq!(root.range(), 0..bytes.len());
        prop_assert!(model::same(&tree(&root), &document));
    }

    #[test]
    fn other_bytes_than_were_parsed_do_no_harm(
        one in model::any_tree(),
        other in proptest::collection::vec(prop_oneof![0xe0_u8..0xe8, 0_u8..4, any::<u8>()], 0..60),
    ) {
        let mut tape = Tape::new();
        tape.parse(&bytes_of(&one), None).unwrap();
        fn visit(node: &Node<'_>, budget: &mut usize) {
            let _ = (node.kind(), node.as_bool(), node.as_int(), node.as_float(), node.as_str());
            if *budget > 0 {
                *budget -= 1;
                node.members().for_each(|(_, node)| visit(&node, budget));
                node.elements().for_each(|node| visit(&node, budget));
            }
        }
        if let Some(root) = tape.root(&other, None) {
            visit(&root, &mut 1000);
        }
    }

    #[test]
    fn serde_takes_the_same_bytes(
        document in model::any_tree(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut bytes = bytes_of(&document);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let parsed = Tape::new().parse(&bytes, None);
        let value = crate::value::from_slice::<serde_json::Value>(&bytes);
        prop_assert_eq!(parsed.is_ok(), value.is_ok(), "{:?} and {:?}", parsed, value);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_what_a_naive_reader_says(
        bytes in proptest::collection::vec(prop_oneof![0xe0_u8..0xe8, 0_u8..4, any::<u8>()], 0..40),
    ) {
        let mut tape = Tape::new();
        let parsed = tape.parse(&bytes, None).is_ok();
        let naive = Tree::decode_all(&bytes);
        prop_assert_eq!(parsed, naive.is_some());
        if let (Some(root), Some(naive)) = (tape.root(&bytes, None).filter(|_| parsed), naive) {
            prop_assert!(model::same(&tree(&root), &naive));
        }
    }
}
