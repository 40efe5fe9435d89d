//! What leaves, and in which form.

use super::*;

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
    assert_eq!(
        events(&mut c),
        [Event::Unsent { message: message(PING).into(), edits: Edits::none(), reason }]
    );
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
fn what_is_short_goes_plain() {
    let mut c = client(Mode::Auto);
    let _ = sent(&mut c);
    c.handle_data(OUR_ACK);
    let _ = sent(&mut c);
    for len in [limits::MIN_COMPRESSED - 1, limits::MIN_COMPRESSED] {
        let text = format!("{PONG:len$}");
        c.send(message(&text));
        let plain = framed(Kind::RESPONSE, &text);
        assert_eq!(sent(&mut c), if len < limits::MIN_COMPRESSED { &*plain } else { PONG_VALUE }, "{len}");
    }
}

#[test]
fn what_a_peer_cannot_take_exactly_goes_plain() {
    let pong = long(PONG);
    let whole = long(r#"{"jsonrpc":"2.0","id":1,"result":{"x":1.0}}"#);
    let huge = long(r#"{"jsonrpc":"2.0","id":1,"result":{"x":12345678901234567890}}"#);
    let [pong, whole, huge] = [&*pong, &*whole, &*huge];
    for (caps, texts) in [
        (r#"["compression","exact"]"#, [(pong, true), (whole, true), (huge, false)]),
        (r#"["compression"]"#, [(pong, true), (whole, false), (huge, false)]),
        (r#"["streaming"]"#, [(pong, false), (whole, false), (huge, false)]),
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
            assert_eq!(bytes[4], u8::from(compressed), "{caps} {text}");
            if !compressed {
                assert_eq!(bytes, framed(Kind::RESPONSE, text));
            }
            s.handle_data(&bytes);
            let got = events(&mut s).pop();
            assert_eq!(got, Some(Event::Message(message(text))), "the same text, as it was minimal");
        }
    }
}
