//! One message in both encodings says the same.

use std::format;
use std::string::String;
use std::vec::Vec;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::sample::{FILLS, PROGRESS_TOKEN, Random, Sample};
use super::*;
use crate::jsonrpc::{Kind, Message, apply, oracle};
use crate::value::Profile;
use crate::value::transcode::{Transcoder, Unfit};
use crate::{Reason, limits};

fn value_of(text: &[u8]) -> Result<Vec<u8>, Unfit> {
    let mut value = Vec::new();
    Transcoder::new().encode(text, &mut value).map(|_| value)
}

fn text(json: &str) -> Packet {
    Message::copy_from(json.as_bytes()).unwrap().into()
}

fn value(json: &str) -> Packet {
    Packet::from_value(value_of(json.as_bytes()).unwrap().into()).unwrap()
}

fn tokens(packet: &Packet, paths: &[&[&str]]) -> Vec<Option<Vec<u8>>> {
    // By what they stand for, as numbers may be spelled in more ways than one.
    paths.iter().map(|path| packet.token(path).map(|token| value_of(&token).unwrap())).collect()
}

const PATHS: [&[&str]; 10] = [
    &[],
    &["id"],
    &["method"],
    &["params"],
    &["result"],
    &["error"],
    &["jsonrpc"],
    &[""],
    &["params", "id"],
    PROGRESS_TOKEN,
];

/// Returns whether it could be compared: a text that the codec cannot hold has no value.
fn compare(json: &str) -> bool {
    let Ok(bytes) = value_of(json.as_bytes()) else { return false };
    match (Message::copy_from(json.as_bytes()), Packet::from_value(bytes.clone().into())) {
        (Ok(message), Ok(value)) => {
            let text = Packet::from(message);
            assert_same(&text, &value);
            let elements: Vec<_> = text.batch().collect();
            let others: Vec<_> = value.batch().collect();
            assert_eq!(elements.len(), others.len());
            assert_eq!(elements.is_empty(), text.kind() != Kind::Batch);
            elements.iter().zip(&others).for_each(|(one, other)| assert_same(one, other));
        }
        (Err(text), Err((value, back))) => {
            assert_eq!(back, bytes);
            assert_eq!((text.reason, text.has_method), (value.reason, value.has_method), "{json}");
            let id = text.id.map(|id| value_of(id.of(json.as_bytes())).unwrap());
            assert_eq!(id, value.id.map(|id| value_of(&id).unwrap()), "{json}");
        }
        (text, value) => panic!("{json}: {text:?} but {value:?}"),
    }
    true
}

fn assert_same(text: &Packet, value: &Packet) {
    assert_eq!((text.encoding(), value.encoding()), (Encoding::Text, Encoding::Value));
    assert_eq!(text.kind(), value.kind());
    assert_eq!(text.id_key(), value.id_key());
    assert_eq!(text.has_id(), value.has_id());
    assert_eq!(text.method(), value.method());
    if let Some(method) = text.method() {
        assert!(text.method_is(&method) && value.method_is(&method));
    }
    assert!(!text.method_is("no such") && !value.method_is("no such"));
    assert_eq!(tokens(text, &PATHS), tokens(value, &PATHS));
    for path in PATHS {
        assert_eq!(text.has(path), value.has(path));
    }
    let written = value.to_text().unwrap();
    assert_eq!(value_of(written.bytes()), value_of(text.bytes()));
    assert_eq!(text.to_text().unwrap().bytes(), text.bytes());
}

proptest! {
    #[test]
    fn any_object_is_the_same_message_or_refused_for_the_same_reason(doc in oracle::doc(false)) {
        compare(&doc.text);
    }

    #[test]
    fn any_array_is_the_same_batch_or_refused_for_the_same_reason(
        docs in proptest::collection::vec(oracle::doc(false), 0..3),
        other in oracle::value(false),
        with_other in proptest::bool::weighted(0.2),
    ) {
        let mut texts: Vec<String> = docs.into_iter().map(|doc| doc.text).collect();
        if with_other {
            texts.push(other);
        }
        compare(&format!("[{}]", texts.join(",")));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), at: usize, json in oracle::doc(false)) {
        let _ = Packet::from_value(bytes.into());
        if let Ok(mut spoiled) = value_of(json.text.as_bytes()) {
            let at = at % spoiled.len();
            spoiled[at] ^= 0x83;
            if let Ok(packet) = Packet::from_value(spoiled.into()) {
                for path in PATHS {
                    let _ = packet.token(path);
                }
                let _ = packet.to_text();
            }
        }
    }
}

#[test]
fn messages_and_batches_that_no_generator_is_sure_to_make() {
    for json in [
        r#"{"id":1,"method":"m"}"#,
        r#"{"id":"","method":"\u0074ool","params":{"_meta":{"progressToken":1},"_meta":{"progressToken":2}}}"#,
        r#"{"id":null,"error":{"code":1}}"#,
        r#"{"id":null,"method":"m"}"#,
        r#"{"id":[],"method":"m"}"#,
        r#"{"id":true}"#,
        r#"{"id":1,"id":1,"method":"m"}"#,
        r#"{"id":1,"method":1,"params":{}}"#,
        r#"{"error":1}"#,
        r#"{"x":1}"#,
        "{}",
        "[]",
        "[[]]",
        "7",
        r#""x""#,
        r#"[{"id":1,"method":"m"},{"method":"n"},{"id":"x","result":[1,{"id":2}]}]"#,
        r#"[{"id":1,"method":"m"},{"id":2,"method":null}]"#,
        r#"[{"id":1,"method":"m"},7,{"x":1}]"#,
    ] {
        assert!(compare(json), "{json}");
        assert!(compare(&format!("{json} ")), "{json}");
    }
}

#[test]
fn an_id_is_measured_as_text() {
    let id = |fill: &str, count: usize| format!(r#"{{"id":"{}","method":"m"}}"#, fill.repeat(count));
    let fits = limits::MAX_ID - 2;
    assert!(compare(&id("x", fits)) && compare(&id("x", fits + 1)));
    assert_eq!(value(&id("\\u0001", fits / 6)).id().unwrap().len(), fits / 6 * 6 + 2);
    let bytes = value_of(id("\\u0001", fits / 6 + 1).as_bytes()).unwrap();
    let refused = Packet::from_value(bytes.into()).unwrap_err().0;
    assert_eq!(refused, Refused { reason: Reason::LongId, id: None, has_method: true });
}

#[test]
fn one_line_feed_may_follow_a_value_and_stays() {
    let bytes = Bytes::from_static(b"\xe7\x02\x04\xe3\x02\x0a\xe4\x0a\n");
    let packet = Packet::from_value(bytes.clone()).unwrap();
    assert_eq!(packet.bytes(), &bytes);
    assert_eq!(packet.method().as_deref(), Some("method"));
    assert_eq!(&packet.to_text().unwrap().bytes()[..], br#"{"id":1,"method":"method"}"#);
    let bytes = Bytes::from_static(b"\xe7\x02\x04\xe3\x02\x0a\xe4\x0a");
    assert!(Packet::from_value(bytes).unwrap().method_is("method"));
    let refused = Packet::from_value(Bytes::from_static(b"\xe7\x01\x04\xe3\x02\n\n")).unwrap_err().0;
    assert_eq!(refused, Refused { reason: Reason::NotValue { at: 6 }, id: None, has_method: false });
}

fn edits_of(at: usize) -> Edits {
    Edits::put(&[&["id"], PROGRESS_TOKEN], FILLS[at % FILLS.len()].text)
}

#[test]
fn edits_leave_every_other_byte_as_it_came_in_either_encoding() {
    let mut random = Random::new(1);
    for at in 0..2_000 {
        let sample = Sample::new(&mut random);
        let (id, token) = (&FILLS[random.below(FILLS.len())], &FILLS[random.below(FILLS.len())]);
        let new = &FILLS[at % FILLS.len()];
        let text = text(&sample.text(id, token));
        let value = Packet::from_value(sample.value(id, token).into()).unwrap();
        assert_same(&text, &value);
        assert_eq!(text.has(PROGRESS_TOKEN), sample.has_token);
        let edits = edits_of(at);
        let edited = text.edited(&edits).unwrap();
        assert_eq!(edited.bytes(), sample.text(new, new).as_bytes());
        let Packet::Value(message) = &value else { panic!() };
        let patches = edits.in_value(message, &Profile::EXACT, &mut Transcoder::new()).unwrap();
        let mut out = BytesMut::new();
        apply(message.bytes(), &patches, &mut out);
        assert_eq!(out, sample.value(new, new));
        assert_eq!(patches.patched_len(message.bytes().len()), out.len());
        // By way of text it says the same, and the tokens are spelled as they were given.
        let written = value.edited(&edits).unwrap();
        assert_eq!(value_of(written.bytes()), value_of(edited.bytes()));
        assert_eq!(written.id(), Some(new.text.as_bytes()));
    }
}

#[test]
fn what_is_not_there_is_not_exchanged() {
    let edits = Edits::put(&[&["params", "requestId"], &["id"]], "8");
    for (before, after) in [
        (r#"{"method":"m","params":{}}"#, r#"{"method":"m","params":{}}"#),
        (r#"{"method":"m","params":[]}"#, r#"{"method":"m","params":[]}"#),
        (r#"{"id":1,"method":"m"}"#, r#"{"id":8,"method":"m"}"#),
        (r#"{"method":"m","params":{"requestId":1}}"#, r#"{"method":"m","params":{"requestId":8}}"#),
        (r#"[{"id":1,"method":"m"}]"#, r#"[{"id":1,"method":"m"}]"#),
    ] {
        for packet in [text(before), value(before)] {
            assert_eq!(packet.edited(&edits).unwrap().bytes(), after);
        }
    }
}

#[test]
fn edits_tell_what_is_put_where() {
    let edits = Edits::put(&[&["id"], PROGRESS_TOKEN], "22");
    assert_eq!(edits.token(&["id"]).map(|token| &token[..]), Some(&b"22"[..]));
    assert_eq!((edits.token(&["x"]), edits.token_len()), (None, 2));
    assert!(!edits.is_empty() && Edits::none().is_empty());
}

#[test]
fn what_a_receiver_does_not_get_out_of_a_value_is_not_put_into_one() {
    let Packet::Value(message) = value(r#"{"id":1,"method":"m"}"#) else { panic!() };
    let fits = |token: &'static str, profile: &Profile| {
        Edits::put(&[&["id"]], token).in_value(&message, profile, &mut Transcoder::new()).is_some()
    };
    for (token, taken) in [
        ("1", [true; 3]),
        (r#""x""#, [true; 3]),
        ("1.5", [true; 3]),
        ("1e0", [true, false, false]),
        ("2147483648", [true, true, false]),
        ("\"\u{feff}\"", [true, true, false]),
        ("12345678901234567890", [false; 3]),
        ("1e400", [false; 3]),
        (r#""\ud800""#, [false; 3]),
        ("[]", [false; 3]),
    ] {
        let profiles = [Profile::EXACT, Profile::RS, Profile::TS];
        assert_eq!(profiles.map(|profile| fits(token, &profile)), taken, "{token}");
    }
}

#[test]
fn small_elements_of_a_batch_do_not_keep_it_in_memory() {
    let long = "x".repeat(limits::COPY_BELOW);
    let json = format!(r#"[{{"id":1,"result":1}},{{"id":2,"result":"{long}"}}]"#);
    for packet in [text(&json), value(&json)] {
        let within = packet.bytes().as_ptr_range();
        let slices: Vec<_> =
            packet.batch().map(|element| within.contains(&element.bytes().as_ptr())).collect();
        assert_eq!(slices, [false, true]);
    }
}
