//! Endpoints by hand, without a world. The simulated world has the long stories.

use std::format;
use std::string::String;
use std::vec::Vec;

use bytes::BytesMut;

use super::*;
use crate::jsonrpc::Message;
use crate::negotiate::Mode;
use crate::supervisor::{Behind, Ended};
use crate::{Action, ChildEvent, Exit, Input, Instant, Machine, Port, Transmit, limits};

const T0: Instant = Instant::ZERO;

fn relay(mode: Mode) -> Relay {
    let mut relay = Relay::connect(ServerConfig::new(Behind::Process, mode));
    assert_eq!(relay.poll_action(), Some(Action::Spawn(relay.server_port())));
    relay.handle_input(T0, Input::Opened(relay.client_port()));
    relay.handle_input(T0, Input::Opened(relay.server_port()));
    relay
}

fn output<M: Machine>(machine: &mut M, now: Instant, port: Port) -> (String, bool) {
    let mut out = BytesMut::new();
    loop {
        match machine.poll_transmit(now, port, &mut out) {
            Transmit::More => {}
            end => return (String::from_utf8(out.to_vec()).unwrap(), end == Transmit::Finish),
        }
    }
}

fn data(relay: &mut Relay, port: Port, text: &str) {
    relay.handle_input(T0, Input::Data(port, text.as_bytes()));
}

fn events<M: Machine>(machine: &mut M) -> Vec<M::Event> {
    core::iter::from_fn(|| machine.poll_event()).collect()
}

#[test]
fn a_crash_answers_each_request_once_by_its_own_spelling() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    let requests = [r#"7"#, r#""8""#, r#""\u0061""#, "1.0"];
    for id in requests {
        data(&mut r, client, &format!("{{\"id\":{id},\"method\":\"m\"}}\n"));
    }
    data(&mut r, client, "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"8\"}}\n");
    assert_eq!(output(&mut r, T0, server).0.lines().count(), 5);
    data(&mut r, server, "{\"id\":7,\"result\":{}}\n{\"id\":7,\"result\":{}}\n{\"id\":1,\"resu");
    r.handle_input(T0, Input::Child(server, ChildEvent::Exited(Exit::Code(1))));
    r.handle_input(T0, Input::Eof(server));
    let (text, finished) = output(&mut r, T0, client);
    assert!(!finished);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0], r#"{"id":7,"result":{}}"#);
    assert!(lines[1].starts_with(r#"{"jsonrpc":"2.0","id":1.0,"error":{"code":-32011,"#));
    assert!(lines[2].starts_with(r#"{"jsonrpc":"2.0","id":"\u0061","error":{"code":-32011,"#));
    // What comes now is answered too, for a moment.
    data(&mut r, client, "{\"id\":9,\"method\":\"m\"}\n");
    assert!(output(&mut r, T0, client).0.contains("\"id\":9,\"error\":{\"code\":-32011"));
    let due = r.poll_timeout().unwrap();
    r.handle_timeout(due);
    assert!(output(&mut r, due, client).1);
    r.handle_input(due, Input::Finished(client));
    assert_eq!(r.poll_action(), Some(Action::Abort(server)));
    assert_eq!(r.poll_action(), Some(Action::Abort(client)));
    let gone = Outcome::ServerGone(Ended::Exited(Exit::Code(1)));
    assert_eq!(events(&mut r).last(), Some(&Event::Finished(gone)));
    assert_eq!(r.poll_timeout(), None);
}

#[test]
fn the_servers_input_stays_open_while_answers_are_owed() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    data(&mut r, client, "{\"id\":1,\"method\":\"m\"}\n{\"id\":2,\"method\":\"subscriptions/listen\"}\n");
    r.handle_input(T0, Input::Eof(client));
    assert!(!output(&mut r, T0, server).1);
    assert_eq!(r.poll_timeout(), Some(T0 + limits::EOF_GRACE));
    // It cannot be asked any more.
    data(&mut r, server, "{\"id\":1,\"method\":\"roots/list\"}\n");
    assert!(output(&mut r, T0, server).0.contains("\"id\":1,\"error\":{\"code\":-32603"));
    data(&mut r, server, "{\"id\":1,\"result\":{}}\n");
    assert!(output(&mut r, T0, server).1, "nothing is owed but the end of a subscription");
    r.handle_input(T0, Input::Child(server, ChildEvent::Exited(Exit::Code(0))));
    r.handle_input(T0, Input::Eof(server));
    let (text, finished) = output(&mut r, T0, client);
    assert!(finished && text.contains("\"id\":2,\"error\":{\"code\":-32011"));
    r.handle_input(T0, Input::Finished(client));
    let closed = Outcome::Closed(Some(Ended::Exited(Exit::Code(0))));
    assert_eq!(events(&mut r), [Event::Finished(closed)]);
}

#[test]
fn what_cannot_be_read_is_answered_and_neighbours_are_not_touched() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    data(
        &mut r,
        client,
        "{\"id\":null,\"method\":\"m\"}\n{\"id\":3,\"method\":\"m\",}\n{\"method\":7}\n{\n{\"id\":4,\"method\":\"m\"}\n",
    );
    assert_eq!(output(&mut r, T0, server).0, "{\"id\":4,\"method\":\"m\"}\n");
    let (text, _) = output(&mut r, T0, client);
    let codes: Vec<&str> = text.lines().map(|line| &line[17..42]).collect();
    assert_eq!(
        codes,
        [
            r#""id":null,"error":{"code""#,
            r#""id":3,"error":{"code":-3"#,
            r#""id":null,"error":{"code""#,
            r#""id":null,"error":{"code""#,
        ]
    );
}

#[test]
fn a_peer_gets_one_answer_for_each_request_even_if_the_server_dies() {
    let mut p = Peer::client(ServerConfig::new(Behind::Process, Mode::Off));
    let port = p.port();
    assert_eq!(p.poll_action(), Some(Action::Spawn(port)));
    p.handle_input(T0, Input::Opened(port));
    for id in 1..=2 {
        let text = format!(r#"{{"id":{id},"method":"m"}}"#);
        p.try_send(T0, Message::copy_from(text.as_bytes()).unwrap()).unwrap();
    }
    let _ = output(&mut p, T0, port);
    p.handle_input(T0, Input::Data(port, b"{\"id\":1,\"result\":{}}\n"));
    p.handle_input(T0, Input::Child(port, ChildEvent::Exited(Exit::Signal(9))));
    p.handle_input(T0, Input::Eof(port));
    let got = events(&mut p);
    let ids: Vec<&[u8]> =
        got.iter().filter_map(|e| if let Event::Message(m) = e { m.id() } else { None }).collect();
    assert_eq!(ids, [&b"1"[..], b"2"]);
    assert_eq!(got.last(), Some(&Event::Finished(Outcome::ServerGone(Ended::Exited(Exit::Signal(9))))));
    let message = Message::copy_from(b"{\"method\":\"m\"}").unwrap();
    assert_eq!(p.try_send(T0, message.clone()), Err(SendError::Closed(message)));
}

#[test]
fn a_peer_that_is_not_read_lowers_its_wish_and_raises_it_again() {
    let mut p = Peer::server();
    let port = p.port();
    p.handle_input(T0, Input::Opened(port));
    assert_eq!(p.poll_ready(), Some(port));
    let line = format!("{{\"method\":\"{}\"}}\n", "x".repeat(60_000));
    while p.wants_input(port) > 0 {
        p.handle_input(T0, Input::Data(port, line.as_bytes()));
    }
    assert_eq!(p.poll_ready(), None);
    let Some(Event::Message(_)) = p.poll_event() else { panic!() };
    assert!(p.wants_input(port) > 0);
    assert_eq!(p.poll_ready(), Some(port));
}
