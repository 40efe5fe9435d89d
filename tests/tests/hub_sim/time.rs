//! Deadlines: of requests, of what servers ask, and of nothing else.

use std::time::Duration;

use lumen_tests::sim::Chop;
use lumen_tests::sim::scripted::Nature;

use crate::support::*;

fn with_token(id: &str) -> String {
    request(id, "tools/call", r#"{"name":"wait","arguments":{},"_meta":{"progressToken":"t"}}"#)
}

fn progress(wire: &str) -> String {
    notification("notifications/progress", &format!(r#"{{"progressToken":{wire},"progress":1}}"#))
}

#[test]
fn a_request_is_given_up_after_300_seconds() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call("5", "wait"));
        bench.run(100_000);
        bench.say(&b, &call("5", "wait"));
        bench.run(199_990);
        a.no_answer("5");
        bench.run(20);
        assert_eq!(a.error("5", -32603)["data"]["reason"], "no_answer");
        b.no_answer("5");
        let (wire_a, wire_b) = (bench.id_of("wait", 0), bench.id_of("wait", 1));
        let cancelled = bench.life(0).with_method("notifications/cancelled");
        assert_eq!(cancelled.len(), 1);
        assert_eq!(cancelled[0]["params"]["requestId"].to_string(), wire_a);
        // Too late.
        bench.server_says(server(0), &result(&wire_a, "1"));
        bench.server_says(server(0), &result(&wire_b, "2"));
        assert_eq!((a.count(), b.count()), (2, 2));
        assert_eq!(b.result("5"), 2);
        // The id is free again.
        bench.say(&a, &call_with("5", "echo", "3"));
        assert_eq!(a.got.borrow().answers("5")[1]["result"], 3);
        bench.assert_clean();
    }
}

#[test]
fn progress_extends_it_up_to_an_hour() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.say(&a, &with_token("1"));
    bench.say(&a, &with_token("2"));
    let wires = [bench.id_of("wait", 0), bench.id_of("wait", 1)];
    bench.run(200_000);
    bench.server_says(server(0), &progress(&wires[0]));
    bench.run(150_000);
    // Only its own progress counts.
    a.error("2", -32603);
    a.no_answer("1");
    for _ in 0..16 {
        bench.server_says(server(0), &progress(&wires[0]));
        bench.run(200_000);
    }
    a.no_answer("1");
    bench.server_says(server(0), &progress(&wires[0]));
    bench.run(49_000);
    a.no_answer("1");
    bench.run(3000);
    a.error("1", -32603);
    let told = bench.life(0).with_method("notifications/cancelled");
    assert_eq!(told.len(), 2);
    bench.assert_clean();
}

#[test]
fn no_deadline_is_none() {
    let mut config = config();
    config.mux.request_timeout = None;
    let mut bench = Bench::new(Chop::Whole, config, |_| Nature::default());
    let a = bench.legacy();
    bench.say(&a, &with_token("1"));
    bench.run(100_000_000);
    let wire = bench.id_of("wait", 0);
    bench.server_says(server(0), &progress(&wire));
    bench.run(100_000_000);
    bench.server_says(server(0), &result(&wire, "1"));
    a.result("1");
    assert!(bench.life(0).with_method("notifications/cancelled").is_empty());
    bench.assert_clean();
}

#[test]
fn those_who_wait_for_a_shared_answer_are_told_that_it_did_not_come() {
    for method in ["resources/subscribe", "logging/setLevel"] {
        let mut bench = bench(Nature { deaf_to: method, ..Nature::default() });
        let (a, b) = (bench.legacy(), bench.legacy());
        let text = request("1", method, r#"{"uri":"u:1","level":"info"}"#);
        bench.say(&a, &text);
        bench.say(&b, &text);
        bench.run(300_100);
        for guest in [&a, &b] {
            let answer = guest.answer("1");
            assert!(answer["error"]["data"]["reason"] == "no_answer", "{answer}");
        }
        let wire = bench.life(0).with_method(method)[0]["id"].clone();
        let cancelled = bench.life(0).with_method("notifications/cancelled");
        assert_eq!(cancelled.len(), 1);
        assert_eq!(cancelled[0]["params"]["requestId"], wire);
        bench.assert_clean();
    }
}

#[test]
fn what_a_client_was_asked_is_withdrawn_after_300_seconds() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.say(&a, &call("1", "wait"));
    bench.run(1000);
    bench.server_says(server(0), &request("\"x\"", "roots/list", "{}"));
    let id = a.with_method("roots/list")[0]["id"].clone();
    bench.run(299_000);
    // By then the call itself is given up; what it caused is withdrawn in its own time.
    bench.run(1100);
    let replies: Vec<_> =
        bench.life(0).values().into_iter().filter(|value| value.get("error").is_some()).collect();
    assert_eq!((replies.len(), &replies[0]["id"]), (1, &"x".into()));
    assert_eq!(a.with_method("notifications/cancelled")[0]["params"]["requestId"], id);
    bench.say(&a, &result(&id.to_string(), "1"));
    assert!(bench.life(0).values().iter().all(|value| value.get("result").is_none()));
    bench.assert_clean();
}

#[test]
fn a_server_may_take_long_to_start() {
    let mut config = config();
    config.mux.start_timeout = None;
    let mut bench = Bench::new(Chop::Whole, config, |_| Nature { ignores: true, ..Nature::default() });
    let a = bench.client();
    bench.say(&a, &initialize("1", "{}", "2025-11-25"));
    bench.sim.run_for(Duration::from_secs(100_000));
    assert_eq!(a.count(), 0);
    let wire = bench.life(0).with_method("initialize")[0]["id"].to_string();
    bench.server_says(server(0), &result(&wire, r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#));
    a.result("1");
}
