//! What makes a server that serves one client serve many: the handshake, cancelling, progress, and what it asks.

use lumen_proto::Exit;
use lumen_proto::mux::SlotId;
use lumen_tests::sim::scripted::Nature;
use serde_json::{Value, json};

use crate::support::*;

#[test]
fn o_15_a_cancel_names_the_request_as_the_server_knows_it() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        // B's id is what A's request is called at the server.
        bench.say(&a, &call("50", "wait"));
        let wire = bench.id_of("wait", 0);
        bench.say(&b, &call(&wire, "wait"));
        bench.say(&a, &cancel("51"));
        bench.say(&a, &cancel(r#""50""#));
        assert!(bench.life(0).with_method("notifications/cancelled").is_empty());
        bench.say(&b, &cancel("50"));
        assert!(bench.life(0).with_method("notifications/cancelled").is_empty(), "never B's");
        bench.say(
            &a,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"é","requestId":50}}"#,
        );
        let text = bench.life(0).texts.last().unwrap().1.clone();
        let expected = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"reason":"é","requestId":{wire}}}}}"#
        );
        assert_eq!(text, expected);
        // The answer was on its way.
        bench.server_says(server(0), &result(&wire, "1"));
        a.no_answer("50");
        bench.say(&a, &cancel("50"));
        assert_eq!(bench.life(0).with_method("notifications/cancelled").len(), 1);
        let wire_b = bench.id_of("wait", 1);
        bench.server_says(server(0), &result(&wire_b, "2"));
        assert_eq!(b.result(&wire), 2);
        bench.assert_clean();
    }
}

#[test]
fn a_handshake_is_not_cancelled() {
    let mut bench = bench(Nature::default());
    let a = bench.client();
    bench.queue(&a, &initialize("1", "{}", "2025-11-25"));
    bench.queue(&a, &cancel("1"));
    bench.run(5);
    a.result("1");
    assert!(bench.life(0).with_method("notifications/cancelled").is_empty());
    bench.assert_clean();
}

#[test]
fn a_request_that_waits_is_cancelled_where_it_waits() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.say(&a, &call("1", "crash"));
    bench.run(100);
    bench.say(&a, &call("2", "echo"));
    bench.say(&a, &cancel("2"));
    bench.run(4000);
    a.no_answer("2");
    assert!(bench.life(1).with_method("tools/call").is_empty());
    assert!(bench.life(1).with_method("notifications/cancelled").is_empty());
    bench.assert_clean();
}

fn with_token(id: &str, tool: &str, token: &str) -> String {
    let params = format!(r#"{{"name":"{tool}","arguments":{{}},"_meta":{{"x":1,"progressToken":{token}}}}}"#);
    request(id, "tools/call", &params)
}

fn progress(token: &str, value: u32) -> String {
    notification("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":{value}}}"#))
}

#[test]
fn o_16_progress_goes_to_its_owner_under_the_owners_token() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &with_token("1", "wait", "1"));
        bench.say(&b, &with_token("1", "wait", "1"));
        bench.say(&a, &with_token("2", "wait", r#""\u0061""#));
        bench.say(&a, &call("3", "wait"));
        let calls = bench.life(0).with_method("tools/call");
        let token_of = |call: &Value| call["params"]["_meta"]["progressToken"].to_string();
        let tokens: Vec<String> = calls.iter().map(token_of).collect();
        assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2], "{tokens:?}");
        for (n, token) in tokens[..3].iter().enumerate() {
            bench.server_says(server(0), &progress(token, n as u32));
        }
        // One that did not ask for it, one that nobody has, and one of the client's own.
        for token in [&bench.id_of("wait", 3), "77", r#""\u0061""#, &format!("\"{}\"", tokens[0])] {
            bench.server_says(server(0), &progress(token, 9));
        }
        for n in 0..4 {
            let wire = bench.id_of("wait", n);
            bench.server_says(server(0), &result(&wire, "1"));
        }
        for token in &tokens[..3] {
            bench.server_says(server(0), &progress(token, 9));
        }
        let told = |guest: &Guest| {
            guest
                .with_method("notifications/progress")
                .into_iter()
                .map(|note| note["params"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            told(&a),
            [json!({"progressToken": 1, "progress": 0}), json!({"progressToken": "a", "progress": 2})]
        );
        assert!(a.got.borrow().texts().iter().any(|text| text.contains(r#""progressToken":"\u0061""#)));
        assert_eq!(told(&b), [json!({"progressToken": 1, "progress": 1})]);
        bench.assert_clean();
    }
}

#[test]
fn o_17_many_clients_cause_one_handshake() {
    for chop in CHOPS {
        let nature = Nature { revision: "2025-06-18", ..Nature::default() };
        let mut bench = bench_by(chop, nature);
        let guests: Vec<Guest> = (0..5).map(|_| bench.client()).collect();
        let revisions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2030-01-01"];
        let told = ["2025-06-18", "2025-06-18", "2025-03-26", "2024-11-05", "2025-06-18"];
        for (guest, revision) in guests.iter().zip(revisions) {
            bench.queue(guest, &initialize("\"é\"", r#"{"sampling":{}}"#, revision));
            bench.queue(guest, INITIALIZED);
            bench.queue(guest, &call_with("2", "echo", "2"));
        }
        bench.run(5);
        let life = bench.life(0);
        let greetings = life.with_method("initialize");
        assert_eq!(greetings.len(), 1);
        // It is told what the hub can honour, whoever came first.
        let capabilities = &greetings[0]["params"]["capabilities"];
        for one in ["roots", "sampling", "elicitation"] {
            assert!(capabilities[one].is_object(), "{capabilities}");
        }
        assert_eq!(life.with_method("notifications/initialized").len(), 1);
        assert_eq!(life.values()[1]["method"], "notifications/initialized");
        drop(life);
        for (guest, revision) in guests.iter().zip(told) {
            let result = guest.result("\"é\"");
            assert_eq!(result["protocolVersion"], revision);
            assert_eq!(result["serverInfo"]["name"], "strict");
            assert_eq!(guest.result("2"), 2);
            assert_eq!(guest.count(), 2);
        }
        // And whoever comes later.
        let late = bench.legacy_with("{}", "2024-11-05");
        assert_eq!(late.result("\"init\"")["protocolVersion"], "2024-11-05");
        assert_eq!(bench.life(0).with_method("initialize").len(), 1);
        bench.assert_clean();
    }
}

#[test]
fn a_client_that_goes_during_the_handshake_is_not_missed() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature { ignores: true, ..Nature::default() });
        let (a, b) = (bench.client(), bench.client());
        bench.queue(&a, &initialize("1", "{}", "2025-11-25"));
        bench.queue(&a, &call("2", "echo"));
        bench.say(&b, &initialize("1", "{}", "2025-11-25"));
        bench.cut(&a);
        let wire = bench.life(0).with_method("initialize")[0]["id"].to_string();
        bench.server_says(server(0), &result(&wire, r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#));
        b.result("1");
        assert_eq!(bench.life(0).texts.len(), 2, "the handshake, and that it is done");
        assert!(bench.hub().mux().is_empty());
    }
}

#[test]
fn nobody_is_waited_for_who_has_gone() {
    let mut bench = bench(Nature { ignores: true, ..Nature::default() });
    for n in 0..5 {
        let a = bench.client();
        bench.say(&a, &initialize("1", "{}", "2025-11-25"));
        if n % 2 == 0 {
            bench.cut(&a);
        } else {
            bench.tell(a.port, |out| out.close());
            bench.run(31_000);
            a.error("1", -32603);
        }
        assert!(!bench.hub().mux().is_needed(SlotId::First), "{n}");
    }
    bench.tell(server(0), |out| out.die(Exit::Code(1)));
    bench.run(100_000);
    assert_eq!(bench.starts().len(), 1);
}

#[test]
fn a_second_handshake_of_one_client_is_answered_like_the_first() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.greet(&a, r#"{"roots":{}}"#, "2025-03-26");
    let answers = a.got.borrow().answers("\"init\"");
    assert_eq!(answers[1]["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(bench.life(0).texts.len(), 2);
    // It goes by what it said last.
    bench.say(&a, &format!("[{}]", call("1", "wait")));
    bench.server_says(server(0), &ask("1", "sampling/createMessage"));
    bench.server_says(server(0), &ask("2", "roots/list"));
    assert_eq!((a.with_method("sampling/createMessage").len(), a.with_method("roots/list").len()), (0, 1));
    bench.cut(&a);
    bench.assert_clean();
}

#[test]
fn capabilities_that_cannot_be_shared_are_not_promised() {
    let capabilities = json!({"tools": {}, "tasks": {"list": {}, "requests": {}}, "x": 1});
    let mut bench = bench(Nature { capabilities, ..Nature::default() });
    let a = bench.legacy();
    assert_eq!(a.result("\"init\"")["capabilities"], json!({"tools": {}, "x": 1}));
    bench.say(&a, &request("1", "tasks/list", "{}"));
    a.error("1", -32601);
    bench.assert_clean();
}

#[test]
fn a_refused_handshake_is_told_to_all_who_wait_and_not_remembered() {
    for chop in CHOPS {
        let error = json!({"code": -32602, "message": "not today"});
        let mut bench = Bench::new(chop, config(), move |nth| Nature {
            refuses: (nth == 0).then(|| error.clone()),
            ..Nature::default()
        });
        let (a, b) = (bench.client(), bench.client());
        bench.queue(&a, &initialize("1", "{}", "2025-11-25"));
        bench.queue(&b, &initialize("\"1\"", "{}", "2025-11-25"));
        bench.run(100);
        assert_eq!(a.error("1", -32602)["message"], "not today");
        b.error("\"1\"", -32602);
        bench.say(&a, &initialize("2", "{}", "2025-11-25"));
        bench.run(4000);
        a.result("2");
        assert_eq!(bench.starts().len(), 2);
        bench.assert_clean();
    }
}

fn ask(id: &str, method: &str) -> String {
    request(id, method, "{}")
}

#[test]
fn o_18_a_server_asks_the_one_client_it_works_for() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call("1", "wait"));
        bench.server_says(server(0), &ask("\"x\"", "roots/list"));
        bench.server_says(server(0), &ask("1", "sampling/createMessage"));
        let asked = a.got.borrow().values();
        let ids: Vec<String> =
            asked.iter().filter(|v| v.get("method").is_some()).map(|v| v["id"].to_string()).collect();
        assert_eq!(ids.len(), 2);
        assert!(
            ids[0] != ids[1] && !ids.contains(&"1".to_owned()) && !ids.contains(&"\"x\"".to_owned()),
            "{ids:?}"
        );
        assert_eq!(b.count(), 1, "nobody else is asked");
        let replies = |bench: &Bench| -> Vec<Value> {
            bench.life(0).values().into_iter().filter(|value| value.get("method").is_none()).collect()
        };
        // Forged by B, then right, then once more.
        bench.say(&b, &result(&ids[0], "\"forged\""));
        assert!(replies(&bench).is_empty());
        bench.say(&a, &result(&ids[0], "[9007199254740993]"));
        bench.say(&a, &result(&ids[0], "2"));
        assert_eq!(
            bench.life(0).texts.last().unwrap().1,
            r#"{"jsonrpc":"2.0","id":"x","result":[9007199254740993]}"#
        );
        assert_eq!(replies(&bench).len(), 1);
        // A goes while it is asked.
        bench.cut(&a);
        let all = replies(&bench);
        assert_eq!(all.len(), 2);
        assert_eq!((&all[1]["id"], &all[1]["error"]["code"]), (&json!(1), &json!(-32603)));
        assert_eq!(
            bench.life(0).with_method("notifications/cancelled").len(),
            1,
            "and its own call is cancelled"
        );
        bench.assert_clean();
    }
}

#[test]
fn nobody_is_asked_when_it_may_be_about_two_clients_or_none() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy_with("{}", "2025-11-25"));
        let last = |bench: &Bench| bench.life(0).values().pop().unwrap();
        bench.server_says(server(0), &ask("1", "roots/list"));
        assert_eq!((&last(&bench)["id"], &last(&bench)["error"]["code"]), (&json!(1), &json!(-32603)));
        bench.say(&a, &call("1", "wait"));
        bench.say(&b, &call("1", "wait"));
        bench.server_says(server(0), &ask("\"2\"", "elicitation/create"));
        assert_eq!((&last(&bench)["id"], &last(&bench)["error"]["code"]), (&json!("2"), &json!(-32603)));
        bench.say(&a, &cancel("1"));
        // B works alone now, but has not declared it.
        bench.server_says(server(0), &ask("3", "elicitation/create"));
        assert_eq!((&last(&bench)["id"], &last(&bench)["error"]["code"]), (&json!(3), &json!(-32603)));
        bench.server_says(server(0), &ask("4", "ping"));
        assert_eq!(last(&bench), json!({"jsonrpc": "2.0", "id": 4, "result": {}}));
        bench.server_says(server(0), &ask("5", "no/such"));
        assert_eq!((&last(&bench)["id"], &last(&bench)["error"]["code"]), (&json!(5), &json!(-32601)));
        assert_eq!((a.count(), b.count()), (1, 1));
        let wire = bench.id_of("wait", 1);
        bench.server_says(server(0), &result(&wire, "1"));
        bench.assert_clean();
    }
}

#[test]
fn what_a_server_asked_is_withdrawn_when_it_dies_and_a_late_reply_goes_nowhere() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.say(&a, &call("1", "wait"));
        bench.server_says(server(0), &ask("1", "roots/list"));
        let id = a.with_method("roots/list")[0]["id"].clone();
        bench.say(&a, &call("2", "crash"));
        bench.run(100);
        let withdrawn = a.with_method("notifications/cancelled");
        assert_eq!(withdrawn.len(), 1);
        assert_eq!(withdrawn[0]["params"]["requestId"], id);
        bench.run(4000);
        bench.say(&a, &result(&id.to_string(), "1"));
        assert!(bench.life(1).values().iter().all(|value| value.get("result").is_none()));
        bench.assert_clean();
    }
}

#[test]
fn a_server_takes_back_what_it_asked_by_its_own_id() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.say(&a, &call("7", "wait"));
        bench.server_says(server(0), &ask("7", "roots/list"));
        bench.server_says(server(0), &cancel("8"));
        assert!(a.with_method("notifications/cancelled").is_empty());
        bench.server_says(server(0), &cancel("7"));
        let id = a.with_method("roots/list")[0]["id"].clone();
        let told = a.with_method("notifications/cancelled");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["params"]["requestId"], id, "not A's own request 7");
        bench.say(&a, &result(&id.to_string(), "1"));
        assert!(bench.life(0).values().iter().all(|value| value.get("result").is_none()));
        // The id is free again; while it is in use a second question under it is refused.
        bench.server_says(server(0), &ask("7", "roots/list"));
        bench.server_says(server(0), &ask("7", "roots/list"));
        assert_eq!(a.with_method("roots/list").len(), 2);
        assert_eq!(bench.life(0).values().last().unwrap()["error"]["code"], -32600);
        bench.cut(&a);
        bench.assert_clean();
    }
}

#[test]
fn progress_of_a_client_is_about_what_it_was_asked() {
    let mut bench = bench(Nature::default());
    let (a, b) = (bench.legacy(), bench.legacy());
    bench.say(&a, &call("1", "wait"));
    bench.server_says(
        server(0),
        &request("1", "sampling/createMessage", r#"{"_meta":{"progressToken":"s"}}"#),
    );
    assert_eq!(a.with_method("sampling/createMessage")[0]["params"]["_meta"]["progressToken"], "s");
    bench.say(&a, &progress("\"s\"", 1));
    bench.say(&b, &progress("\"s\"", 2));
    let told = bench.life(0).with_method("notifications/progress");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["params"], json!({"progressToken": "s", "progress": 1}));
    bench.cut(&a);
    bench.assert_clean();
}

#[test]
fn notifications_go_to_whom_they_concern() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy_with("{}", "2025-11-25"));
        let waiting = bench.client();
        for method in ["notifications/tools/list_changed", "x/unknown"] {
            bench.server_says(server(0), &notification(method, r#"{"n":9007199254740993}"#));
            assert_eq!((a.with_method(method).len(), b.with_method(method).len()), (1, 1));
        }
        let method = "notifications/elicitation/complete";
        bench.server_says(server(0), &notification(method, r#"{"elicitationId":"1"}"#));
        assert_eq!((a.with_method(method).len(), b.with_method(method).len()), (1, 0));
        let method = "x/of_a_request";
        bench.server_says(server(0), &notification(method, r#"{"progressToken":5}"#));
        assert_eq!((a.with_method(method).len(), b.with_method(method).len()), (0, 0));
        let method = "notifications/tasks/status";
        bench.server_says(server(0), &notification(method, "{}"));
        assert_eq!((a.with_method(method).len(), b.with_method(method).len()), (0, 0));
        assert_eq!(waiting.count(), 0, "who has said nothing is told nothing");
        bench.assert_clean();
    }
}

#[test]
fn a_client_that_goes_takes_its_own_with_it_and_nothing_else() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call("1", "later"));
        bench.say(&a, &call("2", "wait"));
        bench.say(&b, &call_with("1", "later", "\"b\""));
        bench.cut(&a);
        let cancelled = bench.life(0).with_method("notifications/cancelled");
        let ids: Vec<String> = cancelled.iter().map(|note| note["params"]["requestId"].to_string()).collect();
        assert_eq!(ids, [bench.id_of("later", 0), bench.id_of("wait", 0)]);
        bench.say(&b, &call("2", "flush"));
        assert_eq!(b.result("1"), "b");
        assert_eq!(bench.hub().clients(), 1);
        // The place is taken by another one, who hears nothing of it.
        let c = bench.legacy();
        assert_eq!(c.port.index(), a.port.index());
        assert_ne!(c.port, a.port);
        assert_eq!(c.count(), 1);
        bench.assert_clean();
    }
}
