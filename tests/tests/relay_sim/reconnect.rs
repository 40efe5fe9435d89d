//! A relay whose server is reached, goes away and comes back, as a hub on a socket does.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lumen_proto::endpoint::{Event, Outcome, Relay, ServerConfig, Unlike};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::{Behind, Ended};
use lumen_proto::{Instant, Machine as _, OpenError, OpenErrorKind, Port, limits};
use lumen_tests::sim::scripted::{Got, JsonClient, Life, McpServer, McpWitness, Nature};
use lumen_tests::sim::world::What;
use lumen_tests::sim::{Chop, Link, Spawned, World};
use serde_json::{Value, json};

use crate::support::*;

const GONE: i64 = -32011;
const REFUSED: OpenError = OpenError { kind: OpenErrorKind::Refused, errno: 111 };
const LEVEL: &str =
    r#"{"jsonrpc":"2.0","id":"level","method":"logging/setLevel","params":{"level":"warning"}}"#;
const LISTEN: &str = r#"{"jsonrpc":"2.0","id":"ear","method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"notifications":{"toolsListChanged":true}}}"#;

struct Rig {
    sim: Sim,
    got: Rc<RefCell<Got>>,
    lives: McpWitness,
}

/// A relay whose n-th connection meets a server of that nature, or nobody.
fn rig(
    chop: Chop,
    mode: Mode,
    client: JsonClient,
    nature: impl Fn(usize) -> Option<Nature> + 'static,
) -> Rig {
    let (got, lives) = (client.got(), McpWitness::default());
    let witness = McpWitness::clone(&lives);
    let mut sim: Sim = World::new(Link::chopped(chop), move |spawn| match nature(spawn.nth) {
        Some(nature) => Spawned::Party(Box::new(McpServer::new(nature, &witness))),
        None => Spawned::Fails(REFUSED),
    });
    let relay = Relay::connect(ServerConfig::new(Behind::Socket, mode));
    let relay = relay.with_reconnect(limits::RECONNECT_LIMIT);
    let port = relay.client_port();
    let id = sim.add(checked(relay));
    sim.attach(id, port, client);
    Rig { sim, got, lives }
}

/// Servers that all speak LUMEN, and agree on the revision that is asked for.
fn good(_nth: usize) -> Option<Nature> {
    Some(Nature { lumen: true, ..legacy() })
}

fn legacy() -> Nature {
    Nature { revision: "2025-06-18", ..Nature::default() }
}

fn greeted() -> JsonClient {
    JsonClient::new().at(0, INIT).at(100, INITIALIZED)
}

fn tool(id: u64, name: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": {}}})
        .to_string()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Rig {
    /// Runs until then, and breaks the connection.
    fn cut_at(mut self, millis: u64) -> Self {
        self.run_to(millis);
        let port = self.server();
        self.sim.cut(0, port);
        self
    }

    fn run_to(&mut self, millis: u64) {
        let left = Instant::from_millis(millis).saturating_since(self.sim.now());
        self.sim.run_for(left);
    }

    fn finish(mut self) -> Self {
        self.sim.run_until_idle();
        self
    }

    /// The port of the connection as it is now.
    fn server(&self) -> Port {
        self.sim.log().iter().rfind(|entry| entry.what == What::Spawn).expect("a connection").port
    }

    fn tries(&self) -> Vec<Instant> {
        self.sim.times(0, What::Spawn)
    }

    #[track_caller]
    fn assert_answers(&self, id: &str, code: Option<i64>) {
        let answers = self.got.borrow().answers(id);
        assert_eq!(answers.len(), 1, "{id}: {answers:?}");
        let found = answers[0]["error"]["code"].as_i64();
        assert_eq!(found, code, "{id}: {answers:?}");
    }

    fn outcome(&self) -> Option<Outcome> {
        self.sim.events(0).find_map(|(_, event)| match event {
            Event::Finished(outcome) => Some(*outcome),
            _ => None,
        })
    }

    fn life(&self, nth: usize) -> std::cell::Ref<'_, Life> {
        std::cell::Ref::map(self.lives.borrow(), |lives| &lives[nth])
    }

    /// What the client was told without having asked.
    fn news(&self) -> Vec<String> {
        let news = self.got.borrow().values().into_iter().filter(|value| value.get("method").is_some());
        news.map(|value| value["method"].as_str().expect("text").to_owned()).collect()
    }
}

/// Methods in order, of what a server was sent.
fn methods(life: &Life) -> Vec<String> {
    life.values().iter().map(|value| value["method"].as_str().unwrap_or("answer").to_owned()).collect()
}

#[test]
fn an_idle_session_goes_on_with_the_same_handshake_told_again() {
    for chop in CHOPS {
        for mode in [Mode::Auto, Mode::Offer, Mode::Off] {
            let rig =
                rig(chop, mode, greeted().at(2000, call("7")).close_at(3000), good).cut_at(1000).finish();
            rig.assert_answers("0", None);
            rig.assert_answers("7", None);
            assert_eq!(
                rig.news(),
                ["notifications/tools/list_changed", "notifications/resources/list_changed"]
            );
            assert_eq!(rig.got.borrow().messages.len(), 4);
            let life = rig.life(1);
            assert_eq!(methods(&life), ["initialize", "notifications/initialized", "tools/call"]);
            assert_eq!(life.texts[2].2, mode == Mode::Auto, "in a frame");
            if mode == Mode::Off {
                assert_eq!(life.texts[0].1, INIT.replace(r#""id":0"#, r#""id":"lumen/1""#));
            }
            assert_eq!(rig.outcome(), Some(Outcome::Closed(Some(Ended::Closed))));
            assert_eq!(rig.tries().len(), 2);
            assert!(at_least(rig.tries()[1], Instant::from_millis(1000), ms(0)));
        }
    }
}

#[test]
fn what_was_in_flight_gets_an_error_at_once_and_what_comes_then_is_answered() {
    for chop in CHOPS {
        let client = greeted()
            .at(500, tool(1, "wait"))
            .at(500, tool(2, "wait"))
            // While nobody is there.
            .at(1500, tool(3, "echo"))
            .at(1500, tool(4, "echo"));
        let rig = rig(chop, Mode::Auto, client, |nth| good(nth).filter(|_| !(1..6).contains(&nth)));
        let mut rig = rig.cut_at(1000);
        rig.sim.run_for(ms(1));
        rig.assert_answers("1", Some(GONE));
        rig.assert_answers("2", Some(GONE));
        let rig = rig.finish();
        rig.assert_answers("3", None);
        rig.assert_answers("4", None);
        assert_eq!(rig.lives.borrow().len(), 2);
        // 0, then 100, 200, 400 and so on after the one before.
        let waits: Vec<_> = rig.tries().windows(2).skip(1).map(|two| two[1] - two[0]).collect();
        assert!(
            waits
                .iter()
                .zip([100, 200, 400, 800, 1600])
                .all(|(wait, due)| *wait >= ms(due) && *wait < ms(due + 1)),
            "{waits:?}"
        );
    }
}

#[test]
fn a_handshake_under_way_is_sent_again_as_it_was() {
    for chop in CHOPS {
        // It dies of the initialize.
        let nature = |nth| Some(Nature { dies_at: (nth == 0).then_some(0), lumen: true, ..legacy() });
        let client =
            JsonClient::new().at(0, INIT).at(0, INITIALIZED).at(0, tool(1, "echo")).at(3000, tool(2, "echo"));
        let rig = rig(chop, Mode::Auto, client, nature).finish();
        rig.assert_answers("0", None);
        rig.assert_answers("1", Some(GONE));
        rig.assert_answers("2", None);
        assert!(rig.news().is_empty(), "it knew nothing before");
        let life = rig.life(1);
        assert_eq!(methods(&life), ["initialize", "notifications/initialized", "tools/call"]);
        assert_eq!(life.values()[0]["id"], 0);
        assert!(life.faults.is_empty(), "{:?}", life.faults);
    }
}

#[test]
fn a_handshake_that_was_answered_and_not_confirmed_is_confirmed_by_the_client() {
    let client = JsonClient::new().at(0, INIT).at(2000, INITIALIZED).at(2100, tool(1, "echo"));
    let rig = rig(Chop::Whole, Mode::Auto, client, good).cut_at(1000).finish();
    rig.assert_answers("1", None);
    assert_eq!(methods(&rig.life(1)), ["initialize", "notifications/initialized", "tools/call"]);
    assert!(rig.news().is_empty());
}

#[test]
fn a_server_that_dies_of_the_handshake_told_again_is_not_the_last() {
    for chop in CHOPS {
        let nature = |nth| Some(Nature { dies_at: (nth == 1).then_some(0), lumen: true, ..legacy() });
        let client = greeted().at(1000, tool(1, "echo")).at(1001, tool(2, "echo"));
        let rig = rig(chop, Mode::Auto, client, nature).cut_at(999).finish();
        rig.assert_answers("1", None);
        rig.assert_answers("2", None);
        assert_eq!(rig.lives.borrow().len(), 3);
        assert_eq!(rig.life(2).values()[0]["id"], "lumen/2");
        assert_eq!(rig.news().len(), 2, "lists are announced once");
    }
}

#[test]
fn one_after_another_may_go() {
    let client = greeted().at(500, tool(1, "wait")).at(10_500, tool(2, "wait")).at(21_000, tool(3, "echo"));
    let rig = rig(Chop::Whole, Mode::Auto, client, good).cut_at(1000).cut_at(11_000).finish();
    rig.assert_answers("1", Some(GONE));
    rig.assert_answers("2", Some(GONE));
    rig.assert_answers("3", None);
    // Each had lasted, so each time the first try is at once.
    assert!(at_least(rig.tries()[2], Instant::from_millis(11_000), ms(0)));
}

#[test]
fn one_that_comes_back_only_to_die_is_given_up() {
    // Each one takes the handshake and dies of what is next.
    let nature = |nth| Some(Nature { dies_at: (nth > 0).then_some(1), lumen: true, ..legacy() });
    let rig = rig(Chop::Whole, Mode::Auto, greeted(), nature).cut_at(1000).finish();
    let Some(Outcome::ServerGone(_)) = rig.outcome() else { panic!("{:?}", rig.outcome()) };
    let tries = rig.tries();
    assert!(tries.len() < 25, "{}", tries.len());
    assert!(
        at_least(*tries.last().unwrap(), Instant::from_millis(1000), limits::RECONNECT_LIMIT),
        "{tries:?}"
    );
}

#[test]
fn nobody_who_comes_back_is_waited_for_within_the_bound_and_no_longer() {
    for chop in CHOPS {
        let client = greeted().at(1500, tool(1, "echo")).at(1500, LIST);
        let rig = rig(chop, Mode::Auto, client, |nth| good(nth).filter(|_| nth == 0)).cut_at(1000).finish();
        rig.assert_answers("1", Some(GONE));
        rig.assert_answers("\"list\"", Some(GONE));
        assert_eq!(rig.outcome(), Some(Outcome::ServerGone(Ended::Failed(REFUSED))));
        let last = *rig.tries().last().unwrap();
        assert!(at_least(last, Instant::from_millis(1000), limits::RECONNECT_LIMIT), "{last:?}");
    }
}

/// Knows both eras, and what a probe is only at first.
fn mute(nth: usize) -> Option<Nature> {
    Some(Nature { ignores: nth > 0, lumen: nth == 0, modern: true, ..legacy() })
}

fn modern(id: u64, name: &str) -> String {
    let meta = r#"{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    tool(id, name).replace("{}", meta)
}

#[test]
fn one_who_comes_back_and_says_nothing_is_given_up_within_the_bound() {
    for chop in CHOPS {
        for mode in [Mode::Auto, Mode::Probe, Mode::Offer, Mode::Off] {
            let rig = rig(chop, mode, greeted().at(1500, tool(1, "echo")), mute).cut_at(1000).finish();
            rig.assert_answers("1", Some(GONE));
            assert_silent_since(&rig, 1000);
        }
        // Without a handshake that is waited for, it counts from the loss if something waits then.
        for (lost, asked, since) in
            [(1000, 1050, 1000), (1000, 1500, 1500), (1000, 90_000, 90_000), (20_000, 20_050, 20_000)]
        {
            let client = JsonClient::new().at(0, modern(0, "echo")).at(asked, modern(1, "wait"));
            let nature = |nth| mute(nth).filter(|_| nth != 1);
            let rig = rig(chop, Mode::Auto, client, nature).cut_at(lost).finish();
            rig.assert_answers("1", Some(GONE));
            assert_silent_since(&rig, since);
        }
    }
}

#[track_caller]
fn assert_silent_since(rig: &Rig, millis: u64) {
    assert_eq!(rig.outcome(), Some(Outcome::NotResumed(Unlike::Silent)));
    let got = rig.got.borrow();
    let (told, text, _) = got.messages.last().unwrap();
    assert!(at_least(*told, Instant::from_millis(millis), limits::RECONNECT_LIMIT), "{told:?}");
    assert!(text.contains("nobody answers there"), "{text}");
}

#[test]
fn one_who_is_heard_may_take_its_time() {
    for chop in CHOPS {
        // It knows the probe.
        let nature = |nth| Some(Nature { ignores: nth > 0, lumen: true, ..legacy() });
        let rig = rig(chop, Mode::Auto, greeted().at(1500, tool(1, "echo")), nature).cut_at(1000).finish();
        assert_eq!(rig.outcome(), Some(Outcome::NoAnswer));
        let (told, _, _) = *rig.got.borrow().messages.last().unwrap();
        assert!(at_least(told, Instant::from_millis(1000), limits::START_TIMEOUT), "{told:?}");
    }
}

#[test]
fn of_one_who_never_carried_lumen_it_is_not_asked_whether_it_is_there() {
    for mode in [Mode::Auto, Mode::Offer, Mode::Off] {
        let client = JsonClient::new().at(0, modern(0, "echo")).at(1500, modern(1, "wait"));
        let mut rig = rig(Chop::Whole, mode, client, |_| Some(Nature::modern())).cut_at(1000);
        rig.run_to(100_000);
        assert_eq!(rig.outcome(), None);
    }
}

#[test]
fn a_server_that_goes_on_with_no_session_ends_it() {
    let refuses = Nature { refuses: Some(json!({"code": -32000, "message": "no"})), ..legacy() };
    let other = Nature { revision: "2025-03-26", ..legacy() };
    for (nature, unlike) in [(refuses, Unlike::Refused), (other, Unlike::Revision)] {
        for chop in CHOPS {
            let nature = nature.clone();
            let client = greeted().at(1000, tool(1, "echo"));
            let rig = rig(chop, Mode::Off, client, move |nth| {
                Some(if nth == 0 { legacy() } else { nature.clone() })
            });
            let rig = rig.cut_at(999).finish();
            rig.assert_answers("1", Some(GONE));
            let text = rig.got.borrow().answers("1")[0]["error"]["message"].to_string();
            assert!(text.contains("the one that came back"), "{text}");
            assert_eq!(rig.outcome(), Some(Outcome::NotResumed(unlike)));
            assert!(rig.got.borrow().eof.is_some());
        }
    }
}

#[test]
fn a_hub_that_is_not_ready_is_tried_again() {
    for chop in CHOPS {
        let error = |reason: &str| json!({"code": -32603, "message": "no", "data": {"reason": reason}});
        let nature = move |nth| {
            let refuses = [None, Some("full"), Some("down")].get(nth).copied().flatten().map(error);
            Some(Nature { refuses, ..legacy() })
        };
        let rig = rig(chop, Mode::Off, greeted().at(1000, tool(1, "echo")), nature).cut_at(999).finish();
        rig.assert_answers("1", None);
        assert_eq!(rig.lives.borrow().len(), 4);
    }
    let always = json!({"code": -32603, "message": "no", "data": {"reason": "full"}});
    let nature = move |nth| Some(Nature { refuses: (nth > 0).then(|| always.clone()), ..legacy() });
    let rig = rig(Chop::Whole, Mode::Off, greeted(), nature).cut_at(1000).finish();
    assert_eq!(rig.outcome(), Some(Outcome::ServerGone(Ended::Closed)));
    let last = *rig.tries().last().unwrap();
    assert!(at_least(last, Instant::from_millis(1000), limits::RECONNECT_LIMIT), "{last:?}");
}

fn resource(id: &str, method: &str, uri: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": format!("resources/{method}"), "params": {"uri": uri}})
        .to_string()
}

#[test]
fn the_level_and_what_is_subscribed_to_are_told_again() {
    for chop in CHOPS {
        let client = greeted()
            .at(200, LEVEL)
            .at(200, resource("a", "subscribe", "file:///a"))
            .at(200, resource("b", "subscribe", "file:///b"))
            .at(300, resource("c", "unsubscribe", "file:///a"))
            // Neither is answered before the end.
            .at(999, resource("d", "unsubscribe", "file:///b"))
            .at(999, resource("e", "subscribe", "file:///e"))
            .at(2000, tool(1, "echo"));
        let mut rig = rig(chop, Mode::Auto, client, good);
        rig.run_to(998);
        let port = rig.server();
        rig.sim.tell(0, port, |out| out.pause());
        let rig = rig.cut_at(1000).finish();
        for id in ["\"level\"", "\"a\"", "\"b\"", "\"c\""] {
            rig.assert_answers(id, None);
        }
        rig.assert_answers("\"d\"", Some(GONE));
        rig.assert_answers("\"e\"", Some(GONE));
        rig.assert_answers("1", None);
        let life = rig.life(1);
        let told: Vec<Value> = life
            .values()
            .into_iter()
            .skip(2)
            .map(|value| json!([value["method"], value["params"]]))
            .collect();
        assert_eq!(told[0], json!(["logging/setLevel", {"level": "warning"}]));
        assert_eq!(told[1], json!(["resources/subscribe", {"uri": "file:///b"}]));
        assert_eq!((told.len(), &told[2][0]), (3, &json!("tools/call")));
        assert_eq!(rig.got.borrow().messages.len(), 10, "what we asked is answered to us");
    }
}

#[test]
fn a_modern_client_is_not_greeted_and_listens_on() {
    for chop in CHOPS {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let nature = |nth| (!(1..4).contains(&nth)).then(|| Nature { lumen: true, ..Nature::modern() });
        let mut rig =
            rig(chop, Mode::Auto, JsonClient::new().at(0, LISTEN).at(2000, call), nature).cut_at(1000);
        rig.run_to(3000);
        let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": "ear"}}});
        let end = json!({"jsonrpc": "2.0", "id": "ear", "result": {}});
        let port = rig.server();
        for message in [note, end] {
            rig.sim.tell(0, port, |out| out.send(format!("{message}\n")));
        }
        rig.run_to(4000);
        let rig = rig.cut_at(4000).finish();
        rig.assert_answers("1", None);
        rig.assert_answers("\"ear\"", None);
        assert_eq!(
            rig.news(),
            ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"]
        );
        assert_eq!(rig.life(1).values()[0], value(LISTEN));
        assert_eq!(methods(&rig.life(1)), ["subscriptions/listen", "tools/list"]);
        assert!(methods(&rig.life(2)).is_empty(), "that was its end");
    }
}

#[test]
fn a_subscription_that_was_not_acknowledged_is_acknowledged_once() {
    let nature = |nth| Some(Nature { lumen: true, dies_at: (nth == 0).then_some(0), ..Nature::modern() });
    let rig = rig(Chop::Whole, Mode::Auto, JsonClient::new().at(0, LISTEN), nature).cut_at(2000).finish();
    assert_eq!(rig.news(), ["notifications/subscriptions/acknowledged"]);
    assert_eq!(rig.lives.borrow().len(), 3);
}

#[test]
fn what_is_said_meanwhile_is_held_within_the_bound_and_none_of_it_is_lost() {
    let long = "x".repeat(100_000);
    let mut client = greeted();
    for id in 0..40 {
        let text = json!({"jsonrpc": "2.0", "id": 100 + id, "method": "tools/call", "params": {"name": "echo", "arguments": {"x": long}}});
        client = client.at(1500, text.to_string());
    }
    let mut rig =
        rig(Chop::Whole, Mode::Auto, client, |nth| good(nth).filter(|_| !(1..8).contains(&nth))).cut_at(1000);
    rig.run_to(3000);
    let port = rig.sim.machine(0).inner().client_port();
    let read = rig.sim.machine(0).wants_input(port);
    assert_eq!(read, 0, "no more is read");
    let taken = rig.sim.transcript(0, port).1.len();
    assert!(taken < limits::MAX_QUEUE + 4 * limits::READ_CHUNK, "{taken}");
    let rig = rig.finish();
    for id in 0..40 {
        rig.assert_answers(&(100 + id).to_string(), None);
    }
}

#[test]
fn an_answer_to_the_server_before_is_none_to_the_next_one() {
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\"}\n";
    let late = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#;
    let mut rig = rig(Chop::Whole, Mode::Off, greeted().at(3000, late).at(5000, late), good);
    rig.run_to(900);
    let port = rig.server();
    rig.sim.tell(0, port, |out| out.send(ask));
    let mut rig = rig.cut_at(1000);
    rig.run_to(2000);
    let port = rig.server();
    rig.sim.tell(0, port, |out| out.send(ask));
    rig.run_to(4000);
    rig.sim.tell(0, port, |out| out.send(ask));
    let rig = rig.finish();
    let asked = rig.news().iter().filter(|method| *method == "elicitation/create").count();
    assert_eq!(asked, 2, "not while the first one may still be answered");
    assert!(rig.news().contains(&"notifications/cancelled".to_owned()));
    let replies: Vec<Value> =
        rig.life(1).values().into_iter().filter(|value| value.get("method").is_none()).collect();
    assert_eq!(replies.len(), 2, "{replies:?}");
    assert_eq!(replies[0]["error"]["data"]["reason"], "id_in_use");
    assert_eq!(replies[1]["result"]["action"], "accept");
}

#[test]
fn a_client_that_leaves_meanwhile_is_not_kept() {
    let down = |nth| good(nth).filter(|_| nth == 0 || nth > 5);
    let rig = rig(Chop::Whole, Mode::Auto, greeted().close_at(1500), down).cut_at(1000).finish();
    assert!(rig.sim.now() < Instant::from_millis(2000), "{:?}", rig.sim.now());
    assert_eq!(rig.outcome(), Some(Outcome::Closed(Some(Ended::Closed))));
}

#[test]
fn a_client_that_leaves_after_asking_is_answered_first() {
    let down = |nth| good(nth).filter(|_| nth == 0 || nth > 5);
    let client = greeted().at(1500, tool(1, "echo")).close_at(1600);
    let rig = rig(Chop::Whole, Mode::Auto, client, down).cut_at(1000).finish();
    rig.assert_answers("1", None);
    assert_eq!(rig.outcome(), Some(Outcome::Closed(Some(Ended::Closed))));
}

#[test]
fn told_to_end_it_does_not_wait_for_anybody() {
    for open in [false, true] {
        let nobody = move |nth| good(nth).filter(|_| nth == 0 || open);
        let mut rig = rig(Chop::Whole, Mode::Off, greeted().at(1000, tool(1, "wait")), nobody).cut_at(999);
        rig.run_to(1500);
        rig.sim.with(0, |relay, now| relay.with(now, |relay| relay.terminate(now)));
        let rig = rig.finish();
        rig.assert_answers("1", Some(GONE));
        assert_eq!(rig.outcome(), Some(Outcome::Terminated(Some(Ended::Closed))));
        assert!(rig.sim.machine(0).has_ended());
    }
}

#[test]
fn without_hope_it_ends_at_once() {
    let nobody = |nth| good(nth).filter(|_| nth == 0);
    let mut rig = rig(Chop::Whole, Mode::Off, greeted().at(1500, tool(1, "echo")), nobody).cut_at(1000);
    rig.run_to(2000);
    rig.sim.with(0, |relay, now| relay.with(now, |relay| relay.give_up(now)));
    let rig = rig.finish();
    rig.assert_answers("1", Some(GONE));
    assert_eq!(rig.outcome(), Some(Outcome::ServerGone(Ended::Failed(REFUSED))));
    assert!(rig.sim.now() < Instant::from_millis(3000));
}

#[test]
fn a_server_that_was_never_of_use_is_not_tried_again() {
    let rig_ = rig(Chop::Whole, Mode::Off, session(), |_| None).finish();
    assert_eq!(rig_.outcome(), Some(Outcome::NotStarted(REFUSED)));
    assert_eq!(rig_.tries().len(), 1);
    // As a hub that is full: it closes at once.
    let nature = |_| Some(Nature { dies_at: Some(0), ..legacy() });
    let rig = rig(Chop::Whole, Mode::Off, session(), nature).finish();
    assert!(matches!(rig.outcome(), Some(Outcome::ServerGone(_))));
    assert_eq!(rig.tries().len(), 1);
}

#[test]
fn a_server_that_was_seen_is_tried_again_from_the_first() {
    for chop in CHOPS {
        let client = greeted().at(100, tool(1, "echo")).close_at(200);
        let (got, lives) = (client.got(), McpWitness::default());
        let mut sim: Sim = World::new(Link::chopped(chop), move |spawn| match spawn.nth {
            // It was about to end.
            0 => Spawned::Fails(REFUSED),
            1 => Spawned::Party(Box::new(McpServer::new(Nature { dies_at: Some(0), ..legacy() }, &lives))),
            nth => Spawned::Party(Box::new(McpServer::new(good(nth).unwrap(), &lives))),
        });
        let relay = Relay::connect(ServerConfig::new(Behind::Socket, Mode::Auto));
        let relay = relay.with_reconnect(limits::RECONNECT_LIMIT).with_seen_server();
        let port = relay.client_port();
        let id = sim.add(checked(relay));
        sim.attach(id, port, client);
        sim.run_until_idle();
        for id in ["0", "1"] {
            let answers = got.borrow().answers(id);
            assert!(answers.len() == 1 && answers[0]["result"].is_object(), "{answers:?}");
        }
    }
}

#[test]
fn what_a_client_that_has_left_asked_is_not_worth_another_connection() {
    let client = greeted().at(400, tool(1, "wait")).close_at(500);
    let rig = rig(Chop::Whole, Mode::Off, client, good).cut_at(1000).finish();
    rig.assert_answers("1", Some(GONE));
    assert_eq!(rig.outcome(), Some(Outcome::ServerGone(Ended::Closed)));
    assert_eq!(rig.tries().len(), 1);
}

#[test]
fn an_id_of_ours_is_refused_while_it_is_in_use() {
    let nature = |nth| Some(Nature { deaf_to: if nth == 1 { "logging/setLevel" } else { "" }, ..legacy() });
    let own = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).to_string();
    let client =
        greeted().at(200, LEVEL).at(2000, own("lumen/2").replace('/', "\\/")).at(2000, own("lumen/1"));
    // What the connection before was asked is over.
    let client = client.at(4000, own("lumen/2"));
    let rig = rig(Chop::Whole, Mode::Off, client, nature).cut_at(1000).cut_at(3000).finish();
    let answers = rig.got.borrow().answers("\"lumen/2\"");
    assert_eq!((answers.len(), &answers[0]["error"]["code"]), (2, &json!(-32600)));
    assert!(answers[1]["result"].is_object(), "{answers:?}");
    rig.assert_answers("\"lumen/1\"", None);
}
