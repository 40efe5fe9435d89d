//! Endpoints by hand, without a world. The simulated world has the long stories.

use core::time::Duration;
use std::borrow::ToOwned;
use std::format;
use std::string::String;
use std::vec::Vec;

use bytes::BytesMut;

use super::*;
use crate::jsonrpc::Message;
use crate::negotiate::Mode;
use crate::negotiate::hello::OPENING_PROBE;
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

fn request(id: u32) -> String {
    format!("{{\"id\":{id},\"method\":\"m\"}}\n")
}

fn exit<M: Machine>(machine: &mut M, now: Instant, port: Port) {
    machine.handle_input(now, Input::Child(port, ChildEvent::Exited(Exit::Code(0))));
}

const ACK: &[u8] = b"\x12\x10\x00{\"v\":1,\"caps\":[]}\n";

#[test]
fn what_an_exited_server_has_written_is_not_lost_on_a_client_that_reads_slowly() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    data(&mut r, client, &[request(1), request(2)].concat());
    let _ = output(&mut r, T0, server);
    let big = format!("{{\"id\":1,\"result\":\"{}\"}}\n", "x".repeat(limits::MAX_QUEUE));
    data(&mut r, server, &big);
    assert_eq!(r.wants_input(server), 0);
    exit(&mut r, T0, server);
    let later = Instant::from_millis(60_000);
    assert_eq!(r.poll_timeout(), None, "its time does not run while it is not read");
    r.handle_timeout(later);
    let (text, _) = output(&mut r, later, client);
    assert_eq!(text.lines().count(), 1);
    assert!(r.wants_input(server) > 0);
    assert_eq!(r.poll_timeout(), Some(later + limits::DRAIN_TIMEOUT));
    r.handle_input(later, Input::Data(server, b"{\"id\":2,\"result\":2}\n"));
    r.handle_input(later, Input::Eof(server));
    assert_eq!(output(&mut r, later, client).0, "{\"id\":2,\"result\":2}\n");

    let mut p = Peer::client(ServerConfig::new(Behind::Process, Mode::Off));
    let port = p.port();
    p.handle_input(T0, Input::Opened(port));
    p.handle_input(T0, Input::Data(port, big.replace("\"id\":1,\"result\"", "\"method\"").as_bytes()));
    p.handle_input(
        T0,
        Input::Data(
            port,
            big.replace("\"id\":1,\"result\":", "\"method\":\"m\",\"params\":[")
                .replace("}\n", "]}\n")
                .as_bytes(),
        ),
    );
    exit(&mut p, T0, port);
    assert_eq!((p.wants_input(port), p.poll_timeout()), (0, None));
    p.terminate(later);
    assert!(p.poll_timeout().is_some());
}

#[test]
fn the_last_output_waits_for_a_client_that_reads_slowly() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    data(&mut r, client, &[request(1), request(2), request(3)].concat());
    data(&mut r, server, "{\"id\":1,\"result\":1}\n{\"id\":2,\"result\":2}\n");
    r.handle_input(T0, Input::Eof(client));
    exit(&mut r, T0, server);
    r.handle_input(T0, Input::Eof(server));
    let mut now = T0;
    for id in 1..=3 {
        now = now + (limits::EOF_GRACE - Duration::from_millis(1));
        r.handle_timeout(now);
        let mut out = BytesMut::new();
        assert_eq!(r.poll_transmit(now, client, &mut out), Transmit::More);
        assert!(out.windows(6).any(|part| part == format!("\"id\":{id}").as_bytes()));
    }
    // Told to end, it waits no longer than whoever told it does.
    r.terminate(now);
    assert_eq!(r.poll_timeout(), Some(now + limits::STOP_STEP));
    r.handle_timeout(now + limits::STOP_STEP);
    assert!(matches!(events(&mut r).last(), Some(Event::Finished(_))));
}

#[test]
fn a_client_is_answered_though_the_dead_server_had_a_full_queue() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    let long = format!("{{\"method\":\"{}\"}}\n", "x".repeat(60_000));
    while r.wants_input(client) > 0 {
        data(&mut r, client, &long);
    }
    exit(&mut r, T0, server);
    r.handle_input(T0, Input::Eof(server));
    assert!(r.wants_input(client) > 0);
    assert_eq!(core::iter::from_fn(|| r.poll_ready()).filter(|port| *port == client).count(), 1);
    data(&mut r, client, &request(9));
    assert!(output(&mut r, T0, client).0.contains("\"id\":9,\"error\":{\"code\":-32011"));
}

#[test]
fn an_ack_proves_that_the_probe_did_no_harm() {
    let mut r = relay(Mode::Auto);
    let (client, server) = (r.client_port(), r.server_port());
    data(&mut r, client, &request(1));
    r.handle_input(T0, Input::Data(server, ACK));
    let slow = T0 + limits::PROBED_ANSWER_TIMEOUT;
    r.handle_timeout(slow);
    assert_eq!(r.server_port(), server);
    assert_eq!(r.poll_timeout(), Some(T0 + limits::START_TIMEOUT));
    exit(&mut r, slow, server);
    r.handle_input(slow, Input::Eof(server));
    assert_eq!(r.server_port(), server, "nor is it started again");
    let (text, _) = output(&mut r, slow, client);
    assert!(text.contains("\"id\":1,\"error\":{\"code\":-32011"), "{text}");
}

#[test]
fn time_runs_only_while_somebody_waits_for_the_first_answer() {
    let listen = "{\"id\":1,\"method\":\"subscriptions/listen\"}\n".to_owned();
    let cancelled = "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n";
    for first in [listen, request(1) + cancelled] {
        for mode in [Mode::Off, Mode::Auto] {
            let mut r = relay(mode);
            let (client, server) = (r.client_port(), r.server_port());
            data(&mut r, client, &first);
            while let Some(due) = r.poll_timeout() {
                r.handle_timeout(due);
                assert!(r.poll_timeout().is_none_or(|next| next > due));
            }
            assert_eq!(r.server_port(), server);
            assert!(r.wants_input(client) > 0);
            data(&mut r, client, &request(2));
            assert!(r.poll_timeout().is_some());
        }
    }
}

#[test]
fn a_flood_of_notifications_before_the_first_request_stops_nobody() {
    let mut r = relay(Mode::Auto);
    let (client, server) = (r.client_port(), r.server_port());
    r.handle_timeout(T0 + limits::PROBE_TIMEOUT);
    let long = format!("{{\"method\":\"{}\"}}\n", "x".repeat(60_000));
    for _ in 0..40 {
        assert!(r.wants_input(client) > 0);
        data(&mut r, client, &long);
        let _ = output(&mut r, T0, server);
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_an_answer() {
    let mut r = relay(Mode::Auto);
    let (client, server) = (r.client_port(), r.server_port());
    data(&mut r, client, &request(1));
    data(&mut r, server, "{\"id\":1,\"result\":}\n");
    let due = T0 + limits::PROBED_ANSWER_TIMEOUT;
    r.handle_timeout(due);
    exit(&mut r, due, server);
    r.handle_input(due, Input::Eof(server));
    assert_eq!(r.server_port(), server, "it has been answered, so it must not be done twice");
    assert_eq!(output(&mut r, due, client).0.matches("\"id\":1,").count(), 1);
}

#[test]
fn the_last_words_of_a_replaced_server_change_nothing() {
    let mut r = relay(Mode::Auto);
    let (client, server) = (r.client_port(), r.server_port());
    data(&mut r, client, &[request(1), request(2)].concat());
    data(&mut r, server, "{\"id\":1,\"result\":1}");
    let due = T0 + limits::PROBED_ANSWER_TIMEOUT;
    r.handle_timeout(due);
    r.handle_input(due, Input::Eof(server));
    exit(&mut r, due, server);
    let next = r.server_port();
    assert_eq!(next, server.successor());
    r.handle_input(due, Input::Opened(next));
    assert_eq!(output(&mut r, due, next).0, [request(1), request(2)].concat());
}

#[test]
fn a_broken_answer_of_the_client_answers_the_server() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    data(&mut r, server, &request(5));
    data(&mut r, client, "{\"id\":5,\"result\":}\n");
    let (text, _) = output(&mut r, T0, server);
    assert!(text.contains("\"id\":5,\"error\":{\"code\""), "{text}");
}

#[test]
fn a_batch_is_taken_apart_where_only_a_part_of_it_is_wanted() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    let cancel = "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":4}}";
    data(
        &mut r,
        client,
        &format!("[{},{},{},{cancel}]\n", request(1).trim(), request(2).trim(), request(4).trim()),
    );
    data(
        &mut r,
        server,
        "[{\"id\":1,\"result\":1}, {\"id\":1,\"result\":1},{\"method\":\"n\"},{\"id\":3,\"result\":1},{\"id\":4,\"result\":1}]\n[{\"id\":1,\"result\":1}]\n[{\"id\":2,\"result\":1}]\n",
    );
    assert_eq!(
        output(&mut r, T0, client).0,
        "[{\"id\":1,\"result\":1},{\"method\":\"n\"}]\n[{\"id\":2,\"result\":1}]\n"
    );
    let unasked = events(&mut r).into_iter().filter(|event| matches!(event, Event::Unasked { .. })).count();
    assert_eq!(unasked, 4);
    r.handle_input(T0, Input::Eof(client));
    assert!(output(&mut r, T0, server).1, "nothing is owed");
    data(&mut r, server, &format!("[{}]\n", request(7).trim()));
}

#[test]
fn a_server_asks_in_a_batch_when_the_client_has_gone() {
    let mut r = relay(Mode::Off);
    let (client, server) = (r.client_port(), r.server_port());
    data(&mut r, client, &request(1));
    r.handle_input(T0, Input::Eof(client));
    let _ = output(&mut r, T0, server);
    data(&mut r, server, &format!("[{},{{\"id\":1,\"result\":1}}]\n", request(7).trim()));
    assert!(output(&mut r, T0, server).0.contains("\"id\":7,\"error\":{\"code\":-32603"));
}

#[test]
fn a_peer_hears_of_the_end_of_a_stream_that_cannot_be_followed() {
    let mut p = Peer::server();
    let port = p.port();
    p.handle_input(T0, Input::Opened(port));
    p.handle_input(T0, Input::Data(port, OPENING_PROBE));
    let ask = Message::copy_from(request(1).trim().as_bytes()).unwrap();
    p.try_send(T0, ask).unwrap();
    p.handle_input(T0, Input::Data(port, b"\xc0\xff\xff\xff\xff\x01\x00"));
    let got = events(&mut p);
    assert!(matches!(got[..], [Event::Lost { .. }, Event::Message(_), Event::InputClosed]), "{got:?}");
    p.handle_input(T0, Input::Eof(port));
    assert_eq!(events(&mut p), []);
    // What is asked now is answered now.
    p.try_send(T0, Message::copy_from(request(2).trim().as_bytes()).unwrap()).unwrap();
    let got = events(&mut p);
    assert!(matches!(&got[..], [Event::Message(m)] if m.id() == Some(b"2")), "{got:?}");
}

#[test]
fn an_answer_too_long_for_the_peer_is_an_error() {
    let mut config = ServerConfig::new(Behind::Process, Mode::Off);
    config.max_line = 200;
    let mut p = Peer::client(config);
    let port = p.port();
    p.handle_input(T0, Input::Opened(port));
    p.handle_input(T0, Input::Data(port, request(3).as_bytes()));
    let answer = format!("{{\"id\":3,\"result\":\"{}\"}}", "x".repeat(200));
    p.try_send(T0, Message::copy_from(answer.as_bytes()).unwrap()).unwrap();
    while p.poll_ready().is_some() {}
    assert_eq!(output(&mut p, T0, port).0, "");
    assert_eq!(p.poll_ready(), Some(port), "what came of that is news");
    let (text, _) = output(&mut p, T0, port);
    assert!(text.contains("\"id\":3,\"error\":{\"code\""), "{text}");

    let mut r = Relay::connect(config);
    let (client, server) = (r.client_port(), r.server_port());
    r.handle_input(T0, Input::Opened(client));
    r.handle_input(T0, Input::Opened(server));
    data(&mut r, server, &request(3));
    data(&mut r, client, &format!("{answer}\n"));
    while r.poll_ready().is_some() {}
    assert_eq!(output(&mut r, T0, server).0, "");
    assert_eq!(r.poll_ready(), Some(server), "what came of that is news");
    let (text, _) = output(&mut r, T0, server);
    assert!(text.contains("\"id\":3,\"error\":{\"code\""), "{text}");
}

#[test]
fn an_ended_peer_is_inert() {
    let mut p = Peer::client(ServerConfig::new(Behind::Process, Mode::Auto));
    let port = p.port();
    p.handle_input(T0, Input::Opened(port));
    p.close(T0);
    exit(&mut p, T0, port);
    p.handle_input(T0, Input::Eof(port));
    assert!(matches!(events(&mut p).last(), Some(Event::Finished(_))));
    p.handle_timeout(T0 + limits::START_TIMEOUT);
    assert_eq!(events(&mut p), []);
}

#[test]
fn a_close_is_not_taken_for_a_server_that_never_answers() {
    let mut config = ServerConfig::new(Behind::Process, Mode::Off);
    config.start_timeout = Some(Duration::from_millis(100));
    let mut p = Peer::client(config);
    let port = p.port();
    p.handle_input(T0, Input::Opened(port));
    p.try_send(T0, Message::copy_from(request(1).trim().as_bytes()).unwrap()).unwrap();
    p.close(T0);
    p.handle_timeout(Instant::from_millis(100));
    exit(&mut p, T0, port);
    p.handle_input(T0, Input::Eof(port));
    let closed = Outcome::Closed(Some(Ended::Exited(Exit::Code(0))));
    assert_eq!(events(&mut p).last(), Some(&Event::Finished(closed)));
}

#[test]
fn a_start_timeout_that_is_shorter_than_the_patience_after_a_probe_counts_there_too() {
    let config =
        ServerConfig::new(Behind::Process, Mode::Auto).with_start_timeout(Some(Duration::from_secs(2)));
    let mut r = Relay::connect(config);
    let (client, server) = (r.client_port(), r.server_port());
    r.handle_input(T0, Input::Opened(client));
    r.handle_input(T0, Input::Opened(server));
    data(&mut r, client, "{\"id\":1,\"method\":\"m\"}\n");
    let mut times = Vec::new();
    while let Some(due) = r.poll_timeout().filter(|due| *due <= Instant::from_millis(2000)) {
        times.push(due);
        r.handle_timeout(due);
    }
    // The probe, then the first start: its input is closed, and 2 s later SIGTERM is due.
    assert_eq!(times, [Instant::from_millis(500), Instant::from_millis(2000)]);
    assert_eq!(r.poll_timeout(), Some(Instant::from_millis(4000)));
}

#[test]
fn peers_and_relays_read_texts_whatever_their_config_says() {
    let config = ServerConfig { keep_values: true, ..ServerConfig::new(Behind::Process, Mode::Auto) };
    // A probe ACK, then `{"id":1,"result":{}}` in a value.
    let bytes = b"\x12\x10\x00{\"v\":1,\"caps\":[]}\n\x08\x02\x01\xe7\x02\x04\xe3\x02\x02\xe7\x00";
    let answer = Message::copy_from(br#"{"id":1,"result":{}}"#).unwrap();
    let mut p = Peer::client(config);
    let port = p.port();
    p.handle_input(T0, Input::Opened(port));
    p.try_send(T0, Message::copy_from(br#"{"id":1,"method":"m"}"#).unwrap()).unwrap();
    p.handle_input(T0, Input::Data(port, bytes));
    assert_eq!(events(&mut p), [Event::Upgraded(port), Event::Message(answer)]);
    let mut r = Relay::connect(config);
    let (client, server) = (r.client_port(), r.server_port());
    r.handle_input(T0, Input::Opened(client));
    r.handle_input(T0, Input::Opened(server));
    data(&mut r, client, "{\"id\":1,\"method\":\"m\"}\n");
    r.handle_input(T0, Input::Data(server, bytes));
    assert_eq!(output(&mut r, T0, client).0, "{\"id\":1,\"result\":{}}\n");
}
