//! A hub whose clients and servers say anything, in any pieces, at any time, come and go and end: it takes all it asked
//! for, never has a deadline that is over, keeps nothing for anybody who is gone, and comes to its end.
#![no_main]

use std::time::Duration;

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use lumen_proto::endpoint::{Event, Hub, HubConfig, HubEvent, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{
    Action, ChildEvent, Exit, Input, Instant, Machine, OpenError, OpenErrorKind, Port, Transmit,
};

/// What one command's bytes may have led to by the time it is drained, and then some.
const MAX_STEPS: usize = 100_000;

/// Messages that mean something, because few bytes at random do.
const SAYINGS: [&[u8]; 16] = [
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-03-26\",\"capabilities\":{\"roots\":{}}}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"progressToken\":\"t\"}}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server/discover\"}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"subscriptions/listen\"}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/subscribe\",\"params\":{\"uri\":\"a\"}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"info\"}}\n",
    b"[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\"},{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"y\"}]\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":\"lumen-1\",\"result\":{}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":2}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"a\"}}\n",
];

struct Bench {
    hub: Hub,
    now: Instant,
    clients: Vec<Party>,
    servers: Vec<Party>,
    has_ended: bool,
}

struct Party {
    port: Port,
    is_open: bool,
    is_eof: bool,
}

impl Bench {
    fn input(&mut self, input: Input<'_>) {
        self.hub.handle_input(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        for _ in 0..MAX_STEPS {
            let mut quiet = true;
            if let Some(action) = self.hub.poll_action() {
                quiet = false;
                match action {
                    Action::Spawn(port) => {
                        self.servers.push(Party { port, is_open: false, is_eof: false });
                    }
                    Action::Abort(port) => {
                        self.clients.retain(|party| party.port != port);
                        self.servers.retain(|party| party.port != port);
                    }
                    Action::Signal(..) => {}
                }
            }
            if let Some(port) = self.hub.poll_ready() {
                quiet = false;
                self.transmit(port);
            }
            if let Some(event) = self.hub.poll_event() {
                quiet = false;
                assert!(!self.has_ended, "{event:?} after the end");
                self.has_ended = matches!(event, HubEvent::Stream(Event::Finished(_)));
            }
            if quiet {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn transmit(&mut self, port: Port) {
        let mut out = BytesMut::new();
        loop {
            match self.hub.poll_transmit(self.now, port, &mut out) {
                Transmit::More => {}
                Transmit::Idle => return,
                Transmit::Finish => {
                    if self.clients.iter().any(|party| party.port == port) {
                        self.hub.handle_input(self.now, Input::Finished(port));
                    }
                    return;
                }
            }
        }
    }

    fn feed(&mut self, port: Port, mut data: &[u8]) {
        while !data.is_empty() {
            let len = data.len().min(self.hub.wants_input(port));
            if len == 0 {
                return;
            }
            let (piece, rest) = data.split_at(len);
            data = rest;
            self.input(Input::Data(port, piece));
        }
    }

    fn pass(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.hub.handle_timeout(self.now);
        self.drain();
        let due = self.hub.poll_timeout();
        assert!(due.is_none_or(|due| due > self.now), "due {due:?}, and it is {:?}", self.now);
    }

    /// What happens to a server that is no message.
    fn happen(&mut self, at: usize, what: u8) {
        let Some(server) = self.servers.get_mut(at) else { return };
        let port = server.port;
        if !server.is_open {
            if what == 3 {
                self.servers.remove(at);
                let error = OpenError { kind: OpenErrorKind::NotFound, errno: 2 };
                return self.input(Input::Child(port, ChildEvent::Failed(error)));
            }
            server.is_open = true;
            return self.input(Input::Opened(port));
        }
        if !std::mem::replace(&mut server.is_eof, true) {
            self.input(Input::Eof(port));
        } else {
            self.servers.remove(at);
            self.input(Input::Child(port, ChildEvent::Exited(Exit::Code(0))));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&setup, mut rest)) = data.split_first() else { return };
    let mode = [Mode::Auto, Mode::Probe, Mode::Offer, Mode::Off][usize::from(setup & 3)];
    let mut config = ServerConfig::new(Behind::Process, mode);
    config.max_message = 512;
    config.max_line = 400;
    let hub = Hub::new(HubConfig::new(config));
    let (clients, servers) = (Vec::new(), Vec::new());
    let mut bench = Bench { hub, now: Instant::ZERO, clients, servers, has_ended: false };
    while let Some((&op, after)) = rest.split_first() {
        rest = after;
        let which = usize::from(op >> 6);
        let more = (op >> 3) & 7;
        let client = bench.clients.get(which).filter(|party| !party.is_eof).map(|party| party.port);
        let server = bench.servers.get(which).filter(|party| party.is_open && !party.is_eof);
        let server = server.map(|party| party.port);
        match (op & 7, client, server) {
            (0, None, _) if bench.clients.len() < 4 => {
                if let Some(port) = bench.hub.try_accept() {
                    bench.clients.push(Party { port, is_open: true, is_eof: false });
                    bench.input(Input::Opened(port));
                }
            }
            (0 | 1, Some(port), _) => bench.feed(port, SAYINGS[usize::from(more)]),
            (2, Some(port), _) => {
                let (piece, after) = rest.split_at(rest.len().min(usize::from(more) * 4));
                rest = after;
                bench.feed(port, piece);
            }
            (3, _, Some(port)) => bench.feed(port, SAYINGS[8 + usize::from(more)]),
            (4, _, Some(port)) => {
                let (piece, after) = rest.split_at(rest.len().min(usize::from(more) * 4));
                rest = after;
                bench.feed(port, piece);
            }
            (5, ..) => bench.pass(
                bench.now
                    + Duration::from_millis(
                        [0, 5, 500, 3000, 20_000, 31_000, 120_000, 301_000][usize::from(more)],
                    ),
            ),
            (6, ..) => bench.happen(which, more),
            (7, Some(port), _) if more > 3 => {
                if let Some(party) = bench.clients.iter_mut().find(|party| party.port == port) {
                    party.is_eof = true;
                }
                bench.input(Input::Eof(port));
            }
            (7, Some(port), _) => bench.input(Input::Lost(port)),
            _ => {}
        }
    }
    bench.hub.shut_down(bench.now);
    bench.drain();
    for _ in 0..64 {
        if let Some(due) = bench.hub.poll_timeout() {
            bench.pass(due);
        }
    }
    assert!(bench.has_ended, "it comes to no end");
    assert!(bench.hub.mux().is_empty(), "something is left");
});
