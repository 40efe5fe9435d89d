//! Probes, ACKs, offers and echoes.

use super::*;

#[test]
fn a_probe_holds_messages_until_its_ack_and_they_leave_as_frames() {
    let mut c = client(Mode::Auto);
    c.send(message(PING));
    assert_eq!(sent(&mut c), OPENING_PROBE);
    c.handle_data(ACK);
    assert_eq!(events(&mut c), [Event::Upgraded]);
    assert_eq!(sent(&mut c), framed(Kind::REQUEST, PING));
    c.handle_data(&framed(Kind::RESPONSE, PONG));
    assert_eq!(events(&mut c), [Event::Message(message(PONG))]);
}

#[test]
fn without_an_ack_lines_leave_at_the_deadline_and_the_first_carries_the_offer() {
    let mut c = client(Mode::Auto);
    c.send(message(INIT));
    assert_eq!(sent(&mut c), OPENING_PROBE);
    c.handle_timeout(Instant::ZERO + limits::PROBE_TIMEOUT);
    assert_eq!(events(&mut c), [Event::FellBack]);
    let line = sent(&mut c);
    assert!(text(&line).contains("dev.lumen/transport") && line.ends_with(b"}\n"));
    // A late ACK changes nothing.
    c.handle_data(ACK);
    assert_eq!(events(&mut c), [Event::Skipped { kind: Kind::PROBE_ACK, frames: 1 }]);
    c.send(message(PING));
    assert_eq!(sent(&mut c), format!("{PING}\n").as_bytes());
}

#[test]
fn an_echo_is_taken_out_and_answered_with_a_probe_that_holds_nothing() {
    let mut c = client(Mode::Offer);
    c.send(message(INIT));
    let mut s = connection(Role::Server);
    s.handle_data(&sent(&mut c));
    let stripped = r#"{"id":0,"method":"initialize","params":{"capabilities":{}}}"#;
    assert_eq!(events(&mut s), [Event::Message(message(stripped))]);
    s.send(message(r#"{"id":0,"result":{"capabilities":{}}}"#));
    let answer = sent(&mut s);
    assert!(text(&answer).contains("dev.lumen/transport"));
    c.handle_data(&answer);
    assert_eq!(events(&mut c), [Event::Message(message(r#"{"id":0,"result":{"capabilities":{}}}"#))]);
    c.send(message(PING));
    let mut expected = OPENING_PROBE.to_vec();
    expected.extend_from_slice(format!("{PING}\n").as_bytes());
    let bytes = sent(&mut c);
    assert_eq!(bytes, expected);
    s.handle_data(&bytes);
    assert_eq!(events(&mut s), [Event::Message(message(PING))]);
    assert!(!s.is_lumen());
    c.handle_data(&sent(&mut s));
    assert_eq!(events(&mut c), [Event::Upgraded]);
    c.send(message(PING));
    s.handle_data(&sent(&mut c));
    assert_eq!(events(&mut s), [Event::Upgraded, Event::Message(message(PING))]);
    let pong = long(PONG);
    s.send(message(&pong));
    let mut expected = OUR_ACK.to_vec();
    frame_bytes_into(&mut expected, Kind::RESPONSE, Flags::COMPRESSED, &value_of(&pong));
    // Told by a second probe, it knows what the client takes.
    assert_eq!(sent(&mut s), expected);
}

#[test]
fn a_plain_side_neither_asks_nor_answers_nor_forwards_an_offer() {
    let mut c = client(Mode::Offer);
    c.send(message(INIT));
    let mut plain = connection(Role::Plain);
    plain.handle_data(&sent(&mut c));
    let stripped = r#"{"id":0,"method":"initialize","params":{"capabilities":{}}}"#;
    assert_eq!(events(&mut plain), [Event::Message(message(stripped))]);
    plain.send(message(r#"{"id":0,"result":{"capabilities":{}}}"#));
    assert_eq!(sent(&mut plain), b"{\"id\":0,\"result\":{\"capabilities\":{}}}\n");
    plain.handle_data(OPENING_PROBE);
    assert!(matches!(events(&mut plain)[..], [Event::Noise { lines: 1, .. }]));
    assert_eq!(sent(&mut plain), b"");
}

#[test]
fn one_stray_line_is_swallowed() {
    let stray = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
    for mode in [Mode::Auto, Mode::Offer] {
        let mut c = client(mode);
        let line = format!("{stray}\n{stray}\n{PONG}\n");
        c.handle_data(line.as_bytes());
        let m = |t| Event::Message(message(t));
        let expected = match mode {
            Mode::Auto => [Event::Stray(message(stray)), m(stray), m(PONG)].to_vec(),
            _ => [m(stray), m(stray), m(PONG)].to_vec(),
        };
        assert_eq!(events(&mut c), expected);
    }
    let mut c = client(Mode::Auto);
    c.handle_data(format!("{PONG}\n{stray}\n").as_bytes());
    assert_eq!(events(&mut c).len(), 2);
    assert!(c.poll_event().is_none());
}

#[test]
fn a_log_is_a_stray_line_only_if_it_is_of_an_error() {
    for (level, is_stray) in [("error", true), ("info", false)] {
        let mut c = client(Mode::Auto);
        let log = format!(r#"{{"method":"notifications/message","params":{{"level":"{level}","data":1}}}}"#);
        c.handle_data(format!("{log}\n").as_bytes());
        let log = message(&log);
        assert_eq!(events(&mut c), [if is_stray { Event::Stray(log) } else { Event::Message(log) }]);
    }
}

#[test]
fn a_server_that_knows_the_probe_has_no_stray_line() {
    let log = r#"{"method":"notifications/message","params":{}}"#;
    let mut c = client(Mode::Auto);
    c.handle_data(ACK);
    c.handle_data(&framed(Kind::NOTIFY, log));
    assert_eq!(events(&mut c), [Event::Upgraded, Event::Message(message(log))]);
}

#[test]
fn an_echo_that_nobody_asked_for_goes_no_further() {
    let echo = r#"{"id":0,"result":{"capabilities":{"extensions":{"dev.lumen/transport":{"v":1}}}}}"#;
    let bare = r#"{"id":0,"result":{"capabilities":{}}}"#;
    for mode in [Mode::Off, Mode::Probe, Mode::Auto] {
        let mut c = client(mode);
        c.handle_data(ACK);
        c.send(message(INIT));
        let _ = sent(&mut c);
        let _ = events(&mut c);
        c.handle_data(format!("{echo}\n").as_bytes());
        assert_eq!(events(&mut c), [Event::Message(message(bare))], "{mode:?}");
        assert_eq!(sent(&mut c), b"");
    }
}

#[test]
fn the_published_packages_get_acks_of_their_own_kind() {
    let probe =
        b"\x27\x0f\x01\xe7\x02\xff\x01v\xe3\x02\xff\x04caps\xe6\x02\xe5\x0bcompression\xe5\x09streaming";
    let mut s = connection(Role::Server);
    s.handle_data(probe);
    s.handle_data(format!("{PING}\n").as_bytes());
    let ack = sent(&mut s);
    assert_eq!(ack[1..3], [Kind::PROBE_ACK.0, Flags::COMPRESSED.0]);
    assert!(ack.ends_with(b"\n"));
    assert_eq!(events(&mut s), [Event::Message(message(PING))]);
    s.send(message(PONG));
    assert_eq!(sent(&mut s), format!("{PONG}\n").as_bytes(), "it went on in JSON, so do we");
}
