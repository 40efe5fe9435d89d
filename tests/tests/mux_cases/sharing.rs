//! O-15 to O-19: what is one server's and many clients'.

use serde_json::{Value, json};

use crate::support::*;

fn cancelled(id: &str) -> String {
    notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#))
}

#[test]
fn o_15_a_cancel_names_the_request_as_the_server_knows_it() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        let mut b = stage.another();
        // The same id, so one of them travels under another.
        a.say(&call("50", "a", "{}"));
        let of_a = server.next("tools/call");
        b.say(&call("50", "b", "{}"));
        let of_b = server.next("tools/call");
        a.say(&cancelled("51"));
        a.say(&cancelled(&of_b["id"].to_string().replace("50", "52")));
        a.say(&cancelled("50"));
        // The first that it hears.
        let told = server.next("notifications/cancelled");
        assert_eq!(told["params"]["requestId"], of_a["id"]);
        // Too late for one of them.
        server.answer(&of_a, "\"late\"");
        server.answer(&of_b, "\"b\"");
        result(&b.hear(), "50", "b");
        a.say(&call("53", "a", "{}"));
        let asked = server.next("tools/call");
        server.answer(&asked, "53");
        result(&a.hear(), "53", 53);
        stage.end(server);
    });
}

#[test]
fn o_16_progress_goes_to_its_owner_under_the_owners_token() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        let mut b = stage.another();
        let with_token = |id: &str, token: &str| {
            request(id, "tools/call", &format!(r#"{{"name":"x","_meta":{{"progressToken":{token}}}}}"#))
        };
        a.say(&with_token("1", "1"));
        let of_a = server.next("tools/call");
        b.say(&with_token("1", "\"1\""));
        let of_b = server.next("tools/call");
        let progress = |request: &Value, value: u32| {
            let token = &request["params"]["_meta"]["progressToken"];
            notification(
                "notifications/progress",
                &format!(r#"{{"progressToken":{token},"progress":{value}}}"#),
            )
        };
        server.say(&progress(&of_b, 2));
        server.say(&progress(&of_a, 1));
        for (client, token, value) in [(&mut a, json!(1), 1), (&mut b, json!("1"), 2)] {
            let told = client.hear();
            assert_eq!(told["params"], json!({"progressToken": token, "progress": value}), "{told}");
        }
        server.answer(&of_a, "1");
        server.answer(&of_b, "2");
        // Once more after the answers: for nobody.
        server.say(&progress(&of_a, 3));
        server.say(&progress(&of_b, 3));
        for (client, value) in [(&mut a, 1), (&mut b, 2)] {
            result(&client.hear(), "1", value);
        }
        a.say(&call("2", "x", "{}"));
        let asked = server.next("tools/call");
        server.answer(&asked, "2");
        result(&a.hear(), "2", 2);
        assert_eq!(b.rest(), [0; 0].map(Value::from));
        stage.end(server);
    });
}

#[test]
fn o_17_many_clients_cause_one_handshake() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let mut server = stage.server();
        let (mut a, mut b) = (stage.client(), stage.client());
        a.say(&initialize("\"a\"", r#"{"roots":{"listChanged":true}}"#, "2025-11-25"));
        b.say(&initialize("7", "{}", "2024-11-05"));
        let hello = server.greet();
        assert_eq!(hello["params"]["protocolVersion"].as_str().map(str::len), Some(10), "{hello}");
        for (client, id) in [(&mut a, "\"a\""), (&mut b, "7")] {
            let answer = client.hear();
            assert_eq!(answer["id"].to_string(), id);
            assert!(answer["result"]["protocolVersion"].is_string(), "{answer}");
            client.say(&notification("notifications/initialized", "{}"));
            client.say(&call("1", "x", "{}"));
        }
        // A strict one would mind a second of either.
        server.next("notifications/initialized");
        for _ in 0..2 {
            let asked = server.next("tools/call");
            server.answer(&asked, "1");
        }
        for client in [&mut a, &mut b] {
            result(&client.hear(), "1", 1);
        }
        stage.end(server);
    });
}

#[test]
fn o_18_a_server_asks_the_one_client_it_works_for() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        let mut b = stage.another();
        a.say(&call("1", "x", "{}"));
        server.next("tools/call");
        server.say(&request("\"x\"", "roots/list", "{}"));
        server.say(&request("1", "sampling/createMessage", "{}"));
        let (roots, sampling) = (a.hear(), a.hear());
        assert_eq!(
            (&roots["method"], &sampling["method"]),
            (&"roots/list".into(), &"sampling/createMessage".into())
        );
        assert!(
            roots["id"] != sampling["id"] && roots["id"] != 1 && sampling["id"] != 1,
            "{roots} {sampling}"
        );
        // Forged by B, then right, then once more.
        let reply = |value: &str| format!(r#"{{"jsonrpc":"2.0","id":{},"result":{value}}}"#, roots["id"]);
        b.say(&reply("\"forged\""));
        // When B is answered that has arrived.
        error(&b.ask(&request("9", "lumen/anything", "{}")), "9", -32601);
        a.say(&reply("[9007199254740993]"));
        a.say(&reply("2"));
        assert_eq!(server.line(), br#"{"jsonrpc":"2.0","id":"x","result":[9007199254740993]}"#);
        // A goes while it is asked.
        drop(a);
        let mut heard = [server.hear(), server.hear()];
        heard.sort_by_key(|message| message.get("method").is_some());
        error(&heard[0], "1", -32603);
        assert_eq!(heard[1]["method"], "notifications/cancelled", "its own call is taken back");
        assert_eq!(b.rest(), [0; 0].map(Value::from), "nobody else is asked");
        stage.end(server);
    });
}

#[test]
fn o_19_a_server_that_was_started_again_is_greeted_as_before() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        a.say(&request("1", "resources/subscribe", r#"{"uri":"u:1"}"#));
        let asked = server.next("resources/subscribe");
        server.answer(&asked, "{}");
        result(&a.hear(), "1", json!({}));
        drop(server);
        // Before that it would be sent to the first one.
        stage.wait_status(|status| status["servers"][0]["lastEnd"].is_string());
        a.say(&call("2", "x", "{}"));
        let mut server = stage.server();
        server.greet();
        server.next("notifications/initialized");
        // It is set up as the first one was, and only then asked.
        let mut is_set_up = false;
        let asked = loop {
            let message = server.hear();
            match message["method"].as_str() {
                Some("tools/call") => break message,
                Some("resources/subscribe") => {
                    assert_eq!(message["params"]["uri"], "u:1");
                    server.answer(&message, "{}");
                    is_set_up = true;
                }
                _ => panic!("{message}"),
            }
        };
        assert!(is_set_up);
        server.answer(&asked, "2");
        let mut announced = Vec::new();
        let answer = loop {
            let message = a.hear();
            if message.get("id").is_some() {
                break message;
            }
            announced.push(message["method"].clone());
        };
        result(&answer, "2", 2);
        assert!(announced.contains(&"notifications/tools/list_changed".into()), "{announced:?}");
        stage.end(server);
    });
}
