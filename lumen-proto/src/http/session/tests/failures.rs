//! Every failure is one error for each request that waits, and quotes what the server said.

use super::*;
use crate::http::Secrets;

#[track_caller]
fn check(error: &Value, id: u32, reason: &str, status: Option<u16>, excerpt: &str) {
    assert_eq!(error["id"], id, "{error}");
    assert_eq!(error["error"]["code"], -32603, "{error}");
    let data = &error["error"]["data"];
    assert_eq!(
        (data["reason"].as_str(), data["url"].as_str()),
        (Some(reason), Some("https://host/mcp")),
        "{error}"
    );
    assert_eq!(data.get("httpStatus").and_then(Value::as_u64), status.map(u64::from), "{error}");
    assert_eq!(data.get("excerpt").map_or("", |text| text.as_str().unwrap()), excerpt, "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains(excerpt.get(..100).unwrap_or(excerpt)));
}

#[test]
fn o26_refusals_are_quoted() {
    let mut rig = Rig::opened();
    for (status, kind, body) in [
        (401, "text/plain", "log in first"),
        (403, "application/json", r#"{"detail":"not yours"}"#),
        (403, "application/json", r#"[1]"#),
        (500, "text/event-stream", "data: {}\n\n"),
        (404, "application/json", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
    ] {
        let mut rig = if status == 404 { Rig::new() } else { core::mem::replace(&mut rig, Rig::opened()) };
        let made = rig.call(1);
        rig.head(made.id, status, &[("content-type", kind)]);
        rig.chunk(made.id, body);
        rig.end(made.id);
        check(&rig.error(), 1, "http_status", Some(status), body.trim());
        let [Event::Failed { id, failure }] = &rig.events()[..] else { panic!() };
        assert_eq!((&id[..], failure.status), (&b"1"[..], Some(status)));
    }
}

#[test]
fn o26_a_megabyte_of_html_is_one_bounded_excerpt() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.head(made.id, 502, &[("content-type", "text/html"), ("retry-after", "7")]);
    let block = "<p>bad gateway</p>".repeat(1000);
    for _ in 0..60 {
        rig.chunk(made.id, &block);
    }
    assert_eq!(rig.aborted(), [made.id]);
    rig.end(made.id);
    let error = rig.error();
    check(&error, 1, "http_status", Some(502), &block[..limits::MAX_QUOTE]);
    assert_eq!(error["error"]["data"]["retryable"], true);
    assert_eq!(error["error"]["data"]["retryAfter"], "7");
}

#[test]
fn o26_a_server_that_is_not_there_or_goes_away() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.fail(made.id, TransportErrorKind::Connect);
    let error = rig.error();
    check(&error, 1, "not_reached", None, "");
    assert_eq!(error["error"]["data"]["retryable"], true);
    assert!(error["error"]["message"].as_str().unwrap().contains("it broke"));

    let made = rig.call(2);
    rig.head(made.id, 200, &[JSON]);
    rig.chunk(made.id, r#"{"jsonrpc":"2.0","id":2,"res"#);
    rig.fail(made.id, TransportErrorKind::Reset);
    check(&rig.error(), 2, "connection_lost", Some(200), r#"{"jsonrpc":"2.0","id":2,"res"#);

    let made = rig.call(3);
    rig.end(made.id);
    check(&rig.error(), 3, "no_answer", None, "");
    rig.fail(made.id, TransportErrorKind::Reset);
    assert_eq!((rig.told().len(), rig.session.collected), (0, 0));
}

#[test]
fn o26_an_error_answer_under_any_status_passes_unchanged() {
    let mut rig = Rig::opened();
    for status in [400, 401, 404, 405, 500, 503] {
        // With another code than that of an unknown method, 404 would be a lost session.
        let answer = r#"{ "jsonrpc":"2.0","error":{"code":-32601,"message":"no","data":[1.0]},"id":1 }"#;
        let made = rig.call(1);
        rig.json(made.id, status, answer);
        assert_eq!(rig.told(), [answer]);
        rig.none();
    }
    assert_eq!(rig.events(), []);
}

#[test]
fn an_error_answer_with_nobodys_id_gets_the_one_that_waits() {
    let mut rig = Rig::opened();
    for (answer, expected) in [
        (
            r#"{"id":null,"error":{"code":-32000,"message":"x"}}"#,
            r#"{"id":1,"error":{"code":-32000,"message":"x"}}"#,
        ),
        (r#"{"id":"server-error","error":{"code":1}}"#, r#"{"id":1,"error":{"code":1}}"#),
        (r#"{"error":{"code":1}}"#, r#"{"error":{"code":1},"id":1}"#),
    ] {
        let made = rig.call(1);
        rig.json(made.id, 400, answer);
        assert_eq!(rig.told(), [expected]);
    }
    let made = rig.call(1);
    rig.json(made.id, 200, r#"{"id":null,"error":{"code":2}}"#);
    assert_eq!(rig.told(), [r#"{"id":1,"error":{"code":2}}"#]);
}

#[test]
fn an_answer_that_is_none_is_an_error() {
    let mut rig = Rig::opened();
    for (body, reason) in [
        ("null", "bad_body"),
        ("", "no_answer"),
        (" \n", "no_answer"),
        ("{\"id\":1", "bad_body"),
        (r#"{"id":2,"result":{}}"#, "bad_body"),
        (r#"{"id":"1","result":{}}"#, "bad_body"),
        (r#"{"id":1,"result":{}}{"id":1,"result":{}}"#, "bad_body"),
        (r#"{"id":"server-error","error":{}}"#, "bad_body"),
        ("[]", "bad_body"),
    ] {
        let made = rig.call(1);
        rig.json(made.id, 200, body);
        check(&rig.error(), 1, reason, Some(200), body.trim());
    }
    for status in [202, 204] {
        let made = rig.call(1);
        rig.accept(made.id);
        assert_eq!((made.method, rig.told().len()), (Method::Post, 1), "{status}");
    }
}

#[test]
fn two_messages_in_one_body_settle_one_id_once() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.json(made.id, 200, &std::format!("[{},{}]", result(1), result(1)));
    assert_eq!(rig.told(), [result(1)]);
    assert_eq!(rig.events(), [Event::Unasked { id: "1".into() }]);
    let made = rig.call(1);
    rig.sse(made.id, &(data(&result(1)) + &data(&result(1)) + &data(&result(4))));
    rig.end(made.id);
    assert_eq!(rig.told(), [result(1)]);
}

#[test]
fn a_body_of_another_kind_or_coded_is_an_error_that_names_it() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.head(made.id, 200, &[("content-type", "text/html; charset=utf-8")]);
    rig.chunk(made.id, "<html>");
    rig.end(made.id);
    let error = rig.error();
    check(&error, 1, "content_type", Some(200), "<html>");
    assert!(error["error"]["message"].as_str().unwrap().contains("text/html"));

    let made = rig.call(2);
    rig.head(made.id, 200, &[JSON, ("content-encoding", "br")]);
    rig.chunk(made.id, "\u{1}\u{2}");
    let error = rig.error();
    check(&error, 2, "content_encoding", Some(200), "");
    assert!(error["error"]["message"].as_str().unwrap().contains("in br"));
    assert_eq!(rig.aborted(), [made.id]);
}

#[test]
fn an_answer_that_is_too_long_is_an_error_and_the_session_goes_on() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.head(made.id, 200, &[JSON]);
    let block = " ".repeat(limits::MAX_MESSAGE / 4 + 1);
    for _ in 0..4 {
        rig.chunk(made.id, &block);
    }
    check(&rig.error(), 1, "too_long", Some(200), "");
    assert_eq!((rig.aborted(), rig.session.collected), ([made.id].to_vec(), 0));

    let made = rig.call(2);
    rig.sse(made.id, r#"data: {"id":2,"result":""#);
    for _ in 0..4 {
        rig.chunk(made.id, &block);
    }
    rig.chunk(made.id, "\"}\n\n");
    check(&rig.error(), 2, "too_long", Some(200), "");
    rig.chunk(made.id, &data(r#"{"method":"n"}"#));
    assert_eq!((rig.told(), rig.session.collected), ([r#"{"method":"n"}"#.to_string()].to_vec(), 0));
}

#[test]
fn a_broken_answer_in_a_stream_is_an_error_for_its_id() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    let broken = r#"{"id":1,"result":}"#;
    rig.sse(made.id, &data(broken));
    check(&rig.error(), 1, "bad_body", Some(200), broken);
    let made = rig.call(2);
    rig.sse(made.id, &data(r#"{"id":"s","method":"m","params":}"#));
    assert!(
        rig.next().body.starts_with(br#"{"jsonrpc":"2.0","id":"s","error""#),
        "the server is told of its own"
    );
    assert_eq!(rig.told().len(), 0);
}

#[test]
fn a_request_that_takes_too_long_is_an_error_but_a_subscription_may() {
    let config = Config::new(String::new()).with_timeout(Some(Duration::from_secs(60)));
    let mut rig = Rig::with(config);
    let [call, listen] = [rig.call(1), {
        rig.say(r#"{"id":"l","method":"subscriptions/listen"}"#);
        rig.next()
    }];
    rig.sse(call.id, &data(r#"{"method":"notifications/progress"}"#));
    rig.told();
    rig.pass(Duration::from_secs(59));
    assert_eq!(rig.told().len(), 0);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.error()["error"]["data"]["reason"], "timeout");
    assert_eq!(rig.aborted(), [call.id]);
    rig.chunk(call.id, &data(&result(1)));
    rig.pass(Duration::from_secs(1_000_000));
    assert_eq!((rig.told().len(), rig.aborted().len()), (0, 0));
    rig.sse(listen.id, &data(r#"{"id":"l","result":{}}"#));
    assert_eq!(rig.told().len(), 1);
}

#[test]
fn a_notification_that_is_never_accepted_is_given_up() {
    let mut rig = Rig::opened();
    rig.say(r#"{"method":"n"}"#);
    let note = rig.next();
    rig.pass(limits::POST_PATIENCE);
    assert_eq!(rig.aborted(), [note.id]);
    assert!(matches!(&rig.events()[..], [Event::Undelivered { .. }]));
    assert_eq!(rig.told().len(), 0);
}

#[test]
fn a_server_that_lists_the_headers_does_not_tell_the_key() {
    let secrets = Secrets::new(["Bearer s3cret-key", "s3cret-key"]);
    let mut rig = Rig::with(Config { secrets, ..Config::new("https://host/mcp".into()) });
    let page = "headers: Authorization: Bearer s3cret-key, X: s3cret-key";
    for (id, status, kind) in [(1, 500, "text/plain"), (2, 200, "text/html"), (3, 200, "application/json")] {
        let made = rig.call(id);
        rig.head(made.id, status, &[("content-type", kind), ("retry-after", "s3cret-key")]);
        rig.chunk(made.id, page);
        rig.end(made.id);
        let said = std::format!("{} {:?}", rig.error(), rig.events());
        assert!(said.contains("Authorization: ***, X: ***") && !said.contains("s3cret"), "{said}");
    }
    let made = rig.call(4);
    rig.sse(made.id, "data: no message but s3cret-key\n\ndata: {\"id\":4,\"result\":s3cret-key}\n\n");
    let said = std::format!("{:?} {:?}", rig.told(), rig.events());
    assert!(said.contains("***") && !said.contains("s3cret"), "{said}");
    let made = rig.call(5);
    rig.head(made.id, 502, &[]);
    rig.chunk(made.id, &("x".repeat(limits::MAX_QUOTE - 8) + "s3cret-key"));
    let said = std::format!("{:?} {:?}", rig.told(), rig.events());
    assert!(said.contains("x***") && !said.contains("s3cret"), "{said}");
}
