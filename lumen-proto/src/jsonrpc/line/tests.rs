//! Lines against a naive reader of the whole input, at any cutting.

use std::borrow::ToOwned;
use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::jsonrpc::oracle;

const MAX: usize = 24;
const MAX_SKIP: u64 = 60;

/// Feeds all pieces, then ends the stream if told.
fn run(lines: &mut Lines, pieces: &[&[u8]]) -> Vec<Step<'static>> {
    let mut steps = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        while let Some(step) = lines.feed(&mut input) {
            steps.push(owned(step));
        }
        assert!(input.is_empty(), "takes all");
    }
    steps
}

fn owned(step: Step<'_>) -> Step<'static> {
    match step {
        Step::Line(text) => Step::Line(Text::Owned(text.into_bytes())),
        Step::Noise { excerpt, len } => Step::Noise { excerpt: Text::Owned(excerpt.into_bytes()), len },
        Step::Skipped { len, scan } => Step::Skipped { len, scan },
        Step::Lost(reason) => Step::Lost(reason),
    }
}

fn line(text: &str) -> Step<'static> {
    Step::Line(Text::Owned(Bytes::copy_from_slice(text.as_bytes())))
}

fn noise(text: &str) -> Step<'static> {
    Step::Noise { excerpt: Text::Owned(Bytes::copy_from_slice(text.as_bytes())), len: text.len() as u64 }
}

/// The obvious reader.
fn naive(input: &[u8]) -> Vec<Step<'static>> {
    let mut steps = Vec::new();
    let whole = input.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    for with_end in input.split_inclusive(|&byte| byte == b'\n') {
        let text = with_end.strip_suffix(b"\n").unwrap_or(with_end);
        let blanks = text.iter().take_while(|byte| b" \t\r".contains(byte)).count();
        let text = &text[blanks..];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let is_message = text.starts_with(b"{") || text.starts_with(b"[");
        let is_kept = is_message && text.len() <= MAX;
        if blanks as u64 > MAX_SKIP || (!is_kept && text.len() as u64 > MAX_SKIP) {
            steps.push(Step::Lost(Reason::TooLongToSkip { max: MAX_SKIP }));
            break;
        }
        if !with_end.ends_with(b"\n") || text.is_empty() {
            continue;
        }
        let bytes = Text::Owned(Bytes::copy_from_slice(text));
        steps.push(if is_kept {
            Step::Line(bytes)
        } else if is_message {
            let mut scan = Scan::new();
            scan.push(text);
            Step::Skipped { len: text.len() as u64, scan: scan.finish() }
        } else {
            Step::Noise { excerpt: bytes, len: text.len() as u64 }
        });
    }
    assert!(whole <= input.len());
    steps
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        6 => prop::sample::select(vec![
            "\n", "\r\n", "\r", "{\"id\":7,\"method\":\"m\"", "{", "[", "}", "\n{", "\n[", " ", "\t", "x", "é",
            "\"\\u0069d\":1,", "\u{2028}", "log: {\"a\"\n", "xxxxxxxxxxxxxxxxxxxxxxx", "        ", "\n{}\n", "{}\r\r\n",
        ]).prop_map(|part| part.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_cutting_gives_the_steps_of_a_naive_reader(input in stream(), cuts in oracle::cuts()) {
        let mut lines = Lines::with_limits(MAX, MAX_SKIP);
        let steps = run(&mut lines, &oracle::pieces(&input, &cuts));
        prop_assert_eq!(steps, naive(&input));
    }

    #[test]
    fn any_cutting_gives_the_same_end(input in stream(), cuts in oracle::cuts()) {
        let mut whole = Lines::with_limits(MAX, MAX_SKIP);
        let mut cut = Lines::with_limits(MAX, MAX_SKIP);
        run(&mut whole, &[&input]);
        run(&mut cut, &oracle::pieces(&input, &cuts));
        prop_assert_eq!(cut.is_mid_line(), whole.is_mid_line());
        prop_assert_eq!(cut.pending(), whole.pending());
        prop_assert_eq!(cut.finish(), whole.finish());
        prop_assert_eq!(cut.finish(), None);
    }
}

#[test]
fn line_ends_and_blank_lines() {
    // O-03: the two characters of an escape are no line end, and a CR elsewhere stays.
    let input = b"{\"a\":\"\\r\"}\r\n\r\n\n \t\r\n{\"b\":\r1}\n{\"c\":\"\xe2\x80\xa8\"}\r\r\n";
    let steps = run(&mut Lines::with_limits(100, 100), &[input]);
    let expected = [line("{\"a\":\"\\r\"}"), line("{\"b\":\r1}"), line("{\"c\":\"\u{2028}\"}\r")];
    assert_eq!(steps, expected);
}

#[test]
fn noise_does_not_hide_the_next_line() {
    // O-01.
    let input = b"Server started\n{\"id\":1}\nwarn: {\"x\"\r\n  [1]\n";
    let steps = run(&mut Lines::with_limits(100, 100), &[input]);
    assert_eq!(steps, [noise("Server started"), line("{\"id\":1}"), noise("warn: {\"x\""), line("[1]")]);
}

#[test]
fn noise_is_excerpted_and_counted() {
    let text = "x".repeat(limits::MAX_EXCERPT + 1);
    let mut input = Vec::from(text.as_bytes());
    input.extend_from_slice(b"\r\n");
    let steps = run(&mut Lines::with_limits(100, 1000), &oracle::pieces(&input, &[100]));
    let excerpt = Text::Owned(Bytes::copy_from_slice(&text.as_bytes()[..limits::MAX_EXCERPT]));
    assert_eq!(steps, [Step::Noise { excerpt, len: text.len() as u64 }]);
}

#[test]
fn a_whole_line_is_lent_and_a_cut_one_is_not_copied_twice() {
    let mut lines = Lines::with_limits(100, 100);
    let buffer = *b"{\"a\":1}\n{\"b\"";
    let mut input = &buffer[..];
    assert!(matches!(lines.feed(&mut input), Some(Step::Line(Text::Borrowed(b"{\"a\":1}")))));
    assert_eq!(lines.feed(&mut input), None);
    assert_eq!((lines.is_mid_line(), lines.pending()), (true, 4));
    let mut input = &b":2}\n"[..];
    let Some(Step::Line(text)) = lines.feed(&mut input) else { panic!("no line") };
    let at = text.as_slice().as_ptr();
    assert_eq!(text.into_bytes().as_ptr(), at);
}

#[test]
fn a_line_at_the_limit_is_kept_and_one_above_is_scanned() {
    let at = |len: usize| -> String {
        "{\"id\":9,\"method\":\"m\",\"x\":\"".to_owned() + &"y".repeat(len - 28) + "\"}"
    };
    for end in ["\n", "\r\n"] {
        for size in [1, 7, 1000] {
            let mut lines = Lines::with_limits(100, 1000);
            let input = at(100) + end + &at(101) + end + "{}" + end;
            let steps = run(&mut lines, &oracle::pieces(input.as_bytes(), &[size]));
            let scan = Scanned { id: Some(Bytes::from_static(b"9")), has_method: true };
            assert_eq!(steps, [line(&at(100)), Step::Skipped { len: 101, scan }, line("{}")]);
        }
    }
}

#[test]
fn a_line_too_long_to_skip_ends_it() {
    for first in [b'{', b'x', b' '] {
        let mut lines = Lines::with_limits(10, 20);
        let mut input = vec![first; 21];
        input.extend_from_slice(b"\n{}\n");
        assert_eq!(run(&mut lines, &[&input]), [Step::Lost(Reason::TooLongToSkip { max: 20 })]);
        assert_eq!(run(&mut lines, &[b"{}\n"]), []);
        assert_eq!(lines.finish(), None);
    }
}

#[test]
fn a_last_line_without_its_end() {
    let end = |input: &[u8]| {
        let mut lines = Lines::with_limits(30, 100);
        assert_eq!(run(&mut lines, &[input]), []);
        lines.finish()
    };
    assert_eq!(end(b"{\"id\":1,\"method\":\"ping\"}"), Some(line("{\"id\":1,\"method\":\"ping\"}")));
    assert_eq!(end(b"{\"id\":1}\r"), Some(line("{\"id\":1}")));
    // O-07.
    let fragment = b"{\"jsonrpc\":\"2.0\",\"id\":4,\"resu";
    assert_eq!(end(fragment), Some(Step::Lost(Reason::Truncated { had: fragment.len() as u64 })));
    let long = b"{\"id\":4,\"method\":\"a\",\"params\":[1,2,3";
    assert_eq!(end(long), Some(Step::Lost(Reason::Truncated { had: long.len() as u64 })));
    let scan = Scanned { id: Some(Bytes::from_static(b"4")), has_method: true };
    let long = b"{\"id\":4,\"method\":\"a\",\"params\":[1,2,3]}";
    assert_eq!(end(long), Some(Step::Skipped { len: long.len() as u64, scan }));
    assert_eq!(end(b"bye"), Some(noise("bye")));
    assert_eq!(end(b"  "), None);
    assert_eq!(end(b""), None);
}

#[test]
fn the_buffer_grows_with_what_arrives() {
    let mut lines = Lines::with_limits(limits::MAX_MESSAGE, limits::MAX_SKIP);
    let mut received = 0;
    let mut input = &b"{\"a\":\""[..];
    while received < 300_000 {
        received += input.len();
        assert_eq!(lines.feed(&mut input), None);
        assert!(lines.partial.capacity() <= 2 * received + 64, "{} for {received}", lines.partial.capacity());
        input = &[b'x'; 1460];
    }
}
