//! Messages of our own. All of them are small, and none is a message of somebody else made anew.

use alloc::format;
use alloc::string::String;

use bytes::Bytes;

use crate::Reason;
use crate::idmap::WireId;
use crate::jsonrpc::{Message, reply};
use crate::mcp::{Level, Revision};
use crate::message::Packet;

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

pub(super) fn notification(method: &str) -> Option<Packet> {
    packet(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#))
}

/// `id` is a JSON token.
pub(super) fn cancelled(id: &[u8], reason: &str) -> Option<Packet> {
    packet(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"{reason}"}}}}"#,
        text(id),
    ))
}

/// `uri` is a JSON token.
pub(super) fn resource(id: WireId, method: &str, uri: &[u8]) -> Option<Packet> {
    packet(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"uri":{}}}}}"#, text(uri),))
}

pub(super) fn set_level(id: WireId, level: Level) -> Option<Packet> {
    packet(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"logging/setLevel","params":{{"level":"{}"}}}}"#,
        level.as_str(),
    ))
}
