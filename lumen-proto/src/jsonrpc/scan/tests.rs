//! The scan against the envelope of the same text, at any cutting.

use std::format;

use proptest::prelude::*;

use super::*;
use crate::jsonrpc::{Envelope, oracle};

fn scan(pieces: &[&[u8]]) -> (Scanned, bool) {
    let mut scan = Scan::new();
    for piece in pieces {
        scan.push(piece);
        assert!(scan.token.capacity() <= 2 * (limits::MAX_ID + 1));
    }
    let is_complete = scan.is_complete();
    (scan.finish(), is_complete)
}

/// What an envelope says of the same text.
fn expected(text: &[u8]) -> Scanned {
    let (id, has_method) = match Envelope::parse(text) {
        Ok(envelope) => (envelope.id, envelope.method.is_some()),
        Err(refused) => (refused.id, refused.has_method),
    };
    let id = id.map(|id| id.of(text)).filter(|id| *id != b"null").map(Bytes::copy_from_slice);
    Scanned { id, has_method }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_scan_finds_what_an_envelope_finds(doc in oracle::doc(true), cuts in oracle::cuts()) {
        let text = doc.text.as_bytes();
        let pieces = oracle::pieces(text, &cuts);
        prop_assert_eq!(scan(&pieces), (expected(text), true));
    }

    #[test]
    fn any_text_is_borne_and_cutting_does_not_matter(
        text in oracle::spoiled(oracle::doc(true).prop_map(|doc| doc.text)), cuts in oracle::cuts(),
    ) {
        prop_assert_eq!(scan(&oracle::pieces(&text, &cuts)), scan(&[&text]));
    }

    #[test]
    fn an_array_has_no_id(value in oracle::value(true)) {
        let text = format!("[{{\"id\":1,\"method\":\"x\"}},{value}]");
        prop_assert_eq!(scan(&[text.as_bytes()]), (Scanned::default(), true));
    }
}

#[test]
fn ids_of_any_place_and_length() {
    let find = |text: &str| scan(&[text.as_bytes()]).0.id;
    let long = |len: usize| format!("\"{}\"", "x".repeat(len - 2));
    let with = |id: &str| format!(r#"{{"params":{{"id":8}},"id" : {id} ,"z":{{"id":9}}}}"#);
    for id in ["0", "\"\"", "-1.5e3", r#""a\"b\\""#, &long(limits::MAX_ID)] {
        assert_eq!(find(&with(id)).as_deref(), Some(id.as_bytes()));
    }
    for id in
        ["null", "true", "[1]", "{\"id\":1}", &long(limits::MAX_ID + 1), &"1".repeat(limits::MAX_ID + 1)]
    {
        assert_eq!(find(&with(id)), None, "{id}");
    }
    assert_eq!(find(r#"{"\u0069d":1}"#).as_deref(), Some(&b"1"[..]));
    assert_eq!(find(r#"{"id":12"#), None, "the number may go on");
    // A string in an array is no key.
    assert_eq!(scan(&[br#"[1,"method","id"]"#]), (Scanned::default(), true));
}
