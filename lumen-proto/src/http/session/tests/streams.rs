//! Streams: what is in them, where they go on, and the server's own.

use super::*;

#[test]
fn o28_one_stream_with_everything_in_pieces() {
    let text = "\u{feff}: hello\r\nid: 1\r\nretry: 9\r\ndata: {\"method\":\"n\",\r\ndata: \"params\":\"é—漢😀\"}\r\n\r\n\
                event: ping\rdata: 12:00\r\rdata:\n\nevent: message\ndata: not json\n\n: x\n\ndata: {\"id\":1,\"result\":{}}\n";
    for chunk in [1, 2, 3, 7, 1000] {
        let mut rig = Rig::opened();
        let made = rig.call(1);
        rig.head(made.id, 200, &[("content-type", "text/event-stream; charset=utf-8")]);
        for piece in text.as_bytes().chunks(chunk) {
            rig.session.handle_chunk(rig.now, made.id, piece);
        }
        assert_eq!(
            rig.told(),
            ["{\"method\":\"n\",\n\"params\":\"é—漢😀\"}"],
            "on a line, the LF is a blank"
        );
        rig.end(made.id);
        assert_eq!(rig.told(), ["{\"id\":1,\"result\":{}}"]);
        assert_eq!(rig.events(), [Event::Noise { excerpt: "not json".into(), len: 8 }]);
        assert_eq!(rig.session.collected, 0);
    }
}

#[test]
fn what_was_cut_short_is_no_message() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.sse(made.id, "data: {\"id\":1,\"resu");
    rig.fail(made.id, TransportErrorKind::Reset);
    assert_eq!(rig.error()["error"]["data"]["reason"], "connection_lost");
    assert_eq!(rig.events().len(), 1);
}

#[test]
fn a_stream_without_an_answer_is_an_error() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.sse(made.id, &data(r#"{"method":"n"}"#));
    rig.end(made.id);
    let told = rig.told();
    assert!(told[1].contains(r#""reason":"no_answer","httpStatus":200"#) && told.len() == 2, "{told:?}");
}

/// A call whose stream has ended after an event with an id, and a wait of 300 ms that it asked for.
fn interrupted() -> Rig {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.sse(made.id, "id: e 1\nretry: 300\ndata:\n\n");
    rig.end(made.id);
    rig.none();
    rig
}

#[test]
fn an_interrupted_stream_goes_on_after_the_wait_it_asked_for() {
    let mut rig = interrupted();
    for event in ["e 1", "e2"] {
        assert_eq!(rig.session.poll_timeout(), Some(rig.now + Duration::from_millis(300)));
        rig.pass(Duration::from_millis(299));
        rig.none();
        rig.pass(Duration::from_millis(1));
        let again = rig.next();
        assert_eq!((again.method, &again.body[..]), (Method::Get, &b""[..]));
        assert_eq!(header(&again, "last-event-id"), Some(event));
        assert_eq!(header(&again, "mcp-session-id"), Some("s1"));
        assert_eq!(header(&again, "mcp-protocol-version"), Some("2025-06-18"));
        if event == "e2" {
            rig.sse(again.id, &data(&result(1)));
        } else {
            rig.sse(again.id, "id: e2\ndata: {\"method\":\"n\"}\n\n");
            rig.fail(again.id, TransportErrorKind::Reset);
            assert_eq!(rig.told(), [r#"{"method":"n"}"#]);
        }
    }
    assert_eq!(rig.told(), [result(1)]);
}

#[test]
fn tries_in_vain_are_counted_and_come_slower() {
    let mut rig = interrupted();
    let mut waits = Vec::new();
    while let Some(due) = rig.session.poll_timeout() {
        waits.push(due.saturating_since(rig.now).as_millis());
        rig.pass(due.saturating_since(rig.now));
        let again = rig.next();
        rig.fail(again.id, TransportErrorKind::Connect);
    }
    assert_eq!(waits, [300, 600, 1200, 2400, 4800, 9600, 19_200, 30_000]);
    assert_eq!(rig.error()["error"]["data"]["reason"], "not_reached");
}

#[test]
fn a_server_that_will_not_go_on_is_an_error_at_once() {
    for status in [400, 404, 405] {
        let mut rig = interrupted();
        rig.pass(Duration::from_millis(300));
        let again = rig.next();
        rig.json(again.id, status, "");
        assert_eq!(rig.error()["error"]["data"]["httpStatus"], status);
        rig.none();
    }
}

#[test]
fn a_request_in_between_streams_can_run_out_of_time_or_be_cancelled() {
    let mut rig = Rig::with(Config::new(String::new()).with_timeout(Some(Duration::from_secs(1))));
    let made = rig.call(1);
    rig.sse(made.id, "retry: 5000\nid: 1\n\n");
    rig.end(made.id);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.error()["error"]["data"]["reason"], "timeout");
    let mut rig = interrupted();
    rig.say(r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert_eq!(rig.next().method, Method::Post);
    rig.pass(Duration::from_secs(1));
    rig.none();
}

#[test]
fn a_stream_that_goes_on_after_the_answer_is_left_alone_for_a_while() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.sse(made.id, &(data(&result(1)) + &data(r#"{"method":"n"}"#)));
    assert_eq!(rig.told().len(), 2);
    rig.pass(limits::STREAM_LINGER);
    assert_eq!(rig.aborted(), [made.id]);
    assert_eq!(rig.told().len(), 0);
}

#[test]
fn a_legacy_cancel_is_posted_and_what_comes_then_is_dropped() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.session.handle_written(rig.now, made.id);
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":1.0}}"#;
    rig.say(cancel);
    assert_eq!(rig.next().body, cancel);
    assert_eq!(rig.aborted(), []);
    rig.json(made.id, 200, &result(1));
    assert_eq!(rig.told().len(), 0);
    let mut rig = Rig::new();
    rig.say(INITIALIZE);
    let initialize = rig.next();
    rig.say(r#"{"method":"notifications/cancelled","params":{"requestId":0}}"#);
    rig.begin(initialize.id, "s", 0);
    assert_eq!(rig.told().len(), 1, "a handshake cannot be cancelled");
}

#[test]
fn the_servers_own_stream_is_passed_on_and_opened_again() {
    let mut rig = Rig::new();
    rig.open("s1");
    let stream = rig.next();
    let made = rig.call(1);
    rig.sse(
        stream.id,
        "retry: 200\nid: 7\ndata: {\"method\":\"n\"}\n\ndata: {\"id\":5,\"method\":\"ping\"}\n\n",
    );
    assert_eq!(rig.told(), [r#"{"method":"n"}"#, r#"{"id":5,"method":"ping"}"#]);
    rig.chunk(stream.id, &data(&result(1)));
    assert_eq!(rig.told(), [result(1)], "not its place, but the answer all the same");
    rig.chunk(stream.id, &data(&result(1)));
    assert_eq!(rig.events(), [Event::Unasked { id: "1".into() }]);
    rig.json(made.id, 200, &result(1));
    assert_eq!(rig.told().len(), 0);
    rig.end(stream.id);
    rig.pass(Duration::from_millis(200));
    let again = rig.next();
    assert_eq!((again.method, header(&again, "last-event-id")), (Method::Get, Some("7")));
}

#[test]
fn a_stream_of_its_own_that_never_brings_anything_is_given_up() {
    let mut rig = Rig::new();
    rig.open("s1");
    let mut opened = 0;
    loop {
        let stream = rig.next();
        opened += 1;
        rig.sse(stream.id, "");
        rig.end(stream.id);
        let Some(due) = rig.session.poll_timeout() else { break };
        rig.pass(due.saturating_since(rig.now));
    }
    assert_eq!(opened, limits::MAX_RESUMES + 1);
    assert!(matches!(&rig.events()[..], [Event::NoStream(_)]));
}

#[test]
fn a_server_that_wants_no_wait_and_ends_each_stream_does_not_make_us_spin() {
    let mut rig = Rig::new();
    rig.open("s1");
    for _ in 0..3 * limits::MAX_RESUMES {
        let stream = rig.next();
        rig.sse(stream.id, "id: 7\nretry: 0\ndata:\n\n");
        rig.end(stream.id);
        assert_eq!(rig.session.poll_timeout(), Some(rig.now + limits::RETRY_FLOOR));
        rig.pass(limits::RETRY_FLOOR);
    }
}

#[test]
fn a_stream_of_its_own_that_was_open_for_long_is_not_given_up() {
    let mut rig = Rig::new();
    rig.open("s1");
    for _ in 0..3 * limits::MAX_RESUMES {
        let stream = rig.next();
        rig.sse(stream.id, ": nothing yet\n\n");
        rig.pass(limits::RETRY_CAP);
        rig.fail(stream.id, TransportErrorKind::Reset);
        rig.pass(limits::RETRY_BASE);
    }
    assert_eq!(rig.events(), []);
}

#[test]
fn a_server_without_a_stream_of_its_own_is_not_asked_again() {
    for (status, headers) in
        [(405, [JSON]), (404, [JSON]), (200, [JSON]), (200, [("content-type", "text/html")])]
    {
        let mut rig = Rig::new();
        rig.open("s1");
        let stream = rig.next();
        rig.head(stream.id, status, &headers);
        assert_eq!(rig.aborted(), [stream.id]);
        assert!(matches!(&rig.events()[..], [Event::NoStream(failure)] if failure.status == Some(status)));
        assert_eq!((rig.session.poll_timeout(), rig.told().len()), (None, 0));
    }
}
