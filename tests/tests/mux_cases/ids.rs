//! O-07 to O-14: whose answer it is.

use serde_json::{Value, json};

use crate::support::*;

#[test]
fn o_07_a_server_that_dies_inside_a_line_costs_one_answer() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        let mut b = stage.another();
        a.say(&call("4", "half", "{}"));
        let asked = server.next("tools/call");
        server.die_inside(&format!(r#"{{"jsonrpc":"2.0","id":{},"resu"#, asked["id"]));
        error(&a.hear(), "4", GONE);
        let status = stage.wait_status(|status| status["servers"][0]["lastEnd"].is_string());
        assert!(status["servers"][0]["lastEnd"].as_str().unwrap().contains('3'), "{status}");
        // The next one knows nothing of the fragment.
        b.say(&call("5", "echo", "{}"));
        let mut server = stage.server();
        server.greet();
        server.next("notifications/initialized");
        let asked = server.next("tools/call");
        server.answer(&asked, "55");
        result(&answer_of(&mut b), "5", 55);
        stage.end(server);
        assert!(a.rest().iter().all(|message| message["id"].is_null()));
    });
}

/// The next message that is no notification: after a new start lists may have changed.
#[track_caller]
fn answer_of(client: &mut lumen_tests::mux::Client) -> Value {
    loop {
        let message = client.hear();
        if message.get("id").is_some() {
            return message;
        }
    }
}

#[test]
fn o_08_each_request_in_flight_at_a_crash_is_answered_under_its_own_id() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        let mut b = stage.another();
        a.say(&call("7", "wait", "{}"));
        a.say(&call("\"8\"", "wait", "{}"));
        b.say(&call("1", "wait", "{}"));
        (0..3).for_each(|_| drop(server.next("tools/call")));
        drop(server);
        for (answer, id) in [(a.hear(), "7"), (a.hear(), "\"8\""), (b.hear(), "1")] {
            assert_eq!(error(&answer, id, GONE)["data"]["reason"], "server_gone");
        }
        // Nothing else came: no error whose id is null, none twice.
        for client in [a, b] {
            let rest = client.rest();
            assert!(rest.iter().all(|message| message.get("id").is_none()), "{rest:?}");
        }
        stage.stop();
    });
}

#[test]
fn o_09_a_request_sent_during_a_restart_keeps_its_id() {
    each(|runtime| {
        let stage = Stage::with_backoff(runtime, "1s..1s");
        let (mut a, mut server) = stage.greeted();
        a.say(&call("4", "wait", "{}"));
        server.next("tools/call");
        drop(server);
        error(&a.hear(), "4", GONE);
        stage.wait_status(|status| status["servers"][0]["state"] == "backoff");
        a.say(&call("99", "echo", "{}"));
        let mut server = stage.server();
        server.greet();
        server.next("notifications/initialized");
        let asked = server.next("tools/call");
        assert_eq!(asked["params"]["name"], "echo", "what was in flight is not sent again");
        server.answer(&asked, "[99]");
        result(&answer_of(&mut a), "99", json!([99]));
        stage.end(server);
    });
}

#[test]
fn o_10_a_notification_during_a_restart_does_no_harm() {
    each(|runtime| {
        let stage = Stage::with_backoff(runtime, "1s..1s");
        let (mut a, mut server) = stage.greeted();
        a.say(&call("4", "wait", "{}"));
        server.next("tools/call");
        drop(server);
        error(&a.hear(), "4", GONE);
        stage.wait_status(|status| status["servers"][0]["state"] == "backoff");
        for id in ["4", "5", "\"x\""] {
            a.say(&notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#)));
        }
        a.say(&notification("x/y", "{}"));
        a.say(&call("6", "echo", "{}"));
        let mut server = stage.server();
        server.greet();
        server.next("notifications/initialized");
        // What is sent to it first may be that notification, but no cancel.
        let asked = loop {
            let message = server.hear();
            assert_ne!(message["method"], "notifications/cancelled");
            if message.get("id").is_some() {
                break message;
            }
        };
        server.answer(&asked, "6");
        result(&answer_of(&mut a), "6", 6);
        stage.end(server);
    });
}

#[test]
fn o_11_zero_and_the_empty_string_are_ids() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        for id in ["0", "\"\"", "-1"] {
            a.say(&call(id, "echo", "{}"));
            let asked = server.next("tools/call");
            server.answer(&asked, "1");
            result(&a.hear(), id, 1);
            error(&a.ask(&request(id, "lumen/anything", "{}")), id, -32601);
        }
        stage.end(server);
    });
}

#[test]
fn o_12_a_request_with_the_id_null_is_refused_and_the_next_one_goes_on() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        error(&a.ask(&request("null", "tools/list", "{}")), "null", -32600);
        a.say(&call("1", "echo", "{}"));
        // The first that it hears.
        let asked = server.next("tools/call");
        server.answer(&asked, "1");
        result(&a.hear(), "1", 1);
        stage.end(server);
    });
}

#[test]
fn o_13_every_byte_outside_of_what_is_rewritten_stays() {
    const ODD: &str = r#"{"n" :9007199254740993, "m":725653563933458432,"e":1e400,"f":1.0,"z":-0,"d":1,"d":2,"s":"\u00e9é\u2028\/"}"#;
    const ID: &str = "12345678901234567890";
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        let text = |id: &str| {
            format!(
                r#"{{ "params":{{"arguments":{ODD}}}, "id":{id} ,"method":"tools/call","jsonrpc":"2.0"}}"#
            )
        };
        a.say(&text(ID));
        let heard = String::from_utf8(server.line()).unwrap();
        let wire = heard.split_once("\"id\":").unwrap().1.split_once(' ').unwrap().0;
        assert_eq!(heard, text(wire));
        let answer = |id: &str| format!(r#"{{"result" : {ODD},"jsonrpc":"2.0", "id": {id} }}"#);
        server.say(&answer(wire));
        assert_eq!(String::from_utf8(a.line()).unwrap(), answer(ID));
        stage.end(server);
    });
}

#[test]
fn o_14_ids_of_two_clients_that_look_alike_are_told_apart() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        let mut b = stage.another();
        let ids_a = ["1", "\"1\"", r#""a\"b\\""#];
        let ids_b = ["1", "\"1\""];
        let mut asked = Vec::new();
        for (client, name, ids) in [(&mut a, "a", &ids_a[..]), (&mut b, "b", &ids_b)] {
            for id in ids {
                client.say(&call(id, name, &json!({ "id": id }).to_string()));
                asked.push(server.next("tools/call"));
            }
        }
        for request in asked.iter().rev() {
            let params = &request["params"];
            server.answer(request, &json!([params["name"], params["arguments"]["id"]]).to_string());
        }
        for (client, name, ids) in [(&mut a, "a", &ids_a[..]), (&mut b, "b", &ids_b)] {
            for id in ids.iter().rev() {
                let text = String::from_utf8(client.line()).unwrap();
                assert!(text.contains(&format!(r#""id":{id},"#)), "spelled otherwise: {text}");
                let answer: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(answer["result"], json!([name, id]));
            }
        }
        stage.end(server);
    });
}
