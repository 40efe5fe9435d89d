//! Ids: whose an answer is, and what becomes of requests whose answer does not come.

use lumen_proto::endpoint::{HubConfig, HubEvent};
use lumen_proto::mux::Config;
use lumen_tests::sim::scripted::Nature;
use serde_json::{Value, json};

use crate::support::*;

#[test]
fn o_07_a_server_that_dies_in_the_middle_of_a_line_costs_one_answer() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call("4", "half"));
        bench.run(100);
        a.error("4", GONE);
        assert_eq!((a.count(), b.count()), (2, 1), "{:?} {:?}", a.heads(), b.heads());
        assert_eq!(bench.hub().server(lumen_proto::mux::SlotId::First).restarts, 0);
        bench.run(3000);
        bench.say(&a, &call_with("5", "echo", "1"));
        assert_eq!(a.result("5"), 1);
        assert_eq!(bench.starts().len(), 2);
        bench.assert_clean();
    }
}

#[test]
fn o_08_each_request_in_flight_at_a_crash_is_answered_under_its_own_id() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call("7", "wait"));
        bench.say(&a, &call(r#""8""#, "wait"));
        bench.say(&b, &call("1", "crash"));
        bench.run(100);
        for (guest, id) in [(&a, "7"), (&a, r#""8""#), (&b, "1")] {
            let error = guest.error(id, GONE);
            assert_eq!(error["data"]["reason"], "server_gone");
            assert!(error["message"].as_str().unwrap().contains('3'), "how it exited: {error}");
        }
        assert_eq!((a.count(), b.count()), (3, 2), "{:?} {:?}", a.heads(), b.heads());
        a.no_answer("null");
        bench.assert_clean();
    }
}

#[test]
fn o_09_a_request_sent_during_a_restart_keeps_its_id() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.say(&a, &call("4", "crash"));
        bench.say(&a, &call_with("99", "echo", "[99]"));
        bench.run(1000);
        a.no_answer("99");
        bench.run(3000);
        assert_eq!(a.result("99"), json!([99]));
        bench.assert_clean();
    }
}

#[test]
fn o_10_a_notification_during_a_restart_does_no_harm() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.say(&a, &call("4", "crash"));
        bench.run(100);
        let before = a.count();
        bench.say(&a, &cancel("4"));
        bench.say(&a, &cancel("5"));
        bench.say(&a, &notification("notifications/roots/list_changed", "{}"));
        bench.say(&a, &notification("x/y", "{}"));
        bench.run(4000);
        assert_eq!(a.with_method("notifications/tools/list_changed").len(), 1);
        bench.say(&a, &call_with("6", "echo", "6"));
        assert_eq!(a.result("6"), 6);
        assert_eq!(a.count(), before + 3, "two lists may have changed: {:?}", a.heads());
        assert!(bench.life(1).with_method("notifications/cancelled").is_empty());
        bench.assert_clean();
    }
}

#[test]
fn o_11_zero_and_the_empty_string_are_ids() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        for id in ["0", r#""""#, "-1", "-0"] {
            bench.say(&a, &call_with(id, "echo", "1"));
            assert_eq!(a.result(id), 1);
            bench.say(&a, &request(id, "lumen/anything", "{}"));
            let answers = a.got.borrow().answers(id);
            assert!(answers.iter().any(|answer| answer["error"]["code"] == -32601), "{answers:?}");
            a.got.borrow_mut().messages.clear();
        }
        assert!(bench.life(0).with_method("lumen/anything").is_empty());
        bench.assert_clean();
    }
}

#[test]
fn o_12_a_request_with_the_id_null_is_refused_and_the_next_one_goes_on() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        let before = bench.life(0).texts.len();
        bench.say(&a, &request("null", "tools/list", "{}"));
        a.error("null", -32600);
        assert_eq!(bench.life(0).texts.len(), before);
        bench.say(&a, &request("1", "tools/list", "{}"));
        a.result("1");
        bench.assert_clean();
    }
}

#[test]
fn an_id_that_is_no_string_and_no_integer_is_refused() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        let before = bench.life(0).texts.len();
        for id in ["1.5", "1e-3", "true", "[1]", "{}"] {
            bench.say(&a, &request(id, "tools/list", "{}"));
        }
        let errors = a.got.borrow().values();
        let errors = errors.iter().filter(|value| value["error"]["code"] == -32600).count();
        assert_eq!(errors, 5, "{:?}", a.heads());
        a.error("1.5", -32600);
        assert_eq!(bench.life(0).texts.len(), before);
        bench.assert_clean();
    }
}

#[test]
fn o_13_every_byte_outside_of_what_is_rewritten_stays() {
    const ODD: &str = r#"{"n" :9007199254740993, "m":725653563933458432,"e":1e400,"f":1.0,"z":-0,"d":1,"d":2,"s":"\u00e9é\u2028\/"}"#;
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        let id = "12345678901234567890";
        let sent = format!(
            r#"{{ "jsonrpc":"2.0","params":{{"name":"wait","arguments":{ODD}}}, "id":{id} ,"method":"tools/call"}}"#
        );
        bench.say(&a, &sent);
        let text = bench.life(0).texts.last().unwrap().1.clone();
        let wire = text.rsplit_once("\"id\":").unwrap().1.split_once(' ').unwrap().0.to_owned();
        assert_eq!(text, sent.replace(id, &wire));
        let answer = format!(r#"{{"result" : {ODD},"jsonrpc":"2.0", "id": {wire} }}"#);
        bench.server_says(server(0), &answer);
        let last = a.got.borrow().texts().last().unwrap().to_string();
        assert_eq!(last, format!(r#"{{"result" : {ODD},"jsonrpc":"2.0", "id": {id} }}"#));
        bench.assert_clean();
    }
}

#[test]
fn o_14_ids_of_two_clients_that_look_alike_are_told_apart() {
    let ids_a = ["1", r#""1""#, r#""a\"b\\""#, "1e1", r#""\u00e9""#];
    let ids_b = ["1", r#""1""#];
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        for (n, id) in ids_a.iter().enumerate() {
            bench.queue(&a, &call_with(id, "later", &format!("[\"a\",{n}]")));
        }
        for (n, id) in ids_b.iter().enumerate() {
            bench.queue(&b, &call_with(id, "later", &format!("[\"b\",{n}]")));
        }
        bench.run(1);
        bench.say(&b, &call(r#""flush""#, "flush"));
        for (guest, name, ids) in [(&a, "a", &ids_a[..]), (&b, "b", &ids_b)] {
            for (n, id) in ids.iter().enumerate() {
                assert_eq!(guest.result(id), json!([name, n]));
                let spelled = format!("\"id\":{id}");
                assert!(guest.got.borrow().texts().iter().any(|text| text.contains(&spelled)), "{id}");
            }
        }
        let first = a.got.borrow().values()[1]["id"].clone();
        assert_eq!(first, "é", "the last one first");
        bench.assert_clean();
    }
}

#[test]
fn an_id_that_is_still_in_flight_is_refused_whatever_its_spelling() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call(r#""a""#, "later"));
        bench.say(&a, &call(r#""\u0061""#, "later"));
        bench.say(&b, &call(r#""a""#, "later"));
        a.error(r#""a""#, -32600);
        bench.say(&b, &call("1", "flush"));
        let answers = a.got.borrow().answers(r#""a""#);
        assert!(answers.len() == 2 && answers[1].get("result").is_some(), "{answers:?}");
        b.result(r#""a""#);
        // And once it is answered it is free.
        bench.say(&a, &call_with(r#""a""#, "echo", "5"));
        assert_eq!(a.got.borrow().answers(r#""a""#)[2]["result"], 5);
        bench.assert_clean();
    }
}

#[test]
fn forged_doubled_and_late_answers_are_dropped() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call("1", "wait"));
        bench.say(&b, &call("1", "wait"));
        let (wire_a, wire_b) = (bench.id_of("wait", 0), bench.id_of("wait", 1));
        let port = server(0);
        for forged in
            ["0", "999", "\"1\"", &format!("\"{wire_a}\""), &format!("{wire_a}.0"), "-1", "[1]", "null"]
        {
            bench.server_says(port, &result(forged, "\"forged\""));
        }
        assert_eq!((a.count(), b.count()), (1, 1), "{:?} {:?}", a.heads(), b.heads());
        bench.server_says(port, &result(&wire_a, "1"));
        bench.server_says(port, &result(&wire_a, "2"));
        bench.say(&b, &cancel("1"));
        bench.server_says(port, &result(&wire_b, "3"));
        assert_eq!(a.result("1"), 1);
        assert_eq!((a.count(), b.count()), (2, 1), "{:?} {:?}", a.heads(), b.heads());
        // A client answers nothing that it was not asked.
        bench.say(&a, &result(&wire_b, "4"));
        bench.say(&a, &result("\"lumen-1\"", "4"));
        assert!(bench.life(0).values().iter().all(|value| value.get("result").is_none()));
        bench.assert_clean();
    }
}

#[test]
fn what_an_earlier_hub_asked_is_no_question_of_this_one() {
    for chop in CHOPS {
        let usual = config();
        let config = HubConfig { mux: Config { life: 7, ..usual.mux }, ..usual };
        let mut bench = Bench::new(chop, config, |_| Nature::default());
        let a = bench.legacy_with(r#"{"roots":{}}"#, "2025-11-25");
        bench.say(&a, &call("1", "wait"));
        bench.server_says(server(0), &request("\"x\"", "roots/list", "{}"));
        let asked =
            a.got.borrow().values().into_iter().find(|value| value["method"] == "roots/list").unwrap();
        let id = asked["id"].to_string();
        assert!(id.starts_with("\"lumen-7-"), "{id}");
        let answers =
            |bench: &Bench| bench.life(0).values().iter().filter(|value| value["id"] == "x").count();
        for earlier in [id.replacen("-7-", "-6-", 1), id.replacen("-7-", "-", 1)] {
            bench.say(&a, &result(&earlier, "{}"));
            assert_eq!(answers(&bench), 0, "{earlier}");
        }
        bench.say(&a, &result(&id, "{}"));
        assert_eq!(answers(&bench), 1);
    }
}

#[test]
fn lumen_methods_are_never_forwarded() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        let before = bench.life(0).texts.len();
        bench.say(&a, &request("1", "lumen/other", "{}"));
        bench.say(&a, &notification("lumen/x", "{}"));
        a.error("1", -32601);
        assert_eq!(bench.life(0).texts.len(), before);
        let count = a.count();
        bench.server_says(server(0), &request("5", "lumen/status", "{}"));
        assert_eq!(a.count(), count);
        let refused: Value = bench.life(0).values().pop().unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32601)));
        bench.server_says(server(0), &notification("lumen/x", "{}"));
        assert_eq!(a.count(), count, "{:?}", a.heads());
        bench.assert_clean();
    }
}

#[test]
fn the_owner_of_the_hub_is_asked_how_things_stand() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        // It needs no handshake, and starts nothing.
        let (a, b) = (bench.client(), bench.client());
        bench.say(&a, &request(r#""\u0061""#, "lumen/status", "{}"));
        bench.say(&b, &request("1", "lumen/status", "{}"));
        let asked: Vec<_> = bench
            .sim
            .events(0)
            .filter_map(|(_, event)| match event {
                HubEvent::Asked { request, client } => Some((*request, *client)),
                _ => None,
            })
            .collect();
        assert_eq!(asked.iter().map(|(_, client)| *client).collect::<Vec<_>>(), [a.port, b.port]);
        let answer = |bench: &mut Bench, (request, client), text: &str| {
            bench.sim.with(0, |hub, now| hub.with(now, |hub| hub.answer(now, client, request, text)));
            bench.run(1);
        };
        answer(&mut bench, asked[0], r#"{"n":1}"#);
        answer(&mut bench, asked[0], r#"{"n":2}"#);
        assert_eq!(a.got.borrow().texts(), [r#"{"jsonrpc":"2.0","id":"\u0061","result":{"n":1}}"#]);
        bench.run(lumen_proto::limits::OWN_TIMEOUT.as_millis() as u64);
        b.error("1", -32603);
        answer(&mut bench, asked[1], "{}");
        assert_eq!(b.count(), 1);
        assert!(bench.starts().is_empty());
        bench.assert_clean();
    }
}
