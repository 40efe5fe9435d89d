//! Ready-made parties: servers and clients that speak JSON lines or LUMEN frames, with every bad manner.
//!
//! They read and write bytes by themselves, with serde_json and the few lines in [`super::wire`]: a fake that
//! shared code with the machine it is put against could share its mistakes.

use std::cell::RefCell;
use std::rc::Rc;

use lumen_proto::Instant;
use serde_json::{Value, json};

use super::wire;

mod client;
mod json_server;
mod lumen_server;
mod mcp_server;
#[cfg(test)]
mod tests;

pub use client::{Got, JsonClient, LumenClient};
pub use json_server::{JsonServer, Manners};
pub use lumen_server::LumenServer;
pub use mcp_server::{Life, McpServer, McpWitness, Nature};

/// The key of the offer.
pub const OFFER: &str = "dev.lumen/transport";

/// The opening probe as a client must send it.
pub const OPENING_PROBE: &[u8] = b"\x2b\x0f\x00{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n";

/// What the servers of one test saw, over all their starts.
#[derive(Debug, Default)]
pub struct Seen {
    /// When each of them started.
    pub starts: Vec<Instant>,
    /// JSON messages that came as lines, without their line feed.
    pub lines: Vec<(Instant, String)>,
    /// JSON messages that came as frames.
    pub frames: Vec<(Instant, String)>,
    /// Probes.
    pub probes: Vec<Instant>,
    /// Lines that are no JSON, without their line feed.
    pub foreign: Vec<Vec<u8>>,
    /// Ends of input.
    pub eofs: Vec<Instant>,
    /// SIGTERMs.
    pub terms: Vec<Instant>,
}

/// Shared by a test and its servers.
pub type Witness = Rc<RefCell<Seen>>;

impl Seen {
    /// Returns the messages of both carriers, as they came.
    pub fn messages(&self) -> Vec<&str> {
        self.lines.iter().chain(&self.frames).map(|(_, text)| text.as_str()).collect()
    }
}

/// Answers a request as a small MCP server does; `None` for anything that is none.
///
/// `tools/call` answers with the arguments as text, and with `pad` bytes more.
fn answer(text: &[u8], echo_offer: bool, pad: usize) -> Option<Vec<u8>> {
    let message: Value = serde_json::from_slice(text).ok()?;
    let (id, method) = (message.get("id")?, message.get("method")?.as_str()?);
    let params = message.get("params").cloned().unwrap_or_default();
    let result = match method {
        "initialize" => {
            let offered =
                params.pointer("/capabilities/extensions").is_some_and(|known| known.get(OFFER).is_some());
            let mut capabilities = json!({"tools": {}});
            if offered && echo_offer {
                capabilities["extensions"] = json!({OFFER: {"v": 1, "caps": []}});
            }
            json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": capabilities,
                "serverInfo": {"name": "scripted", "version": "1"},
            })
        }
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            let text = params["arguments"].to_string() + &"p".repeat(pad);
            json!({"content": [{"type": "text", "text": text}]})
        }
        "ping" => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into_bytes());
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string().into_bytes())
}

fn line(mut text: Vec<u8>) -> Vec<u8> {
    text.push(b'\n');
    text
}

/// What the front of a stream is.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// A line that begins with `{` or `[`.
    Line(Vec<u8>),
    /// A line that begins with something that starts no frame either.
    Noise(Vec<u8>),
    Frame(u8, u8, Vec<u8>),
}

/// Cuts a stream that may hold both lines and frames.
#[derive(Debug, Default)]
struct Cutter {
    bytes: Vec<u8>,
    /// So many of them were looked at for a line feed.
    scanned: usize,
}

impl Cutter {
    fn push(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    fn next(&mut self) -> Option<Piece> {
        let first = *self.bytes.first()?;
        if wire::starts_frame(first) {
            let frame = wire::parse(&self.bytes)?;
            let piece = Piece::Frame(frame.kind, frame.flags, frame.payload.to_vec());
            let total = frame.total;
            self.bytes.drain(..total);
            return Some(piece);
        }
        let Some(end) = self.bytes[self.scanned..].iter().position(|&byte| byte == b'\n') else {
            self.scanned = self.bytes.len();
            return None;
        };
        let mut text: Vec<u8> = self.bytes.drain(..=self.scanned + end).collect();
        self.scanned = 0;
        text.pop();
        Some(if matches!(first, b'{' | b'[') { Piece::Line(text) } else { Piece::Noise(text) })
    }

    fn rest(&self) -> usize {
        self.bytes.len()
    }
}
