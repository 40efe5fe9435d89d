//! Messages: what goes in comes out, and as a line it is one line.

use super::*;
use crate::Reason;
use crate::jsonrpc::{IdKey, Patch};

fn message(text: &str) -> Message {
    Message::copy_from(text.as_bytes()).unwrap()
}

fn line(message: &Message, patches: &Patches) -> BytesMut {
    let mut out = BytesMut::from(&b"before\n"[..]);
    message.write_line(patches, &mut out);
    out.split_off(7)
}

#[test]
fn parts_are_as_spelled() {
    let bytes = Bytes::from_static(br#" {"id":1.0,"method":"tools\/call","params":{"a":1e400}} "#);
    let message = Message::parse(bytes.clone()).unwrap();
    assert_eq!(message.bytes().as_ptr(), bytes.as_ptr());
    assert_eq!(message.kind(), Kind::Request);
    assert_eq!(message.id(), Some(&b"1.0"[..]));
    assert_eq!(message.params(), Some(&br#"{"a":1e400}"#[..]));
    assert!(message.method_is("tools/call") && !message.method_is("tools"));
    assert_eq!((message.len(), message.is_empty()), (bytes.len(), false));
    let Err((refused, back)) = Message::parse(Bytes::from_static(b"{}")) else { panic!("no message") };
    assert_eq!(
        (refused.reason, &back[..]),
        (Reason::NotJsonRpc("no method, id, result or error"), &b"{}"[..])
    );
}

#[test]
fn a_line_is_the_same_bytes() {
    // O-13.
    let text = r#"{"id":12345678901234567890,"result":{"a":9007199254740993,"a":725653563933458432,"b":[1e400,1.0,-0]}}"#;
    let message = message(text);
    assert_eq!(message.id(), Some(&b"12345678901234567890"[..]));
    let mut out = BytesMut::new();
    message.write_text(&Patches::new(), &mut out);
    assert_eq!(out, text);
    out.extend_from_slice(b"\n");
    assert_eq!(line(&message, &Patches::new()), out);
}

#[test]
fn raw_line_ends_become_spaces_in_a_line_only() {
    let text = "\r\n{\"id\":1,\n\"result\":\"\\n\u{2028}\"\r}\n";
    let message = message(text);
    let mut out = BytesMut::new();
    message.write_text(&Patches::new(), &mut out);
    assert_eq!(out, text);
    assert_eq!(line(&message, &Patches::new()), "  {\"id\":1, \"result\":\"\\n\u{2028}\" } \n");
    // Also those that a patch brings.
    let message = self::message(r#"{"id":1,"result":0}"#);
    let mut patches = Patches::new();
    let with = Bytes::from_static(b"[\n1,\r2]");
    patches.try_add(Patch { at: message.envelope().result.unwrap(), with: with.into() }).unwrap();
    assert_eq!(line(&message, &patches), "{\"id\":1,\"result\":[ 1, 2]}\n");
}

#[test]
fn ids_of_two_clients_go_out_and_come_back_as_spelled() {
    // O-14: every id leaves as a number of ours and comes back as its owner wrote it.
    let ids = ["1", "\"1\"", r#""a\"b\\""#, "1", "\"1\""];
    for (wire, id) in ids.iter().enumerate() {
        let request = message(&std::format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#));
        let mut patches = Patches::new();
        let with = Bytes::from(std::format!("{wire}"));
        patches.try_add(Patch { at: request.envelope().id.unwrap(), with: with.into() }).unwrap();
        let sent = std::format!("{{\"jsonrpc\":\"2.0\",\"id\":{wire},\"method\":\"m\"}}\n");
        assert_eq!(line(&request, &patches), sent.as_bytes());

        let answer = message(&std::format!(r#"{{"result":{{"id":9}},"id":{wire}}}"#));
        let mut patches = Patches::new();
        let with = Bytes::copy_from_slice(request.id().unwrap());
        patches.try_add(Patch { at: answer.envelope().id.unwrap(), with: with.into() }).unwrap();
        let returned = std::format!("{{\"result\":{{\"id\":9}},\"id\":{id}}}\n");
        assert_eq!(line(&answer, &patches), returned.as_bytes());
    }
    assert_ne!(IdKey::from_token(b"1"), IdKey::from_token(b"\"1\""));
}

#[test]
fn what_is_noted_of_meta_is_what_a_search_finds() {
    for text in [
        r#"{"method":"a","params":{"_meta":{"t":1},"x":{"_meta":{"t":2}}},"result":{"_meta":{"t":3}}}"#,
        r#"{"method":"a","params":{"_meta":{"t":1},"\u005fmeta":{"t":2},"_metA":{"t":3}}}"#,
        r#"{"method":"a","params":{"_meta":[]},"id":1}"#,
        r#"{"method":"a","params":[{"_meta":{"t":1}}],"id":1}"#,
        r#"{"method":"a","params":{},"id":1}"#,
        r#"{"method":"a","id":1,"_meta":{"t":1}}"#,
        r#"{"id":1,"result":{"_meta":{"t":1}},"params":{"_meta":{"t":2}}}"#,
        r#"{"id":1,"error":{"_meta":{"t":1}}}"#,
        r#"[{"id":1,"method":"a","params":{"_meta":{"t":1}}}]"#,
    ] {
        let message = Message::copy_from(text.as_bytes()).unwrap();
        for part in ["params", "result", "error"] {
            for path in [&[part, "_meta"][..], &[part, "_meta", "t"]] {
                let searched = path::find(text.as_bytes(), message.envelope().body, path);
                assert_eq!(message.find(path), searched, "{path:?} in {text}");
            }
        }
    }
}
