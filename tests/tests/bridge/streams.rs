//! Event streams (O-28): what belongs to one, going on with one that broke, and the server's own.

use serde_json::json;

use crate::server::{EVENTS, Server};
use crate::support::{ping, pong};

#[test]
fn o_28_one_stream_with_everything() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let text: &[&[u8]] = &[
        "\u{feff}: a comment\n".as_bytes(),
        b":\r\n",
        b"event: message\rdata: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r\r",
        b"data: {\"jsonrpc\":\"2.0\",\r\ndata:\"method\":\"b\"}\r\n\r\n",
        b"data:\n\n",
        b"data\n\n",
        b"event: ping\ndata: {}\n\n",
        b"event: ping\n\n",
        b"id: 7\nretry: 10\nunknown: x\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"c\",\"params\":[\"\xc3\xa9\xe6\xbc\xa2\"]}\n\n",
        b"data: not JSON\n\n",
        b"data: [1,2]\n\n",
        b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    ];
    let mut stream = server.post("ping").stream();
    for byte in text.concat() {
        stream.send(vec![byte]);
    }
    stream.end();
    for wanted in [
        r#"{"jsonrpc":"2.0","method":"a"}"#,
        "{\"jsonrpc\":\"2.0\", \"method\":\"b\"}",
        r#"{"jsonrpc":"2.0","method":"c","params":["é漢"]}"#,
    ] {
        let line = session.line();
        let line = String::from_utf8(line).unwrap();
        // Between two lines of data stands white space, of whatever kind fits on a line.
        assert_eq!(line.replace(", \"", ",\""), wanted.replace(", \"", ",\""));
    }
    assert_eq!(session.line(), pong(1));
    session.close_input();
    server.end().answer(200, &[], "");
    assert!(session.finish().lines.is_empty());
}

#[test]
fn a_request_of_the_servers_is_answered_by_a_post() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let mut stream = server.post("ping").stream();
    let roots = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
    stream.event(roots);
    assert_eq!(session.line(), roots.as_bytes());
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#;
    session.send(&[answer]);
    let request = server.next();
    assert_eq!((request.method.as_str(), &*request.body), ("POST", answer.as_bytes()));
    assert_eq!(request.header("mcp-session-id"), Some("s1"));
    request.answer(202, &[], "");
    stream.event(String::from_utf8(pong(1)).unwrap());
    stream.end();
    assert_eq!(session.line(), pong(1));
}

#[test]
fn o_28_a_stream_that_breaks_is_gone_on_with() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let mut stream = server.post("ping").stream();
    stream.send("id: e-1\nretry: 1\ndata:\n\n");
    stream.send("id: e-2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n");
    assert_eq!(session.json()["method"], "a");
    // In order, as a server does that wants to be polled.
    stream.end();
    let request = server.stream_request();
    assert_eq!(request.header("last-event-id"), Some("e-2"));
    assert_eq!(request.header("mcp-session-id"), Some("s1"));
    let mut stream = request.stream();
    stream.send("id: e-3\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"b\"}\n\n");
    assert_eq!(session.json()["method"], "b");
    // And by a connection that breaks.
    drop(stream);
    let request = server.stream_request();
    assert_eq!(request.header("last-event-id"), Some("e-3"));
    request.answer(200, &[EVENTS], "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
    assert_eq!(session.line(), pong(1));
}

#[test]
fn o_28_a_stream_that_cannot_be_gone_on_with_is_one_error() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let mut stream = server.post("ping").stream();
    stream.send("id: e-1\nretry: 1\ndata:\n\n");
    stream.end();
    server.stream_request().answer(405, &[], "");
    let answer = session.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    session.send(&[ping(2)]);
    server.post("ping").result();
    assert_eq!(session.line(), pong(2));
}

#[test]
fn the_servers_own_stream_is_read_and_opened_again() {
    let server = Server::start();
    let mut session = server.bridge(&[]);
    let mut stream = server.handshake_with_stream(&mut session, "s1");
    stream.send(
        "id: o-1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
    );
    assert_eq!(session.json()["method"], "notifications/tools/list_changed");
    drop(stream);
    let request = server.stream_request();
    assert_eq!(request.header("last-event-id"), Some("o-1"));
    let mut stream = request.stream();
    stream.event(r#"{"jsonrpc":"2.0","id":"r","method":"ping"}"#);
    assert_eq!(session.json()["id"], "r");
    session.send(&[r#"{"jsonrpc":"2.0","id":"r","result":{}}"#]);
    server.next().answer(202, &[], "");
    session.close_input();
    server.end().answer(200, &[], "");
    stream.wait_abandoned();
    assert_eq!(session.finish().code, Some(0));
}
