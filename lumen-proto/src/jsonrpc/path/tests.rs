//! Paths against serde_json's pointers, strings against its strings.

use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::jsonrpc::oracle;

fn whole(text: &str) -> Span {
    Span::new(text.len() - text.trim_start().len(), text.trim_end().len())
}

/// All paths of keys in `value` with what they lead to.
fn paths<'a>(value: &'a Value, at: Vec<&'a str>, out: &mut Vec<(Vec<&'a str>, &'a Value)>) {
    if let Value::Object(map) = value {
        for (key, value) in map {
            let mut at = at.clone();
            at.push(key);
            paths(value, at, out);
        }
    }
    out.push((at, value));
}

proptest! {
    #[test]
    fn a_path_leads_where_serde_json_finds_it(doc in oracle::doc(false)) {
        let text = doc.text.as_bytes();
        let root: Value = match serde_json::from_slice(text) {
            Ok(root) => root,
            // A number out of range.
            Err(_) => return Ok(()),
        };
        let mut all = Vec::new();
        paths(&root, Vec::new(), &mut all);
        for (path, value) in all {
            let found = find(text, whole(&doc.text), &path).map(|span| span.of(text));
            prop_assert_eq!(&serde_json::from_slice::<Value>(found.unwrap()).unwrap(), value);
            let missing: Vec<_> = path.iter().copied().chain(["no such key"]).collect();
            prop_assert_eq!(find(text, whole(&doc.text), &missing), None);
        }
    }

    #[test]
    fn members_are_in_order(doc in oracle::doc(true)) {
        let text = doc.text.as_bytes();
        let part = |span: Span| String::from_utf8(span.of(text).to_vec()).unwrap();
        let found: Vec<_> =
            members(text, whole(&doc.text)).map(|member| (part(member.key), part(member.value))).collect();
        let expected: Vec<_> =
            doc.members.iter().map(|((_, key), value)| (key.clone(), value.clone())).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn strings_decode_as_in_serde_json((text, token) in oracle::token_of(oracle::any_text())) {
        prop_assert_eq!(serde_json::from_str::<String>(&token).unwrap(), &text[..]);
        prop_assert_eq!(decode_str(token.as_bytes()).unwrap(), &text[..]);
        prop_assert!(text_is(token.as_bytes(), &text));
        let longer = format!("{text}x");
        prop_assert!(!text_is(token.as_bytes(), &longer));
        if let Some(last) = text.chars().next_back() {
            prop_assert!(!text_is(token.as_bytes(), &text[..text.len() - last.len_utf8()]));
        }
    }

    #[test]
    fn anything_is_borne(
        text in oracle::spoiled(oracle::doc(true).prop_map(|doc| doc.text)), start in 0..200_u32, end in 0..200_u32,
    ) {
        let span = Span::new(start as usize, end as usize);
        find(&text, span, &["id", "x"]);
        prop_assert!(members(&text, span).count() <= text.len());
        decode_str(span.of(&text));
        text_is(span.of(&text), "id");
    }
}

#[test]
fn the_last_of_two_counts() {
    let text = br#"{"a":{"b":1},"\u0061":{"b":2,"b":3}}"#;
    let root = Span::new(0, text.len());
    assert_eq!(find(text, root, &["a", "b"]).unwrap().of(text), b"3");
    assert_eq!(find(text, root, &[]), Some(root));
    assert_eq!(find(text, root, &["a", "b", "c"]), None);
}

#[test]
fn what_is_no_string_decodes_to_nothing() {
    for token in ["", "\"", "5", "\"\\\"", "\"\\ud800\"", "\"\\udc00\\ud800\"", "\"\\u12\"", "\"\\x\""] {
        assert_eq!(decode_str(token.as_bytes()), None, "{token}");
        assert!(!text_is(token.as_bytes(), ""), "{token}");
    }
    assert!(matches!(decode_str(b"\"plain\""), Some(Cow::Borrowed("plain"))));
}
