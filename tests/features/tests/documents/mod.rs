//! The codec's results on known documents, those of the protocol and made-up ones, are what stands here and in
//! `documents.tsv`. The workspace's own tests run this file too, with none of serde_json's features on that change numbers
//! or the order of members.
//!
//! A line of `documents.tsv` is a JSON text, a tab, and its value in hex, or `plain` if the codec does not hold it. The
//! package lumen-tests made it: `rig_codec write exact`.

use std::fmt::Write;

use lumen_proto::value::to_vec;
use lumen_proto::value::transcode::Transcoder;
use serde_json::value::RawValue;

const VECTORS: [(&str, &str); 22] = [
    ("null", "e0"),
    ("true", "e101"),
    ("false", "e100"),
    ("-1", "e301"),
    ("64", "e38001"),
    ("2147483648", "e38080808010"),
    ("1718000000000", "e380f0bc8c8064"),
    ("9007199254740993", "e38280808080808020"),
    ("-9223372036854775808", "e3ffffffffffffffffff01"),
    ("9223372036854775807", "e3feffffffffffffffff01"),
    ("3.14", "e21f85eb51b81e0940"),
    ("1.0", "e2000000000000f03f"),
    ("-0.0", "e20000000000000080"),
    // Read one unit too high, or too low, by readers that are not exact.
    ("31.245270191439438", "e282eafa06ca3e3f40"),
    ("121.48791951161945", "e2185fc2123a5f5e40"),
    (r#""tool""#, "e400"),
    ("\"\u{1f600}\"", "e504f09f9880"),
    ("[]", "e600"),
    ("{}", "e700"),
    (r#"{"b":1,"a":2,"b":3}"#, "e703ff0162e302ff0161e304ff0162e306"),
    (r#"{"tool":"tool","x":{"id":1}}"#, "e70200e400ff0178e70104e302"),
    (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "e7030ce503322e3004e3020ae50470696e67"),
];

const NOT_HELD: [&str; 5] = [
    "9223372036854775808",
    "1e400",
    "0.10000000000000001",
    r#"{"a":[123456789012345678901]}"#,
    r#""\ud800""#,
];

/// All texts, with their values in hex; `None` for those that the codec does not hold.
pub fn all() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let lines = include_str!("documents.tsv").lines();
    let made_up = lines.map(|line| line.split_once('\t').expect("a text and a value"));
    let made_up = made_up.map(|(text, value)| (text, (value != "plain").then_some(value)));
    let vectors = VECTORS.iter().map(|(text, value)| (*text, Some(*value)));
    vectors.chain(NOT_HELD.iter().map(|text| (*text, None))).chain(made_up)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

#[test]
fn there_are_documents_of_both_kinds() {
    assert!(all().filter(|(_, value)| value.is_some()).count() > 200);
    assert!(all().filter(|(_, value)| value.is_none()).count() > 20);
}

#[test]
fn text_to_value_and_back() {
    let mut transcoder = Transcoder::new();
    for (text, value) in all() {
        let mut bytes = Vec::new();
        let held = transcoder.encode(text.as_bytes(), &mut bytes).is_ok();
        assert_eq!(held.then(|| hex(&bytes)).as_deref(), value, "{text}");
        if held {
            let (mut back, mut again) = (Vec::new(), Vec::new());
            transcoder.decode(&bytes, None, &mut back).expect("what was just written");
            transcoder.encode(&back, &mut again).expect("what was just read");
            assert_eq!(again, bytes, "{text}");
        }
    }
}

#[test]
fn raw_text_by_way_of_serde() {
    for (text, value) in all() {
        if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
            assert_eq!(to_vec(raw).ok().map(|bytes| hex(&bytes)).as_deref(), value, "{text}");
        }
    }
}
