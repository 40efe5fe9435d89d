//! How it ends: agents that vanish (O-20), end of input (O-21, O-22), signals.

use rustix::process::Signal;
use serde_json::json;

use crate::server::Server;
use crate::support::{ping, pong};

#[test]
fn o_20_an_agent_that_vanishes_ends_the_session() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let mut stream = server.post("ping").stream();
    let note = format!(r#"{{"jsonrpc":"2.0","method":"note","params":"{}"}}"#, "n".repeat(1 << 20));
    for _ in 0..5 {
        stream.event(&note);
    }
    session.wait_bytes(1000);
    session.close_output();
    session.close_input();
    server.end().answer(200, &[], "");
    let finished = session.finish();
    assert!(!finished.stderr.contains("panic"), "{}", finished.stderr);
}

#[test]
fn o_21_answers_owed_at_the_end_of_input_are_written() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1), ping(2), ping(3)]);
    session.close_input();
    let requests: Vec<_> = (0..3).map(|_| server.post("ping")).collect();
    for request in requests {
        request.result();
    }
    server.end().answer(405, &[], "");
    let finished = session.finish();
    let mut lines = finished.lines;
    lines.sort();
    assert_eq!((finished.code, lines), (Some(0), vec![pong(1), pong(2), pong(3)]));
}

#[test]
fn o_22_the_end_of_input_with_nothing_owed() {
    let server = Server::start();
    // Nothing was ever said.
    let mut session = server.bridge(&[]);
    session.close_input();
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{finished:?}");
    server.assert_idle();
    assert_eq!(server.connections(), 0);
    // A session ends at the server too, whatever that says of it.
    for status in [200, 204, 404, 405, 500] {
        let mut session = server.connected();
        session.close_input();
        let request = server.end();
        assert_eq!(request.header("mcp-session-id"), Some("s1"));
        request.answer(status, &[], "");
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{finished:?}");
    }
}

#[test]
fn o_22_a_server_that_does_not_say_goodbye_is_not_waited_for_long() {
    let server = Server::start();
    let mut session = server.connected();
    session.close_input();
    let request = server.end();
    let finished = session.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    request.wait_abandoned();
}

#[test]
fn signals_end_it_in_order() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let server = Server::start();
        let mut session = server.connected();
        session.send(&[ping(1)]);
        let request = server.post("ping");
        session.signal(signal);
        // Whether the request is waited for a moment, its id is settled once.
        let end = server.end();
        drop(request);
        end.answer(200, &[], "");
        let finished = session.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(finished.lines.len(), 1, "{finished:?}");
        let answer: serde_json::Value = serde_json::from_slice(&finished.lines[0]).unwrap();
        assert_eq!((&answer["id"], answer["error"].is_object()), (&json!(1), true));
    }
}
