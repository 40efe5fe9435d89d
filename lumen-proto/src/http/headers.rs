//! The headers that the session decides.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;

use super::post::Post;
use super::sentinel;
use super::tools::Tools;
use crate::jsonrpc::{Kind, Message, Span, decode_str, find};

/// Names and values.
pub(super) type Headers = Vec<(Cow<'static, str>, String)>;

/// The member of a modern message's `_meta` that tells its version.
const VERSION: [&str; 2] = ["_meta", "io.modelcontextprotocol/protocolVersion"];

/// Returns what every POST has.
pub(super) fn post() -> Headers {
    let mut headers = Headers::new();
    add(&mut headers, "accept", "application/json, text/event-stream");
    add(&mut headers, "content-type", "application/json");
    headers
}

/// Adds one.
pub(super) fn add(headers: &mut Headers, name: &'static str, value: &str) {
    headers.push((Cow::Borrowed(name), value.to_owned()));
}

/// Adds the headers of a modern message: its version, its method, what it is about, and arguments that the tool wants
/// there. `version` is for a message that does not say its own.
pub(super) fn add_modern(headers: &mut Headers, post: &Post, version: Option<&str>, tools: &Tools) {
    let message = &post.message;
    if let Some(version) =
        modern_version(message).as_deref().or(version).filter(|text| sentinel::is_safe(text))
    {
        add(headers, "mcp-protocol-version", version);
    }
    let Some(method) = post.method() else { return };
    let name = match &*method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    };
    let is_call = method == "tools/call";
    headers.push((Cow::Borrowed("mcp-method"), sentinel::escape(method)));
    let (Some(params), Some(name)) = (message.envelope().params, name) else { return };
    let name = find(message.bytes(), params, &[name]).and_then(|name| decode_str(name.of(message.bytes())));
    if let Some(name) = name {
        headers.push((Cow::Borrowed("mcp-name"), sentinel::escape(name)));
    }
    if is_call {
        tools.mirror(message.bytes(), params, headers);
    }
}

/// Returns the version that a request says it is made in, which only modern ones do.
pub(super) fn modern_version(message: &Message) -> Option<Cow<'_, str>> {
    if message.kind() != Kind::Request {
        return None;
    }
    let version = find(message.bytes(), message.envelope().params?, &VERSION)?;
    decode_str(version.of(message.bytes()))
}

/// Returns where a request's `_meta` is.
pub(super) fn meta(message: &Message) -> Option<Span> {
    find(message.bytes(), message.envelope().params?, &["_meta"])
}
