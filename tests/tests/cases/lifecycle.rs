//! O-20 to O-24: who goes first, and who is left.

use std::fs;
use std::path::Path;

use lumen_tests::procs::wait_exit;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{INITIALIZE, INITIALIZED, Session, Way, call, child_server, ping, pong, temp, ways};

ways! {
    client_vanishes: o_20_client_vanishes_connect = Connect, o_20_client_vanishes_wrap = Wrap,
        o_20_client_vanishes_both = Both;
    exit_after_initialize: o_20_exit_after_initialize_connect = Connect,
        o_20_exit_after_initialize_probing = Probing, o_20_exit_after_initialize_wrap = Wrap,
        o_20_exit_after_initialize_both = Both;
    three_requests_and_eof: o_21_three_requests_and_eof_connect = Connect,
        o_21_three_requests_and_eof_probing = Probing, o_21_three_requests_and_eof_wrap = Wrap,
        o_21_three_requests_and_eof_both = Both;
    answers_after_our_eof: o_21_answers_after_our_eof_connect = Connect, o_21_answers_after_our_eof_wrap = Wrap,
        o_21_answers_after_our_eof_both = Both;
    eof_with_nothing_pending: o_22_eof_with_nothing_pending_connect = Connect,
        o_22_eof_with_nothing_pending_probing = Probing, o_22_eof_with_nothing_pending_wrap = Wrap,
        o_22_eof_with_nothing_pending_both = Both;
    child_that_takes_no_hint: o_23_child_that_takes_no_hint_connect = Connect,
        o_23_child_that_takes_no_hint_wrap = Wrap, o_23_child_that_takes_no_hint_both = Both;
    polite_child: o_23_polite_child_connect = Connect, o_23_polite_child_wrap = Wrap,
        o_23_polite_child_both = Both;
    own_sigterm: o_23_own_sigterm_connect = Connect, o_23_own_sigterm_wrap = Wrap,
        o_23_own_sigterm_both = Both;
    whole_tree: o_24_whole_tree_connect = Connect, o_24_whole_tree_wrap = Wrap, o_24_whole_tree_both = Both;
    inherited_pipe: o_24_inherited_pipe_connect = Connect, o_24_inherited_pipe_wrap = Wrap,
        o_24_inherited_pipe_both = Both;
    own_sigkill: o_24_own_sigkill_connect = Connect, o_24_own_sigkill_wrap = Wrap, o_24_own_sigkill_both = Both;
}

fn client_vanishes(way: Way) {
    let mut session = way.start(&[]);
    session.send(&[call(1, "big", json!({"bytes": 5 << 20})), ping(2)]);
    session.wait_bytes(1000);
    session.close_output();
    let finished = session.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(!finished.stderr.contains("panic"), "{}", finished.stderr);
}

fn exit_after_initialize(way: Way) {
    let mut session = way.start(&["--exit-after", "1"]);
    session.send(&[INITIALIZE]);
    assert_eq!(session.json()["id"], 0);
    // It may be gone, or about to be noticed.
    session.send(&[INITIALIZED]);
    let finished = session.finish();
    assert!(finished.lines.is_empty(), "{finished:?}");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(!finished.stderr.contains("panic"), "{}", finished.stderr);
}

fn three_requests_and_eof(way: Way) {
    let mut session = way.start(&[]);
    session.send(&[ping(1), ping("2"), ping(3)]);
    session.close_input();
    let finished = session.finish();
    assert_eq!(finished.lines, [pong(1), pong("2"), pong(3)], "{}", finished.stderr);
    assert_eq!(finished.code, Some(0));
}

/// The server's input stays open while answers are owed: it writes a file when that ends, and has not yet.
fn answers_after_our_eof(way: Way) {
    let (go, eof) = (temp("go"), temp("eof"));
    let options = ["--answer-when", go.to_str().unwrap(), "--on-eof", eof.to_str().unwrap()];
    let mut session = way.start(&options);
    session.send(&[ping(1), ping(2), ping(3)]);
    session.close_input();
    fs::write(&go, "").unwrap();
    let finished = session.finish();
    assert_eq!(finished.lines, [pong(1), pong(2), pong(3)], "{}", finished.stderr);
    assert_eq!(finished.code, Some(0));
    assert!(eof.exists());
}

fn eof_with_nothing_pending(way: Way) {
    // Before anything, and after an exchange.
    for pings in [0, 1] {
        let eof = temp("eof");
        let mut session = way.start(&["--on-eof", eof.to_str().unwrap()]);
        for id in 0..pings {
            session.send(&[ping(id)]);
            assert_eq!(session.line(), pong(id));
        }
        session.close_input();
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
        assert!(eof.exists());
    }
}

/// It ignores the end of its input and SIGTERM, and is killed.
fn child_that_takes_no_hint(way: Way) {
    let mut session = way.start(&["--ignore-term"]);
    session.send(&[ping(1)]);
    assert_eq!(session.line(), pong(1));
    session.close_input();
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
}

/// Nobody who would go by himself is killed first: not who goes at the end of input, not who goes at SIGTERM.
fn polite_child(way: Way) {
    for option in ["--on-eof", "--on-term"] {
        let file = temp("polite");
        let mut session = way.start(&[option, file.to_str().unwrap()]);
        session.send(&[ping(1)]);
        assert_eq!(session.line(), pong(1));
        session.close_input();
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
        assert!(file.exists(), "{option}");
    }
}

fn own_sigterm(way: Way) {
    let file = temp("term");
    let cases = [&["--on-term", file.to_str().unwrap()][..], &["--ignore-term"]];
    for (options, signal) in cases.into_iter().flat_map(|case| [(case, Signal::TERM), (case, Signal::INT)]) {
        let _ = fs::remove_file(&file);
        let mut session = way.start(options);
        session.send(&[ping(1)]);
        assert_eq!(session.line(), pong(1));
        session.signal(signal);
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
        assert_eq!(file.exists(), options[0] == "--on-term", "{options:?}");
    }
}

fn shell(script: &str, server: &[&str]) -> Vec<std::ffi::OsString> {
    let words = ["sh", "-c", script, "sh"].into_iter().map(Into::into);
    words.chain(child_server(server)).collect()
}

/// A shell that waits for the server, and the server has started something that holds its output.
fn whole_tree(way: Way) {
    for signal in [None, Some(Signal::TERM)] {
        let file = temp("pid");
        let server = ["--linger-grandchild", file.to_str().unwrap()];
        // A shell gives what it starts in the background no input unless it is told to.
        let command = way.command(shell("exec 3<&0; \"$@\" <&3 & wait", &server));
        let mut session = Session::start(command);
        session.send(&[ping(1)]);
        assert_eq!(session.line(), pong(1));
        let grandchild = pid(&file);
        assert!(!wait_exit(grandchild, std::time::Duration::ZERO));
        match signal {
            None => session.close_input(),
            Some(signal) => session.signal(signal),
        }
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
    }
}

/// The server ends by itself, what it started holds its output: that is no reason to wait.
fn inherited_pipe(way: Way) {
    let file = temp("pid");
    let mut session = way.start(&["--linger-grandchild", file.to_str().unwrap(), "--exit-after", "1"]);
    session.send(&[ping(1), ping(2)]);
    assert_eq!(session.line(), pong(1));
    let error = session.json();
    assert!(error["id"] == 2 && error["error"].is_object(), "{error}");
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(1), 0), "{}", finished.stderr);
}

/// Nothing of ours can run any more: the server sees its input end.
fn own_sigkill(way: Way) {
    let mut session = way.start(&[]);
    session.send(&[ping(1)]);
    assert_eq!(session.line(), pong(1));
    session.signal(Signal::KILL);
    // This also waits for all that was started.
    assert_eq!(session.finish().code, None);
}

fn pid(file: &Path) -> u32 {
    assert!(file.exists());
    fs::read_to_string(file).unwrap().parse().unwrap()
}
