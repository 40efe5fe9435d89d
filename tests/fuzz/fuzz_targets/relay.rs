//! A relay between two ports that say anything, in any pieces, at any time: it takes all it asked for, never has a
//! deadline that is over, and comes to its end.
#![no_main]

use std::time::Duration;

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use lumen_proto::endpoint::{Event, Relay, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{Action, ChildEvent, Exit, Input, Instant, Machine, Port, Transmit};

/// What one command's bytes may have led to by the time it is drained, and then some.
const MAX_STEPS: usize = 100_000;

struct Bench {
    relay: Relay,
    now: Instant,
    client: Port,
    server: Option<Port>,
    is_server_eof: bool,
    is_client_eof: bool,
    has_ended: bool,
    sent: usize,
}

impl Bench {
    fn input(&mut self, input: Input<'_>) {
        self.relay.handle_input(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        for _ in 0..MAX_STEPS {
            let mut quiet = true;
            if let Some(action) = self.relay.poll_action() {
                quiet = false;
                match action {
                    Action::Spawn(port) => {
                        self.server = Some(port);
                        self.is_server_eof = false;
                        self.relay.handle_input(self.now, Input::Opened(port));
                    }
                    Action::Abort(port) if Some(port) == self.server => self.server = None,
                    Action::Abort(_) | Action::Signal(..) => {}
                }
            }
            if let Some(port) = self.relay.poll_ready() {
                quiet = false;
                self.transmit(port);
            }
            if let Some(event) = self.relay.poll_event() {
                quiet = false;
                assert!(!self.has_ended, "{event:?} after the end");
                self.has_ended = matches!(event, Event::Finished(_));
            }
            if quiet {
                let due = self.relay.poll_timeout();
                assert!(due.is_none() || !self.has_ended);
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn transmit(&mut self, port: Port) {
        let mut out = BytesMut::new();
        loop {
            match self.relay.poll_transmit(self.now, port, &mut out) {
                Transmit::More => {}
                Transmit::Idle => break,
                Transmit::Finish => {
                    if port == self.client {
                        self.relay.handle_input(self.now, Input::Finished(port));
                    }
                    break;
                }
            }
        }
        self.sent += out.len();
    }

    fn feed(&mut self, port: Port, mut data: &[u8]) {
        while !data.is_empty() {
            let len = data.len().min(self.relay.wants_input(port));
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
        self.relay.handle_timeout(self.now);
        self.drain();
        let due = self.relay.poll_timeout();
        assert!(due.is_none_or(|due| due > self.now), "due {due:?}, and it is {:?}", self.now);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&setup, mut rest)) = data.split_first() else { return };
    let mode = [Mode::Auto, Mode::Probe, Mode::Offer, Mode::Off][usize::from(setup & 3)];
    let behind = if setup & 4 == 0 { Behind::Process } else { Behind::Socket };
    let mut config = ServerConfig::new(behind, mode);
    config.max_message = 256;
    config.max_line = 200;
    let relay = if setup & 8 == 0 { Relay::connect(config) } else { Relay::wrap(config) };
    let client = relay.client_port();
    let mut bench = Bench {
        relay,
        now: Instant::ZERO,
        client,
        server: None,
        is_server_eof: false,
        is_client_eof: false,
        has_ended: false,
        sent: 0,
    };
    bench.input(Input::Opened(client));
    while let Some((&op, after)) = rest.split_first() {
        rest = after;
        let (piece, after) = rest.split_at(rest.len().min(usize::from(op >> 3) * 2));
        match (op & 7, bench.server.filter(|_| !bench.is_server_eof)) {
            (0 | 1, _) if !bench.is_client_eof => {
                bench.feed(client, piece);
                rest = after;
            }
            (2 | 3, Some(server)) => {
                bench.feed(server, piece);
                rest = after;
            }
            (4, _) => bench.pass(bench.now + Duration::from_millis(u64::from(op >> 3) * 100)),
            (5, _) => {
                if let Some(due) = bench.relay.poll_timeout() {
                    bench.pass(due);
                }
            }
            (6, Some(server)) => {
                bench.is_server_eof = true;
                bench.input(Input::Eof(server));
                if behind == Behind::Process && bench.server == Some(server) {
                    bench.input(Input::Child(server, ChildEvent::Exited(Exit::Code(0))));
                }
            }
            (7, _) if !bench.is_client_eof && op >> 3 == 0 => {
                bench.is_client_eof = true;
                bench.input(Input::Eof(client));
            }
            _ => {}
        }
    }
    if !bench.is_client_eof {
        bench.input(Input::Eof(client));
    }
    for _ in 0..32 {
        if let Some(due) = bench.relay.poll_timeout() {
            bench.pass(due);
        }
    }
    assert!(bench.has_ended, "it comes to no end");
    // An answer of ours takes less than this, and so does a probe; anything else was somebody's message.
    assert!(bench.sent <= (data.len() + 8) * 300, "{} bytes for {}", bench.sent, data.len());
});
