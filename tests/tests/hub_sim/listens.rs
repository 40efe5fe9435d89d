//! Subscriptions of the modern era: known by the id of the request that opened them, which is another one on each side.

use lumen_tests::sim::scripted::Nature;
use serde_json::Value;

use crate::support::*;

const KEY: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(id: &str) -> String {
    modern(id, "subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#)
}

fn on(wire: &str, method: &str, more: &str) -> String {
    notification(method, &format!(r#"{{"_meta":{{"{KEY}":{wire}}}{more}}}"#))
}

fn wire_of(bench: &Bench, life: usize, nth: usize) -> String {
    bench.life(life).with_method("subscriptions/listen")[nth]["id"].to_string()
}

/// The subscriptions that messages of this method named.
fn named(guest: &Guest, method: &str) -> Vec<Value> {
    guest.with_method(method).iter().map(|note| note["params"]["_meta"][KEY].clone()).collect()
}

const ACK: &str = "notifications/subscriptions/acknowledged";
const CHANGED: &str = "notifications/tools/list_changed";

#[test]
fn what_is_said_on_a_subscription_goes_to_whoever_opened_it_under_its_id() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::modern());
        let (a, b) = (bench.client(), bench.client());
        bench.say(&a, &listen("1"));
        bench.say(&b, &listen("\"1\""));
        bench.say(&b, &listen("2"));
        assert_eq!(named(&a, ACK), [1]);
        assert_eq!(named(&b, ACK), [Value::from("1"), Value::from(2)]);
        let wires: Vec<String> = (0..3).map(|n| wire_of(&bench, 0, n)).collect();
        for wire in &wires {
            bench.server_says(server(0), &on(wire, CHANGED, ""));
        }
        bench.server_says(server(0), &on("77", CHANGED, ""));
        bench.server_says(server(0), &notification(CHANGED, "{}"));
        assert_eq!(named(&a, CHANGED), [1]);
        assert_eq!(named(&b, CHANGED), [Value::from("1"), Value::from(2)]);
        // The server ends one by an answer, one by a cancel; a client ends the third.
        let ended = format!(r#"{{"_meta":{{"{KEY}":{}}}}}"#, wires[0]);
        bench.server_says(server(0), &result(&wires[0], &ended));
        assert_eq!(a.result("1")["_meta"][KEY], 1);
        let more = format!(r#","requestId":{}"#, wires[1]);
        bench.server_says(server(0), &on(&wires[1], "notifications/cancelled", &more));
        let told = b.with_method("notifications/cancelled");
        assert_eq!(
            (&told[0]["params"]["requestId"], &told[0]["params"]["_meta"][KEY]),
            (&"1".into(), &"1".into())
        );
        bench.say(&b, &cancel("2"));
        let cancelled = bench.life(0).with_method("notifications/cancelled");
        assert_eq!(cancelled[0]["params"]["requestId"].to_string(), wires[2]);
        for wire in &wires {
            bench.server_says(server(0), &on(wire, CHANGED, ""));
        }
        assert_eq!((named(&a, CHANGED).len(), named(&b, CHANGED).len()), (1, 2));
        bench.assert_clean();
    }
}

#[test]
fn a_cancel_of_the_server_need_not_name_the_subscription_twice() {
    let mut bench = bench(Nature::modern());
    let a = bench.client();
    bench.say(&a, &listen("\"x\""));
    let wire = wire_of(&bench, 0, 0);
    bench.server_says(server(0), &cancel(&wire));
    assert_eq!(a.with_method("notifications/cancelled")[0]["params"]["requestId"], "x");
    bench.assert_clean();
}

#[test]
fn a_subscription_outlives_the_server() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::modern());
        let (a, b) = (bench.client(), bench.client());
        bench.say(&a, &listen("\"l\""));
        bench.say(&b, &modern_call("1", "crash"));
        bench.run(100);
        b.error("1", GONE);
        let before = a.count();
        bench.run(4000);
        assert_eq!(bench.life(1).with_method("subscriptions/listen").len(), 1);
        assert_eq!(a.count(), before, "it is not told again: {:?}", a.heads());
        let wire = wire_of(&bench, 1, 0);
        bench.server_says(server(1), &on(&wire, CHANGED, ""));
        assert_eq!(named(&a, CHANGED), ["l"]);
        // Only what changes its mind is told: an error ends it.
        let refused = format!(r#"{{"jsonrpc":"2.0","id":{wire},"error":{{"code":-32603,"message":"no"}}}}"#);
        bench.server_says(server(1), &refused);
        a.error("\"l\"", -32603);
        bench.assert_clean();
    }
}

#[test]
fn a_subscription_has_no_deadline_and_is_cancelled_with_its_client() {
    let mut bench = bench(Nature::modern());
    let a = bench.client();
    bench.say(&a, &listen("1"));
    bench.run(5_000_000);
    assert!(bench.life(0).with_method("notifications/cancelled").is_empty());
    bench.cut(&a);
    let cancelled = bench.life(0).with_method("notifications/cancelled");
    assert_eq!(cancelled[0]["params"]["requestId"].to_string(), wire_of(&bench, 0, 0));
    bench.assert_clean();
}

#[test]
fn one_that_was_cancelled_while_the_server_was_down_is_not_opened_again() {
    let mut bench = bench(Nature::modern());
    let a = bench.client();
    bench.say(&a, &listen("1"));
    bench.say(&a, &listen("2"));
    bench.say(&a, &modern_call("3", "crash"));
    bench.say(&a, &listen("4"));
    bench.say(&a, &cancel("1"));
    bench.run(4000);
    assert_eq!(bench.life(1).with_method("subscriptions/listen").len(), 2);
    assert!(bench.life(1).with_method("notifications/cancelled").is_empty());
    assert_eq!(named(&a, ACK), [1, 2, 4]);
}
