//! The client of the demo: one request at a time, timed and counted.

use std::io;
use std::time::{Duration, Instant};

use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::{Client, CommandSpec, Message, ServerConfig, Target};
use serde_json::{Value, json};

/// The bytes of text in the larger tool result.
pub(crate) const TEXT_BYTES: u32 = 16 * 1024;

/// What was counted of one kind of request.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) count: u32,
    /// Bytes to the server and from it, all of them together.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) times: Vec<Duration>,
}

/// Starts the server behind `wrap`, asks it, and returns what was counted.
pub(crate) fn measure(mode: Mode, calls: u32) -> io::Result<Vec<Measured>> {
    let mut session = Session::start(mode)?;
    let mut measured = Vec::new();
    for (name, count, method, params) in [
        ("initialize", 1, "initialize", initialize()),
        ("tools/list", calls.min(100), "tools/list", json!({})),
        ("call, small", calls, "tools/call", json!({"name": "sum", "arguments": {"a": 2, "b": 3}})),
        (
            "call, 16 KiB",
            calls.min(200),
            "tools/call",
            json!({"name": "text", "arguments": {"bytes": TEXT_BYTES}}),
        ),
    ] {
        measured.push(session.measure(name, count, method, &params)?);
        if method == "initialize" {
            session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        }
    }
    session.close(mode)?;
    Ok(measured)
}

fn initialize() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "lumen-demo", "version": env!("CARGO_PKG_VERSION")},
    })
}

struct Session {
    client: Client,
    next_id: u64,
}

impl Session {
    fn start(mode: Mode) -> io::Result<Self> {
        let own = std::env::current_exe()?;
        let spec = CommandSpec::new(&own).args(["wrap", "--"]).arg(&own).arg("demo-server");
        let config = ServerConfig::new(Behind::Process, mode);
        Ok(Self { client: Client::connect(Target::Command(spec), config), next_id: 0 })
    }

    fn measure(
        &mut self,
        name: &'static str,
        count: u32,
        method: &str,
        params: &Value,
    ) -> io::Result<Measured> {
        let before = self.client.counters();
        let mut times = Vec::new();
        for _ in 0..count {
            self.next_id += 1;
            let request = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
            let start = Instant::now();
            self.send(&request)?;
            let Some(answer) = self.client.recv() else {
                return Err(io::Error::other(format!("the server ended: {:?}", self.client.outcome())));
            };
            times.push(start.elapsed());
            let answer: Value = serde_json::from_slice(answer.bytes())?;
            if answer.get("id") != request.get("id") || answer.get("result").is_none() {
                return Err(io::Error::other(format!("{name}: unexpected answer {answer}")));
            }
        }
        let after = self.client.counters();
        let sent = after.bytes_written - before.bytes_written;
        Ok(Measured { name, count, sent, received: after.bytes_read - before.bytes_read, times })
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let message = Message::parse(message.to_string().into());
        let message = message.map_err(|_| io::Error::other("the demo made a message that is none"))?;
        self.client.send(message).map_err(io::Error::other)
    }

    /// Ends the server, and refuses to have measured anything else than what was asked for.
    fn close(self, mode: Mode) -> io::Result<()> {
        let is_lumen = self.client.is_lumen();
        self.client.close();
        if is_lumen != (mode != Mode::Off) {
            return Err(io::Error::other("the carrier agreed on was not the one asked for"));
        }
        Ok(())
    }
}
