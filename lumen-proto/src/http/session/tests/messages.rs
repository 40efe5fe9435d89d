//! What goes through, and in which order.

use super::*;

#[test]
fn o29_the_negotiated_version_goes_with_everything_after_initialize() {
    let mut rig = Rig::new();
    rig.open("s1");
    let stream = rig.next();
    let call = rig.call(1);
    for request in [&stream, &call] {
        assert_eq!(header(request, "mcp-session-id"), Some("s1"));
        assert_eq!(header(request, "mcp-protocol-version"), Some("2025-06-18"));
    }
    assert_eq!((stream.method, header(&stream, "accept")), (Method::Get, Some("text/event-stream")));
    assert_eq!(header(&call, "accept"), Some("application/json, text/event-stream"));
    assert_eq!(header(&call, "content-type"), Some("application/json"));
    assert_eq!(header(&call, "mcp-method"), None);
    rig.json(call.id, 200, &result(1));
    rig.session.handle_eof(rig.now);
    let delete = rig.next();
    assert_eq!((delete.method, header(&delete, "mcp-session-id")), (Method::Delete, Some("s1")));
    assert_eq!(header(&delete, "mcp-protocol-version"), Some("2025-06-18"));
}

#[test]
fn only_the_handshake_is_awaited() {
    let mut rig = Rig::new();
    rig.say(INITIALIZE);
    rig.say(INITIALIZED);
    rig.say(&call(1));
    let initialize = rig.next();
    rig.none();
    rig.begin(initialize.id, "s1", 0);
    let initialized = rig.next();
    rig.none();
    rig.head(initialized.id, 202, &[]);
    let methods = [rig.next().method, rig.next().method];
    assert_eq!(methods, [Method::Get, Method::Post]);
}

#[test]
fn calls_run_at_once_and_a_notification_waits_until_they_are_written() {
    let mut rig = Rig::opened();
    let calls = [rig.call(1), rig.call(2)];
    rig.say(r#"{"method":"notifications/roots/list_changed"}"#);
    rig.say(&call(3));
    rig.none();
    rig.session.handle_written(rig.now, calls[0].id);
    rig.none();
    rig.head(calls[1].id, 200, &[JSON]);
    let note = rig.next();
    assert_eq!(note.body, r#"{"method":"notifications/roots/list_changed"}"#);
    assert_eq!(rig.next().body, call(3));
    rig.accept(note.id);
    rig.json(calls[0].id, 200, &result(1));
    assert_eq!(rig.told(), [result(1)]);
}

#[test]
fn o11_and_o13_ids_and_bodies_stay_as_they_are() {
    let mut rig = Rig::opened();
    for id in ["0", r#""""#, "12345678901234567890", r#""a\u0062\"""#, "-0", "1.0"] {
        let request = std::format!(
            r#"{{ "id" : {id},"method":"x","params":[1e400,-0,9007199254740993,{{"a":1,"a":2}}]}}"#
        );
        let answer = std::format!("{{\"result\":[725653563933458432, 1.0 ],\r\n \"id\":{id}}}");
        rig.say(&request);
        let made = rig.next();
        assert_eq!(made.body, request);
        rig.json(made.id, 200, &answer);
        assert_eq!(rig.told(), [answer]);
    }
    assert_eq!(rig.events(), []);
}

#[test]
fn o27_odd_acceptances_of_a_notification_say_nothing_to_the_agent() {
    let answers = [
        (202, None, ""),
        (204, None, ""),
        (200, None, ""),
        (200, Some("application/json"), "null"),
        (200, Some("text/plain"), "ok"),
        (401, Some("text/plain"), "who are you?"),
        (
            500,
            Some("application/json"),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}"#,
        ),
    ];
    let mut rig = Rig::opened();
    for (status, kind, body) in answers {
        rig.say(r#"{"method":"notifications/progress","params":{}}"#);
        let note = rig.next();
        rig.head(note.id, status, &Vec::from_iter(kind.map(|kind| ("content-type", kind))));
        rig.chunk(note.id, body);
        rig.end(note.id);
        assert_eq!(rig.told(), [""; 0], "{status} {body}");
        let undelivered = rig.events().into_iter().map(|event| match event {
            Event::Undelivered { method, failure } => (method.unwrap(), failure.status),
            other => panic!("{other:?}"),
        });
        let expected = (status >= 400).then(|| ("notifications/progress".to_string(), Some(status)));
        assert_eq!(undelivered.collect::<Vec<_>>(), Vec::from_iter(expected));
        assert!(rig.session.flights.is_empty());
    }
}

#[test]
fn what_the_server_asks_is_answered_by_a_post() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    let asked = r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#;
    rig.sse(made.id, &data(asked));
    assert_eq!(rig.told(), [asked]);
    let answer = r#"{"jsonrpc":"2.0","id":"\u0072","result":{"roots":[]}}"#;
    rig.say(answer);
    let post = rig.next();
    assert_eq!(post.body, answer);
    rig.accept(post.id);
    rig.say(answer);
    rig.none();
    assert_eq!(rig.events(), [Event::Unasked { id: r#""\u0072""#.into() }]);
    rig.chunk(made.id, &data(&result(1)));
    assert_eq!(rig.told(), [result(1)]);
}

#[test]
fn a_broken_answer_of_the_agent_is_an_error_for_the_server() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.sse(made.id, &data(r#"{"id":7,"method":"roots/list"}"#));
    assert!(rig.session.handle_broken_answer(rig.now, b"7", &crate::Reason::BadId));
    assert!(rig.next().body.starts_with(br#"{"jsonrpc":"2.0","id":7,"error":"#));
    assert!(!rig.session.handle_broken_answer(rig.now, b"7", &crate::Reason::BadId));
}

#[test]
fn more_requests_than_may_run_wait_and_what_is_no_request_passes_them() {
    let mut rig = Rig::opened();
    let count = u32::try_from(limits::MAX_EXCHANGES).unwrap();
    let made: Vec<Request> = (0..count).map(|id| rig.call(id)).collect();
    for id in count..count + 3 {
        rig.say(&call(id));
    }
    rig.none();
    for request in &made {
        rig.session.handle_written(rig.now, request.id);
    }
    rig.sse(made[0].id, &data(r#"{"id":"q","method":"elicitation/create"}"#));
    rig.say(r#"{"id":"q","result":{}}"#);
    rig.say(r#"{"method":"notifications/cancelled","params":{"requestId":129}}"#);
    assert_eq!(rig.next().body, r#"{"id":"q","result":{}}"#);
    rig.none();
    rig.chunk(made[0].id, &data(&result(0)));
    assert_eq!(rig.next().body, call(count));
    rig.none();
    rig.json(made[1].id, 200, &result(1));
    assert_eq!(rig.next().body, call(count + 2), "the cancelled one was never sent");
    assert_eq!(rig.told().len(), 3);
}

#[test]
fn large_requests_run_only_so_many_at_once() {
    let mut rig = Rig::opened();
    let long = |id| {
        std::format!(
            "{{\"id\":{id},\"method\":\"x\",\"params\":\"{}\"}}",
            "x".repeat(limits::MAX_RUNNING / 2)
        )
    };
    let made = [1, 2, 3].map(|id| {
        rig.say(&long(id));
        rig.session.poll_request()
    });
    assert_eq!(made.each_ref().map(Option::is_some), [true, true, false]);
    rig.say(&call(4));
    rig.none();
    rig.json(made[0].as_ref().unwrap().id, 200, &result(1));
    assert_eq!(rig.next().body.len(), long(3).len());
}

#[test]
fn a_full_queue_stops_the_agent_and_a_full_inbox_stops_the_server() {
    let mut rig = Rig::new();
    rig.say(INITIALIZE);
    let initialize = rig.next();
    let long = std::format!(r#"{{"id":1,"method":"x","params":"{}"}}"#, "x".repeat(limits::MAX_QUEUE));
    assert!(rig.session.wants_messages());
    rig.say(&long);
    assert!(!rig.session.wants_messages());
    rig.begin(initialize.id, "s", 0);
    assert!(rig.session.wants_messages());
    let made = rig.next();
    rig.sse(made.id, &data(&long.replace("\"id\":1,", "")));
    // It may read only when it has written all that it has to say.
    assert!(!rig.session.wants_chunks(made.id) && rig.session.wants_messages());
    assert_eq!(rig.told().len(), 2);
    assert!(rig.session.wants_chunks(made.id) && rig.session.wants_messages());
}

#[test]
fn of_too_many_unfinished_bodies_only_the_largest_is_read_on() {
    let mut rig = Rig::opened();
    let made = [1, 2, 3].map(|id| rig.call(id));
    let block = " ".repeat(1024 * 1024);
    for (request, blocks) in made.iter().zip([60, 63, 5]) {
        rig.head(request.id, 200, &[JSON]);
        for _ in 0..blocks {
            assert!(rig.session.wants_chunks(request.id));
            rig.chunk(request.id, &block);
        }
    }
    assert_eq!(made.each_ref().map(|request| rig.session.wants_chunks(request.id)), [false, true, false]);
    rig.chunk(made[1].id, &result(2));
    rig.end(made[1].id);
    assert_eq!(rig.told().len(), 1);
    assert!(rig.session.wants_chunks(made[0].id) && rig.session.wants_chunks(made[2].id));
    for request in [&made[0], &made[2]] {
        rig.fail(request.id, TransportErrorKind::Reset);
    }
    assert_eq!(rig.session.collected, 0);
}

#[test]
fn a_batch_is_passed_on_and_settled_element_by_element() {
    let mut rig = Rig::opened();
    let sent = std::format!("[{},{},{}]", call(1), r#"{"method":"note"}"#, call(2));
    rig.say(&sent);
    let made = rig.next();
    assert_eq!(made.body, sent);
    let answer = std::format!("[{} , {}]", result(2), result(1));
    rig.json(made.id, 200, &answer);
    assert_eq!(rig.told(), [answer]);

    rig.say(&sent);
    let made = rig.next();
    rig.json(made.id, 200, &std::format!("[{},{}]", result(2), result(3)));
    let told = rig.told();
    assert_eq!(told[0], result(2));
    assert!(told[1].starts_with(r#"{"jsonrpc":"2.0","id":1,"error""#) && told.len() == 2, "{told:?}");

    rig.say(&sent);
    let made = rig.next();
    rig.sse(made.id, &(data(&result(1)) + &data(&result(2))));
    assert_eq!(rig.told(), [result(1), result(2)]);
}

#[test]
fn ten_thousand_odd_messages_are_the_same_bytes_on_both_sides() {
    let mut rig = Rig::opened();
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    let parts = [
        "1e400",
        "-0",
        "\"\\u0000\\/é漢😀\"",
        "9007199254740993",
        "{\"a\":1, \"a\":2}",
        "[ ]",
        "1.0",
        "\"\u{2028}\\ud83d\"",
        "null",
        "\t[{}]",
    ];
    for n in 0..10_000 {
        let part = parts[usize::try_from(random(10)).unwrap()];
        let blank = ["", " ", "\t", "  "][usize::try_from(random(4)).unwrap()];
        let request = std::format!(
            "{{\"params\":{blank}{{\"x\":{part}}},\"id\":\"{n}\\u00e9\"{blank},\"method\":\"m\"}}"
        );
        let answer = std::format!("{{{blank}\"id\":\"{n}é\",\"result\":{part}{blank}}}");
        rig.say(&request);
        let made = rig.next();
        assert_eq!(made.body, request);
        if random(2) == 0 {
            rig.json(made.id, 200, &answer);
        } else {
            let noted = std::format!("{{\"method\":\"n\",\"params\":{part}}}");
            rig.sse(made.id, &(data(&noted) + &data(&answer)));
            rig.end(made.id);
            assert_eq!(rig.session.poll_message().unwrap().bytes(), &noted);
        }
        assert_eq!(rig.told(), [answer]);
    }
    assert_eq!(rig.events(), []);
}

#[test]
fn o05_who_does_not_read_our_errors_is_read_less() {
    let mut rig = Rig::opened();
    let mut id = 100;
    while rig.session.wants_messages() {
        assert!(id < 100_000, "errors pile up without a bound");
        let request = rig.call(id);
        rig.fail(request.id, TransportErrorKind::Connect);
        id += 1;
    }
    assert!(!rig.told().is_empty());
    assert!(rig.session.wants_messages());
}
