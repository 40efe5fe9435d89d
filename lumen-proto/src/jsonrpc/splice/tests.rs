//! Splices against a naive model on strings.

use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::jsonrpc::{members, oracle};

fn applied(text: &str, patches: &Patches) -> String {
    let mut out = BytesMut::from(&b"kept"[..]);
    apply(text.as_bytes(), patches, &mut out);
    String::from_utf8(out.strip_prefix(b"kept").unwrap().to_vec()).unwrap()
}

fn one(patch: Patch) -> Patches {
    let mut patches = Patches::new();
    patches.try_add(patch).unwrap();
    patches
}

fn patch(start: usize, end: usize, with: &str) -> Patch {
    Patch { at: Span::new(start, end), with: with.into() }
}

proptest! {
    #[test]
    fn patches_act_as_replacing_from_the_back(
        text in "[a-z]{0,30}",
        wanted in prop::collection::vec((0..31_usize, 0..6_usize, "[A-Z]{0,4}"), 0..8),
    ) {
        let mut patches = Patches::new();
        let mut model: Vec<(usize, usize, String)> = Vec::new();
        for (start, len, with) in wanted {
            let start = start.min(text.len());
            let end = (start + len).min(text.len());
            let overlaps = model.iter().any(|&(s, e, _)| s < end && start < e);
            prop_assert_eq!(patches.try_add(patch(start, end, &with)).is_err(), overlaps);
            if !overlaps {
                model.push((start, end, with));
            }
        }
        // Stable: what was inserted first at a place stays first there.
        model.sort_by_key(|&(start, end, _)| (start, end));
        let mut expected = text.clone();
        for (start, end, with) in model.iter().rev() {
            expected.replace_range(start..end, with);
        }
        prop_assert_eq!(applied(&text, &patches), expected);
    }

    #[test]
    fn an_inserted_member_is_there_and_last(doc in oracle::doc(true), key in oracle::any_text()) {
        let object = Span::new(doc.text.find('{').unwrap(), doc.text.rfind('}').unwrap() + 1);
        let patch = insert_member(doc.text.as_bytes(), object, &key, b"[7]");
        let changed = applied(&doc.text, &one(patch.clone()));
        prop_assert!(oracle::takes(changed.as_bytes()), "{changed}");
        let object = Span::new(object.start(), object.end() + patch.with.len());
        let all: Vec<_> = members(changed.as_bytes(), object).collect();
        prop_assert_eq!(all.len(), doc.members.len() + 1);
        let last = all.last().unwrap();
        prop_assert_eq!(last.value.of(changed.as_bytes()), b"[7]");
        prop_assert!(text::is(last.key.of(changed.as_bytes()), &key));
    }

    #[test]
    fn a_removed_member_is_gone_and_the_others_are_not(doc in oracle::doc(true), which in any::<prop::sample::Index>()) {
        prop_assume!(!doc.members.is_empty());
        let text = doc.text.as_bytes();
        let object = Span::new(doc.text.find('{').unwrap(), doc.text.rfind('}').unwrap() + 1);
        let which = which.index(doc.members.len());
        let member = members(text, object).nth(which).unwrap();
        let patch = remove_member(text, object, &member);
        let gone = patch.at.of(text);
        let removed = patch.at.len();
        let commas = usize::from(doc.members.len() > 1);
        let own = member.value.end() - member.key.start();
        prop_assert_eq!(gone.iter().filter(|byte| !is_blank(**byte)).count(),
            text[member.key.start()..][..own].iter().filter(|byte| !is_blank(**byte)).count() + commas);
        let changed = applied(&doc.text, &one(patch));
        let object = Span::new(object.start(), object.end() - removed);
        let part = |span: Span| String::from_utf8(span.of(changed.as_bytes()).to_vec()).unwrap();
        let left: Vec<_> =
            members(changed.as_bytes(), object).map(|member| (part(member.key), part(member.value))).collect();
        let mut expected: Vec<_> = doc.members.iter().map(|((_, key), value)| (key.clone(), value.clone())).collect();
        expected.remove(which);
        prop_assert_eq!(left, expected);
        prop_assert!(oracle::takes(changed.as_bytes()), "{changed}");
    }
}

#[test]
fn commas_are_right() {
    let insert = |text: &str| {
        let object = Span::new(0, text.len());
        applied(text, &one(insert_member(text.as_bytes(), object, "k\"", b"1")))
    };
    assert_eq!(insert("{}"), r#"{"k\"":1}"#);
    assert_eq!(insert("{ \n}"), "{ \n\"k\\\"\":1}");
    assert_eq!(insert(r#"{"a":{}}"#), r#"{"a":{},"k\"":1}"#);
    let remove = |text: &str, nth: usize| {
        let object = Span::new(0, text.len());
        let member = members(text.as_bytes(), object).nth(nth).unwrap();
        applied(text, &one(remove_member(text.as_bytes(), object, &member)))
    };
    assert_eq!(remove(r#"{ "a":1 , "b":2 }"#, 0), r#"{  "b":2 }"#);
    assert_eq!(remove(r#"{ "a":1 , "b":2 }"#, 1), r#"{ "a":1  }"#);
    assert_eq!(remove(r#"{"a":1,"b":2,"c":3}"#, 1), r#"{"a":1,"c":3}"#);
    assert_eq!(remove(r#"{ "a":"," }"#, 0), "{  }");
}

#[test]
fn nested_changes_leave_the_rest() {
    let text = r#"{"id":1,"method":"initialize","params":{"capabilities":{"extensions":{"x":1e0}}}}"#;
    let root = Span::new(0, text.len());
    let id = crate::jsonrpc::find(text.as_bytes(), root, &["id"]).unwrap();
    let extensions =
        crate::jsonrpc::find(text.as_bytes(), root, &["params", "capabilities", "extensions"]).unwrap();
    let mut patches = one(insert_member(text.as_bytes(), extensions, "y", b"{}"));
    patches.try_add(Patch { at: id, with: "\"seven\"".into() }).unwrap();
    let expected =
        r#"{"id":"seven","method":"initialize","params":{"capabilities":{"extensions":{"x":1e0,"y":{}}}}}"#;
    assert_eq!(applied(text, &patches), expected);
}

#[test]
fn senseless_ranges_change_nothing_or_are_cut() {
    let text = "[1]";
    let insert = insert_member(text.as_bytes(), Span::new(0, 3), "k", b"1");
    assert_eq!(applied(text, &one(insert)), text);
    assert_eq!(applied(text, &one(patch(2, 100, "x"))), "[1x");
    assert_eq!(applied(text, &one(patch(50, 100, "x"))), "[1]x");
    assert!(Patches::new().try_add(patch(2, 1, "")).is_err());
    let beyond = Member { key: Span::new(90, 91), value: Span::new(92, 95) };
    assert_eq!(remove_member(text.as_bytes(), Span::new(0, 3), &beyond).with, Token::new());
    assert_eq!(serde_json::from_str::<Value>(text).unwrap().to_string(), text);
}
