//! A server for each client, which is told the truth.

use lumen_proto::endpoint::{Event, HubConfig, HubEvent, Parted};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::State;
use lumen_proto::{OpenError, OpenErrorKind, Port, Signal, limits};
use lumen_tests::sim::scripted::{McpServer, Nature};
use lumen_tests::sim::world::{Spawned, What};
use lumen_tests::sim::{Chop, Outbox};
use serde_json::{Value, json};

use crate::support::*;

fn private() -> HubConfig {
    let config = config();
    HubConfig { mux: lumen_proto::mux::Config { private: true, ..config.mux }, ..config }
}

fn own(nature: Nature) -> Bench {
    own_by(Chop::Whole, nature)
}

fn own_by(chop: Chop, nature: Nature) -> Bench {
    Bench::new(chop, private(), move |_| nature.clone())
}

/// The n-th client's server, at its first start.
const fn server_of(session: u32) -> Port {
    Port::new(3 * session)
}

fn has_ended(bench: &Bench) -> bool {
    matches!(bench.sim.events(0).last(), Some((_, HubEvent::Stream(Event::Finished(_)))))
}

fn params(mut message: Value) -> Value {
    message["params"].take()
}

#[test]
fn each_server_is_told_what_its_own_client_says_of_itself() {
    for chop in CHOPS {
        let mut bench =
            own_by(chop, Nature { capabilities: json!({"tasks": {"list": {}}}), ..Nature::default() });
        let a =
            bench.legacy_with(r#"{"roots":{"listChanged":false}, "experimental":{"x":1.50}}"#, "2025-03-26");
        let b = bench.legacy_with(r#"{"sampling":{"tools":{}}}"#, "2025-11-25");
        let told = [0, 1].map(|nth| {
            let life = bench.life(nth);
            assert_eq!(life.with_method("notifications/initialized").len(), 1);
            life.texts[0].1.clone()
        });
        let said = [
            initialize("2", r#"{"roots":{"listChanged":false}, "experimental":{"x":1.50}}"#, "2025-03-26"),
            initialize("2", r#"{"sampling":{"tools":{}}}"#, "2025-11-25"),
        ];
        assert_eq!(told, said, "but for the id, not a byte is another");
        for guest in [&a, &b] {
            assert_eq!(guest.result("\"init\"")["capabilities"], json!({"tasks": {"list": {}}}));
            assert_eq!(guest.result("\"init\"")["protocolVersion"], "2025-11-25");
        }
        bench.assert_clean();
    }
}

#[test]
fn what_a_server_says_goes_to_its_client_and_what_it_asks_is_answered_by_that() {
    for chop in CHOPS {
        let mut bench = own_by(chop, Nature::default());
        let (a, b) = (bench.legacy_with("{}", "2025-11-25"), bench.legacy());
        // Nobody subscribed, declared or asked for any of this.
        for told in [
            notification("notifications/message", r#"{"level":"debug","data":1}"#),
            notification("notifications/resources/updated", r#"{"uri":"a:b"}"#),
            notification("notifications/tasks/status", r#"{"taskId":"t"}"#),
            notification("notifications/elicitation/complete", "{}"),
            notification("x/unheard-of", "{}"),
            request("\"r\"", "ping", "{}"),
            request("7", "x/unheard-of", "{}"),
        ] {
            bench.server_says(server_of(0), &told);
        }
        let heard: Vec<_> = a.got.borrow().values().into_iter().skip(1).collect();
        assert_eq!(heard.len(), 7, "{heard:?}");
        assert_eq!(b.count(), 1);
        let id = heard[6]["id"].to_string();
        bench.say(&b, &result(&id, "\"forged\""));
        bench.say(&a, &result(&id, "\"mine\""));
        let answers: Vec<_> =
            bench.life(0).values().into_iter().filter(|value| value.get("method").is_none()).collect();
        assert_eq!(answers, [json!({"jsonrpc": "2.0", "id": 7, "result": "mine"})]);
        // What begins so is between us and whoever talks to us.
        bench.server_says(server_of(0), &notification("lumen/status", "{}"));
        assert_eq!(a.count(), 8);
    }
}

#[test]
fn nothing_is_shared_or_answered_for_the_server() {
    let mut bench = own(Nature::default());
    let a = bench.legacy();
    for id in ["1", "2"] {
        bench.say(&a, &request(id, "logging/setLevel", r#"{"level":"error"}"#));
    }
    for id in ["3", "4"] {
        bench.say(&a, &request(id, "resources/subscribe", r#"{"uri":"a:b"}"#));
    }
    bench.say(&a, &request("5", "tasks/list", "{}"));
    for id in ["1", "2", "3", "4"] {
        a.result(id);
    }
    a.error("5", -32601);
    let life = bench.life(0);
    let count = |method: &str| life.with_method(method).len();
    assert_eq!(["logging/setLevel", "resources/subscribe", "tasks/list"].map(count), [2, 2, 1]);
}

#[test]
fn a_crash_is_one_client_s_own_and_its_handshake_is_said_again() {
    for chop in CHOPS {
        let mut bench = own_by(chop, Nature::default());
        let (a, b) = (bench.legacy_with(r#"{"roots":{}}"#, "2025-06-18"), bench.legacy());
        bench.say(&a, &request("s", "x", "{}").replace("\"id\":s", "\"id\":\"s\""));
        bench.say(&a, &request("1", "resources/subscribe", r#"{"uri":"a:b"}"#));
        bench.queue(&b, &call_with("9", "later", "9"));
        bench.say(&a, &call("2", "crash"));
        a.error("2", GONE);
        b.no_answer("9");
        bench.say(&a, &call_with("3", "echo", "3"));
        bench.run(3100);
        assert_eq!(a.result("3"), 3);
        let life = bench.life(2);
        assert_eq!(params(life.values()[0].clone()), params(bench.life(0).values()[0].clone()));
        assert_eq!(life.with_method("notifications/initialized").len(), 1);
        assert_eq!(life.with_method("resources/subscribe").len(), 1);
        assert_eq!(a.with_method("notifications/tools/list_changed").len(), 1);
        drop(life);
        assert_eq!(b.with_method("notifications/tools/list_changed").len(), 0);
        bench.say(&b, &call("10", "flush"));
        assert_eq!(b.result("9"), 9);
        bench.assert_clean();
    }
}

#[test]
fn a_server_ends_politely_when_its_client_goes_and_nothing_is_left() {
    let mut bench = own(Nature::default());
    let b = bench.legacy();
    for round in 0..20u32 {
        let a = bench.legacy();
        bench.say(&a, &call_with("1", "echo", "1"));
        assert_eq!(bench.pool().servers().len(), 2);
        match round % 3 {
            0 => bench.cut(&a),
            1 => bench.tell(a.port, Outbox::close),
            _ => {
                bench.queue(&a, &call("2", "wait"));
                bench.cut(&a);
            }
        }
        bench.run(10);
        assert_eq!(bench.parted(&a), Some(Parted::Left));
        assert_eq!(bench.pool().servers().len(), 1, "round {round}");
        assert_eq!(bench.pool().clients(), 1);
    }
    // Its input was closed, and that was enough.
    let signals = bench.sim.times(0, What::Signal(Signal::Terminate));
    assert_eq!(signals, []);
    assert_eq!(bench.starts().len(), 21);
    assert_eq!(bench.pool().queued(), 0);
    bench.say(&b, &call_with("1", "echo", "1"));
    assert_eq!(b.result("1"), 1);
    bench.assert_clean();
}

#[test]
fn there_are_never_more_servers_than_clients_may_be() {
    let config = HubConfig { max_clients: 2, ..private() };
    let mut bench = Bench::new(Chop::Whole, config, |_| Nature::default());
    let (a, _b) = (bench.legacy(), bench.legacy());
    let late = bench.client();
    bench.say(&late, &initialize("1", "{}", "2025-11-25"));
    assert_eq!(late.error("1", -32603)["data"]["reason"], "full");
    // A visitor takes nobody's place.
    let _visitor = bench.client();
    assert_eq!(bench.starts().len(), 2);
    bench.cut(&a);
    bench.run(10);
    let next = bench.legacy();
    next.result("\"init\"");
}

#[test]
fn who_only_asks_how_things_stand_starts_nothing() {
    let mut bench = own(Nature::default());
    let visitor = bench.client();
    bench.say(&visitor, &request("1", "lumen/status", "{}"));
    assert_eq!(bench.starts().len(), 0);
    assert!(bench.pool().servers().is_empty());
    let a = bench.legacy();
    let servers = bench.pool().servers();
    assert_eq!(servers.len(), 1);
    assert_eq!(servers[0].client, Some(a.port));
    assert!(matches!(servers[0].state, State::Running { .. }));
    assert_eq!(servers[0].port, Port::new(3));
}

#[test]
fn a_refused_handshake_is_the_client_s_to_hear_and_to_try_again() {
    let mut bench = Bench::new(Chop::Whole, private(), |nth| match nth {
        0 => {
            Nature { refuses: Some(json!({"code": -32602, "message": "older, please"})), ..Nature::default() }
        }
        _ => Nature::default(),
    });
    let a = bench.client();
    bench.say(&a, &initialize("1", r#"{"first":{}}"#, "2025-11-25"));
    assert_eq!(a.error("1", -32602)["message"], "older, please");
    bench.say(&a, &initialize("2", r#"{"second":{}}"#, "2024-11-05"));
    bench.run(3100);
    a.result("2");
    let told = params(bench.life(1).values()[0].clone());
    assert_eq!(
        (&told["protocolVersion"], &told["capabilities"]),
        (&json!("2024-11-05"), &json!({"second": {}}))
    );
}

#[test]
fn a_server_that_is_not_there_is_told_at_once_and_looked_for_again() {
    let mut bench = Bench::by_spawn(Chop::Whole, private(), |spawn, seen| match spawn.nth {
        0 => Spawned::Fails(OpenError { kind: OpenErrorKind::NotFound, errno: 2 }),
        _ => Spawned::Party(Box::new(McpServer::new(Nature::default(), seen))),
    });
    let a = bench.client();
    bench.say(&a, &initialize("1", "{}", "2025-11-25"));
    assert_eq!(a.error("1", -32603)["data"]["reason"], "not_started");
    bench.say(&a, &initialize("2", "{}", "2025-11-25"));
    bench.run(3100);
    a.result("2");
}

#[test]
fn modern_clients_and_those_that_try_both_get_their_own_too() {
    let mut bench = Bench::new(Chop::Whole, private(), |nth| match nth {
        0 => Nature::modern(),
        _ => Nature::default(),
    });
    let modern_one = bench.client();
    bench.say(&modern_one, &modern("1", "tools/list", ""));
    modern_one.result("1");
    bench.server_says(server_of(0), &notification("notifications/message", r#"{"level":"info","data":1}"#));
    assert_eq!(modern_one.with_method("notifications/message").len(), 1);
    let both = bench.client();
    bench.say(&both, &modern("1", "server/discover", ""));
    both.error("1", -32601);
    bench.greet(&both, "{}", "2025-11-25");
    both.result("\"init\"");
    assert_eq!(bench.starts().len(), 2);
    bench.assert_clean();
}

#[test]
fn lumen_is_spoken_to_each_side_that_can() {
    for mode in [Mode::Auto, Mode::Offer] {
        let config = HubConfig { mux: private().mux, ..config_with(mode) };
        let nature = Nature { lumen: true, echo_offer: true, ..Nature::default() };
        let mut bench = Bench::new(Chop::OneByte, config, move |_| nature.clone());
        let a = bench.legacy();
        bench.say(&a, &call_with("1", "echo", "1"));
        assert_eq!(a.result("1"), 1);
        assert!(bench.life(0).texts.last().unwrap().2, "{mode:?}: it is framed");
        bench.assert_clean();
    }
}

#[test]
fn told_to_end_it_ends_all_and_waits_no_longer_than_for_one() {
    let mut bench = own(Nature::default());
    let clients: Vec<_> = (0..5).map(|_| bench.legacy()).collect();
    for client in &clients {
        bench.queue(client, &call("1", "wait"));
    }
    bench.run(1);
    let leaving = bench.legacy();
    bench.cut(&leaving);
    bench.shut_down();
    bench.run(8_000);
    for client in &clients {
        client.error("1", GONE);
        assert!(client.got.borrow().eof.is_some());
    }
    assert!(has_ended(&bench));
    assert_eq!(bench.pool().clients(), 0);
}

#[test]
fn without_clients_it_ends_after_a_while() {
    let config = HubConfig { idle_exit: Some(limits::EOF_GRACE), ..private() };
    let mut bench = Bench::new(Chop::Whole, config, |_| Nature::default());
    let a = bench.legacy();
    bench.run(60_000);
    assert!(!has_ended(&bench));
    bench.cut(&a);
    bench.run(29_000);
    assert!(!has_ended(&bench));
    bench.run(2_000);
    assert!(has_ended(&bench));
}
