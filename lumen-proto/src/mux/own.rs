//! Messages of our own. All of them are small, and none is a message of somebody else made anew.

use alloc::format;
use alloc::string::String;
use core::fmt::Display;

use bytes::Bytes;

use crate::Reason;
use crate::idmap::WireId;
use crate::jsonrpc::{Message, find, reply};
use crate::mcp::{Level, Revision};
use crate::message::Packet;

/// What comes and goes with lists that a server announces changes of.
const LISTS: [(&str, &str); 3] = [
    ("tools", "notifications/tools/list_changed"),
    ("prompts", "notifications/prompts/list_changed"),
    ("resources", "notifications/resources/list_changed"),
];

/// Checks a text of ours. `None` only if a part of it is no JSON, which no part that was read is.
fn packet(text: String) -> Option<Packet> {
    Message::parse(Bytes::from(text)).ok().map(Packet::from)
}

fn text(token: &[u8]) -> &str {
    core::str::from_utf8(token).unwrap_or("null")
}

pub(super) fn error(id: Option<&[u8]>, reason: &Reason, detail: Option<&str>) -> Option<Packet> {
    Message::parse(reply::error(id, reason, detail)).ok().map(Packet::from)
}

/// The answer that says nothing.
pub(super) fn empty_result(id: &[u8]) -> Option<Packet> {
    result(id, "{}")
}

/// `result` is a JSON text.
pub(super) fn result(id: &[u8], result: &str) -> Option<Packet> {
    packet(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, text(id)))
}

/// Our handshake. A shared server is told all that some client may be able to do.
pub(super) fn initialize(id: WireId) -> Option<Packet> {
    packet(format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"initialize","params":{{"protocolVersion":"{}","#,
            r#""capabilities":{{"roots":{{"listChanged":true}},"sampling":{{}},"elicitation":{{}}}},"#,
            r#""clientInfo":{{"name":"lumen","version":"{}"}}}}}}"#
        ),
        id,
        Revision::NEWEST_LEGACY.as_str(),
        env!("CARGO_PKG_VERSION"),
    ))
}

pub(crate) fn notification(method: &str) -> Option<Packet> {
    packet(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#))
}

/// `id` is a JSON token.
pub(crate) fn cancelled(id: &[u8], reason: &str) -> Option<Packet> {
    packet(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"{reason}"}}}}"#,
        text(id),
    ))
}

/// `uri` is a JSON token.
pub(crate) fn resource(id: impl Display, method: &str, uri: &[u8]) -> Option<Packet> {
    packet(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"uri":{}}}}}"#, text(uri),))
}

pub(crate) fn set_level(id: impl Display, level: Level) -> Option<Packet> {
    packet(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"logging/setLevel","params":{{"level":"{}"}}}}"#,
        level.as_str(),
    ))
}

/// What tells a client that lists may have changed, of a server that said in this answer to a handshake that it would
/// tell.
pub(crate) fn list_changes(answer: &Message) -> impl Iterator<Item = Packet> {
    let result = answer.envelope().result;
    let announces = move |name| {
        let at =
            result.and_then(|result| find(answer.bytes(), result, &["capabilities", name, "listChanged"]));
        at.is_some_and(|at| at.of(answer.bytes()) == b"true")
    };
    LISTS.into_iter().filter(move |(name, _)| announces(*name)).filter_map(|(_, method)| notification(method))
}
