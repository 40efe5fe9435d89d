//! The hub by hand: the smallest walks. The simulated world has the long ones.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::collections::BTreeMap;

use bytes::BytesMut;

use super::*;
use crate::endpoint::ServerConfig;
use crate::negotiate::Mode;
use crate::supervisor::Behind;
use crate::{ChildEvent, Exit};

/// A hub, and all that it said to whom.
struct Rig {
    hub: Hub,
    now: Instant,
    said: BTreeMap<Port, Vec<String>>,
    spawned: Vec<Port>,
    aborted: Vec<Port>,
    events: Vec<HubEvent>,
}

impl Rig {
    fn new() -> Self {
        let config = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off));
        Self {
            hub: Hub::new(config),
            now: Instant::ZERO,
            said: BTreeMap::new(),
            spawned: Vec::new(),
            aborted: Vec::new(),
            events: Vec::new(),
        }
    }

    fn client(&mut self) -> Port {
        let port = self.hub.try_accept().unwrap();
        self.input(Input::Opened(port));
        port
    }

    fn input(&mut self, input: Input<'_>) {
        self.hub.handle_input(self.now, input);
        self.drain();
    }

    fn say(&mut self, port: Port, text: &str) {
        let line = alloc::format!("{text}\n");
        assert!(self.hub.wants_input(port) >= line.len(), "{port} is not read");
        self.input(Input::Data(port, line.as_bytes()));
    }

    fn pass(&mut self, millis: u64) {
        self.now = Instant::from_micros(self.now.as_micros() + millis * 1000);
        self.hub.handle_timeout(self.now);
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            let mut any = false;
            while let Some(action) = self.hub.poll_action() {
                any = true;
                match action {
                    Action::Spawn(port) => self.spawned.push(port),
                    Action::Abort(port) => self.aborted.push(port),
                    Action::Signal(..) => {}
                }
            }
            while let Some(port) = self.hub.poll_ready() {
                let mut out = BytesMut::new();
                while self.hub.poll_transmit(self.now, port, &mut out) == Transmit::More {
                    any = true;
                }
                let text = String::from_utf8(out.to_vec()).unwrap();
                self.said.entry(port).or_default().extend(text.lines().map(ToString::to_string));
            }
            while let Some(event) = self.hub.poll_event() {
                any = true;
                self.events.push(event);
            }
            if !any {
                return;
            }
        }
    }

    fn heard(&mut self, port: Port) -> Vec<String> {
        self.said.remove(&port).unwrap_or_default()
    }

    /// Lets a client in that has shaken hands, and the server with it if it is not running yet.
    fn legacy_client(&mut self) -> Port {
        let client = self.client();
        self.say(client, INITIALIZE);
        if let Some(child) = self.spawned.pop() {
            self.input(Input::Opened(child));
            let heard = self.heard(child);
            assert!(heard[0].contains(r#""method":"initialize""#), "{heard:?}");
            let id = id_of(&heard[0]);
            self.say(child, &alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{RESULT}}}"#));
            assert_eq!(self.heard(child), [r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#]);
        }
        let heard = self.heard(client);
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert!(
            heard[0].starts_with(r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion""#),
            "{heard:?}"
        );
        client
    }
}

const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}}"#
);
const RESULT: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}"#;

fn id_of(line: &str) -> String {
    let message = crate::jsonrpc::Message::copy_from(line.as_bytes()).unwrap();
    String::from_utf8(message.id().unwrap().to_vec()).unwrap()
}

fn child(generation: u32) -> Port {
    (0..generation).fold(Port::new(0), |port, _| port.successor())
}

#[test]
fn two_clients_share_one_server_and_its_handshake() {
    let mut rig = Rig::new();
    let a = rig.legacy_client();
    let b = rig.legacy_client();
    assert_eq!(rig.spawned, []);
    for (client, id) in [(a, "1"), (b, "1"), (a, r#""1""#), (b, r#""\u0061""#)] {
        rig.say(client, &alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#));
    }
    let asked = rig.heard(child(0));
    for line in asked.iter().rev() {
        let id = id_of(line);
        rig.say(child(0), &alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"of":{id}}}}}"#));
    }
    let ids: Vec<String> = rig.heard(a).iter().map(|line| id_of(line)).collect();
    assert_eq!(ids, [r#""1""#, "1"]);
    let ids: Vec<String> = rig.heard(b).iter().map(|line| id_of(line)).collect();
    assert_eq!(ids, [r#""\u0061""#, "1"]);
    assert!(rig.hub.mux().is_empty());
}

#[test]
fn a_crash_is_told_to_whom_it_concerns_and_the_server_comes_back() {
    let mut rig = Rig::new();
    let a = rig.legacy_client();
    let b = rig.legacy_client();
    rig.say(a, r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
    rig.input(Input::Child(child(0), ChildEvent::Exited(Exit::Code(1))));
    rig.input(Input::Eof(child(0)));
    let heard = rig.heard(a);
    assert_eq!(heard.len(), 1);
    assert!(heard[0].contains(r#""id":7,"error":{"code":-32011"#), "{heard:?}");
    assert_eq!(rig.heard(b), Vec::<String>::new());
    rig.say(b, r#"{"jsonrpc":"2.0","id":8,"method":"tools/list"}"#);
    rig.pass(2999);
    assert_eq!(rig.spawned, []);
    rig.pass(1);
    assert_eq!(rig.spawned, [child(1)]);
    rig.input(Input::Opened(child(1)));
    let id = id_of(&rig.heard(child(1))[0]);
    rig.say(child(1), &alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{RESULT}}}"#));
    let heard = rig.heard(child(1));
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[1].contains("tools/list"));
    for client in [a, b] {
        assert_eq!(rig.heard(client), [r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#]);
    }
}

#[test]
fn a_client_that_goes_takes_its_requests_along() {
    let mut rig = Rig::new();
    let a = rig.legacy_client();
    let b = rig.legacy_client();
    rig.say(a, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    rig.say(b, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let asked = rig.heard(child(0));
    rig.input(Input::Lost(a));
    assert_eq!(rig.aborted, [a]);
    let told = rig.heard(child(0));
    assert_eq!(told.len(), 1);
    let cancelled = alloc::format!(r#""requestId":{},"#, id_of(&asked[0]));
    assert!(told[0].contains("notifications/cancelled") && told[0].contains(&cancelled), "{told:?}");
    rig.say(child(0), &alloc::format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id_of(&asked[1])));
    assert_eq!(rig.heard(b), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
    assert!(rig.hub.mux().is_empty());
}

#[test]
fn a_hub_without_clients_ends_by_itself_when_told_to() {
    let mut rig = Rig::new();
    rig.hub.config.idle_exit = Some(core::time::Duration::from_secs(10));
    rig.pass(9000);
    let a = rig.legacy_client();
    rig.pass(60_000);
    rig.input(Input::Lost(a));
    rig.pass(9999);
    assert!(!rig.events.contains(&HubEvent::Stream(Event::Finished(Outcome::Terminated(None)))));
    rig.pass(1);
    rig.input(Input::Child(child(0), ChildEvent::Exited(Exit::Code(0))));
    rig.input(Input::Eof(child(0)));
    assert_eq!(rig.events.last(), Some(&HubEvent::Stream(Event::Finished(Outcome::Terminated(None)))));
}

#[test]
fn the_end_is_told_last() {
    let mut rig = Rig::new();
    let a = rig.legacy_client();
    rig.say(a, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    rig.hub.shut_down(rig.now);
    rig.drain();
    rig.say(a, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    assert!(rig.heard(a)[0].contains(r#""reason":"shutting_down""#));
    assert_eq!(rig.hub.try_accept(), None);
    rig.pass(5000);
    rig.input(Input::Child(child(0), ChildEvent::Exited(Exit::Signal(15))));
    rig.input(Input::Eof(child(0)));
    assert!(rig.heard(a)[0].contains(r#""id":1,"error":{"code":-32011"#));
    rig.input(Input::Finished(a));
    assert_eq!(rig.events.last(), Some(&HubEvent::Stream(Event::Finished(Outcome::Terminated(None)))));
    assert_eq!(rig.hub.poll_timeout(), None);
}

#[test]
fn a_client_that_shakes_hands_late_is_still_one_that_can_be_asked() {
    let mut rig = Rig::new();
    let _first = rig.legacy_client();
    let late = rig.client();
    rig.say(late, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    rig.say(late, INITIALIZE);
    rig.heard(late);
    rig.say(child(0), r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    let heard = rig.heard(late);
    assert!(heard.len() == 1 && heard[0].contains("roots/list"), "{heard:?}");
}

#[test]
fn a_client_that_says_no_more_gets_all_its_answers_at_once() {
    let mut rig = Rig::new();
    let a = rig.legacy_client();
    rig.say(a, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    rig.say(a, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    rig.input(Input::Eof(a));
    rig.input(Input::Child(child(0), ChildEvent::Exited(Exit::Code(1))));
    rig.input(Input::Eof(child(0)));
    let ids: Vec<String> = rig.heard(a).iter().map(|line| id_of(line)).collect();
    assert_eq!(ids, ["1", "2"]);
}

#[test]
fn a_modern_client_is_not_told_what_goes_to_all() {
    let mut rig = Rig::new();
    let modern = rig.client();
    rig.say(modern, r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#);
    let child = rig.spawned.pop().unwrap();
    rig.input(Input::Opened(child));
    let id = id_of(&rig.heard(child)[0]);
    rig.say(
        child,
        &alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#),
    );
    assert_eq!(rig.heard(modern).len(), 1);
    // It is of no era now, like the server of a plain client.
    rig.say(child, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    assert_eq!(rig.heard(modern), Vec::<String>::new());
}

#[test]
fn a_server_is_not_told_of_the_end_of_a_subscription_that_only_the_one_before_had() {
    let mut rig = Rig::new();
    let a = rig.client();
    rig.say(a, r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}"#);
    rig.spawned.clear();
    rig.input(Input::Opened(child(0)));
    assert!(rig.heard(child(0))[0].contains("subscriptions/listen"));
    rig.input(Input::Child(child(0), ChildEvent::Exited(Exit::Code(1))));
    rig.input(Input::Eof(child(0)));
    rig.pass(3000);
    assert_eq!(rig.spawned, [child(1)]);
    rig.say(a, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    rig.input(Input::Opened(child(1)));
    assert_eq!(rig.heard(child(1)), Vec::<String>::new());
    assert!(rig.hub.mux().is_empty());
}

#[test]
fn a_server_that_discover_has_ended_is_sent_nothing_modern_any_more() {
    let mut rig = Rig::new();
    let a = rig.client();
    rig.say(a, r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}"#);
    rig.spawned.clear();
    rig.input(Input::Opened(child(0)));
    rig.say(a, r#"{"jsonrpc":"2.0","id":2,"method":"server/discover"}"#);
    rig.input(Input::Child(child(0), ChildEvent::Exited(Exit::Code(1))));
    rig.input(Input::Eof(child(0)));
    let heard = rig.heard(a).join(" ");
    assert!(heard.contains(r#""id":1,"error":{"code":-32011"#), "{heard}");
    assert!(heard.contains(r#""id":2,"error":{"code":-32601"#), "{heard}");
    // The other place is free, so nobody has to wait for the first one; that is needed by nobody any more.
    rig.spawned.clear();
    rig.say(a, INITIALIZE);
    rig.pass(3000);
    let other = Port::new(1);
    assert_eq!(rig.spawned, [other]);
    rig.input(Input::Opened(other));
    let heard = rig.heard(other);
    assert!(heard.len() == 1 && heard[0].contains(r#""method":"initialize""#), "{heard:?}");
}

#[test]
fn a_client_that_goes_on_at_the_other_server_is_subscribed_to_nothing_at_the_first() {
    let mut rig = Rig::new();
    rig.legacy_client();
    let plain = rig.client();
    rig.say(plain, r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}"#);
    let id = id_of(&rig.heard(child(0))[0]);
    rig.say(child(0), &alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    assert_eq!(rig.heard(plain), [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]);
    rig.say(plain, r#"{"jsonrpc":"2.0","id":2,"method":"server/discover"}"#);
    let told = rig.heard(child(0));
    assert!(told[0].contains("resources/unsubscribe") && told[0].contains("a:b"), "{told:?}");
    let update = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#;
    rig.say(child(0), update);
    assert_eq!(rig.heard(plain), [""; 0]);
}
