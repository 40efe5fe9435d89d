//! O-01 and O-06: what is no protocol, on standard output and on standard error.

use serde_json::json;

use crate::support::{INITIALIZE, Session, Way, call, child_server, parsed, ping, pong, ways};

ways! {
    noise: o_01_noise_connect = Connect, o_01_noise_probing = Probing, o_01_noise_wrap = Wrap,
        o_01_noise_both = Both;
    first_words: o_01_first_words_connect = Connect, o_01_first_words_probing = Probing,
        o_01_first_words_wrap = Wrap, o_01_first_words_both = Both;
    noise_that_is_json: o_01_noise_that_is_json_connect = Connect, o_01_noise_that_is_json_wrap = Wrap;
    much_noise: o_01_much_noise_connect = Connect, o_01_much_noise_wrap = Wrap, o_01_much_noise_both = Both;
    stderr_flood: o_06_stderr_flood_connect = Connect, o_06_stderr_flood_wrap = Wrap,
        o_06_stderr_flood_both = Both;
    nobody_reads_our_stderr: o_06_nobody_reads_our_stderr_connect = Connect,
        o_06_nobody_reads_our_stderr_wrap = Wrap, o_06_nobody_reads_our_stderr_both = Both;
}

fn noise(way: Way) {
    let mut session = way.start(&["--banner", "Server started", "--noise-every"]);
    session.send(&[INITIALIZE.to_owned(), ping(1), call(2, "echo", json!({"text": "warn: {\"x\""}))]);
    assert_eq!(session.json()["id"], 0);
    assert_eq!(session.line(), pong(1));
    assert_eq!(session.json()["result"]["content"][0]["text"], "warn: {\"x\"");
    session.close_input();
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0));
    assert!(finished.stderr.contains("Server started"), "{}", finished.stderr);
    assert!(finished.stderr.contains("warn: {"), "{}", finished.stderr);
}

/// Structured logs, and JSON that is no message, are noise too: no client may see them, and none is answered.
fn noise_that_is_json(way: Way) {
    for banner in
        [r#"{"level":30,"msg":"up"}"#, "[1,2]", "42", "null", "\"up\"", "{}", "[]", "{", "\u{1b}[2J"]
    {
        let mut session = way.start(&["--banner", banner]);
        session.send(&[ping(1)]);
        assert_eq!(session.line(), pong(1), "{banner}");
        session.close_input();
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{banner}");
        assert!(!finished.stderr.is_empty(), "{banner}");
        assert!(!finished.stderr.contains('\u{1b}'), "{}", finished.stderr);
    }
}

/// After a probe one complaint is swallowed; what a server logs of itself is none.
fn first_words(way: Way) {
    let mut session = way.start(&["--write-first", "10"]);
    session.send(&[ping(1)]);
    assert_eq!(session.json()["method"], "notifications/message");
    assert_eq!(session.line(), pong(1));
    session.close_input();
    assert_eq!(session.finish().code, Some(0));

    let mut session = way.start(&["--stray-on-probe"]);
    session.send(&[ping(1)]);
    assert_eq!(session.line(), pong(1));
    session.close_input();
    assert_eq!(session.finish().code, Some(0));
}

fn much_noise(way: Way) {
    let mut session = way.start(&["--noise-lines", "50000"]);
    session.send(&[ping(1)]);
    assert_eq!(session.line(), pong(1));
    session.close_input();
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0));
    assert!(finished.stderr.contains("noise 0"), "{}", finished.stderr);
    let said = finished.stderr.lines().count();
    assert!((1..100).contains(&said), "{}", finished.stderr);
    // It says how many there were, and not much less than there were.
    let counted = |line: &str| line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).max();
    let most: Option<u64> = finished.stderr.lines().filter_map(counted).max();
    assert!(most >= Some(25_000), "{}", finished.stderr);
}

fn stderr_flood(way: Way) {
    for more in [&[][..], &["--stderr-no-newline"]] {
        let flood = ["--stderr-flood", "262144"];
        let mut session = way.start(&[&flood[..], more].concat());
        session.send(&[ping(1), ping(2)]);
        assert_eq!(session.line(), pong(1));
        assert_eq!(session.line(), pong(2));
        session.close_input();
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0));
        assert!(finished.stderr.bytes().filter(|&byte| byte == b'e').count() >= 258_000);
    }
}

/// The pipe for our own log is full from the start: it may lose lines, the session may not stop.
fn nobody_reads_our_stderr(way: Way) {
    let mut command = way.command(child_server(&["--banner", "hello", "--noise-every"]));
    command.env("RUST_LOG", "trace");
    let (mut session, _unread) = Session::start_unheard(command);
    session.send(&[ping(1)]);
    assert_eq!(session.line(), pong(1));
    // Each is answered, and told of in the log.
    session.send(&vec!["{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}"; 2000]);
    session.send(&[ping(2)]);
    let mut errors = 0;
    loop {
        let line = session.line();
        if line == pong(2) {
            break;
        }
        assert!(parsed(&line)["error"].is_object());
        errors += 1;
    }
    assert!(errors > 0);
    session.close_input();
    assert_eq!(session.finish().code, Some(0));

    // Not even a last word may hang.
    let (session, _unread) = Session::start_unheard(way.command(["/nonexistent/server"]));
    assert_ne!(session.finish().code, Some(0));
}
