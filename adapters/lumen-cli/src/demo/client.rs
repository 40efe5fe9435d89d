//! The client of the demo: one request at a time, timed and counted.

use std::io;
use std::time::{Duration, Instant};

use lumen_os::{CommandSpec, Stderr, Target};
use lumen_proto::endpoint::{Event, Outcome, Peer, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::Loop;
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
    peer: Loop<Peer>,
    next_id: u64,
    lumen: bool,
    ended: Option<Outcome>,
}

impl Session {
    fn start(mode: Mode) -> io::Result<Self> {
        let own = std::env::current_exe()?;
        let spec =
            CommandSpec::new(&own).args(["wrap", "--"]).arg(&own).arg("demo-server").stderr(Stderr::Inherit);
        let peer = Peer::client(ServerConfig::new(Behind::Process, mode));
        let peer = Loop::new(peer, Some(Target::Command(spec)));
        Ok(Self { peer, next_id: 0, lumen: false, ended: None })
    }

    fn measure(
        &mut self,
        name: &'static str,
        count: u32,
        method: &str,
        params: &Value,
    ) -> io::Result<Measured> {
        let port = self.peer.machine().port();
        let before = self.peer.counters(port);
        let mut times = Vec::new();
        for _ in 0..count {
            self.next_id += 1;
            let request = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
            let start = Instant::now();
            self.send(&request)?;
            let answer = self.receive()?;
            times.push(start.elapsed());
            let answer: Value = serde_json::from_slice(answer.bytes())?;
            if answer.get("id") != request.get("id") || answer.get("result").is_none() {
                return Err(io::Error::other(format!("{name}: unexpected answer {answer}")));
            }
        }
        let after = self.peer.counters(port);
        let sent = after.bytes_written - before.bytes_written;
        Ok(Measured { name, count, sent, received: after.bytes_read - before.bytes_read, times })
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let message = Message::parse(message.to_string().into());
        let message = message.map_err(|_| io::Error::other("the demo made a message that is none"))?;
        let now = self.peer.now();
        let sent = self.peer.with(|peer| peer.try_send(now, message));
        sent.map_err(|_| io::Error::other(format!("the server is gone: {:?}", self.ended)))
    }

    fn receive(&mut self) -> io::Result<Message> {
        loop {
            while let Some(event) = self.peer.poll_event() {
                match event {
                    Event::Message(message) => return Ok(message),
                    Event::Upgraded(_) => self.lumen = true,
                    Event::Finished(outcome) => self.ended = Some(outcome),
                    _ => {}
                }
            }
            if let Some(outcome) = self.ended {
                return Err(io::Error::other(format!("the server ended: {outcome:?}")));
            }
            self.peer.turn(None)?;
        }
    }

    /// Ends the server, and refuses to have measured anything else than what was asked for.
    fn close(mut self, mode: Mode) -> io::Result<()> {
        let now = self.peer.now();
        self.peer.with(|peer| peer.close(now));
        while !(self.ended.is_some() && self.peer.is_settled()) {
            match self.peer.poll_event() {
                Some(Event::Finished(outcome)) => self.ended = Some(outcome),
                Some(_) => {}
                None => self.peer.turn(None)?,
            }
        }
        if self.lumen != (mode != Mode::Off) {
            return Err(io::Error::other("the carrier agreed on was not the one asked for"));
        }
        Ok(())
    }
}
