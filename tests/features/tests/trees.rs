//! Trees of serde_json, whose numbers and order these features change, lead to the bytes that the text itself leads to.

mod documents;

use documents::{all, hex};
use lumen_proto::value::transcode::Transcoder;
use lumen_proto::value::{from_slice, to_vec};
use serde_json::{Value, json};

#[test]
fn the_features_are_on() {
    // arbitrary_precision, preserve_order, float_roundtrip.
    assert_eq!(serde_json::from_str::<Value>("1e400").unwrap().to_string(), "1e+400");
    assert_eq!(json!({"b": 1, "a": 2}).to_string(), r#"{"b":1,"a":2}"#);
    let float: f64 = serde_json::from_str("31.245270191439438").unwrap();
    assert_eq!(float.to_string(), "31.245270191439438");
}

#[test]
fn trees_are_the_bytes_of_their_text() {
    let mut compared = 0;
    for (text, value) in all() {
        // A lone surrogate is no text for serde_json either, and a map holds a key once.
        let Ok(tree) = serde_json::from_str::<Value>(text) else { continue };
        if text.matches(r#""b":"#).count() > 1 {
            continue;
        }
        assert_eq!(to_vec(&tree).ok().map(|bytes| hex(&bytes)).as_deref(), value, "{text}");
        compared += 1;
    }
    assert!(compared > 200);
}

#[test]
fn trees_read_from_bytes_are_the_document() {
    let mut transcoder = Transcoder::new();
    for (text, value) in all() {
        if value.is_none() || text.matches(r#""b":"#).count() > 1 {
            continue;
        }
        let mut bytes = Vec::new();
        transcoder.encode(text.as_bytes(), &mut bytes).unwrap();
        let tree: Value = from_slice(&bytes).unwrap();
        assert_eq!(to_vec(&tree).unwrap(), bytes, "{text}");
        let mut again = Vec::new();
        transcoder.encode(tree.to_string().as_bytes(), &mut again).unwrap();
        assert_eq!(again, bytes, "{text}");
    }
}
