//! Everything in every order: a relay by hand, with a model of one sentence. Each request that was read is answered
//! at most once, and exactly once unless it was cancelled or the client left.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;
use lumen_proto::endpoint::{Event, Relay, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{
    Action, ChildEvent, Exit, Input, Instant, Machine, OpenError, OpenErrorKind, Port, Signal, Transmit,
};
use lumen_tests::sim::Checked;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{checked, value};

#[derive(Clone, Debug)]
enum Op {
    /// The client asks, with a new id.
    Ask,
    /// The client cancels the n-th request, counted from the last.
    Cancel(usize),
    /// Two questions and an answer in one array.
    AskBatch,
    ClientText(&'static str),
    ClientEof,
    ClientLost,
    /// The server answers the n-th request, counted from the last; so often; in a frame.
    Answer(usize, usize, bool),
    AnswerBatch(usize),
    ServerText(&'static [u8]),
    ServerEof,
    ServerLost,
    Exit,
    Open,
    Fail,
    /// Time passes, or what is next becomes due.
    Wait(u64),
    Due,
    Block(bool, bool),
    Terminate,
}

/// One port, as a driver knows it.
#[derive(Debug, Default)]
struct End {
    open: bool,
    ready: bool,
    blocked: bool,
    eof: bool,
    lost: bool,
    finished: bool,
    exited: bool,
}

struct Bench {
    relay: Checked<Relay>,
    now: Instant,
    client: Port,
    ends: BTreeMap<Port, End>,
    behind: Behind,
    asked: Vec<String>,
    cancelled: Vec<String>,
    answers: Vec<u8>,
    killed: bool,
    starts: usize,
    client_left: bool,
    ended: bool,
}

impl Bench {
    fn new(relay: Relay, behind: Behind) -> Self {
        let client = relay.client_port();
        let mut bench = Self {
            relay: checked(relay),
            now: Instant::ZERO,
            client,
            ends: BTreeMap::new(),
            behind,
            asked: Vec::new(),
            cancelled: Vec::new(),
            answers: Vec::new(),
            killed: false,
            starts: 0,
            client_left: false,
            ended: false,
        };
        bench.ends.insert(client, End { open: true, ready: true, ..End::default() });
        bench.input(Input::Opened(client));
        bench
    }

    fn input(&mut self, input: Input<'_>) {
        self.relay.handle_input(self.now, input);
        self.drain();
    }

    fn server(&self) -> Option<Port> {
        self.ends.keys().copied().find(|port| *port != self.client)
    }

    fn drain(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(action) = self.relay.poll_action() {
                quiet = false;
                match action {
                    Action::Spawn(port) => {
                        self.starts += 1;
                        self.killed = false;
                        self.ends.insert(port, End::default());
                    }
                    Action::Signal(_, signal) => self.killed |= signal == Signal::Kill,
                    Action::Abort(port) => {
                        let end = self.ends.remove(&port).expect("aborted twice");
                        self.client_left |= port == self.client && !end.finished;
                    }
                }
            }
            while let Some(port) = self.relay.poll_ready() {
                quiet = false;
                self.ends.entry(port).and_modify(|end| end.ready = true);
            }
            let next = self
                .ends
                .iter()
                .find(|(_, end)| end.ready && end.open && !end.blocked && !end.lost && !end.finished);
            if let Some((&port, _)) = next {
                quiet = false;
                self.transmit(port);
            }
            while let Some(event) = self.relay.poll_event() {
                quiet = false;
                self.ended |= matches!(event, Event::Finished(_));
            }
            if quiet {
                return;
            }
        }
    }

    fn transmit(&mut self, port: Port) {
        let mut out = BytesMut::new();
        let transmit = self.relay.poll_transmit(self.now, port, &mut out);
        if port == self.client {
            self.answers.extend_from_slice(&out);
        }
        let end = self.ends.get_mut(&port).expect("open");
        end.ready = transmit == Transmit::More;
        if transmit == Transmit::Finish {
            end.finished = true;
            self.relay.handle_input(self.now, Input::Finished(port));
        }
    }

    fn write(&mut self, port: Port, data: &[u8]) -> bool {
        let end = self.ends.get(&port);
        let fits = end.is_some_and(|end| end.open && !end.eof) && self.relay.wants_input(port) >= data.len();
        if fits {
            self.input(Input::Data(port, data));
        }
        fits
    }

    fn ask(&mut self, text: impl Fn(&[String]) -> String) {
        let ids: Vec<String> = (self.asked.len()..self.asked.len() + 2)
            .map(|n| if n % 3 == 0 { format!("\"{n}\"") } else { n.to_string() })
            .collect();
        let text = text(&ids);
        let used = ids.into_iter().filter(|id| text.contains(&format!("\"id\":{id},"))).collect::<Vec<_>>();
        if self.write(self.client, text.as_bytes()) {
            self.asked.extend(used);
        }
    }

    fn id(&self, back: usize) -> Option<String> {
        self.asked.iter().rev().nth(back).cloned()
    }

    fn server_says(&mut self, text: &str, framed: bool) {
        let Some(server) = self.server() else { return };
        let bytes = if framed {
            [&[u8::try_from(text.len()).expect("short"), 2, 0], text.as_bytes()].concat()
        } else {
            format!("{text}\n").into_bytes()
        };
        self.write(server, &bytes);
    }

    fn run(&mut self, op: &Op) {
        match *op {
            Op::Ask => self.ask(|ids| format!("{{\"id\":{},\"method\":\"m\"}}\n", ids[0])),
            Op::AskBatch => self.ask(|ids| {
                let [a, b] = ids else { unreachable!() };
                format!("[{{\"id\":{a},\"method\":\"m\"}},{{\"id\":{b},\"method\":\"m\"}},{{\"id\":77,\"result\":1}}]\n")
            }),
            Op::Cancel(back) => {
                let Some(id) = self.id(back) else { return };
                let params = format!("{{\"requestId\":{id}}}");
                let text = format!("{{\"method\":\"notifications/cancelled\",\"params\":{params}}}\n");
                if self.write(self.client, text.as_bytes()) {
                    self.cancelled.push(id);
                }
            }
            Op::ClientText(text) => {
                self.write(self.client, text.as_bytes());
            }
            Op::Answer(back, times, framed) => {
                let Some(id) = self.id(back) else { return };
                for _ in 0..times {
                    self.server_says(&format!("{{\"id\":{id},\"result\":1}}"), framed);
                }
            }
            Op::AnswerBatch(back) => {
                let (Some(a), Some(b)) = (self.id(back), self.id(back + 1)) else { return };
                let one = |id| format!("{{\"id\":{id},\"result\":1}}");
                self.server_says(&format!("[{},{},{}]", one(&a), one(&b), one(&a)), false);
            }
            Op::ServerText(text) => {
                if let Some(server) = self.server() {
                    self.write(server, text);
                }
            }
            Op::ClientEof => self.fact(Some(self.client), |end| &mut end.eof, Input::Eof),
            Op::ServerEof => self.fact(self.server(), |end| &mut end.eof, Input::Eof),
            Op::ClientLost => {
                self.client_left = true;
                self.lost(Some(self.client));
            }
            Op::ServerLost => self.lost(self.server()),
            Op::Exit if self.behind == Behind::Process => {
                let exited = |port| Input::Child(port, ChildEvent::Exited(Exit::Code(3)));
                self.fact(self.server(), |end| &mut end.exited, exited);
            }
            Op::Exit => {}
            Op::Open => {
                let Some(server) = self.server().filter(|port| !self.ends[port].open) else { return };
                self.ends.insert(server, End { open: true, ready: true, ..End::default() });
                self.input(Input::Opened(server));
            }
            Op::Fail => {
                let Some(server) = self.server().filter(|port| !self.ends[port].open) else { return };
                self.ends.remove(&server);
                let error = OpenError { kind: OpenErrorKind::NotFound, errno: 2 };
                self.input(Input::Child(server, ChildEvent::Failed(error)));
            }
            Op::Wait(millis) => {
                let until = self.now + Duration::from_millis(millis);
                while let Some(due) = self.relay.poll_timeout().filter(|due| *due <= until) {
                    self.pass(due);
                }
                self.now = until;
            }
            Op::Due => {
                if let Some(due) = self.relay.poll_timeout() {
                    self.pass(due);
                }
            }
            Op::Block(client, blocked) => {
                let port = if client { Some(self.client) } else { self.server() };
                if let Some(end) = port.and_then(|port| self.ends.get_mut(&port)) {
                    end.blocked = blocked;
                }
                self.drain();
            }
            Op::Terminate => {
                let now = self.now;
                self.relay.with(now, |relay| relay.terminate(now));
                self.drain();
            }
        }
    }

    fn pass(&mut self, due: Instant) {
        self.now = self.now.max(due);
        self.relay.handle_timeout(self.now);
        self.drain();
    }

    /// Something that happens to an open port once.
    fn fact(
        &mut self,
        port: Option<Port>,
        flag: fn(&mut End) -> &mut bool,
        input: impl Fn(Port) -> Input<'static>,
    ) {
        let Some(port) = port else { return };
        let Some(end) = self.ends.get_mut(&port).filter(|end| end.open) else { return };
        if !core::mem::replace(flag(end), true) {
            self.input(input(port));
        }
    }

    fn lost(&mut self, port: Option<Port>) {
        if port.and_then(|port| self.ends.get(&port)).is_some_and(|end| !end.finished) {
            self.fact(port, |end| &mut end.lost, Input::Lost);
        }
    }

    /// Brings it to its end: the client closes and reads, a killed process exits.
    fn end(&mut self) {
        self.run(&Op::Block(true, false));
        self.run(&Op::Block(false, false));
        self.run(&Op::ClientEof);
        for _ in 0..100 {
            if self.ended {
                return;
            }
            self.run(&Op::Open);
            if self.killed {
                self.run(&Op::Exit);
                self.run(&Op::ServerEof);
            }
            self.run(&Op::Due);
        }
        panic!("it comes to no end");
    }

    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        let text = std::str::from_utf8(&self.answers).expect("UTF-8");
        for message in text.lines().map(value) {
            let all = if let Value::Array(all) = message { all } else { vec![message] };
            for answer in all.iter().filter(|one| one.get("method").is_none()) {
                *counts.entry(answer["id"].to_string()).or_default() += 1;
            }
        }
        counts
    }
}

fn op() -> impl Strategy<Value = Op> {
    let client = [
        "{\"id\":501,\"method\":\"initialize\"}\n",
        "{\"method\":\"notifications/initialized\"}\n",
        "{\"id\":502,\"method\":\"subscriptions/listen\"}\n",
        "{\"id\":503,\"method\":\"resources/subscribe\",\"params\":{\"uri\":\"a:b\"}}\n",
        "{\"method\":\"n\"}\n",
        "{\"id\":77,\"result\":1}\n",
        "{\"id\":77,\"result\":}\n",
        "{\"id\":null,\"method\":\"m\"}\n",
        "[]\n[1]\n[[\n",
        "\u{feff}{}\r\n \n",
        "{\n",
    ];
    let server: [&[u8]; 14] = [
        b"{\"id\":501,\"result\":{\"protocolVersion\":\"1\"}}\n",
        b"{\"id\":503,\"result\":{}}\n",
        b"{\"id\":\"lumen/1\",\"result\":{\"protocolVersion\":\"1\",\"capabilities\":{\"tools\":{\"listChanged\":true}}}}\n",
        b"{\"id\":\"lumen/2\",\"result\":{\"protocolVersion\":\"1\"}}\n",
        b"{\"id\":\"lumen/2\",\"error\":{}}\n",
        b"\x12\x10\x00{\"v\":1,\"caps\":[]}\n",
        b"\x04\x0a\x00\x09\x00\x00\x00",
        b"2026 INFO\n\n",
        b"{\"id\":77,\"method\":\"ask\"}\n",
        b"[{\"id\":77,\"method\":\"ask\"},{\"id\":1,\"result\":1}]\n",
        b"{\"id\":null,\"error\":{\"code\":-32700,\"message\":\"\"}}\n",
        b"{\"method\":\"notifications/message\"}\n",
        b"{\"id\":1,\"result\":}\n",
        b"{\"id\":1,\"result\":2}",
    ];
    prop_oneof![
        8 => Just(Op::Ask),
        1 => Just(Op::AskBatch),
        2 => (0usize..3).prop_map(Op::Cancel),
        3 => proptest::sample::select(client.to_vec()).prop_map(Op::ClientText),
        1 => Just(Op::ClientEof),
        1 => Just(Op::ClientLost),
        6 => (0usize..4, 1usize..3, any::<bool>()).prop_map(|(back, times, framed)| Op::Answer(back, times, framed)),
        1 => (0usize..3).prop_map(Op::AnswerBatch),
        6 => proptest::sample::select(server.to_vec()).prop_map(Op::ServerText),
        2 => Just(Op::ServerEof),
        1 => Just(Op::ServerLost),
        2 => Just(Op::Exit),
        4 => Just(Op::Open),
        1 => Just(Op::Fail),
        2 => (1u64..3000).prop_map(Op::Wait),
        3 => Just(Op::Due),
        2 => any::<(bool, bool)>().prop_map(|(client, blocked)| Op::Block(client, blocked)),
        1 => Just(Op::Terminate),
    ]
}

fn relay() -> impl Strategy<Value = (bool, Behind, Mode, bool)> {
    let mode = prop_oneof![Just(Mode::Auto), Just(Mode::Probe), Just(Mode::Offer), Just(Mode::Off)];
    (any::<bool>(), prop_oneof![3 => Just(Behind::Process), 2 => Just(Behind::Socket)], mode, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_each_request_is_answered_once(
        (wrap, behind, mode, reconnects) in relay(),
        ops in proptest::collection::vec(op(), 0..40),
    ) {
        let config = ServerConfig::new(behind, mode);
        let relay = if wrap { Relay::wrap(config) } else { Relay::connect(config) };
        let relay = if reconnects { relay.with_reconnect(Duration::from_secs(3)) } else { relay };
        let mut bench = Bench::new(relay, behind);
        for op in &ops {
            bench.run(op);
        }
        bench.end();
        prop_assert!(reconnects || bench.starts <= 2);
        prop_assert!(bench.ends.is_empty(), "{:?}", bench.ends);
        let counts = bench.counts();
        for id in &bench.asked {
            let count = counts.get(id).copied().unwrap_or(0);
            prop_assert!(count <= 1, "{} was answered {} times", id, count);
            let is_owed = !bench.cancelled.contains(id) && !bench.client_left;
            prop_assert!(count == 1 || !is_owed, "{} was not answered", id);
        }
    }
}
