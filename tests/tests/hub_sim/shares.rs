//! What clients of a legacy server share without noticing: subscriptions, log levels; and batches.

use lumen_tests::sim::scripted::Nature;
use serde_json::{Value, json};

use crate::support::*;

fn subscribe(id: &str, uri: &str) -> String {
    request(id, "resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#))
}

fn unsubscribe(id: &str, uri: &str) -> String {
    request(id, "resources/unsubscribe", &format!(r#"{{"uri":"{uri}"}}"#))
}

fn updated(uri: &str) -> String {
    notification("notifications/resources/updated", &format!(r#"{{"uri":"{uri}"}}"#))
}

fn updates(guest: &Guest) -> usize {
    guest.with_method("notifications/resources/updated").len()
}

fn asked(bench: &Bench, method: &str) -> usize {
    bench.life(0).with_method(method).len()
}

#[test]
fn a_resource_is_subscribed_to_once_and_by_whoever_wants_it() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b, c) = (bench.legacy(), bench.legacy(), bench.legacy());
        bench.say(&a, &subscribe("1", "u:1"));
        bench.say(&b, &subscribe("1", r"u:\u0031"));
        bench.say(&b, &subscribe("2", "u:2"));
        a.result("1");
        b.result("1");
        b.result("2");
        assert_eq!(asked(&bench, "resources/subscribe"), 2);
        bench.server_says(server(0), &updated("u:1"));
        bench.server_says(server(0), &updated("u:2"));
        bench.server_says(server(0), &updated("u:3"));
        assert_eq!((updates(&a), updates(&b), updates(&c)), (1, 2, 0));
        bench.say(&a, &unsubscribe("3", "u:1"));
        assert_eq!(a.result("3"), json!({}));
        assert_eq!(asked(&bench, "resources/unsubscribe"), 0);
        bench.server_says(server(0), &updated("u:1"));
        assert_eq!((updates(&a), updates(&b)), (1, 3));
        // The last one goes without saying so.
        bench.cut(&b);
        let told = bench.life(0).with_method("resources/unsubscribe");
        let mut uris: Vec<&str> = told.iter().map(|value| value["params"]["uri"].as_str().unwrap()).collect();
        uris.sort_unstable();
        assert_eq!(uris, ["u:1", "u:2"]);
        bench.server_says(server(0), &updated("u:1"));
        assert_eq!((updates(&a), updates(&c)), (1, 0));
        bench.say(&c, &subscribe("1", "u:1"));
        assert_eq!(asked(&bench, "resources/subscribe"), 3);
        bench.say(&c, &unsubscribe("2", "u:1"));
        c.result("2");
        assert_eq!(asked(&bench, "resources/unsubscribe"), 3);
        bench.assert_clean();
    }
}

#[test]
fn a_part_of_a_resource_concerns_those_who_are_subscribed_to_the_whole() {
    let mut bench = bench(Nature::default());
    let (a, b, c) = (bench.legacy(), bench.legacy(), bench.legacy());
    for (guest, uri) in [(&a, "file:///d"), (&a, "file:///d/e"), (&b, "file:///d/"), (&c, "file:///de")] {
        bench.say(guest, &subscribe(&format!("\"{uri}\""), uri));
    }
    for (uri, told) in [
        ("file:///d/e/f", [1, 1, 0]),
        ("file:///d/e", [2, 2, 0]),
        ("file:///d#x", [3, 2, 0]),
        ("file:///de", [3, 2, 1]),
        ("file:///def", [3, 2, 1]),
        ("file:///", [3, 2, 1]),
    ] {
        bench.server_says(server(0), &updated(uri));
        assert_eq!([updates(&a), updates(&b), updates(&c)], told, "{uri}");
    }
    bench.assert_clean();
}

#[test]
fn who_subscribes_while_the_server_is_asked_waits_for_that_answer() {
    for refused in [false, true] {
        let nature = Nature { deaf_to: "resources/subscribe", ..Nature::default() };
        let mut bench = bench(nature);
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &subscribe("\"a\"", "u:1"));
        bench.say(&b, &subscribe("\"b\"", "u:1"));
        assert_eq!(asked(&bench, "resources/subscribe"), 1);
        assert_eq!((a.count(), b.count()), (1, 1));
        let wire = bench.life(0).with_method("resources/subscribe")[0]["id"].to_string();
        let answer = if refused {
            format!(r#"{{"jsonrpc":"2.0","id":{wire},"error":{{"code":-32002,"message":"none such"}}}}"#)
        } else {
            result(&wire, "{}")
        };
        bench.server_says(server(0), &answer);
        bench.server_says(server(0), &updated("u:1"));
        for (guest, id) in [(&a, "\"a\""), (&b, "\"b\"")] {
            if refused {
                guest.error(id, -32002);
            } else {
                guest.result(id);
            }
            assert_eq!(updates(guest), usize::from(!refused));
        }
        bench.assert_clean();
    }
}

#[test]
fn an_answer_to_a_subscription_that_ended_says_nothing_of_the_next_one() {
    let nature = Nature { deaf_to: "resources/subscribe", ..Nature::default() };
    let mut bench = bench(nature);
    let (a, b) = (bench.legacy(), bench.legacy());
    bench.say(&a, &subscribe("1", "u:1"));
    bench.say(&a, &unsubscribe("2", "u:1"));
    bench.say(&a, &subscribe("3", "u:1"));
    let wires = bench.life(0).with_method("resources/subscribe");
    bench.server_says(server(0), &result(&wires[0]["id"].to_string(), "{}"));
    a.result("1");
    bench.say(&b, &subscribe("1", "u:1"));
    b.no_answer("1");
    bench.server_says(server(0), &result(&wires[1]["id"].to_string(), "{}"));
    a.result("3");
    b.result("1");
    bench.assert_clean();
}

fn set_level(id: &str, level: &str) -> String {
    request(id, "logging/setLevel", &format!(r#"{{"level":"{level}"}}"#))
}

#[test]
fn the_server_logs_what_the_most_curious_wants_and_each_sees_its_own() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b, c) = (bench.legacy(), bench.legacy(), bench.legacy());
        let levels = |bench: &Bench| -> Vec<String> {
            let told = bench.life(0).with_method("logging/setLevel");
            told.iter().map(|value| value["params"]["level"].as_str().unwrap().to_owned()).collect()
        };
        let seen = |guest: &Guest| -> Vec<String> {
            let logs = guest.with_method("notifications/message");
            logs.iter().map(|value| value["params"]["level"].as_str().unwrap().to_owned()).collect()
        };
        let log = |bench: &mut Bench, level: &str| {
            bench.server_says(
                server(0),
                &notification("notifications/message", &format!(r#"{{"level":"{level}","data":1}}"#)),
            );
        };
        log(&mut bench, "debug");
        assert_eq!([seen(&a), seen(&b), seen(&c)], [["debug"]; 3], "nobody has said anything");
        bench.say(&a, &set_level("1", "error"));
        bench.say(&b, &set_level("1", "debug"));
        bench.say(&a, &set_level("2", "warning"));
        bench.say(&a, &set_level("3", "error"));
        for (guest, id) in [(&a, "1"), (&b, "1"), (&a, "2"), (&a, "3")] {
            assert_eq!(guest.result(id), json!({}));
        }
        assert_eq!(levels(&bench), ["error", "debug"]);
        for level in ["debug", "info", "warning", "error", "emergency", "unheard-of"] {
            log(&mut bench, level);
        }
        assert_eq!(seen(&a)[1..], ["error", "emergency", "unheard-of"]);
        assert_eq!(seen(&b).len(), 7);
        assert_eq!(seen(&c)[1..], ["info", "warning", "error", "emergency", "unheard-of"]);
        bench.cut(&b);
        assert_eq!(levels(&bench), ["error", "debug", "error"]);
        // What is no level is the server's to judge.
        bench.say(&a, &set_level("4", "loud"));
        a.result("4");
        assert_eq!(levels(&bench).last().unwrap(), "loud");
        bench.assert_clean();
    }
}

#[test]
fn a_batch_is_answered_by_one_array() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy_with(r#"{"roots":{}}"#, "2025-03-26");
        let b = bench.legacy_with("{}", "2025-06-18");
        bench.say(&a, &call("\"busy\"", "wait"));
        bench.server_says(server(0), &request("1", "roots/list", "{}"));
        let asked = a.with_method("roots/list")[0]["id"].to_string();
        let batch = [
            call("1", "later"),
            notification("x/y", "{}"),
            call_with(r#""\u0061""#, "echo", "[1.0]"),
            result(&asked, "7"),
            call("1", "echo"),
            request("2", "lumen/x", "{}"),
            cancel("\"busy\""),
        ];
        bench.say(&a, &format!("[{}]", batch.join(", ")));
        assert_eq!(a.count(), 2, "{:?}", a.heads());
        bench.say(&b, &call("1", "flush"));
        let arrays: Vec<Value> = a.got.borrow().values().into_iter().filter(Value::is_array).collect();
        assert_eq!(arrays.len(), 1);
        let mut answers: Vec<(String, Value)> = arrays[0]
            .as_array()
            .unwrap()
            .iter()
            .map(|value| (value["id"].to_string(), value["error"]["code"].clone()))
            .collect();
        answers.sort_by_key(|(id, code)| (id.clone(), code.to_string()));
        let answers: Vec<(&str, Value)> =
            answers.iter().map(|(id, code)| (id.as_str(), code.clone())).collect();
        assert_eq!(
            answers,
            [("\"a\"", json!(null)), ("1", json!(-32600)), ("1", json!(null)), ("2", json!(-32601))]
        );
        assert!(a.got.borrow().texts().iter().any(|text| text.contains(r#""id":"\u0061","#)), "as spelled");
        let life = bench.life(0);
        assert!(life.values().iter().all(|value| !value.is_array()));
        assert_eq!(life.values().iter().filter(|value| value["result"] == 7).count(), 1);
        assert_eq!(life.with_method("x/y").len(), 1);
        assert_eq!(life.with_method("notifications/cancelled").len(), 1);
        drop(life);
        bench.assert_clean();
    }
}

#[test]
fn a_batch_of_what_needs_no_answer_gets_none() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy_with("{}", "2025-03-26");
    bench.say(&a, &format!("[{},{}]", notification("x/y", "{}"), notification("x/z", "{}")));
    bench.say(&a, &format!("[{}]", call("1", "wait")));
    bench.say(&a, &cancel("1"));
    assert_eq!(a.count(), 1, "{:?}", a.heads());
    bench.say(&a, "[]");
    a.error("null", -32600);
    bench.assert_clean();
}

#[test]
fn a_batch_of_another_revision_is_refused_request_by_request() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy_with("{}", "2025-06-18");
        let before = bench.life(0).texts.len();
        bench.say(
            &a,
            &format!("[{},{},{}]", call("1", "echo"), notification("x/y", "{}"), call("\"2\"", "echo")),
        );
        a.error("1", -32600);
        a.error("\"2\"", -32600);
        assert_eq!(a.count(), 3);
        assert_eq!(bench.life(0).texts.len(), before);
        let plain = bench.client();
        bench.say(&plain, &format!("[{}]", call("1", "echo")));
        plain.error("1", -32600);
        bench.assert_clean();
    }
}

#[test]
fn a_batch_of_the_server_is_taken_apart() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call("1", "wait"));
        bench.say(&b, &call("1", "wait"));
        let batch = [
            result(&bench.id_of("wait", 1), "\"b\""),
            result(&bench.id_of("wait", 0), "\"a\""),
            request("5", "ping", "{}"),
            notification("x/y", "{}"),
        ];
        bench.server_says(server(0), &format!("[{}]", batch.join(",")));
        assert_eq!((a.result("1"), b.result("1")), (json!("a"), json!("b")));
        assert_eq!((a.count(), b.count()), (3, 3));
        assert_eq!(bench.life(0).values().pop().unwrap()["id"], 5);
        bench.assert_clean();
    }
}
