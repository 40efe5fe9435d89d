//! What is bounded, and who pays when a bound is reached: a hub by hand, for a world keeps every byte.

use std::collections::BTreeMap;

use bytes::BytesMut;
use lumen_proto::endpoint::{Event, Hub, HubConfig, HubEvent, Parted};
use lumen_proto::{Action, Input, Instant, Machine, Port, Transmit, limits};
use lumen_tests::sim::Checked;
use serde_json::Value;

use crate::support::*;

/// A hub whose driver writes to those that are not blocked.
struct Rig {
    hub: Checked<Hub>,
    now: Instant,
    blocked: Vec<Port>,
    ready: Vec<Port>,
    /// What each was sent; only how much, for those not of interest.
    said: BTreeMap<Port, Vec<u8>>,
    counted: BTreeMap<Port, usize>,
    aborted: Vec<Port>,
    events: Vec<HubEvent>,
}

impl Rig {
    fn new(config: HubConfig) -> Self {
        Self {
            hub: Checked::new(Hub::new(config))
                .with_last(|event| matches!(event, HubEvent::Stream(Event::Finished(_)))),
            now: Instant::ZERO,
            blocked: Vec::new(),
            ready: Vec::new(),
            said: BTreeMap::new(),
            counted: BTreeMap::new(),
            aborted: Vec::new(),
            events: Vec::new(),
        }
    }

    fn client(&mut self) -> Port {
        let now = self.now;
        let port = self.hub.with(now, Hub::try_accept).unwrap();
        self.open(port);
        port
    }

    /// Lets clients in that are greeted; the first one brings the server up.
    fn legacy(&mut self) -> Port {
        let port = self.client();
        self.say(port, &initialize("0", "{}", "2025-11-25"));
        if self.said.contains_key(&server(0)) {
            self.take(port);
            return port;
        }
        self.open(server(0));
        let id = self.take(server(0))[0]["id"].to_string();
        self.say(server(0), &result(&id, r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#));
        self.take(port);
        self.take(server(0));
        port
    }

    fn open(&mut self, port: Port) {
        self.ready.push(port);
        self.said.entry(port).or_default();
        self.hub.handle_input(self.now, Input::Opened(port));
        self.drain();
    }

    fn say(&mut self, port: Port, text: &str) {
        let line = format!("{text}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() && !self.aborted.contains(&port) {
            let wants = self.hub.wants_input(port).min(rest.len());
            assert!(wants > 0, "{port} is not read");
            let (now, next) = rest.split_at(wants);
            self.hub.handle_input(self.now, Input::Data(port, now));
            self.drain();
            rest = next;
        }
    }

    fn wants(&self, port: Port) -> bool {
        self.hub.wants_input(port) > 0
    }

    fn block(&mut self, port: Port) {
        self.blocked.push(port);
    }

    fn unblock(&mut self, port: Port) {
        self.blocked.retain(|other| *other != port);
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            let mut any = false;
            while let Some(action) = self.hub.poll_action() {
                any = true;
                if let Action::Abort(port) = action {
                    self.aborted.push(port);
                }
            }
            while let Some(port) = self.hub.poll_ready() {
                any = true;
                if !self.ready.contains(&port) {
                    self.ready.push(port);
                }
            }
            let open = |port: &Port| {
                self.said.contains_key(port) && !self.blocked.contains(port) && !self.aborted.contains(port)
            };
            if let Some(at) = self.ready.iter().position(open) {
                any = true;
                let port = self.ready[at];
                let mut out = BytesMut::new();
                match self.hub.poll_transmit(self.now, port, &mut out) {
                    Transmit::More => {
                        *self.counted.entry(port).or_default() += out.len();
                        if out.len() < 10_000 {
                            self.said.entry(port).or_default().extend_from_slice(&out);
                        }
                    }
                    Transmit::Idle => drop(self.ready.remove(at)),
                    Transmit::Finish => {
                        self.ready.remove(at);
                        self.hub.handle_input(self.now, Input::Finished(port));
                    }
                }
            }
            while let Some(event) = self.hub.poll_event() {
                any = true;
                self.events.push(event);
            }
            if !any {
                // As a driver does before it sleeps.
                let _ = self.hub.poll_timeout();
                return;
            }
        }
    }

    /// What a port was sent since it was last asked for, but for what is long.
    fn take(&mut self, port: Port) -> Vec<Value> {
        let bytes = std::mem::take(self.said.entry(port).or_default());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn queued(&self) -> usize {
        self.hub.inner().queued()
    }

    fn parted(&self) -> Vec<(Port, Parted)> {
        let parted = self.events.iter().filter_map(|event| match event {
            HubEvent::Parted { port, why } => Some((*port, *why)),
            _ => None,
        });
        parted.collect()
    }
}

fn note(len: usize) -> String {
    notification("x/y", &format!("[\"{}\"]", "n".repeat(len)))
}

#[test]
fn a_client_that_does_not_read_is_sent_away_and_nobody_else_notices() {
    let mut rig = Rig::new(config());
    let (slow, other) = (rig.legacy(), rig.legacy());
    rig.say(slow, &call("1", "wait"));
    rig.say(other, &call("1", "wait"));
    let ids: Vec<String> = rig.take(server(0)).iter().map(|value| value["id"].to_string()).collect();
    rig.block(slow);
    let len = 1_000_000;
    let text = note(len);
    let mut most = 0;
    for n in 0..200 {
        rig.say(server(0), &text);
        most = most.max(rig.queued());
        assert!(rig.wants(other) && rig.wants(server(0)));
        assert_eq!(rig.aborted.is_empty(), n < 17, "{n}");
    }
    assert!(most <= limits::MAX_CLIENT_QUEUE + len + 100, "{most}");
    assert_eq!(rig.queued(), 0);
    assert_eq!(rig.parted(), [(slow, Parted::Slow)]);
    assert_eq!(rig.aborted, [slow]);
    assert!(rig.counted[&other] > 200 * len);
    let told = rig.take(server(0));
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["method"], "notifications/cancelled");
    assert_eq!(told[0]["params"]["requestId"].to_string(), ids[0]);
    rig.say(server(0), &result(&ids[1], "1"));
    assert_eq!(rig.take(other).len(), 1);
    assert!(rig.hub.inner().mux().is_empty());
}

#[test]
fn all_clients_together_have_a_bound_and_the_one_with_the_most_goes() {
    let mut rig = Rig::new(config());
    let clients: Vec<Port> = (0..20).map(|_| rig.legacy()).collect();
    // One has more waiting than the others.
    rig.block(clients[7]);
    rig.say(server(0), &note(500_000));
    clients.iter().for_each(|port| rig.block(*port));
    let text = note(1_000_000);
    let mut first = None;
    for _ in 0..14 {
        rig.say(server(0), &text);
        assert!(rig.queued() <= limits::MAX_HUB_QUEUE + text.len());
        first = first.or_else(|| rig.aborted.first().copied());
    }
    assert_eq!(first, Some(clients[7]));
    assert_eq!(rig.aborted.len(), 1, "the rest fits");
    assert!(rig.parted().iter().all(|(_, why)| *why == Parted::Slow));
    // The rest goes on.
    let left: Vec<Port> = clients.into_iter().filter(|port| !rig.aborted.contains(port)).collect();
    left.iter().for_each(|port| rig.unblock(*port));
    assert_eq!(rig.queued(), 0);
    assert!(left.iter().all(|port| rig.counted[port] > 14_000_000));
}

#[test]
fn who_asks_for_refusals_and_does_not_read_them_is_read_less() {
    let mut rig = Rig::new(config());
    let (rude, other) = (rig.legacy(), rig.legacy());
    rig.block(rude);
    let refused = request("\"x\"", "lumen/no", "{}");
    let mut count = 0;
    while rig.wants(rude) {
        rig.say(rude, &refused);
        count += 1;
        assert!(count < 100_000, "read for ever");
    }
    assert!(rig.queued() <= limits::MAX_QUEUE + limits::READ_CHUNK * 4);
    assert!(rig.wants(other) && rig.aborted.is_empty());
    rig.unblock(rude);
    assert!(rig.wants(rude));
    assert_eq!(rig.take(rude).len(), count);
}

#[test]
fn a_server_that_does_not_read_stops_its_clients_and_all_go_on_in_turn() {
    let mut rig = Rig::new(config());
    let clients: Vec<Port> = (0..3).map(|_| rig.legacy()).collect();
    rig.block(server(0));
    let arguments = format!("\"{}\"", "x".repeat(5000));
    let mut sent = 0;
    // What waits for room is at most one read of each.
    let wants_one = |rig: &Rig, port: Port| rig.hub.wants_input(port) > 6000;
    while let Some(port) = clients.iter().find(|port| wants_one(&rig, **port)) {
        for n in 0..20 {
            if wants_one(&rig, *port) {
                rig.say(*port, &call_with(&format!("{}", sent * 100 + n), "wait", &arguments));
            }
        }
        sent += 1;
        assert!(sent < 1000, "read for ever");
    }
    assert!(sent * 20 * 5000 < 2 * (limits::MAX_QUEUE + 3 * limits::READ_CHUNK), "read without end");
    assert!(rig.wants(server(0)), "it is always read");
    rig.unblock(server(0));
    assert!(clients.iter().all(|port| wants_one(&rig, *port)), "each is named again");
    assert_eq!(rig.hub.inner().mux().in_flight(), rig.take(server(0)).len());
}

#[test]
fn who_goes_while_a_server_is_full_is_missed_and_who_comes_waits() {
    let mut rig = Rig::new(config());
    let (a, b) = (rig.legacy(), rig.legacy());
    rig.block(server(0));
    let arguments = format!("\"{}\"", "x".repeat(limits::MAX_QUEUE));
    rig.say(b, &call_with("1", "wait", &arguments));
    let queued = rig.hub.inner().mux().in_flight();
    // One who has said something that waits, and one who has not.
    rig.say(a, &call("1", "wait"));
    for port in [a, b] {
        assert!(rig.wants(port), "that it goes would not be noticed");
        rig.hub.handle_input(rig.now, Input::Eof(port));
        rig.hub.handle_input(rig.now, Input::Lost(port));
        rig.drain();
    }
    assert_eq!(rig.hub.inner().clients(), 0);
    // However many come, what they say waits with them, and goes with them.
    let now = rig.now;
    for _ in 0..3 {
        let port = rig.client();
        rig.say(port, &call_with("1", "wait", &arguments));
        assert_eq!(rig.hub.inner().mux().in_flight(), queued - 1);
        rig.hub.handle_input(now, Input::Lost(port));
        rig.drain();
    }
    let port = rig.client();
    rig.say(port, &call("7", "wait"));
    rig.unblock(server(0));
    assert_eq!(rig.hub.inner().mux().in_flight(), 1);
    assert!(rig.take(server(0)).iter().any(|said| said["params"]["name"] == "wait"));
}

#[test]
fn a_hub_takes_only_so_many_clients() {
    let mut config = config();
    config.max_clients = 3;
    let mut rig = Rig::new(config);
    let clients: Vec<Port> = (0..3).map(|_| rig.legacy()).collect();
    let now = rig.now;
    for _ in 0..limits::MAX_VISITORS {
        let visitor = rig.hub.with(now, Hub::try_accept).unwrap();
        assert!(rig.hub.inner().is_visitor(visitor));
    }
    assert_eq!(rig.hub.with(now, Hub::try_accept), None);
    rig.hub.handle_input(now, Input::Lost(clients[1]));
    rig.drain();
    let next = rig.legacy();
    assert_eq!(next, clients[1].successor());
    assert!(!rig.hub.inner().is_visitor(next));
    assert_eq!(rig.hub.with(now, Hub::try_accept), None);
}

#[test]
fn one_client_has_only_so_many_requests_and_another_still_has_its_own() {
    let mut rig = Rig::new(config());
    let (a, b) = (rig.legacy(), rig.legacy());
    for n in 0..=limits::MAX_CLIENT_CALLS {
        rig.say(a, &call(&n.to_string(), "wait"));
    }
    let refused = rig.take(a);
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["id"], limits::MAX_CLIENT_CALLS);
    assert_eq!(refused[0]["error"]["data"]["reason"], "busy");
    rig.say(b, &call("1", "wait"));
    assert!(rig.take(b).is_empty());
    assert_eq!(rig.take(server(0)).len(), limits::MAX_CLIENT_CALLS + 1);
}

#[test]
fn what_is_kept_of_one_client_is_bounded() {
    let mut rig = Rig::new(config());
    let a = rig.legacy();
    let len = 10_000;
    let fit = limits::MAX_CLIENT_KEPT / len;
    for n in 0..fit + 2 {
        let uri = format!("{n:0>len$}");
        rig.say(a, &request(&n.to_string(), "resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#)));
    }
    let refused = rig.take(a);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|value| value["error"]["data"]["reason"] == "busy"));
    let uri = format!("{:0>len$}", 0);
    rig.say(a, &request("\"u\"", "resources/unsubscribe", &format!(r#"{{"uri":"{uri}"}}"#)));
    rig.say(a, &request("\"s\"", "resources/subscribe", r#"{"uri":"u:1"}"#));
    assert!(rig.take(a).is_empty(), "there is room again");
}

#[test]
fn small_messages_count_with_what_they_cost() {
    let mut rig = Rig::new(config());
    let slow = rig.legacy();
    rig.block(slow);
    let text = notification("x", "[]");
    let mut count = 0usize;
    while rig.aborted.is_empty() {
        rig.say(server(0), &text);
        count += 1;
        assert!(count * text.len() <= limits::MAX_CLIENT_QUEUE);
    }
    // A place in a queue takes a few hundred bytes, whatever is in it.
    assert!(count * 256 <= 2 * limits::MAX_CLIENT_QUEUE, "{count} messages waited");
}
