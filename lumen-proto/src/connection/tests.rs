//! Connections by hand, byte for byte.

use core::time::Duration;
use std::format;
use std::vec::Vec;

use bytes::BytesMut;

use super::*;
use crate::frame::{self, Flags, Kind};
use crate::jsonrpc::Message;
use crate::message::{Edits, Packet};
use crate::negotiate::Mode;
use crate::negotiate::hello::OPENING_PROBE;
use crate::value::transcode::Transcoder;
use crate::{Instant, Reason, Transmit, limits};

const ACK: &[u8] = b"\x12\x10\x00{\"v\":1,\"caps\":[]}\n";
const OUR_ACK: &[u8] = b"\x27\x10\x00{\"v\":1,\"caps\":[\"compression\",\"exact\"]}\n";
/// [`PONG`] as a compressed frame.
const PONG_VALUE: &[u8] = b"\x0e\x02\x01\xe7\x03\x0c\xe5\x032.0\x04\xe3\x02\x02\xe7\x00";
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const INIT: &str = r#"{"id":0,"method":"initialize","params":{"capabilities":{}}}"#;

fn connection(role: Role) -> Connection {
    let mut connection = Connection::new(Config::new(role));
    connection.handle_opened(Instant::ZERO);
    connection
}

fn client(mode: Mode) -> Connection {
    connection(Role::Client { mode, probe_timeout: limits::PROBE_TIMEOUT })
}

fn message(text: &str) -> Packet {
    Message::copy_from(text.as_bytes()).unwrap().into()
}

fn framed(kind: Kind, text: &str) -> Vec<u8> {
    let mut out = BytesMut::new();
    frame::encode(kind, Flags::NONE, text.as_bytes(), &mut out);
    out.to_vec()
}

fn sent(connection: &mut Connection) -> Vec<u8> {
    let mut out = BytesMut::new();
    while connection.poll_transmit(&mut out) == Transmit::More {}
    out.to_vec()
}

fn events(connection: &mut Connection) -> Vec<Event> {
    core::iter::from_fn(|| connection.poll_event()).collect()
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap()
}

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
    s.send(message(PONG));
    // Told by a second probe, it knows what the client takes.
    assert_eq!(sent(&mut s), [OUR_ACK, PONG_VALUE].concat());
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
fn log_lines_that_start_like_a_length_are_noise_before_and_after_the_switch() {
    let noise = "2026-11-30 INFO up\n \t12:00 x\n@at\n0\n";
    let mut c = client(Mode::Auto);
    c.handle_data(format!("{noise}{PONG}\n").as_bytes());
    let got = events(&mut c);
    assert_eq!(got.len(), 2, "{got:?}");
    assert!(matches!(got[0], Event::Noise { lines: 4, .. }));
    c.handle_data(ACK);
    c.handle_data(format!("2026-11-30 INFO up\n  at x.js\n{PONG}\n").as_bytes());
    let got = events(&mut c);
    assert!(
        matches!(got[..], [Event::Upgraded, Event::Noise { lines: 2, .. }, Event::Message(_)]),
        "{got:?}"
    );
}

#[test]
fn what_spoils_one_message_loses_only_that() {
    let mut s = connection(Role::Server);
    let mut bytes = OPENING_PROBE.to_vec();
    for (kind, flags, text) in [
        (Kind(0xff), 0, "x"),
        (Kind::REQUEST, 0x10, PING),
        (Kind::REQUEST, 0x02, PING),
        (Kind::REQUEST, 0x01, PING),
        (Kind::REQUEST, 0x00, r#"{"id":7,"method":"a","params":[}"#),
        (Kind::STREAM_DATA, 0, "........."),
        (Kind(0x42), 0, "?"),
        (Kind(0x42), 0, "?"),
        (Kind::REQUEST, 0x04, PING),
    ] {
        frame_into(&mut bytes, kind, flags, text);
    }
    s.handle_data(&bytes);
    let rejected = |reason, id: Option<&'static str>, has_method| Event::Rejected {
        reason,
        id: id.map(|id| id.as_bytes().into()),
        has_method,
    };
    assert_eq!(
        events(&mut s),
        [
            rejected(Reason::ReservedType(0xff), None, false),
            rejected(Reason::ReservedFlags(0x10), None, true),
            rejected(Reason::Unsupported("an encrypted frame"), None, true),
            rejected(Reason::NotValue { at: 0 }, None, true),
            rejected(Reason::NotJson { at: 31 }, Some("7"), true),
            rejected(Reason::Unsupported("a stream frame"), None, false),
            Event::Skipped { kind: Kind(0x42), frames: 2 },
            Event::Upgraded,
            Event::Message(message(PING)),
        ]
    );
}

fn frame_into(bytes: &mut Vec<u8>, kind: Kind, flags: u8, text: &str) {
    let mut out = BytesMut::new();
    frame::encode(kind, Flags(flags), text.as_bytes(), &mut out);
    bytes.extend_from_slice(&out);
}

#[test]
fn what_is_too_long_is_answered_by_its_id_in_lines_and_frames() {
    let mut config = Config::new(Role::Server);
    config.max_message = 100;
    let long = format!(r#"{{"params":{{"id":5,"x":"{}"}},"id":"7","method":"m"}}"#, "y".repeat(200));
    let mut bytes = format!("{long}\n").into_bytes();
    bytes.extend_from_slice(OPENING_PROBE);
    frame_into(&mut bytes, Kind::REQUEST, 0, &long);
    frame_into(&mut bytes, Kind(0x42), 0, &long);
    frame_into(&mut bytes, Kind::REQUEST, 0, PING);
    for chunk in [1, 7, bytes.len()] {
        let mut s = Connection::new(config);
        s.handle_opened(Instant::ZERO);
        bytes.chunks(chunk).for_each(|chunk| s.handle_data(chunk));
        let too_long = Event::Rejected {
            reason: Reason::TooLong { len: long.len() as u64, max: 100 },
            id: Some("\"7\"".into()),
            has_method: true,
        };
        let skipped = Event::Skipped { kind: Kind(0x42), frames: 1 };
        assert_eq!(
            events(&mut s),
            [too_long.clone(), too_long, skipped, Event::Upgraded, Event::Message(message(PING))]
        );
    }
}

/// The value that `text` stands for.
fn value_of(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Transcoder::new().encode(text.as_bytes(), &mut out).unwrap();
    out
}

fn frame_bytes_into(bytes: &mut Vec<u8>, kind: Kind, flags: Flags, payload: &[u8]) {
    let mut out = BytesMut::new();
    frame::encode(kind, flags, payload, &mut out);
    bytes.extend_from_slice(&out);
}

#[test]
fn what_is_too_long_is_answered_by_its_id_in_compressed_frames_too() {
    let mut config = Config::new(Role::Server);
    config.max_message = 100;
    let fill = "y".repeat(200);
    let params = format!(r#""params":{{"id":5,"method":"m","x":"{fill}"}}"#);
    let mut bytes = OPENING_PROBE.to_vec();
    let mut expected = Vec::new();
    for (kind, text, id, has_method) in [
        (Kind::REQUEST, format!(r#"{{{params},"id":"7\u0001","method":"m"}}"#), Some(r#""7\u0001""#), true),
        (Kind::REQUEST, format!(r#"{{"id":-7,{params},"method":"m"}}"#), Some("-7"), true),
        (Kind::NOTIFY, format!(r#"{{"method":"m",{params}}}"#), None, true),
        (Kind::RESPONSE, format!(r#"{{"id":1.5,"result":"{fill}"}}"#), Some("1.5"), false),
        // The content counts, not the type.
        (Kind::REQUEST, format!(r#"{{"id":2,"result":"{fill}"}}"#), Some("2"), false),
        (Kind::RESPONSE, format!(r#"{{"id":3,"method":"{fill}"}}"#), Some("3"), true),
    ] {
        for (flags, payload) in
            [(Flags::NONE, text.clone().into_bytes()), (Flags::COMPRESSED, value_of(&text))]
        {
            frame_bytes_into(&mut bytes, kind, flags, &payload);
            expected.push(Event::Rejected {
                reason: Reason::TooLong { len: payload.len() as u64, max: 100 },
                id: id.map(|id| id.as_bytes().into()),
                has_method,
            });
        }
    }
    frame_into(&mut bytes, Kind::REQUEST, 0, PING);
    expected.extend([Event::Upgraded, Event::Message(message(PING))]);
    for chunk in [1, 7, bytes.len()] {
        let mut s = Connection::new(config);
        s.handle_opened(Instant::ZERO);
        cut(&mut s, &bytes, chunk);
        assert_eq!(events(&mut s), expected, "in pieces of {chunk}");
    }
}

#[test]
fn values_that_cannot_be_read_are_answered_by_their_id() {
    let mut config = Config::new(Role::Server);
    config.max_message = 100;
    let mut bytes = OPENING_PROBE.to_vec();
    // As text it is longer than it is here: too long.
    let expanding = format!(r#"{{"id":4,"method":"m","params":[{}"code"]}}"#, r#""code","#.repeat(30));
    frame_bytes_into(&mut bytes, Kind::REQUEST, Flags::COMPRESSED, &value_of(&expanding));
    // `{"id":6,"x":` and no value. With a method, without one but so it says, and an answer.
    for (kind, payload) in [
        (Kind::NOTIFY, &b"\xe7\x03\x04\xe3\x0c\x0a\xe5\x01m\xff\x01x\xdf"[..]),
        (Kind::REQUEST, b"\xe7\x03\x04\xe3\x0c\xff\x01x\xdf"),
        (Kind::RESPONSE, b"\xe7\x03\x04\xe3\x0c\xff\x01x\xdf"),
    ] {
        frame_bytes_into(&mut bytes, kind, Flags::COMPRESSED, payload);
    }
    let rejected = |reason, id: &'static str, has_method| Event::Rejected {
        reason,
        id: Some(id.as_bytes().into()),
        has_method,
    };
    for chunk in [1, 7, bytes.len()] {
        let mut s = Connection::new(config);
        s.handle_opened(Instant::ZERO);
        cut(&mut s, &bytes, chunk);
        assert_eq!(
            events(&mut s),
            [
                rejected(Reason::TooLong { len: 101, max: 100 }, "4", true),
                rejected(Reason::NotValue { at: 12 }, "6", true),
                rejected(Reason::NotValue { at: 8 }, "6", true),
                rejected(Reason::NotValue { at: 8 }, "6", false),
            ],
            "in pieces of {chunk}"
        );
    }
}

#[test]
fn a_line_too_long_for_the_peer_is_given_back() {
    let mut config = Config::new(Role::Plain);
    config.max_line = 20;
    let mut c = Connection::new(config);
    c.handle_opened(Instant::ZERO);
    c.send(message(PING));
    c.send(message(r#"{"method":"x"}"#));
    assert_eq!(sent(&mut c), b"{\"method\":\"x\"}\n");
    let reason = Reason::TooLong { len: 40, max: 20 };
    assert_eq!(events(&mut c), [Event::Unsent { message: message(PING), edits: Edits::none(), reason }]);
    assert_eq!((c.queued(), c.queued_own()), (0, 0));
}

#[test]
fn frames_go_on_a_line_with_their_newlines_turned_into_blanks() {
    let pretty = "{\r\n \"id\":1,\n\"result\":{}}\n";
    let mut s = connection(Role::Server);
    s.handle_data(OPENING_PROBE);
    s.handle_data(&framed(Kind::REQUEST, pretty));
    let Some(Event::Message(m)) = events(&mut s).pop() else { panic!() };
    assert_eq!(&m.bytes()[..], pretty.as_bytes());
    let mut plain = connection(Role::Plain);
    plain.send(m);
    assert_eq!(sent(&mut plain), b"{   \"id\":1, \"result\":{}} \n");
}

#[test]
fn finish_comes_after_everything_queued_and_stays() {
    let mut c = client(Mode::Auto);
    c.send(message(PING));
    c.finish();
    c.send(message(PING));
    let mut out = BytesMut::new();
    assert_eq!(c.poll_transmit(&mut out), Transmit::More);
    assert_eq!(c.poll_transmit(&mut out), Transmit::Idle, "held back by the probe");
    c.handle_timeout(Instant::ZERO + Duration::from_millis(500));
    assert_eq!(c.poll_transmit(&mut out), Transmit::More);
    assert_eq!(c.poll_transmit(&mut out), Transmit::Finish);
    assert_eq!(c.poll_transmit(&mut out), Transmit::Finish);
    assert_eq!(&out[OPENING_PROBE.len()..], format!("{PING}\n").as_bytes());
}

#[test]
fn an_end_inside_a_message_is_told() {
    for (bytes, had) in [(&b"{\"id\":4,\"resu"[..], 13), (b"\x80\x00\x01\x01\x00{\"", 7)] {
        let mut s = connection(Role::Server);
        s.handle_data(OPENING_PROBE);
        s.handle_data(bytes);
        s.handle_eof();
        assert_eq!(events(&mut s), [Event::Lost(Reason::Truncated { had })]);
    }
    let mut s = connection(Role::Server);
    s.handle_data(PING.as_bytes());
    s.handle_eof();
    assert_eq!(events(&mut s), [Event::Message(message(PING))]);
}

fn cut(connection: &mut Connection, bytes: &[u8], chunk: usize) {
    bytes.chunks(chunk).for_each(|chunk| connection.handle_data(chunk));
}

#[test]
fn blanks_hide_no_frame_behind_them_however_they_are_cut() {
    // Its length is a blank, too.
    let mut short = b"\x20\x0f\x00{\"v\":1,\"caps\":[\"compression\"]}  ".to_vec();
    let tiny = b"\x0f\x0f\x00{\"v\":1}        ";
    for probe in [OPENING_PROBE, &short, tiny] {
        for blanks in ["", "\n", " ", "\r\n", "\n \t\r\n  ", &" ".repeat(40)] {
            let bytes = [blanks.as_bytes(), probe, &framed(Kind::REQUEST, PING)].concat();
            for chunk in [1, 2, 3, bytes.len()] {
                let mut s = connection(Role::Server);
                cut(&mut s, &bytes, chunk);
                let expected = [Event::Upgraded, Event::Message(message(PING))];
                assert_eq!(events(&mut s), expected, "{blanks:?} in pieces of {chunk}");
                assert_eq!(sent(&mut s), OUR_ACK);
            }
        }
    }
    short.truncate(1);
    let mut s = connection(Role::Server);
    s.handle_data(&short);
    s.handle_eof();
    assert_eq!(events(&mut s), [], "a blank at the end is nothing");
}

#[test]
fn text_that_servers_print_after_the_switch_costs_no_message() {
    let frame = framed(Kind::RESPONSE, PONG);
    for text in ["\x1b[32mINFO\x1b[0m up\n", "\nup and\n", "\r\n", "\t  at x.js\n", "@ 12:00 up\n", "5\n"] {
        // What a line of text is followed by is looked at, too.
        for next in [&frame[..], format!("{PONG}\n").as_bytes()] {
            let bytes = [ACK, text.as_bytes(), format!("{PONG}\n").as_bytes(), next].concat();
            for chunk in [1, bytes.len()] {
                let mut c = client(Mode::Auto);
                cut(&mut c, &bytes, chunk);
                let got = events(&mut c);
                let messages = got.iter().filter(|e| matches!(e, Event::Message(_))).count();
                assert_eq!(messages, 2, "{text:?}: {got:?}");
                assert!(!got.iter().any(|e| matches!(e, Event::Rejected { .. })), "{text:?}: {got:?}");
            }
        }
    }
}

#[test]
fn what_is_refused_anyway_is_refused_for_that_when_too_long_as_well() {
    let mut config = Config::new(Role::Server);
    config.max_message = 50;
    let long = "x".repeat(60);
    let mut bytes = OPENING_PROBE.to_vec();
    for (kind, flags) in
        [(Kind::REQUEST, 1), (Kind::REQUEST, 0x20), (Kind(0xff), 0), (Kind::STREAM_DATA, 0), (Kind::MUX, 0)]
    {
        frame_into(&mut bytes, kind, flags, &long);
    }
    let mut s = Connection::new(config);
    s.handle_data(&bytes);
    let rejected = |reason, has_method| Event::Rejected { reason, id: None, has_method };
    assert_eq!(
        events(&mut s),
        [
            rejected(Reason::TooLong { len: 60, max: 50 }, true),
            rejected(Reason::ReservedFlags(0x20), true),
            rejected(Reason::ReservedType(0xff), false),
            rejected(Reason::Unsupported("a stream frame"), false),
            Event::Skipped { kind: Kind::MUX, frames: 1 },
        ]
    );
}

#[test]
fn nothing_leaves_after_the_end() {
    let mut s = connection(Role::Server);
    s.handle_data(OPENING_PROBE);
    assert_eq!(sent(&mut s), OUR_ACK);
    s.finish();
    assert_eq!(s.poll_transmit(&mut BytesMut::new()), Transmit::Finish);
    s.handle_data(OPENING_PROBE);
    s.handle_data(b"\x04\x0a\x00\x01\x00\x00\x00");
    let mut out = BytesMut::new();
    assert!(!s.has_output());
    assert_eq!((s.poll_transmit(&mut out), &out[..]), (Transmit::Finish, &b""[..]));
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
fn what_a_peer_cannot_take_exactly_goes_plain() {
    let whole = r#"{"jsonrpc":"2.0","id":1,"result":{"x":1.0}}"#;
    let huge = r#"{"jsonrpc":"2.0","id":1,"result":{"x":12345678901234567890}}"#;
    for (caps, texts) in [
        (r#"["compression","exact"]"#, [(PONG, true), (whole, true), (huge, false)]),
        (r#"["compression"]"#, [(PONG, true), (whole, false), (huge, false)]),
        (r#"["streaming"]"#, [(PONG, false), (whole, false), (huge, false)]),
    ] {
        let mut c = client(Mode::Auto);
        let _ = sent(&mut c);
        c.handle_data(&framed(Kind::PROBE_ACK, &format!(r#"{{"v":1,"caps":{caps}}}"#)));
        let mut s = connection(Role::Server);
        s.handle_data(OPENING_PROBE);
        for (text, compressed) in texts {
            c.send(message(text));
            let mut bytes = sent(&mut c);
            if bytes.get(1) == Some(&Kind::PROBE.0) {
                assert!(caps.contains("exact"));
                bytes.drain(..OUR_ACK.len());
            }
            assert_eq!(bytes[2], u8::from(compressed), "{caps} {text}");
            if !compressed {
                assert_eq!(bytes, framed(Kind::RESPONSE, text));
            }
            s.handle_data(&bytes);
            let got = events(&mut s).pop();
            assert_eq!(got, Some(Event::Message(message(text))), "the same text, as it was minimal");
        }
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
