//! Answers that are failures, or none (O-26), and notifications however they are answered (O-27).

use serde_json::{Value, json};

use crate::server::{EVENTS, JSON, Request, Server};
use crate::support::{Session, ping, pong};

const HTML: (&str, &str) = ("content-type", "text/html");
const TEXT: (&str, &str) = ("content-type", "text/plain");

/// Sends a request, has it answered like this, and returns what the agent gets.
fn answered(server: &Server, session: &mut Session, answer: impl FnOnce(Request)) -> Value {
    session.send(&[ping(7)]);
    answer(server.post("ping"));
    let found = session.json();
    assert_eq!(found["id"], 7, "{found}");
    found
}

/// The same, and it is an error of the bridge's own, with the status.
fn failed(
    server: &Server,
    session: &mut Session,
    status: Option<u16>,
    answer: impl FnOnce(Request),
) -> Value {
    let found = answered(server, session, answer);
    assert_eq!(found["error"]["code"], -32603, "{found}");
    assert!(found["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{found}");
    let data = &found["error"]["data"];
    assert_eq!(data["url"], format!("{}/mcp", server.origin()), "{found}");
    assert!(data["retryable"].is_boolean(), "{found}");
    if status.is_some() {
        assert_eq!(data["httpStatus"], json!(status), "{found}");
    }
    found
}

/// The next request is served as if nothing had been.
fn goes_on(server: &Server, session: &mut Session) {
    session.send(&[ping(8)]);
    server.post("ping").result();
    assert_eq!(session.line(), pong(8));
}

#[test]
fn o_26_each_failure_is_one_error_that_quotes_it() {
    let server = Server::start();
    let mut session = server.connected();
    let page = format!("<html>bad gateway {}</html>", "x".repeat(1 << 20));
    for (status, headers, body, quoted) in [
        (401, TEXT, "who are you?", "who are you?"),
        (403, JSON, r#"{"message":"not you"}"#, "not you"),
        (429, TEXT, "slow down", "slow down"),
        (500, TEXT, "broken", "broken"),
        (502, HTML, page.as_str(), "bad gateway"),
        (503, TEXT, "", ""),
        (418, JSON, "not json", "not json"),
    ] {
        let found = failed(&server, &mut session, Some(status), |request| {
            request.answer(status, &[headers], body.to_owned());
        });
        let said = found.to_string();
        assert!(said.contains(quoted) && said.len() < 4096, "{} bytes: {said:.500}", said.len());
        goes_on(&server, &mut session);
    }
}

#[test]
fn o_26_what_may_go_well_later_says_so() {
    let server = Server::start();
    let mut session = server.connected();
    for (status, is_retryable) in
        [(400, false), (401, false), (403, false), (429, true), (502, true), (503, true), (504, true)]
    {
        let found =
            failed(&server, &mut session, Some(status), |request| request.answer(status, &[TEXT], "x"));
        assert_eq!(found["error"]["data"]["retryable"], is_retryable, "{status}");
    }
}

#[test]
fn o_26_a_json_rpc_error_passes_under_any_status() {
    let server = Server::start();
    let mut session = server.connected();
    let body = r#"{"jsonrpc":"2.0", "id":7,"error":{"code":-32099,"message":"no","data":[1.0]}}"#;
    // But not 404, which says of a session that it has ended.
    for status in [200, 400, 401, 403, 409, 500, 503] {
        session.send(&[ping(7)]);
        server.post("ping").answer(status, &[JSON], body);
        assert_eq!(String::from_utf8_lossy(&session.line()), body, "{status}");
        goes_on(&server, &mut session);
    }
}

#[test]
fn o_26_bodies_that_are_no_answer_are_one_error() {
    let server = Server::start();
    let mut session = server.connected();
    for (status, headers, body) in [
        (200, JSON, ""),
        (200, JSON, "null"),
        (200, JSON, "{"),
        (200, JSON, "[]"),
        (200, JSON, r#"{"jsonrpc":"2.0","id":999,"result":{}}"#),
        (200, JSON, "\u{feff}x"),
        (200, HTML, "<html>log in</html>"),
        (200, TEXT, "ok"),
        (202, TEXT, ""),
        (204, TEXT, ""),
        (200, EVENTS, ""),
        (200, EVENTS, ": nothing\n\n"),
        (200, EVENTS, "data: {\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n\n"),
    ] {
        failed(&server, &mut session, None, |request| request.answer(status, &[headers], body));
        goes_on(&server, &mut session);
    }
    session.close_input();
    server.end().answer(200, &[], "");
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{finished:?}");
}

#[test]
fn o_26_a_body_of_several_messages_settles_each_id_once() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(7)]);
    let twice = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
    server.post("ping").answer(200, &[EVENTS], format!("data: {twice}\n\ndata: {twice}\n\n"));
    assert_eq!(session.line(), pong(7));
    goes_on(&server, &mut session);
    // A message that is no answer is passed on, and the answer is missed all the same.
    let note = r#"{"jsonrpc":"2.0","method":"note"}"#;
    session.send(&[ping(7)]);
    server.post("ping").json_answer(note);
    assert_eq!(session.line(), note.as_bytes());
    assert_eq!(session.json()["error"]["code"], -32603);
    goes_on(&server, &mut session);
}

#[test]
fn o_26_a_connection_that_breaks_is_one_error() {
    let server = Server::start();
    let mut session = server.connected();
    // Before the head; in the body; in a stream without ids to go on from.
    failed(&server, &mut session, None, drop);
    failed(&server, &mut session, None, |request| {
        let mut stream = request.begin(200, &[JSON]);
        stream.send(r#"{"jsonrpc":"2.0","id":7,"resu"#);
    });
    failed(&server, &mut session, None, |request| {
        let mut stream = request.begin(200, &[("content-length", "1000"), JSON]);
        stream.send(pong(7));
    });
    goes_on(&server, &mut session);
}

#[test]
fn o_27_a_notification_is_never_answered() {
    let server = Server::start();
    let mut session = server.connected();
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"n0"}}"#;
    for (status, headers, body) in [
        (202, TEXT, ""),
        (204, TEXT, ""),
        (200, TEXT, ""),
        (200, JSON, "null"),
        (200, TEXT, "ok"),
        (200, JSON, "{}"),
        (200, EVENTS, ": nothing\n\n"),
        (401, TEXT, "n0"),
        (500, JSON, error),
        (502, HTML, "<html>n0"),
    ] {
        session.send(&[r#"{"jsonrpc":"2.0","method":"notifications/x"}"#]);
        server.post("notifications/x").answer(status, &[headers], body);
        goes_on(&server, &mut session);
    }
    session.send(&[r#"{"jsonrpc":"2.0","method":"notifications/x"}"#]);
    drop(server.post("notifications/x"));
    goes_on(&server, &mut session);
    session.close_input();
    server.end().answer(200, &[], "");
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{finished:?}");
    let told = finished.stderr.matches("notifications/x").count();
    assert!(told >= 4, "{}", finished.stderr);
    assert!(finished.stderr.contains("401") && finished.stderr.contains("502"), "{}", finished.stderr);
}
