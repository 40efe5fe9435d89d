//! Sessions that the server has forgotten.

use super::*;

const LOST: &str =
    r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#;

/// Three calls whose session is gone, and the one hidden `initialize` that follows.
fn lost() -> (Rig, Request) {
    let mut rig = Rig::opened();
    let calls = [1, 2, 3].map(|id| rig.call(id));
    rig.json(calls[0].id, 404, LOST);
    let initialize = rig.next();
    assert_eq!(initialize.body, INITIALIZE);
    assert_eq!(
        (header(&initialize, "mcp-session-id"), header(&initialize, "mcp-protocol-version")),
        (None, None)
    );
    rig.head(calls[1].id, 404, &[("content-type", "text/html")]);
    rig.chunk(calls[1].id, &"<p>".repeat(1000));
    assert_eq!(rig.aborted(), [calls[1].id]);
    rig.json(calls[2].id, 404, "");
    rig.none();
    (rig, initialize)
}

#[test]
fn o25_one_hidden_handshake_and_each_call_once_more() {
    let (mut rig, initialize) = lost();
    rig.say(&call(4));
    rig.begin(initialize.id, "s2", 0);
    let confirm = rig.next();
    assert_eq!((&confirm.body[..], header(&confirm, "mcp-session-id")), (INITIALIZED.as_bytes(), Some("s2")));
    rig.none();
    rig.accept(confirm.id);
    let stream = rig.next();
    assert_eq!((stream.method, header(&stream, "mcp-session-id")), (Method::Get, Some("s2")));
    for id in 1..=4 {
        let again = rig.next();
        assert_eq!((&again.body[..], header(&again, "mcp-session-id")), (call(id).as_bytes(), Some("s2")));
        rig.json(again.id, 200, &result(id));
    }
    rig.none();
    assert_eq!(rig.told(), [1, 2, 3, 4].map(result), "and nothing of the hidden handshake");
    assert_eq!(rig.events(), [Event::Renewed]);
}

#[test]
fn o25_a_handshake_that_fails_is_an_error_for_each() {
    for answer in ["", r#"{"id":0,"error":{"code":-32000,"message":"no more"}}"#] {
        let (mut rig, initialize) = lost();
        rig.json(initialize.id, if answer.is_empty() { 503 } else { 200 }, answer);
        let told: Vec<Value> = rig.told().iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        let ids: Vec<u64> = told.iter().map(|error| error["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 2, 3]);
        assert!(told.iter().all(|error| error["error"]["data"]["reason"] == "session_lost"));
        assert!(matches!(rig.events().last(), Some(Event::NotRenewed(_))));
        // The next call tries anew.
        let next = rig.call(5);
        rig.json(next.id, 404, "");
        assert_eq!(rig.next().body, INITIALIZE);
    }
}

#[test]
fn o25_a_call_lost_twice_is_an_error() {
    let (mut rig, initialize) = lost();
    rig.begin(initialize.id, "s2", 0);
    let confirm = rig.next();
    rig.accept(confirm.id);
    let _stream = rig.next();
    let again = rig.next();
    rig.json(again.id, 404, "gone");
    assert_eq!(rig.error()["error"]["data"]["httpStatus"], 404);
}

#[test]
fn a_call_of_the_old_session_refused_late_just_goes_again() {
    let mut rig = Rig::opened();
    let calls = [1, 2].map(|id| rig.call(id));
    rig.json(calls[0].id, 404, "");
    let initialize = rig.next();
    rig.begin(initialize.id, "s2", 0);
    let confirm = rig.next();
    rig.accept(confirm.id);
    assert_eq!([rig.next().method, rig.next().method], [Method::Get, Method::Post]);
    rig.json(calls[1].id, 404, "");
    let again = rig.next();
    assert_eq!((&again.body[..], header(&again, "mcp-session-id")), (call(2).as_bytes(), Some("s2")));
}

#[test]
fn o25_unknown_methods_and_calls_without_a_session_are_not_this_case() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    let unknown = r#"{"id":1,"error":{"code":-32601,"message":"no such"}}"#;
    rig.json(made.id, 404, unknown);
    assert_eq!(rig.told(), [unknown]);
    rig.none();
    let mut rig = Rig::new();
    let made = rig.call(1);
    rig.json(made.id, 404, LOST);
    assert_eq!(rig.told(), [LOST.replace("\"server-error\"", "1")]);
    rig.none();
}

#[test]
fn a_notification_is_sent_again_too_but_not_an_answer() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.sse(made.id, &data(r#"{"id":9,"method":"roots/list"}"#));
    rig.say(r#"{"id":9,"result":{}}"#);
    let answer = rig.next();
    rig.json(answer.id, 404, "");
    assert!(matches!(&rig.events()[..], [Event::Undelivered { method: None, .. }]));
    rig.none();
    rig.say(r#"{"method":"n"}"#);
    let note = rig.next();
    rig.json(note.id, 404, "");
    let initialize = rig.next();
    rig.begin(initialize.id, "s2", 0);
    let confirm = rig.next();
    rig.accept(confirm.id);
    assert_eq!([&rig.next().body[..], &rig.next().body[..]], [b"".as_slice(), br#"{"method":"n"}"#]);
}

#[test]
fn a_handshake_that_takes_too_long_is_an_error() {
    let (mut rig, initialize) = lost();
    rig.pass(limits::POST_PATIENCE);
    assert_eq!(rig.aborted(), [initialize.id]);
    assert_eq!(rig.told().len(), 3);
    assert_eq!(rig.call(4).body, call(4));
}

#[test]
fn a_cancelled_call_does_not_go_again() {
    let (mut rig, initialize) = lost();
    rig.say(r#"{"method":"notifications/cancelled","params":{"requestId":2}}"#);
    rig.begin(initialize.id, "s2", 0);
    let confirm = rig.next();
    rig.accept(confirm.id);
    let bodies: Vec<Bytes> =
        core::iter::from_fn(|| rig.session.poll_request()).map(|made| made.body).collect();
    assert_eq!(bodies, [String::new(), call(1), call(3)]);
    assert_eq!(rig.told().len(), 0);
}

#[test]
fn an_agent_that_begins_anew_does_so_without_the_old_session() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.sse(made.id, &data(r#"{"id":9,"method":"roots/list"}"#));
    assert_eq!(rig.told().len(), 1);
    rig.open("s2");
    let stream = rig.next();
    assert_eq!(header(&stream, "mcp-session-id"), Some("s2"));
    rig.say(r#"{"id":9,"result":{}}"#);
    rig.none();
    rig.chunk(made.id, &data(&result(1)));
    assert_eq!(rig.told(), [result(1)], "what was under way is still answered");
}

#[test]
fn a_handshake_whose_stream_breaks_is_an_error() {
    let mut rig = Rig::new();
    rig.say(INITIALIZE);
    rig.say(&call(1));
    let initialize = rig.next();
    rig.sse(initialize.id, "id: 1\n\n");
    rig.end(initialize.id);
    assert_eq!(rig.error()["id"], 0);
    assert_eq!(rig.next().body, call(1), "the server says what it thinks of that");
}
