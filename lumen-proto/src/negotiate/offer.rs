//! The offer: LUMEN asked for inside an ordinary handshake, as an extension capability.
//!
//! It is hop by hop. Whoever relays takes out the one it received and adds its own, in the request as in the
//! answer. The place depends on the revision: `initialize` has it in `params.capabilities`, `server/discover` in
//! `params._meta`, and both answers in `result.capabilities`.

use bytes::{Bytes, BytesMut};

use super::Hello;
use crate::jsonrpc::{
    Member, Message, Patch, Patches, Span, apply, find, insert_member, members, remove_member, text_is,
};

/// The name of the extension.
pub const KEY: &str = "dev.lumen/transport";

const INITIALIZE: &[&str] = &["capabilities", "extensions"];
const DISCOVER: &[&str] = &["_meta", "io.modelcontextprotocol/clientCapabilities", "extensions"];

/// The methods of the requests that open an MCP session and may carry the offer.
pub const METHODS: [&str; 2] = ["initialize", "server/discover"];

/// Returns the handshake request with our offer in it, instead of any that it had.
pub fn add(message: &Message) -> Option<Message> {
    let path = place(message)?;
    put(message, message.envelope().params?, path)
}

/// Returns the handshake request without the offer it carried, and what that said. `None` if it had none.
pub fn take(message: &Message) -> Option<(Message, Hello)> {
    let path = place(message)?;
    cut(message, message.envelope().params?, path)
}

/// Returns the answer to a handshake with our echo in it.
pub fn add_echo(message: &Message) -> Option<Message> {
    put(message, message.envelope().result?, INITIALIZE)
}

/// Returns the answer to a handshake without the echo it carried, and what that said.
pub fn take_echo(message: &Message) -> Option<(Message, Hello)> {
    cut(message, message.envelope().result?, INITIALIZE)
}

fn place(message: &Message) -> Option<&'static [&'static str]> {
    METHODS
        .into_iter()
        .zip([INITIALIZE, DISCOVER])
        .find(|(method, _)| message.method_is(method))
        .map(|(_, place)| place)
}

/// Puts our hello at `path` below `within`, making the objects that are missing. Refuses, by `None`, a place
/// that is taken by something else than an object: the message then goes as it is.
fn put(message: &Message, within: Span, path: &[&str]) -> Option<Message> {
    let text = message.bytes();
    let mut object = within;
    let mut depth = 0;
    for name in path {
        match find(text, object, &[name]) {
            Some(found) => object = found,
            None => break,
        }
        depth += 1;
    }
    if object.of(text).first() != Some(&b'{') {
        return None;
    }
    let hello = Hello::OURS.to_text();
    let missing = path.get(depth..).unwrap_or_default();
    if missing.is_empty()
        && let Some(taken) = find(text, object, &[KEY])
    {
        return spliced(text, Patch { at: taken, with: Bytes::from(hello).into() });
    }
    // The innermost member first: {"a":{"b":{KEY:hello}}}.
    let mut key = KEY;
    let mut value = hello;
    for name in missing.iter().rev() {
        value = alloc::format!("{{\"{key}\":{value}}}");
        key = name;
    }
    spliced(text, insert_member(text, object, key, value.as_bytes()))
}

fn cut(message: &Message, within: Span, path: &[&str]) -> Option<(Message, Hello)> {
    let mut stripped = message.clone();
    let mut hello = None;
    // Should the key stand there twice, none of them may be forwarded.
    while let Some(next) = cut_one(&stripped, within.start(), path) {
        stripped = next.0;
        hello = Some(next.1);
    }
    hello.map(|hello| (stripped, hello))
}

/// Takes out one. Params or result are named by their `start`: their end moves with every cut.
fn cut_one(message: &Message, start: usize, path: &[&str]) -> Option<(Message, Hello)> {
    let text = message.bytes();
    let envelope = message.envelope();
    let within =
        [envelope.params, envelope.result].into_iter().flatten().find(|part| part.start() == start)?;
    let object = find(text, within, path)?;
    let member = members(text, object).find(|member| text_is(member.key.of(text), KEY))?;
    let hello = Hello::from_text(member.value.of(text)).unwrap_or_default();
    let patch = made_for_it(text, within, path, object).map_or_else(
        || remove_member(text, object, &member),
        |(outer, whole)| remove_member(text, outer, &whole),
    );
    Some((spliced(text, patch)?, hello))
}

/// Returns the object that holds `extensions` at the end of `path`, and that member, if it looks as if it had been
/// made for the offer alone: nothing else in it, and in the last place, where [`put`] makes it. It then goes with the
/// offer, so that what one hop adds and the next takes out leaves nothing behind.
fn made_for_it(text: &[u8], within: Span, path: &[&str], extensions: Span) -> Option<(Span, Member)> {
    let (_, outer) = path.split_last()?;
    let outer = find(text, within, outer)?;
    let last = members(text, outer).last().filter(|member| member.value == extensions)?;
    (members(text, extensions).count() == 1).then_some((outer, last))
}

fn spliced(text: &[u8], patch: Patch) -> Option<Message> {
    let mut patches = Patches::new();
    patches.try_add(patch).ok()?;
    let mut out = BytesMut::new();
    apply(text, &patches, &mut out);
    Message::parse(out.freeze()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiate::Caps;

    fn message(text: &str) -> Message {
        Message::copy_from(text.as_bytes()).unwrap()
    }

    fn text(message: &Message) -> &str {
        core::str::from_utf8(message.bytes()).unwrap()
    }

    const BARE: &str = r#"{"id":1,"method":"initialize","params":{"capabilities":{}}}"#;

    #[test]
    fn added_where_it_belongs_and_taken_out_again_byte_for_byte() {
        for bare in [
            r#"{"id":1,"method":"initialize","params":{"capabilities":{}}}"#,
            r#"{"id":1,"method":"initialize","params":{"capabilities":{"roots":{}, "x":1 }}}"#,
            r#"{"id":1,"method":"initialize","params":{"capabilities":{"extensions":{},"roots":{}}}}"#,
            r#"{"id":1,"method":"initialize","params":{"capabilities":{"extensions":{"x":{"y":1}},"roots":{}},"z":1.0}}"#,
            r#"{"id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"x":{}}}}}"#,
        ] {
            let offered = add(&message(bare)).unwrap();
            assert!(
                text(&offered).contains(r#""dev.lumen/transport":{"v":1,"caps":["#),
                "{}",
                text(&offered)
            );
            let (stripped, hello) = take(&offered).unwrap();
            assert_eq!(text(&stripped), bare);
            assert_eq!(hello.caps, Caps::OURS);
            assert!(take(&stripped).is_none());
        }
    }

    #[test]
    fn missing_objects_are_made() {
        let offered = add(&message(BARE)).unwrap();
        assert_eq!(
            text(&offered),
            r#"{"id":1,"method":"initialize","params":{"capabilities":{"extensions":{"dev.lumen/transport":{"v":1,"caps":["compression","exact"]}}}}}"#
        );
        assert_eq!(text(&take(&offered).unwrap().0), BARE);
        let discover = add(&message(r#"{"id":1,"method":"server/discover","params":{}}"#)).unwrap();
        assert!(
            text(&discover)
                .contains(r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":"#)
        );
    }

    #[test]
    fn a_foreign_offer_is_replaced_and_a_doubled_one_never_forwarded() {
        let foreign = r#"{"id":1,"method":"initialize","params":{"capabilities":{"extensions":{"dev.lumen/transport":{"v":1,"caps":["streaming"]}}}}}"#;
        let ours = add(&message(foreign)).unwrap();
        assert_eq!(text(&ours).matches(KEY).count(), 1);
        assert!(!text(&ours).contains("streaming"));
        let doubled = r#"{"id":1,"method":"initialize","params":{"capabilities":{"extensions":{"dev.lumen/transport":1, "a":2 , "d\u0065v.lumen/transport":{"v":1,"caps":["exact"]}}}}}"#;
        let (stripped, hello) = take(&message(doubled)).unwrap();
        assert_eq!(
            text(&stripped),
            r#"{"id":1,"method":"initialize","params":{"capabilities":{"extensions":{ "a":2 }}}}"#
        );
        assert_eq!(hello.caps, Caps::EXACT);
    }

    #[test]
    fn odd_handshakes_and_other_messages_stay_as_they_are() {
        for odd in [
            r#"{"id":1,"method":"initialize","params":{"capabilities":{"extensions":[]}}}"#,
            r#"{"id":1,"method":"initialize","params":{"capabilities":7}}"#,
            r#"{"id":1,"method":"initialize"}"#,
            r#"{"id":1,"method":"tools/call","params":{"capabilities":{}}}"#,
        ] {
            assert!(add(&message(odd)).is_none() && take(&message(odd)).is_none(), "{odd}");
        }
    }

    #[test]
    fn the_echo_rides_on_results_only() {
        let answer = message(r#"{"id":1,"result":{"capabilities":{"tools":{}},"serverInfo":{}}}"#);
        let echoed = add_echo(&answer).unwrap();
        let (stripped, _) = take_echo(&echoed).unwrap();
        assert_eq!(stripped, answer);
        assert!(add_echo(&message(r#"{"id":1,"error":{"code":1,"message":""}}"#)).is_none());
    }
}
