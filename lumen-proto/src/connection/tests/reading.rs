//! What is made of bytes that arrive.

use super::*;

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
