//! The bridge in the cage: whatever agent, server and driver do, in any order, the machine keeps its contract, and every
//! request is answered once.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::BytesMut;
use lumen_proto::endpoint::{Bridge, BridgeEvent, Event};
use lumen_proto::http::{Config, Request, TransportError, TransportErrorKind};
use lumen_proto::{Input, Instant, Machine, Port, Transmit};
use lumen_tests::sim::checked::Checked;
use proptest::prelude::*;
use serde_json::Value;

const AGENT: Port = Port::new(0);

/// What happens; a number chooses among the exchanges that there are.
#[derive(Clone, Debug)]
enum Op {
    Say(String),
    Head(usize, u16, bool),
    Chunk(usize, bool),
    End(usize, bool),
    Written(usize),
    Wait(u64),
    /// The agent reads so many lines.
    Read(usize),
    Eof,
    Lost,
    Terminate,
}

fn op() -> impl Strategy<Value = Op> {
    let say = prop::sample::select(vec![
        r#"{"id":ID,"method":"initialize"}"#,
        r#"{"id":ID,"method":"a"}"#,
        r#"{"id":ID,"method":"a"}"#,
        r#"{"id":ID,"method":"subscriptions/listen"}"#,
        r#"{"id":ID,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        r#"{"method":"notifications/initialized"}"#,
        r#"{"id":"asked","result":{}}"#,
        r#"{"id":"asked","result":}"#,
        r#"{"id":null,"method":"a"}"#,
        "noise",
    ]);
    let at = 0_usize..40;
    prop_oneof![
        6 => say.prop_map(|text| Op::Say(text.to_owned())),
        6 => (at.clone(), prop::sample::select(vec![200, 200, 202, 404, 500]), any::<bool>())
            .prop_map(|(at, status, stream)| Op::Head(at, status, stream)),
        6 => (at.clone(), any::<bool>()).prop_map(|(at, right)| Op::Chunk(at, right)),
        4 => (at.clone(), any::<bool>()).prop_map(|(at, ok)| Op::End(at, ok)),
        2 => at.prop_map(Op::Written),
        2 => (0_u64..40_000).prop_map(Op::Wait),
        4 => (0_usize..4).prop_map(Op::Read),
        1 => Just(Op::Eof),
        1 => prop::sample::select(vec![Op::Lost, Op::Terminate]),
    ]
}

struct Rig {
    bridge: Checked<Bridge>,
    now: Instant,
    made: Vec<Request>,
    next: u64,
    owed: BTreeSet<u64>,
    /// What was written and not read.
    output: BytesMut,
    is_blocked: bool,
    is_eof: bool,
    is_lost: bool,
    is_finished: bool,
}

impl Rig {
    fn new() -> Self {
        let is_last = |event: &BridgeEvent| matches!(event, BridgeEvent::Client(Event::Finished(_)));
        let mut rig = Self {
            bridge: Checked::new(Bridge::new(Config::new("u".into()))).with_last(is_last),
            now: Instant::ZERO,
            made: Vec::new(),
            next: 1,
            owed: BTreeSet::new(),
            output: BytesMut::new(),
            is_blocked: false,
            is_eof: false,
            is_lost: false,
            is_finished: false,
        };
        rig.bridge.handle_input(rig.now, Input::Opened(AGENT));
        rig.drain();
        rig
    }

    /// Does what a driver does after everything that it told.
    fn drain(&mut self) {
        loop {
            while self.bridge.poll_action().is_some() {
                self.is_lost = true;
            }
            while self.bridge.poll_ready().is_some() {}
            while !self.is_blocked && !self.is_lost && !self.is_finished {
                match self.bridge.poll_transmit(self.now, AGENT, &mut self.output) {
                    Transmit::More => self.is_blocked = self.output.len() > 1000,
                    Transmit::Idle => break,
                    Transmit::Finish => {
                        self.is_finished = true;
                        self.bridge.handle_input(self.now, Input::Finished(AGENT));
                    }
                }
            }
            if self.bridge.poll_event().is_none() {
                break;
            }
        }
        let now = self.now;
        while self.bridge.with(now, Bridge::poll_abort).is_some() {}
        while let Some(request) = self.bridge.with(now, Bridge::poll_request) {
            self.made.push(request);
        }
    }

    fn read(&mut self) {
        let output = self.output.split().freeze();
        for line in output[..].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let message: Value = serde_json::from_slice(line).unwrap();
            if let Some(id) = message["id"].as_u64() {
                assert!(self.owed.remove(&id), "{message} answers nothing");
            }
        }
        self.is_blocked = false;
    }

    fn play(&mut self, op: Op) {
        let now = self.now;
        let request = |at: usize| self.made.get(at.checked_rem(self.made.len())?).cloned();
        match op {
            Op::Say(text) => {
                let line = text.replace("ID", &self.next.to_string()) + "\n";
                if self.is_eof || self.bridge.wants_input(AGENT) < line.len() {
                    return;
                }
                if text.contains("ID") {
                    self.owed.insert(self.next);
                    self.next += 1;
                }
                self.bridge.handle_input(now, Input::Data(AGENT, line.as_bytes()));
            }
            Op::Head(at, status, is_stream) => {
                let Some(made) = request(at) else { return };
                let kind = if is_stream { "text/event-stream" } else { "application/json" };
                let headers = [("content-type", kind), ("mcp-session-id", "s")];
                self.bridge.with(now, |bridge| bridge.handle_head(now, made.id, status, &headers));
            }
            Op::Chunk(at, is_right) => {
                let Some(made) = request(at) else { return };
                let id = serde_json::from_slice::<Value>(&made.body)
                    .map_or(Value::Null, |body| body["id"].clone());
                let text = if is_right {
                    format!("data: {{\"id\":{id},\"result\":{{}}}}\n\n")
                } else {
                    "id: 1\ndata: {\"id\":\"asked\",\"method\":\"roots/list\"}\n\ndata: {\"id\":77\n\n"
                        .to_owned()
                };
                self.bridge.with(now, |bridge| bridge.handle_chunk(now, made.id, text.as_bytes()));
            }
            Op::End(at, is_ok) => {
                let Some(made) = request(at) else { return };
                let error = || TransportError { kind: TransportErrorKind::Reset, text: "reset".into() };
                let result = if is_ok { Ok(()) } else { Err(error()) };
                self.bridge.with(now, |bridge| bridge.handle_end(now, made.id, result));
            }
            Op::Written(at) => {
                let Some(made) = request(at) else { return };
                self.bridge.with(now, |bridge| bridge.handle_written(now, made.id));
            }
            Op::Wait(millis) => {
                self.now = now + Duration::from_millis(millis);
                self.bridge.handle_timeout(self.now);
            }
            Op::Read(lines) => {
                self.read();
                self.is_blocked = lines == 0;
            }
            Op::Eof => {
                if !self.is_eof && !self.is_lost {
                    self.is_eof = true;
                    self.bridge.handle_input(now, Input::Eof(AGENT));
                }
            }
            Op::Lost => {
                if !self.is_lost && !self.is_finished {
                    self.is_lost = true;
                    self.bridge.handle_input(now, Input::Lost(AGENT));
                }
            }
            Op::Terminate => self.bridge.with(now, |bridge| bridge.terminate(now)),
        }
        self.drain();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_contract_holds_and_every_request_is_answered(ops in prop::collection::vec(op(), 0..120)) {
        let mut rig = Rig::new();
        for op in ops {
            if rig.bridge.has_ended() {
                break;
            }
            rig.play(op);
        }
        rig.play(Op::Eof);
        for _ in 0..1000 {
            rig.play(Op::Read(1));
            let Some(due) = rig.bridge.poll_timeout() else { break };
            rig.play(Op::Wait(due.saturating_since(rig.now).as_millis() as u64 + 1));
        }
        rig.read();
        prop_assert!(rig.bridge.has_ended());
        prop_assert!(rig.is_lost && !rig.is_finished || rig.owed.is_empty(), "never answered: {:?}", rig.owed);
    }
}
