//! Any bytes as a value: taken by the tape exactly when serde takes them and when they can be written as JSON, and
//! every value that the tape leads to lies where it is said to lie. A tape asked about other bytes than it was made
//! of may answer anything, but must answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lumen_proto::value::tape::{Kind, Node, Tape};
use lumen_proto::value::transcode::Transcoder;
use lumen_proto::value::{Needs, from_slice};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let mut tape = Tape::new();
    let parsed = tape.parse(bytes, None);
    let value = from_slice::<Value>(bytes);
    assert_eq!(parsed.is_ok(), value.is_ok(), "{parsed:?} {value:?}");
    let mut text = Vec::new();
    assert_eq!(Transcoder::new().decode(bytes, None, &mut text), parsed);
    let Ok(value) = value else {
        assert!(text.is_empty());
        return;
    };
    let root = tape.root(bytes, None).unwrap();
    assert!(root.range() == (0..bytes.len()) || bytes.ends_with(b"\n"));
    let mut needs = Needs::default();
    assert_eq!(visit(&root, &mut needs, 0), value);
    let parsed = parsed.unwrap();
    assert_eq!((needs.members, needs.depth), (parsed.members, parsed.depth));

    let (front, back) = bytes.split_at(bytes.len() / 2);
    for other in [front, back] {
        if let Some(root) = tape.root(other, None) {
            let _ = (root.members().count(), root.elements().count(), root.as_str(), root.member("id"));
        }
    }
});

/// The tree of a value, and the needs that only the shape tells.
fn visit(node: &Node<'_>, needs: &mut Needs, depth: u16) -> Value {
    let mut count = 0;
    let mut child = |node: Node<'_>| {
        count += 1;
        visit(&node, needs, depth + 1)
    };
    let value = match node.kind() {
        Kind::Null => return Value::Null,
        Kind::Bool => return node.as_bool().into(),
        Kind::Int => return node.as_int().into(),
        Kind::Float => return node.as_float().into(),
        Kind::Str => return node.as_str().into(),
        Kind::Array => node.elements().map(child).collect(),
        Kind::Object => node.members().map(|(key, node)| (key.to_owned(), child(node))).collect(),
    };
    needs.members = needs.members.max(count);
    needs.depth = needs.depth.max(depth + 1);
    value
}
