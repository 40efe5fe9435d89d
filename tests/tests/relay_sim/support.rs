//! One relay, its client and its children.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lumen_proto::endpoint::{Event, Outcome, Relay, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{Exit, Instant, Port};
use lumen_tests::sim::scripted::{Got, JsonClient, JsonServer, LumenServer, Manners, Witness};
use lumen_tests::sim::world::What;
use lumen_tests::sim::{Checked, Chop, Link, Party, Spawned, World};
use serde_json::Value;

pub(crate) type Sim = World<Checked<Relay>>;

/// Every way to cut.
pub(crate) const CHOPS: [Chop; 4] = [Chop::Whole, Chop::OneByte, Chop::Seeded(1), Chop::Seeded(2)];

pub(crate) const INIT: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"é—漢😀","version":"1.0"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
pub(crate) const LIST: &str = r#"{"jsonrpc":"2.0", "id":"list" ,"method":"tools/list"}"#;

/// A call with this id, as JSON text.
pub(crate) fn call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"n":9007199254740993,"x":1.0}}}}}}"#
    )
}

/// The usual session, all at once.
pub(crate) fn session() -> JsonClient {
    JsonClient::new().at(0, INIT).at(0, INITIALIZED).at(0, LIST).at(0, call("7"))
}

/// What the session sends, in order.
pub(crate) fn session_texts() -> Vec<String> {
    vec![INIT.to_owned(), INITIALIZED.to_owned(), LIST.to_owned(), call("7")]
}

/// A world with one relay, which is machine 0.
pub(crate) struct Run {
    pub(crate) sim: Sim,
    pub(crate) got: Rc<RefCell<Got>>,
    pub(crate) seen: Witness,
}

/// A relay toward children that may speak LUMEN, with a JSON client.
pub(crate) fn connect(
    chop: Chop,
    mode: Mode,
    client: JsonClient,
    child: impl Fn(usize, &Witness) -> Box<dyn Party> + 'static,
) -> Run {
    run(Link::chopped(chop), Relay::connect(config(mode)), client, child)
}

pub(crate) fn config(mode: Mode) -> ServerConfig {
    ServerConfig::new(Behind::Process, mode)
}

/// What a process around a relay exits with.
pub(crate) fn exit_of(event: &Event) -> Option<Exit> {
    match event {
        Event::Finished(Outcome::Closed(_)) => Some(Exit::Code(0)),
        Event::Finished(_) => Some(Exit::Code(1)),
        _ => None,
    }
}

pub(crate) fn run(
    link: Link,
    relay: Relay,
    client: JsonClient,
    child: impl Fn(usize, &Witness) -> Box<dyn Party> + 'static,
) -> Run {
    let got = client.got();
    let (sim, seen) = world(link, relay, client, child);
    Run { sim, got, seen }
}

pub(crate) fn world(
    link: Link,
    relay: Relay,
    client: impl Party + 'static,
    child: impl Fn(usize, &Witness) -> Box<dyn Party> + 'static,
) -> (Sim, Witness) {
    let seen = Witness::default();
    let witness = Witness::clone(&seen);
    let mut sim = World::new(link, move |spawn| Spawned::Party(child(spawn.nth, &witness)));
    let port = relay.client_port();
    let id = sim.add(checked(relay));
    sim.attach(id, port, client);
    (sim, seen)
}

pub(crate) fn checked(relay: Relay) -> Checked<Relay> {
    Checked::new(relay).with_last(|event| matches!(event, Event::Finished(_)))
}

/// Children that are all JSON servers with these manners.
pub(crate) fn json(manners: Manners) -> impl Fn(usize, &Witness) -> Box<dyn Party> {
    move |_, seen| Box::new(JsonServer::new(manners.clone(), seen))
}

/// A first child with these manners, and good ones after it.
pub(crate) fn json_once(manners: Manners) -> impl Fn(usize, &Witness) -> Box<dyn Party> {
    move |nth, seen| {
        let manners = if nth == 0 { manners.clone() } else { Manners::default() };
        Box::new(JsonServer::new(manners, seen))
    }
}

/// Children that are all LUMEN servers, made so.
pub(crate) fn lumen(
    make: impl Fn(LumenServer) -> LumenServer + 'static,
) -> impl Fn(usize, &Witness) -> Box<dyn Party> {
    move |_, seen| Box::new(make(LumenServer::new(seen)))
}

impl Run {
    /// Runs until nothing happens any more.
    pub(crate) fn finish(mut self) -> Self {
        self.sim.run_until_idle();
        self
    }

    /// The port of the n-th child.
    pub(crate) fn child(&self, nth: usize) -> Port {
        self.sim
            .log()
            .iter()
            .filter(|e| e.machine == 0 && e.what == What::Spawn)
            .nth(nth)
            .expect("spawned")
            .port
    }

    /// Asserts that these ids (as JSON) were each answered exactly once, with a result.
    #[track_caller]
    pub(crate) fn assert_results(&self, ids: &[&str]) {
        for id in ids {
            let answers = self.got.borrow().answers(id);
            assert!(answers.len() == 1 && answers[0].get("result").is_some(), "{id}: {answers:?}");
        }
    }

    /// Asserts that these ids were each answered exactly once, with this error.
    #[track_caller]
    pub(crate) fn assert_errors(&self, ids: &[&str], code: i64) {
        for id in ids {
            let answers = self.got.borrow().answers(id);
            assert!(answers.len() == 1 && answers[0]["error"]["code"] == code, "{id}: {answers:?}");
        }
    }

    /// Asserts that nothing but so many messages came.
    #[track_caller]
    pub(crate) fn assert_count(&self, count: usize) {
        let got = self.got.borrow();
        let heads: Vec<String> = got.texts().iter().map(|text| text.chars().take(200).collect()).collect();
        assert_eq!(heads.len(), count, "{heads:?}");
        assert_eq!(got.rest, 0);
    }
}

/// A handshake without what the relay added to it.
pub(crate) fn without_offer(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).expect("JSON");
    let capabilities = value["params"]["capabilities"].as_object_mut().expect("capabilities");
    let extensions = capabilities.remove("extensions").expect("an offer was added");
    assert_eq!(
        extensions.as_object().expect("an object").keys().collect::<Vec<_>>(),
        ["dev.lumen/transport"]
    );
    value
}

pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

pub(crate) fn at_least(at: Instant, after: Instant, wait: Duration) -> bool {
    // Everything that follows a deadline takes a few hops of 10 microseconds.
    at >= after + wait && at <= after + wait + Duration::from_millis(1)
}
