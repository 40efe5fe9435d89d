//! A server that is strict about MCP, of either era or both, and does on a call what the call says.
//!
//! What it cannot be asked for, a test has it do through [`World::tell`](crate::sim::World::tell).

use std::cell::RefCell;
use std::rc::Rc;

use lumen_proto::{Exit, Instant};
use serde_json::{Value, json};

use super::{Cutter, OFFER, Piece, line};
use crate::sim::party::{Outbox, Party};
use crate::sim::wire::{self, PROBE, PROBE_ACK};

const META: &str = "io.modelcontextprotocol/";

/// What a server is like. The default is a good legacy one that knows nothing of LUMEN.
#[derive(Clone, Debug)]
pub struct Nature {
    /// Serves the revisions with a handshake.
    pub legacy: bool,
    /// Serves the revision without one.
    pub modern: bool,
    /// The revision it agrees to in a handshake, whatever was asked for.
    pub revision: &'static str,
    /// Its capabilities.
    pub capabilities: Value,
    /// Answers a handshake with this error.
    pub refuses: Option<Value>,
    /// Does not answer the handshake.
    pub ignores: bool,
    /// Leaves requests of this method unanswered.
    pub deaf_to: &'static str,
    /// Exits at a method that it does not know.
    pub fragile: bool,
    /// Exits as soon as it has had so many messages, instead of taking the last of them.
    pub dies_at: Option<usize>,
    /// Acknowledges a probe and speaks frames.
    pub lumen: bool,
    /// Exits at a line that is no JSON.
    pub probe_kills: bool,
    /// Echoes an offer.
    pub echo_offer: bool,
}

impl Default for Nature {
    fn default() -> Self {
        Self {
            legacy: true,
            modern: false,
            revision: "2025-11-25",
            capabilities: json!({
                "tools": {"listChanged": true},
                "resources": {"subscribe": true, "listChanged": true},
                "prompts": {"listChanged": false},
                "logging": {},
            }),
            refuses: None,
            ignores: false,
            deaf_to: "",
            fragile: false,
            dies_at: None,
            lumen: false,
            probe_kills: false,
            echo_offer: false,
        }
    }
}

impl Nature {
    /// Makes a good modern one.
    pub fn modern() -> Self {
        Self { legacy: false, modern: true, ..Self::default() }
    }
}

/// One start of a server, as it saw it.
#[derive(Debug)]
pub struct Life {
    /// When it began.
    pub start: Instant,
    /// What it was sent, without line feeds, and whether that came in a frame.
    pub texts: Vec<(Instant, String, bool)>,
    /// Lines that are no JSON.
    pub foreign: usize,
    /// What it found wrong in that.
    pub faults: Vec<String>,
}

impl Life {
    /// Returns the messages, parsed.
    ///
    /// # Panics
    /// If one is no JSON.
    pub fn values(&self) -> Vec<Value> {
        self.texts.iter().map(|(_, text, _)| serde_json::from_str(text).expect("JSON")).collect()
    }

    /// Returns the messages with this method, parsed.
    pub fn with_method(&self, method: &str) -> Vec<Value> {
        self.values().into_iter().filter(|value| value["method"] == method).collect()
    }

    /// Returns the id of the n-th call of this tool, as JSON text.
    ///
    /// # Panics
    /// If there was none.
    pub fn id_of(&self, tool: &str, nth: usize) -> String {
        let calls = self.with_method("tools/call").into_iter();
        let mut calls = calls.filter(|call| call["params"]["name"] == tool);
        calls.nth(nth).expect("a call")["id"].to_string()
    }
}

/// All starts, shared by a test and its servers.
pub type McpWitness = Rc<RefCell<Vec<Life>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    /// The handshake was answered.
    Greeted,
    /// And that was confirmed.
    Legacy,
    Modern,
}

/// The server.
pub struct McpServer {
    nature: Nature,
    seen: McpWitness,
    life: usize,
    cutter: Cutter,
    framed: bool,
    state: State,
    had: usize,
    /// Calls of `later`, not answered yet.
    pending: Vec<Value>,
}

impl McpServer {
    /// Makes one that tells `seen` what it sees.
    pub fn new(nature: Nature, seen: &McpWitness) -> Self {
        Self {
            nature,
            seen: McpWitness::clone(seen),
            life: 0,
            cutter: Cutter::default(),
            framed: false,
            state: State::Fresh,
            had: 0,
            pending: Vec::new(),
        }
    }

    fn fault(&self, what: String) {
        self.seen.borrow_mut()[self.life].faults.push(what);
    }

    fn say(&self, message: &Value, out: &mut Outbox) {
        let text = message.to_string().into_bytes();
        let kind = match (message.get("method"), message.get("id")) {
            (None, _) => wire::RESPONSE,
            (Some(_), None) => wire::NOTIFY,
            (Some(_), Some(_)) => wire::REQUEST,
        };
        out.send(if self.framed { wire::frame(kind, 0, &text) } else { line(text) });
    }

    fn answer(&self, id: &Value, result: &Value, out: &mut Outbox) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}), out);
    }

    fn refuse(&self, id: &Value, code: i64, out: &mut Outbox) {
        let error = json!({"code": code, "message": "no"});
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}), out);
    }

    fn on_text(&mut self, now: Instant, text: &[u8], framed: bool, out: &mut Outbox) {
        if self.nature.dies_at == Some(self.had) {
            out.die(Exit::Code(1));
            return;
        }
        self.had += 1;
        let text = String::from_utf8(text.to_vec()).expect("UTF-8");
        // Numbers that no f64 holds are JSON, but not to this parser.
        let message: Value = serde_json::from_str(&text).unwrap_or_default();
        self.seen.borrow_mut()[self.life].texts.push((now, text, framed));
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.on_request(method, id, &message["params"], out),
            (Some(method), None) => self.on_notification(method, out),
            (None, _) => {}
        }
    }

    fn on_notification(&mut self, method: &str, out: &mut Outbox) {
        match (method, self.state) {
            ("notifications/initialized", State::Greeted) => self.state = State::Legacy,
            ("notifications/initialized", state) => self.fault(format!("{method} when {state:?}")),
            (_, State::Fresh | State::Greeted) => {
                self.fault(format!("{method} when {:?}", self.state));
                if self.nature.fragile {
                    out.die(Exit::Code(1));
                }
            }
            _ => {}
        }
    }

    fn on_request(&mut self, method: &str, id: &Value, params: &Value, out: &mut Outbox) {
        if !id.is_u64() {
            self.fault(format!("id {id}"));
        }
        let is_modern = params["_meta"].get(format!("{META}protocolVersion")).is_some();
        match (method, self.state) {
            ("initialize", State::Fresh) if self.nature.legacy => self.on_initialize(id, params, out),
            ("initialize", State::Modern | State::Fresh) => self.refuse(id, -32022, out),
            ("initialize", state) => {
                self.fault(format!("initialize when {state:?}"));
                self.refuse(id, -32600, out);
            }
            (_, State::Fresh | State::Modern) if is_modern && self.nature.modern => {
                self.state = State::Modern;
                self.on_modern(method, id, params, out);
            }
            _ if self.nature.fragile && (is_modern || method == "server/discover") => {
                out.die(Exit::Code(1));
            }
            (_, State::Legacy) if !is_modern => self.on_legacy(method, id, params, out),
            // Python servers behave so once they are of one era.
            (_, State::Legacy) => self.refuse(id, -32600, out),
            ("server/discover", State::Fresh) => self.refuse(id, -32601, out),
            (_, state) => {
                self.fault(format!("{method} when {state:?}"));
                self.refuse(id, -32600, out);
            }
        }
    }

    fn on_initialize(&mut self, id: &Value, params: &Value, out: &mut Outbox) {
        if let Some(error) = &self.nature.refuses {
            self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}), out);
        } else if !self.nature.ignores {
            self.state = State::Greeted;
            let mut capabilities = self.nature.capabilities.clone();
            if self.nature.echo_offer && params["capabilities"]["extensions"].get(OFFER).is_some() {
                capabilities["extensions"] = json!({OFFER: {"v": 1, "caps": []}});
            }
            let result = json!({
                "protocolVersion": self.nature.revision,
                "capabilities": capabilities,
                "serverInfo": {"name": "strict", "version": "1"},
            });
            self.answer(id, &result, out);
        }
    }

    fn on_legacy(&mut self, method: &str, id: &Value, params: &Value, out: &mut Outbox) {
        match method {
            _ if method == self.nature.deaf_to => {}
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                self.answer(id, &json!({}), out);
            }
            _ => self.on_any(method, id, params, out),
        }
    }

    fn on_modern(&mut self, method: &str, id: &Value, params: &Value, out: &mut Outbox) {
        let subscription = format!("{META}subscriptionId");
        match method {
            "server/discover" => {
                let result = json!({
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": self.nature.capabilities,
                    "serverInfo": {"name": "strict", "version": "1"},
                });
                self.answer(id, &result, out);
            }
            "subscriptions/listen" => {
                let method = "notifications/subscriptions/acknowledged";
                let params = json!({"_meta": {subscription: id}, "notifications": params["notifications"]});
                self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}), out);
            }
            _ => self.on_any(method, id, params, out),
        }
    }

    fn on_any(&mut self, method: &str, id: &Value, params: &Value, out: &mut Outbox) {
        match (method, params["name"].as_str()) {
            ("tools/list", _) => self.answer(id, &json!({"tools": [{"name": "echo"}]}), out),
            ("tools/call", Some("echo")) => self.answer(id, &params["arguments"], out),
            // Never answered by itself.
            ("tools/call", Some("wait")) => {}
            // Answered with the next `flush`, the last first.
            ("tools/call", Some("later")) => self.pending.push(json!([id, params["arguments"]])),
            ("tools/call", Some("flush")) => {
                self.answer(id, &json!({}), out);
                for call in std::mem::take(&mut self.pending).iter().rev() {
                    self.answer(&call[0], &call[1], out);
                }
            }
            ("tools/call", Some("crash")) => out.die(Exit::Code(3)),
            ("tools/call", Some("half")) => {
                out.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"resu"#));
                out.exit(Exit::Code(1));
            }
            // As many bytes as it says.
            ("tools/call", Some("pad")) => {
                let len = params["arguments"]["len"].as_u64().expect("len") as usize;
                self.answer(id, &json!("p".repeat(len)), out);
            }
            // So many notifications of so many bytes, and then the answer.
            ("tools/call", Some("chatter")) => {
                let of = |name: &str| params["arguments"][name].as_u64().expect("a number") as usize;
                let data = "c".repeat(of("len"));
                let method = "notifications/message";
                let params = json!({"level": "error", "data": data});
                let note = json!({"jsonrpc": "2.0", "method": method, "params": params});
                for _ in 0..of("count") {
                    self.say(&note, out);
                }
                self.answer(id, &json!({}), out);
            }
            _ => self.refuse(id, -32601, out),
        }
    }
}

impl Party for McpServer {
    fn on_open(&mut self, now: Instant, _out: &mut Outbox) {
        let mut seen = self.seen.borrow_mut();
        self.life = seen.len();
        seen.push(Life { start: now, texts: Vec::new(), foreign: 0, faults: Vec::new() });
    }

    fn on_data(&mut self, now: Instant, data: &[u8], out: &mut Outbox) {
        self.cutter.push(data);
        while let Some(piece) = self.cutter.next() {
            match piece {
                Piece::Line(text) => self.on_text(now, &text, false, out),
                Piece::Frame(PROBE, 0, _) if self.nature.lumen => {
                    out.send(wire::frame(PROBE_ACK, 0, b"{\"v\":1,\"caps\":[]}\n"));
                }
                Piece::Frame(wire::REQUEST | wire::RESPONSE | wire::NOTIFY, 0, text) if self.nature.lumen => {
                    self.framed = true;
                    self.on_text(now, &text, true, out);
                }
                Piece::Frame(PROBE, ..) | Piece::Noise(_) if !self.nature.lumen => {
                    self.seen.borrow_mut()[self.life].foreign += 1;
                    if self.nature.probe_kills {
                        out.die(Exit::Code(1));
                    }
                }
                other => panic!("never negotiated: {other:?}"),
            }
        }
    }

    fn name(&self) -> &str {
        "MCP server"
    }
}
