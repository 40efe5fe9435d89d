//! Tests of the reader, most of them against a twin that reads the whole stream at once.

use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn read(stream: &[u8], chunk: usize, max: usize) -> (Vec<Step>, Option<Step>, Option<Duration>) {
    let mut reader = Reader::with_limit(max);
    let mut steps = Vec::new();
    for mut piece in stream.chunks(chunk) {
        while let Some(step) = reader.feed(&mut piece) {
            steps.push(step);
        }
        assert!(piece.is_empty() && reader.pending() <= max);
    }
    let last = reader.finish();
    assert_eq!(reader.finish(), None);
    (steps, last, reader.retry())
}

/// Reads a whole stream line by line, as the grammar is written down.
fn twin(stream: &[u8]) -> (Vec<Event>, Option<Duration>) {
    let stream = stream.strip_prefix(MARK).unwrap_or(stream);
    let mut lines: Vec<Vec<u8>> = Vec::from([Vec::new()]);
    let mut bytes = stream.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' | b'\n' => {
                if byte == b'\r' {
                    bytes.next_if_eq(&b'\n');
                }
                lines.push(Vec::new());
            }
            _ => lines.last_mut().unwrap().push(byte),
        }
    }
    lines.pop();
    let (mut events, mut retry) = (Vec::new(), None);
    let (mut data, mut name, mut id) = (Vec::new(), Vec::new(), None);
    for line in lines {
        if line.is_empty() {
            let data = core::mem::take(&mut data).join(&b'\n');
            let id: Option<Vec<u8>> = id.take();
            if !data.is_empty() || id.is_some() {
                let is_message = name.is_empty() || name == b"message";
                events.push(Event { is_message, data: data.into(), id: id.map(Bytes::from) });
            }
            name.clear();
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value).to_vec();
        match &line[..colon] {
            b"data" => data.push(value),
            b"event" => name = value,
            b"id" if !value.contains(&0) => id = Some(value),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                retry = String::from_utf8(value).unwrap().parse().ok().map(Duration::from_millis).or(retry);
            }
            _ => {}
        }
    }
    (events, retry)
}

fn events(steps: Vec<Step>) -> Vec<Event> {
    steps
        .into_iter()
        .map(|step| match step {
            Step::Event(event) => event,
            Step::Skipped { .. } => panic!("{step:?}"),
        })
        .collect()
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(&b"data"[..]),
        Just(&b"data:"[..]),
        Just(&b"data: "[..]),
        Just(&b"event: "[..]),
        Just(&b"message"[..]),
        Just(&b"ping"[..]),
        Just(&b"id"[..]),
        Just(&b"id: 7"[..]),
        Just(&b"\0"[..]),
        Just(&b"retry: 15"[..]),
        Just(&b":"[..]),
        Just(&b" "[..]),
        Just("漢".as_bytes()),
        Just(&b"\xef\xbb\xbf"[..]),
        Just(&b"\xef\xbb"[..]),
        Just(&b"\n"[..]),
        Just(&b"\n\n"[..]),
        Just(&b"\r"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"{\"id\":1}"[..]),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_stream_in_any_pieces_is_what_the_twin_reads(stream in stream(), chunk in 1_usize..9) {
        let (steps, _, retry) = read(&stream, chunk, 1024);
        prop_assert_eq!((events(steps), retry), twin(&stream));
    }

    #[test]
    fn any_bytes_in_any_pieces_come_to_the_same(stream in any::<Vec<u8>>(), chunk in 1_usize..9, max in 0_usize..20) {
        prop_assert_eq!(read(&stream, chunk, max), read(&stream, stream.len().max(1), max));
    }
}

#[test]
fn one_stream_with_everything() {
    let text = "\u{feff}: hello\nid: 1\r\ndata: {\"a\":\"é—漢😀\"}\r\n\r\nretry: 250\rdata: {\"b\":\rdata: 1}\r\r\
                data\n\nevent: ping\ndata: now\n\nid: 2\ndata:\n\nid: x\0y\ndata: [1]\n\nevent\ndata:  two\n\nunknown: 1\n\n";
    let (steps, last, retry) = read(text.as_bytes(), 1, 1024);
    let event = |is_message, data: &'static str, id: Option<&'static str>| Event {
        is_message,
        data: Bytes::from(data),
        id: id.map(Bytes::from),
    };
    assert_eq!(
        events(steps),
        [
            event(true, "{\"a\":\"é—漢😀\"}", Some("1")),
            event(true, "{\"b\":\n1}", None),
            event(false, "now", None),
            event(true, "", Some("2")),
            event(true, "[1]", None),
            event(true, " two", None),
        ]
    );
    assert_eq!((last, retry), (None, Some(Duration::from_millis(250))));
}

#[test]
fn the_last_event_is_handed_over_but_not_an_id_that_may_be_cut() {
    for (text, data, id) in [
        ("id: 5\ndata: {\"id\":1}\n", "{\"id\":1}", Some("5")),
        ("id: 5\ndata: {\"id\":1}", "{\"id\":1}", Some("5")),
        ("data: {\"id\":1}\nid: 5", "{\"id\":1}", None),
        ("data: {\"id\":1}\nevent: pin", "{\"id\":1}", None),
    ] {
        let (steps, last, _) = read(text.as_bytes(), 3, 1024);
        let event = Event { is_message: true, data: Bytes::from(data), id: id.map(Bytes::from) };
        assert_eq!((steps, last), (Vec::new(), Some(Step::Event(event))), "{text}");
    }
    assert_eq!(read(b"data", 1, 9).1, None);
    assert_eq!(read(b": note", 1, 9).1, None);
}

#[test]
fn an_event_that_is_too_long_is_skipped_with_its_id() {
    let text = "data: {\"x\":\"0123456789\",\ndata: \"id\":\"é\"}\nid: 3\n\ndata: {\"id\":2}\n\n";
    for chunk in 1..20 {
        let (steps, _, _) = read(text.as_bytes(), chunk, 16);
        let scan = Scanned { id: Some(Bytes::from("\"é\"")), has_method: false };
        let event = Event { is_message: true, data: Bytes::from("{\"id\":2}"), id: None };
        let skipped = Step::Skipped { len: 29, scan, id: Some(Bytes::from("3")) };
        assert_eq!(steps, [skipped, Step::Event(event)]);
    }
    let whole = b"data: {\"id\":1,\"x\":\"0123456789\"}";
    assert!(matches!(read(whole, 5, 16).1, Some(Step::Skipped { .. })));
    assert_eq!(read(&whole[..30], 5, 16).1, None, "what was cut short answers nothing");
}

#[test]
fn exactly_the_limit_is_kept() {
    let event = |data| Step::Event(Event { is_message: true, data: Bytes::from(data), id: None });
    assert_eq!(read(b"data: 12345\n\n", 4, 5).0, [event("12345")]);
    assert_eq!(read(b"data: 12\ndata: 45\n\n", 4, 5).0, [event("12\n45")]);
}

#[test]
fn an_id_too_long_to_keep_leaves_nothing_to_go_on_from() {
    let text =
        std::format!("id: {}\n\nid: {}\n\n", "x".repeat(limits::MAX_ID), "x".repeat(limits::MAX_ID + 1));
    let lens: Vec<Option<usize>> =
        events(read(text.as_bytes(), 7, 9).0).into_iter().map(|event| event.id.map(|id| id.len())).collect();
    assert_eq!(lens, [Some(limits::MAX_ID), Some(0)]);
}

#[test]
fn a_wait_beyond_reason_or_in_words_is_none() {
    for (text, millis) in
        [("retry: 0\n", Some(0)), ("retry: 1s\n", None), ("retry: 99999999999999999999\n", None)]
    {
        assert_eq!(read(text.as_bytes(), 9, 9).2, millis.map(Duration::from_millis), "{text}");
    }
    assert_eq!(read(b"retry: 7\nretry:\nretry: -1\n", 9, 9).2, Some(Duration::from_millis(7)));
}
