//! Both eras of MCP on one hub, and clients that try one after the other.

use lumen_proto::endpoint::HubConfig;
use lumen_proto::mcp::Era;
use lumen_proto::mux::SlotId;
use lumen_proto::supervisor::State;
use lumen_tests::sim::Chop;
use lumen_tests::sim::scripted::Nature;
use serde_json::json;

use crate::support::*;

fn both() -> Nature {
    Nature { modern: true, ..Nature::default() }
}

#[test]
fn each_era_has_a_server_of_its_own() {
    for chop in CHOPS {
        for legacy_first in [true, false] {
            let mut bench = bench_by(chop, both());
            let (a, b) = (bench.client(), bench.client());
            if legacy_first {
                bench.greet(&a, "{}", "2025-11-25");
            }
            bench.say(&b, &modern("1", "server/discover", ""));
            if !legacy_first {
                bench.greet(&a, "{}", "2025-11-25");
            }
            bench.run(5);
            bench.say(&a, &call_with("1", "echo", "\"a\""));
            bench.say(&b, &modern_call("2", "later"));
            bench.say(&b, &modern_call("3", "flush"));
            assert_eq!(a.result("1"), "a");
            assert!(b.result("1")["supportedVersions"].is_array());
            b.result("2");
            assert_eq!(bench.starts().len(), 2);
            let eras = SlotId::ALL.map(|slot| bench.hub().server(slot).era.unwrap());
            let expected = if legacy_first { [Era::Legacy, Era::Modern] } else { [Era::Modern, Era::Legacy] };
            assert_eq!(eras, expected);
            // What one says is nothing to the clients of the other.
            let legacy = if legacy_first { server(0) } else { OTHER };
            let method = "notifications/tools/list_changed";
            bench.server_says(legacy, &notification(method, "{}"));
            assert_eq!((a.with_method(method).len(), b.with_method(method).len()), (1, 0));
            bench.assert_clean();
        }
    }
}

/// An auto client: it asks the modern way, and begins with a handshake if that is refused.
fn auto(bench: &mut Bench) -> Guest {
    let guest = bench.client();
    bench.say(&guest, &modern("\"try\"", "server/discover", ""));
    bench.run(100);
    let answer = guest.answer("\"try\"");
    assert!(answer["error"]["code"] == -32601, "{answer}");
    bench.greet(&guest, "{}", "2025-11-25");
    guest
}

#[test]
fn a_client_that_tries_both_comes_to_a_legacy_server() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        for n in 0..3 {
            let guest = auto(&mut bench);
            bench.run(5);
            guest.result("\"init\"");
            bench.say(&guest, &call_with("1", "echo", "1"));
            assert_eq!(guest.result("1"), 1);
            assert_eq!(bench.starts().len(), 1, "client {n}");
        }
        // And so after the server was started again.
        let guest = auto(&mut bench);
        bench.say(&guest, &call("1", "crash"));
        bench.run(4000);
        let guest = auto(&mut bench);
        bench.run(5);
        guest.result("\"init\"");
        assert_eq!(bench.starts().len(), 2);
        bench.assert_clean();
    }
}

#[test]
fn a_process_that_was_started_for_nothing_is_ended() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        let b = auto(&mut bench);
        bench.run(5);
        b.result("\"init\"");
        assert_eq!(bench.starts().len(), 2);
        assert_eq!(bench.hub().server(SlotId::Second).state, State::Idle);
        // Now it is known.
        let c = auto(&mut bench);
        bench.run(60_000);
        for guest in [&a, &b, &c] {
            bench.say(guest, &call_with("1", "echo", "1"));
            assert_eq!(guest.result("1"), 1);
        }
        assert_eq!(bench.starts().len(), 2);
        bench.assert_clean();
    }
}

#[test]
fn two_clients_that_try_both_at_once_come_to_one_server() {
    for chop in CHOPS {
        for fragile in [false, true] {
            let mut bench = bench_by(chop, Nature { fragile, ..Nature::default() });
            let (a, b) = (bench.client(), bench.client());
            for guest in [&a, &b] {
                bench.queue(guest, &modern("\"try\"", "server/discover", ""));
            }
            bench.run(5);
            for guest in [&a, &b] {
                guest.error("\"try\"", -32601);
                bench.queue(guest, &initialize("1", "{}", "2025-11-25"));
                bench.queue(guest, &call_with("2", "echo", "2"));
            }
            bench.run(5000);
            for guest in [&a, &b] {
                guest.result("1");
                assert_eq!(guest.result("2"), 2);
            }
            assert_eq!(bench.starts().len(), if fragile { 2 } else { 1 });
            bench.assert_clean();
        }
    }
}

#[test]
fn a_server_that_discover_kills_is_not_killed_by_every_client() {
    for chop in CHOPS {
        for one_child in [false, true] {
            let mut config = config();
            config.mux.one_child = one_child;
            let mut bench = Bench::new(chop, config, |_| Nature { fragile: true, ..Nature::default() });
            for _ in 0..3 {
                let guest = auto(&mut bench);
                bench.run(4000);
                guest.result("\"init\"");
                bench.say(&guest, &call_with("1", "echo", "1"));
                assert_eq!(guest.result("1"), 1);
            }
            assert_eq!(bench.starts().len(), 2);
            bench.assert_clean();
        }
    }
}

#[test]
fn a_client_of_the_other_era_does_no_harm_to_a_server_that_serves_one() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::modern());
        let a = bench.client();
        bench.say(&a, &modern("1", "server/discover", ""));
        a.result("1");
        let b = bench.client();
        bench.greet(&b, "{}", "2025-11-25");
        bench.run(100);
        // It serves no handshake, as its own process says.
        b.error("\"init\"", -32022);
        bench.say(&a, &modern_call("2", "later"));
        bench.say(&a, &modern_call("3", "flush"));
        a.result("2");
        assert!(bench.life(0).with_method("initialize").is_empty());
        assert!(bench.life(1).with_method("tools/call").is_empty());
    }
}

#[test]
fn with_one_child_the_other_era_is_refused() {
    for chop in CHOPS {
        let mut one = config();
        one.mux.one_child = true;
        for legacy_first in [true, false] {
            let mut bench = Bench::new(chop, HubConfig { ..one }, |_| both());
            let (a, b) = (bench.client(), bench.client());
            if legacy_first {
                bench.greet(&a, "{}", "2025-11-25");
                bench.say(&b, &modern("1", "server/discover", ""));
                b.error("1", -32601);
                bench.say(&b, &modern_call("2", "echo"));
                b.error("2", -32600);
            } else {
                bench.say(&a, &modern("1", "server/discover", ""));
                bench.say(&b, &initialize("1", "{}", "2025-11-25"));
                b.error("1", -32600);
            }
            assert_eq!(bench.starts().len(), 1);
            assert_eq!(bench.life(0).texts.len(), if legacy_first { 2 } else { 1 });
            bench.assert_clean();
        }
    }
}

#[test]
fn plain_json_rpc_is_passed_on_and_decides_no_era() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature { fragile: true, ..Nature::default() });
        let a = bench.client();
        bench.say(&a, r#"{"jsonrpc":"2.0","id":1,"method":"x/y","params":[1.0]}"#);
        assert_eq!(bench.life(0).texts[0].1, r#"{"jsonrpc":"2.0","id":1,"method":"x/y","params":[1.0]}"#);
        assert_eq!(bench.hub().server(SlotId::First).era, None);
        // That server is strict.
        a.error("1", -32600);
        bench.say(&a, r#"{"jsonrpc":"2.0","id":2,"method":"x/y"}"#);
        bench.server_says(server(0), &notification("x/z", "{}"));
        assert_eq!(a.with_method("x/z").len(), 1);
        let b = bench.legacy();
        bench.run(5);
        b.result("\"init\"");
        bench.say(&b, &call_with("1", "echo", "1"));
        assert_eq!(b.result("1"), 1);
        assert_eq!(bench.starts().len(), 1);
    }
}

#[test]
fn nothing_is_sent_before_a_client_speaks() {
    let mut bench = bench(Nature::default());
    let _ = (bench.client(), bench.client());
    bench.run(10_000);
    assert!(bench.starts().is_empty());
}

#[test]
fn logs_of_a_modern_server_go_to_the_one_request_that_asked() {
    let log = notification("notifications/message", r#"{"level":"info","data":1}"#);
    let asking = |id: &str| {
        modern(id, "tools/call", r#""name":"wait","arguments":{}"#)
            .replace(r#""_meta":{"#, r#""_meta":{"io.modelcontextprotocol/logLevel":"info","#)
    };
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::modern());
        let (a, b) = (bench.client(), bench.client());
        bench.say(&b, &modern_call("1", "wait"));
        bench.server_says(server(0), &log);
        bench.say(&a, &asking("1"));
        bench.server_says(server(0), &log);
        bench.say(&b, &asking("2"));
        bench.server_says(server(0), &log);
        let told = |guest: &Guest| guest.with_method("notifications/message").len();
        assert_eq!((told(&a), told(&b)), (1, 0));
        bench.say(&a, &cancel("1"));
        bench.server_says(server(0), &log);
        assert_eq!((told(&a), told(&b)), (1, 1));
        for n in [0, 2] {
            let wire = bench.id_of("wait", n);
            bench.server_says(server(0), &result(&wire, "1"));
        }
        bench.assert_clean();
    }
}

#[test]
fn a_modern_server_asks_nothing_and_answers_with_what_it_needs() {
    let mut bench = Bench::new(Chop::Seeded(3), config(), |_| Nature::modern());
    let a = bench.client();
    bench.say(&a, &modern_call("1", "wait"));
    bench.server_says(server(0), &request("1", "roots/list", "{}"));
    assert_eq!(bench.life(0).values().last().unwrap()["error"]["code"], -32603);
    let wire = bench.id_of("wait", 0);
    bench.server_says(
        server(0),
        &result(&wire, r#"{"resultType":"input_required","inputRequests":{"x":{}}}"#),
    );
    assert_eq!(a.result("1")["resultType"], "input_required");
    bench.say(&a, &modern("2", "tools/call", r#""name":"wait","inputResponses":{"x":{"id":7}}"#));
    assert_eq!(bench.life(0).values().last().unwrap()["params"]["inputResponses"], json!({"x": {"id": 7}}));
    let wire = bench.id_of("wait", 1);
    bench.server_says(server(0), &result(&wire, "2"));
    assert_eq!(a.result("2"), 2);
    bench.assert_clean();
}
