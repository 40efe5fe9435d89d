//! One hub, its clients and its servers.

use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::time::Duration;

use lumen_proto::endpoint::{Event, Hub, HubConfig, HubEvent, Parted, Pool, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{Instant, Port};
use lumen_tests::sim::scripted::{Got, JsonClient, Life, LumenClient, McpServer, McpWitness, Nature};
use lumen_tests::sim::{Checked, Chop, Link, Outbox, Party, Spawn, Spawned, World};
use serde_json::Value;

/// Every way to cut.
pub(crate) const CHOPS: [Chop; 3] = [Chop::Whole, Chop::OneByte, Chop::Seeded(1)];

/// The code for requests in flight when a server dies.
pub(crate) const GONE: i64 = -32011;

/// A world with one hub, which is machine 0.
pub(crate) struct Bench {
    pub(crate) sim: World<Checked<Pool>>,
    pub(crate) seen: McpWitness,
}

/// A client of it.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) port: Port,
    pub(crate) got: Rc<RefCell<Got>>,
}

pub(crate) fn config() -> HubConfig {
    HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off))
}

pub(crate) fn config_with(mode: Mode) -> HubConfig {
    HubConfig::new(ServerConfig::new(Behind::Process, mode))
}

/// A hub whose servers are all like this.
pub(crate) fn bench(nature: Nature) -> Bench {
    Bench::new(Chop::Whole, config(), move |_| nature.clone())
}

/// One with this chopping.
pub(crate) fn bench_by(chop: Chop, nature: Nature) -> Bench {
    Bench::new(chop, config(), move |_| nature.clone())
}

impl Bench {
    pub(crate) fn new(chop: Chop, config: HubConfig, nature: impl Fn(usize) -> Nature + 'static) -> Self {
        Self::by_spawn(chop, config, move |spawn, seen| {
            Spawned::Party(Box::new(McpServer::new(nature(spawn.nth), seen)))
        })
    }

    pub(crate) fn by_spawn(
        chop: Chop,
        config: HubConfig,
        spawn: impl Fn(Spawn, &McpWitness) -> Spawned<Checked<Pool>> + 'static,
    ) -> Self {
        let seen = McpWitness::default();
        let witness = McpWitness::clone(&seen);
        let mut sim = World::new(Link::chopped(chop), move |request| spawn(request, &witness));
        let is_last = |event: &HubEvent| matches!(event, HubEvent::Stream(Event::Finished(_)));
        sim.add(Checked::new(Pool::new(config)).with_last(is_last));
        Self { sim, seen }
    }

    /// Lets a party in.
    pub(crate) fn admit(&mut self, party: impl Party + 'static) -> Port {
        let port = self.sim.with(0, |hub, now| hub.with(now, Pool::try_accept)).expect("room");
        self.sim.attach(0, port, party);
        port
    }

    /// Lets a client in that speaks lines.
    pub(crate) fn client(&mut self) -> Guest {
        let client = JsonClient::new();
        let got = client.got();
        Guest { port: self.admit(client), got }
    }

    /// Lets a client in that speaks frames.
    pub(crate) fn lumen_client(&mut self, client: LumenClient) -> Guest {
        let got = client.got();
        let guest = Guest { port: self.admit(client), got };
        self.run(1);
        guest
    }

    /// Lets a legacy client in that can do everything, and greets it.
    pub(crate) fn legacy(&mut self) -> Guest {
        self.legacy_with(r#"{"roots":{},"sampling":{},"elicitation":{}}"#, "2025-11-25")
    }

    pub(crate) fn legacy_with(&mut self, capabilities: &str, revision: &str) -> Guest {
        let guest = self.client();
        self.greet(&guest, capabilities, revision);
        guest
    }

    pub(crate) fn greet(&mut self, guest: &Guest, capabilities: &str, revision: &str) {
        self.say(guest, &initialize("\"init\"", capabilities, revision));
        self.say(guest, INITIALIZED);
    }

    /// Has a client say this, and lets it arrive.
    pub(crate) fn say(&mut self, guest: &Guest, text: &str) {
        self.queue(guest, text);
        self.run(1);
    }

    /// Has a client say this, and does not wait.
    pub(crate) fn queue(&mut self, guest: &Guest, text: &str) {
        let line = format!("{text}\n");
        self.sim.tell(0, guest.port, |out| out.send(line));
    }

    /// Has a server say this, and lets it arrive.
    pub(crate) fn server_says(&mut self, port: Port, text: &str) {
        let line = format!("{text}\n");
        self.sim.tell(0, port, |out| out.send(line));
        self.run(1);
    }

    /// Has a party do something, and lets that have its effect.
    pub(crate) fn tell(&mut self, port: Port, what: impl FnOnce(&mut Outbox)) {
        self.sim.tell(0, port, what);
        self.run(1);
    }

    /// Ends a client's connection, both ways.
    pub(crate) fn cut(&mut self, guest: &Guest) {
        self.sim.cut(0, guest.port);
        self.run(1);
    }

    pub(crate) fn run(&mut self, millis: u64) {
        self.sim.run_for(Duration::from_millis(millis));
    }

    pub(crate) fn hub(&self) -> &Hub {
        self.pool().shared().expect("one hub for all")
    }

    pub(crate) fn pool(&self) -> &Pool {
        self.sim.machine(0).inner()
    }

    pub(crate) fn shut_down(&mut self) {
        self.sim.with(0, |hub, now| hub.with(now, |hub| hub.shut_down(now)));
    }

    /// The n-th start of any server.
    pub(crate) fn life(&self, nth: usize) -> Ref<'_, Life> {
        Ref::map(self.seen.borrow(), |seen| &seen[nth])
    }

    /// When servers were started.
    pub(crate) fn starts(&self) -> Vec<Instant> {
        self.seen.borrow().iter().map(|life| life.start).collect()
    }

    /// The id that the n-th call of a tool has at the server, in the last life.
    pub(crate) fn id_of(&self, tool: &str, nth: usize) -> String {
        self.seen.borrow().last().expect("a server").id_of(tool, nth)
    }

    /// Why a client was parted with.
    pub(crate) fn parted(&self, guest: &Guest) -> Option<Parted> {
        self.sim.events(0).find_map(|(_, event)| match event {
            HubEvent::Parted { port, why } if *port == guest.port => Some(*why),
            _ => None,
        })
    }

    /// Asserts that no server found fault, and that nothing is kept for anybody.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        for life in self.seen.borrow().iter() {
            assert!(life.faults.is_empty(), "{:?}", life.faults);
        }
        assert_eq!(self.pool().pending(), [], "something is kept");
        assert!(self.pool().shared().is_none_or(|hub| hub.mux().is_empty()), "something is kept");
    }
}

impl Guest {
    /// The answer to this id (as JSON), which must have come once.
    #[track_caller]
    pub(crate) fn answer(&self, id: &str) -> Value {
        let answers = self.got.borrow().answers(id);
        assert_eq!(answers.len(), 1, "{id}: {answers:?} in {:?}", self.heads());
        answers[0].clone()
    }

    /// Its result.
    #[track_caller]
    pub(crate) fn result(&self, id: &str) -> Value {
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// Asserts that this id was answered once, with this error, and returns it.
    #[track_caller]
    pub(crate) fn error(&self, id: &str, code: i64) -> Value {
        let answer = self.answer(id);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        answer["error"].clone()
    }

    /// Asserts that this id was not answered.
    #[track_caller]
    pub(crate) fn no_answer(&self, id: &str) {
        let answers = self.got.borrow().answers(id);
        assert!(answers.is_empty(), "{id}: {answers:?}");
    }

    /// What it got with this method.
    pub(crate) fn with_method(&self, method: &str) -> Vec<Value> {
        self.got.borrow().values().into_iter().filter(|value| value["method"] == method).collect()
    }

    /// How many messages it got.
    pub(crate) fn count(&self) -> usize {
        self.got.borrow().messages.len()
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.got.borrow().texts().iter().map(|text| text.chars().take(200).collect()).collect()
    }
}

pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(crate) fn initialize(id: &str, capabilities: &str, revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

/// A call of a tool, with these arguments.
pub(crate) fn call_with(id: &str, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// A call of a tool.
pub(crate) fn call(id: &str, tool: &str) -> String {
    call_with(id, tool, "{}")
}

/// A request of the modern era, with these members besides.
pub(crate) fn modern(id: &str, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

pub(crate) fn modern_call(id: &str, tool: &str) -> String {
    modern(id, "tools/call", &format!(r#""name":"{tool}","arguments":{{}}"#))
}

pub(crate) fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

pub(crate) fn cancel(id: &str) -> String {
    notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#))
}

pub(crate) fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Its first start, and every further one.
pub(crate) fn server(nth: usize) -> Port {
    (0..nth).fold(Port::new(0), |port, _| port.successor())
}

/// The first start of the server for the other era.
pub(crate) const OTHER: Port = Port::new(1);
