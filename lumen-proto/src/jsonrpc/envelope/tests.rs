//! Envelopes against serde_json (grammar) and against the parts a text was made of (ranges).

use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::jsonrpc::oracle;
use crate::limits;

/// Returns whether the text was found to be JSON in UTF-8, message or not.
fn is_well_formed(text: &[u8]) -> bool {
    !matches!(
        Envelope::parse(text),
        Err(Refused { reason: Reason::NotJson { .. } | Reason::NotUtf8 { .. }, .. })
    )
}

fn reason(text: &str) -> Reason {
    Envelope::parse(text.as_bytes()).unwrap_err().reason
}

fn part(text: &str, span: Option<Span>) -> Option<&str> {
    span.map(|span| core::str::from_utf8(span.of(text.as_bytes())).unwrap())
}

/// Parses `text` and returns kind, id and method.
fn short(text: &str) -> (Kind, Option<&str>, Option<&str>) {
    let envelope = Envelope::parse(text.as_bytes()).unwrap();
    (envelope.kind, part(text, envelope.id), part(text, envelope.method))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn odd_spellings_are_json(text in oracle::value(true)) {
        prop_assert!(oracle::takes(text.as_bytes()), "the generator writes JSON");
        prop_assert!(is_well_formed(text.as_bytes()), "{text}");
    }

    #[test]
    fn spoiled_texts_are_judged_as_serde_json_does(text in oracle::spoiled(oracle::value(true))) {
        prop_assert_eq!(is_well_formed(&text), oracle::takes(&text), "{}", text.escape_ascii());
    }

    #[test]
    fn spoiled_messages_are_judged_as_serde_json_does(
        text in oracle::spoiled(oracle::doc(true).prop_map(|doc| doc.text)),
    ) {
        prop_assert_eq!(is_well_formed(&text), oracle::takes(&text), "{}", text.escape_ascii());
    }

    #[test]
    fn ranges_are_the_members(doc in oracle::doc(true)) {
        let text = &doc.text[..];
        let names = ["id", "method", "params", "result", "error"];
        match Envelope::parse(text.as_bytes()) {
            Ok(envelope) => {
                let spans = [envelope.id, envelope.method, envelope.params, envelope.result, envelope.error];
                for (name, span) in names.into_iter().zip(spans) {
                    prop_assert!(doc.count(name) < 2);
                    prop_assert_eq!(part(text, span), doc.first(name));
                }
                let kind = match (doc.first("method"), doc.first("id")) {
                    (Some(_), Some(_)) => Kind::Request,
                    (Some(_), None) => Kind::Notification,
                    (None, _) => Kind::Response,
                };
                prop_assert_eq!(envelope.kind, kind);
                prop_assert_eq!(part(text, Some(envelope.body)), Some(text.trim_matches([' ', '\t', '\r', '\n'])));
                prop_assert_eq!(envelope.has_newline, text.contains(['\r', '\n']));
            }
            Err(refused) => {
                let is_id = |token: &&str| token.starts_with(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
                prop_assert_eq!(part(text, refused.id), doc.first("id").filter(is_id));
                prop_assert_eq!(refused.has_method, doc.first("method").is_some());
                let id = doc.first("id");
                let is_right = match refused.reason {
                    Reason::Duplicate(name) => doc.count(name) > 1,
                    Reason::NullId => id == Some("null") && doc.first("method").is_some(),
                    Reason::BadId => id.is_some_and(|id| !is_id(&id)),
                    Reason::NotJsonRpc("the method is not a string") => {
                        doc.first("method").is_some_and(|method| !method.starts_with('"'))
                    }
                    Reason::NotJsonRpc(_) => names.into_iter().all(|name| name == "params" || doc.count(name) == 0),
                    _ => false,
                };
                prop_assert!(is_right, "{:?} for {}", refused, text);
            }
        }
    }
}

#[test]
fn kinds_are_told_by_members() {
    assert_eq!(short(r#"{"id":1,"method":"a"}"#), (Kind::Request, Some("1"), Some("\"a\"")));
    assert_eq!(short(r#"{"method":"a","params":{"id":1}}"#), (Kind::Notification, None, Some("\"a\"")));
    assert_eq!(short(r#"{"id":1,"result":{"method":"x"}}"#), (Kind::Response, Some("1"), None));
    assert_eq!(short(r#"{"id":null,"error":{}}"#), (Kind::Response, Some("null"), None));
    assert_eq!(short(r#"{"error":{}}"#), (Kind::Response, None, None));
    assert_eq!(reason("{}"), Reason::NotJsonRpc("no method, id, result or error"));
    assert_eq!(reason("5"), Reason::NotJsonRpc("neither an object nor an array"));
    assert_eq!(reason(r#"{"id":1,"method":5}"#), Reason::NotJsonRpc("the method is not a string"));
    assert_eq!(reason(""), Reason::NotJson { at: 0 });
    assert_eq!(reason("\u{feff}{}"), Reason::NotJson { at: 0 });
    assert_eq!(reason(r#"{"id":1,"result":1} x"#), Reason::NotJson { at: 20 });
    assert_eq!(reason("{}}"), Reason::NotJson { at: 2 });
}

#[test]
fn falsy_ids_are_ids() {
    assert_eq!(short(r#"{"id":0,"method":"a"}"#).1, Some("0"));
    assert_eq!(short(r#"{"id":"","method":"a"}"#).1, Some("\"\""));
}

#[test]
fn escaped_keys_are_keys() {
    let text = r#"{"\u0069d":7,"m\u0065thod":"x","\u0069\u0064x":8}"#;
    assert_eq!(short(text), (Kind::Request, Some("7"), Some("\"x\"")));
    assert_eq!(reason(r#"{"id":7,"\u0069d":7}"#), Reason::Duplicate("id"));
}

#[test]
fn only_the_top_level_counts() {
    let text = r#"{"params":{"id":1,"method":"n"},"a":[{"id":2}],"id":3,"method":"m","z":{"id":4}}"#;
    assert_eq!(short(text), (Kind::Request, Some("3"), Some("\"m\"")));
}

#[test]
fn every_duplicate_is_named() {
    for name in ["id", "method", "params", "result", "error"] {
        assert_eq!(reason(&format!(r#"{{"{name}":"1","{name}":"1"}}"#)), Reason::Duplicate(name));
    }
    assert!(Envelope::parse(br#"{"id":1,"result":{"id":1,"id":2},"x":1,"x":2}"#).is_ok());
}

#[test]
fn a_null_id_is_not_no_id() {
    // O-12.
    let refused = Envelope::parse(br#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#).unwrap_err();
    assert_eq!(refused, Refused { reason: Reason::NullId, id: None, has_method: true });
    assert_eq!(short(r#"{"jsonrpc":"2.0","method":"tools/list"}"#).0, Kind::Notification);
}

#[test]
fn ids_that_cannot_be_answered_are_refused() {
    for id in ["true", "[1]", "{}"] {
        assert_eq!(reason(&format!(r#"{{"id":{id},"method":"a"}}"#)), Reason::BadId);
        assert_eq!(reason(&format!(r#"{{"id":{id},"result":1}}"#)), Reason::BadId);
    }
    let id = |len: usize| format!(r#"{{"id":"{}","method":"a"}}"#, "x".repeat(len - 2));
    assert_eq!(reason(&id(limits::MAX_ID + 1)), Reason::LongId);
    assert!(Envelope::parse(id(limits::MAX_ID).as_bytes()).is_ok());
}

#[test]
fn a_broken_text_still_tells_whom_to_answer() {
    let text = r#"{"id":42,"method":"x","params":{]}"#;
    let refused = Envelope::parse(text.as_bytes()).unwrap_err();
    assert_eq!((refused.reason, refused.has_method), (Reason::NotJson { at: 32 }, true));
    assert_eq!(part(text, refused.id), Some("42"));
    // Bad UTF-8 before the id and after it; an id that is itself bad is not repeated.
    for (text, id) in [
        (&b"{\"a\":\"\xff\",\"id\":1,\"method\":\"m\"}"[..], &b"1"[..]),
        (b"{\"id\":1,\"method\":\"m\",\"a\":\"\xff\"}", b"1"),
        (b"{\"id\":\"\xff\",\"method\":\"m\",\"a\":1}", b""),
    ] {
        let refused = Envelope::parse(text).unwrap_err();
        assert!(matches!(refused.reason, Reason::NotUtf8 { at } if text[at] == 0xff));
        assert_eq!((refused.id.unwrap_or_default().of(text), refused.has_method), (id, true));
    }
}

#[test]
fn every_prefix_is_refused_and_no_id_is_cut_short() {
    let text = r#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"a":[1,true,null,"x\u00e9"]}}"#;
    for end in 0..text.len() {
        let refused = Envelope::parse(&text.as_bytes()[..end]).unwrap_err();
        assert!(matches!(refused.reason, Reason::NotJson { .. }), "{end}");
        assert_eq!(part(text, refused.id), (end > text.find("42").unwrap() + 2).then_some("42"), "{end}");
    }
}

#[test]
fn depth_has_a_limit() {
    let nested =
        |levels: usize| format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    assert!(Envelope::parse(nested(limits::MAX_DEPTH - 1).as_bytes()).is_ok());
    let deep = nested(limits::MAX_DEPTH);
    let refused = Envelope::parse(deep.as_bytes()).unwrap_err();
    assert_eq!(refused.reason, Reason::TooDeep { at: r#"{"id":1,"result":"#.len() + limits::MAX_DEPTH - 1 });
    assert_eq!(part(&deep, refused.id), Some("1"));
    assert!(Envelope::parse("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn containers_of_each_kind_are_closed_by_their_own_kind() {
    // Crosses the words of the stack of bits.
    for levels in [1, 2, 63, 64, 65, 127, 128, 129] {
        let open: String = (0..levels).map(|level| if level % 3 == 0 { "[" } else { "{\"a\":" }).collect();
        let close = |flip: usize| -> String {
            (0..levels)
                .rev()
                .map(|level| if (level % 3 == 0) == (level != flip) { ']' } else { '}' })
                .collect()
        };
        let text = |close: String| format!(r#"{{"id":1,"result":{open}0{close}}}"#);
        assert!(Envelope::parse(text(close(levels)).as_bytes()).is_ok());
        for flip in 0..levels {
            assert!(Envelope::parse(text(close(flip)).as_bytes()).is_err(), "{flip} of {levels}");
        }
    }
}

#[test]
fn control_characters_and_line_separators_in_strings() {
    for byte in 0..0x20_u8 {
        // At every place in a word of eight bytes, and behind it.
        for before in 0..40 {
            let mut text = format!(r#"{{"id":1,"result":"{}"#, "x".repeat(before)).into_bytes();
            let at = text.len();
            text.push(byte);
            text.extend_from_slice(b"yyyyyyyyyyyyyyyyyyyyyyyy\"}");
            assert_eq!(Envelope::parse(&text).unwrap_err().reason, Reason::NotJson { at });
        }
    }
    let text = "{\"id\":1,\"result\":\"a\u{2028}b\u{2029}c\u{7f}\"}";
    assert!(!Envelope::parse(text.as_bytes()).unwrap().has_newline);
}

#[test]
fn newlines_count_wherever_they_stand() {
    for text in ["{\"id\":1,\"result\":[1,\n2]}", "{\"id\":1,\r\"result\":0}", "\n{\"id\":1}", "{\"id\":1}\r"]
    {
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        assert!(envelope.has_newline, "{text:?}");
    }
    let text = r#" {"id":1,"result":"\n"} "#;
    let envelope = Envelope::parse(text.as_bytes()).unwrap();
    assert!(!envelope.has_newline);
    assert_eq!(part(text, Some(envelope.body)), Some(text.trim()));
}

#[test]
fn numbers_pass_as_they_are() {
    // O-13: nothing is converted, so nothing can be rounded.
    for number in ["9007199254740993", "725653563933458432", "1e400", "1.0", "-0", "12345678901234567890"] {
        let text = format!(r#"{{"id":{number},"result":{{"a":{number},"a":{number}}}}}"#);
        let envelope = Envelope::parse(text.as_bytes()).unwrap();
        assert_eq!(part(&text, envelope.id), Some(number));
    }
    for number in ["01", "+1", "1.", ".5", "1e", "1e+", "-", "0x1", "NaN", "--1"] {
        assert!(
            matches!(reason(&format!(r#"{{"id":1,"result":{number}}}"#)), Reason::NotJson { .. }),
            "{number}"
        );
    }
}

#[test]
fn batches_are_read_element_by_element() {
    let text =
        "[ {\"id\":1,\"method\":\"a\"} , {\"method\":\"b\",\n\"params\":[]},{\"id\":2,\"result\":{}}]\n";
    let envelope = Envelope::parse(text.as_bytes()).unwrap();
    assert_eq!((envelope.kind, envelope.id, envelope.has_newline), (Kind::Batch, None, true));
    assert_eq!(part(text, Some(envelope.body)), Some(text.trim()));
    let found: Vec<_> = batch(text.as_bytes())
        .map(|element| {
            (element.kind, part(text, element.id), part(text, element.method), element.has_newline)
        })
        .collect();
    let expected = [
        (Kind::Request, Some("1"), Some("\"a\""), false),
        (Kind::Notification, None, Some("\"b\""), true),
        (Kind::Response, Some("2"), None, false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn bad_batches_are_refused() {
    assert_eq!(reason("[]"), Reason::NotJsonRpc("an empty batch"));
    assert_eq!(reason("[]1"), Reason::NotJson { at: 2 });
    assert_eq!(reason("[[]]"), Reason::NotJsonRpc("a batch holds something else than objects"));
    assert_eq!(reason(r#"[{"id":1},5]"#), Reason::NotJsonRpc("a batch holds something else than objects"));
    assert_eq!(reason(r#"[{"id":null,"method":"x"},5]"#), Reason::NullId);
    assert_eq!(reason(r#"[5,{"id":1}"#), Reason::NotJson { at: 11 });
    assert_eq!(reason(r#"[{"id":1},]"#), Reason::NotJson { at: 10 });
    assert_eq!(batch(br#"[{"id":1},5,{"id":2}]"#).count(), 1);
    assert_eq!(batch(br#"{"id":1}"#).count(), 0);
    assert_eq!(batch(b"").count(), 0);
}
