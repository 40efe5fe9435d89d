//! Sessions: one that the server has forgotten (O-25), and the version header (O-29).

use serde_json::json;

use crate::server::{JSON, Request, Server};
use crate::support::{INITIALIZE, INITIALIZED, ping, pong};

/// The negotiated version, in an answer to `initialize`.
const OLDER: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;

fn forgotten(request: Request) {
    request.answer(404, &[("content-type", "text/plain")], "no such session");
}

#[test]
fn o_29_no_version_on_initialize_and_the_negotiated_one_on_all_else() {
    let server = Server::start();
    let mut session = server.bridge(&[]);
    session.send(&[INITIALIZE]);
    let request = server.post("initialize");
    assert_eq!(request.header("mcp-protocol-version"), None);
    assert_eq!(request.header("mcp-session-id"), None);
    request.answer(200, &[JSON, ("mcp-session-id", "s1")], OLDER);
    assert_eq!(session.line(), OLDER.as_bytes());
    session.send(&[INITIALIZED]);
    let check = |request: Request| {
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-03-26"), "{}", request.method);
        assert_eq!(request.header("mcp-session-id"), Some("s1"), "{}", request.method);
        request
    };
    check(server.post("notifications/initialized")).answer(202, &[], "");
    check(server.stream_request()).answer(405, &[], "");
    session.send(&[ping(1)]);
    check(server.post("ping")).result();
    assert_eq!(session.line(), pong(1));
    session.close_input();
    check(server.end()).answer(200, &[], "");
    assert_eq!(session.finish().code, Some(0));
}

#[test]
fn o_25_a_forgotten_session_is_made_anew_once_and_each_call_goes_again() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1), ping(2), ping(3)]);
    let calls: Vec<_> = (0..3).map(|_| server.post("ping")).collect();
    calls.into_iter().for_each(forgotten);
    let request = server.post("initialize");
    assert_eq!(request.header("mcp-session-id"), None);
    assert_eq!(
        request.json()["params"],
        serde_json::from_str::<serde_json::Value>(INITIALIZE).unwrap()["params"]
    );
    let id = request.json()["id"].to_string();
    let body = OLDER.replace("\"id\":0", &format!("\"id\":{id}"));
    request.answer(200, &[JSON, ("mcp-session-id", "s2")], body);
    let mut pings = 0;
    let mut others = Vec::new();
    while pings < 3 || others.is_empty() {
        let request = server.next();
        assert_eq!(request.header("mcp-session-id"), Some("s2"));
        if request.method == "GET" {
            request.answer(405, &[], "");
        } else if request.json()["method"] == "ping" {
            pings += 1;
            request.result();
        } else {
            others.push(request.json()["method"].clone());
            request.answer(202, &[], "");
        }
    }
    assert_eq!(others, ["notifications/initialized"]);
    let mut answers: Vec<_> = (0..3).map(|_| session.line()).collect();
    answers.sort();
    assert_eq!(answers, [pong(1), pong(2), pong(3)]);
    session.close_input();
    loop {
        let request = server.next();
        assert_eq!(request.header("mcp-session-id"), Some("s2"));
        let is_end = request.method == "DELETE";
        request.answer(405, &[], "");
        if is_end {
            break;
        }
    }
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{finished:?}");
}

#[test]
fn o_25_if_no_new_one_can_be_made_each_call_is_one_error() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1), ping(2), ping(3)]);
    let calls: Vec<_> = (0..3).map(|_| server.post("ping")).collect();
    calls.into_iter().for_each(forgotten);
    server.post("initialize").answer(500, &[], "out of order");
    let mut ids: Vec<_> = (0..3)
        .map(|_| {
            let answer = session.json();
            assert_eq!(answer["error"]["code"], -32603);
            answer["id"].to_string()
        })
        .collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "3"]);
    session.close_input();
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{finished:?}");
}

#[test]
fn o_25_a_404_of_another_kind_is_passed_on() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}"#;
    server.post("ping").answer(404, &[JSON], body);
    assert_eq!(session.line(), body.as_bytes());

    // Without a session.
    let server = Server::start();
    let mut session = server.bridge(&[]);
    session.send(&[INITIALIZE]);
    server.post("initialize").answer(404, &[], "not here");
    let answer = session.json();
    assert_eq!((&answer["id"], &answer["error"]["data"]["httpStatus"]), (&json!(0), &json!(404)));
}
