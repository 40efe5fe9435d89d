//! O-02 to O-05 and O-07: what is in the pipes.

use serde_json::json;

use rustix::process::Signal;

use crate::support::{
    INITIALIZE, INITIALIZED, Session, Way, call, child_server, direct, parsed, ping, pong, temp, ways,
};

ways! {
    one_byte_per_write: o_02_one_byte_per_write_connect = Connect,
        o_02_one_byte_per_write_wrap = Wrap, o_02_one_byte_per_write_both = Both;
    crlf: o_03_crlf_connect = Connect, o_03_crlf_wrap = Wrap, o_03_crlf_both = Both;
    large_lines: o_04_large_lines_connect = Connect, o_04_large_lines_wrap = Wrap,
        o_04_large_lines_both = Both;
    oversize_result: o_04_oversize_result_connect = Connect, o_04_oversize_result_wrap = Wrap,
        o_04_oversize_result_both = Both;
    oversize_request: o_04_oversize_request_connect = Connect, o_04_oversize_request_wrap = Wrap,
        o_04_oversize_request_both = Both;
    both_pipes_full: o_05_both_pipes_full_connect = Connect, o_05_both_pipes_full_wrap = Wrap,
        o_05_both_pipes_full_both = Both;
    stop_with_a_blocked_write: o_05_stop_with_a_blocked_write_connect = Connect,
        o_05_stop_with_a_blocked_write_wrap = Wrap, o_05_stop_with_a_blocked_write_both = Both;
    close_with_a_blocked_write: o_05_close_with_a_blocked_write_connect = Connect,
        o_05_close_with_a_blocked_write_wrap = Wrap;
    death_in_a_line: o_07_death_in_a_line_connect = Connect, o_07_death_in_a_line_wrap = Wrap,
        o_07_death_in_a_line_both = Both;
}

fn same_as_direct(way: Way, options: &[&str], plain: &[&str], lines: &[String]) {
    let mut session = way.start(options);
    session.send(lines);
    session.close_input();
    let finished = session.finish();
    let wanted = direct(plain, lines);
    assert!(wanted.len() > 1);
    assert_eq!(finished.lines.len(), wanted.len(), "{}", finished.stderr);
    for (got, wanted) in finished.lines.iter().zip(&wanted) {
        assert!(got == wanted, "{}", String::from_utf8_lossy(got));
    }
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

fn one_byte_per_write(way: Way) {
    let lines =
        [INITIALIZE.to_owned(), call(1, "echo", json!({"text": "é—漢😀 "})), call("é", "echo", json!({}))];
    same_as_direct(way, &["--unicode", "--byte-by-byte"], &["--unicode"], &lines);
}

fn crlf(way: Way) {
    let text = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\\r\r\n\\n"}}}"#;
    // Ours end with CR LF too, and one line is nothing but that.
    let lines = [format!("{INITIALIZE}\r"), "\r".to_owned(), format!("{text}\r"), ping(3) + "\r"];
    same_as_direct(way, &["--crlf"], &[], &lines);
    let plain = direct(&[], &lines);
    assert!(plain.iter().all(|line| !line.contains(&b'\r')));
}

fn large_lines(way: Way) {
    let overhead = direct(&[], &[call(1, "big", json!({"bytes": 0}))])[0].len();
    let mut session = way.start(&[]);
    for (id, len) in [65_535, 65_536, 65_537, (1 << 20) + 1, 20 << 20].into_iter().enumerate() {
        let id = id % 10;
        // Once the line without its line feed has that length, once the text in it.
        for bytes in [len - overhead, len] {
            session.send(&[call(id, "big", json!({"bytes": bytes}))]);
            let line = session.line();
            assert_eq!(line.len(), bytes + overhead);
            let text = parsed(&line)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
            assert!(text.len() == bytes && text.bytes().all(|byte| byte == b'b'));
        }
    }
    session.close_input();
    assert_eq!(session.finish().code, Some(0));
}

fn oversize_result(way: Way) {
    let mut session = way.start(&[]);
    session.send(&[ping("before"), call("big", "big", json!({"bytes": (64 << 20) + 1})), ping("after")]);
    assert_eq!(session.line(), pong("before"));
    let error = session.json();
    assert_eq!(error["id"], "big");
    assert!(error["error"]["code"].is_i64(), "{error}");
    assert_eq!(session.line(), pong("after"));
    session.close_input();
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
}

fn oversize_request(way: Way) {
    let mut session = way.start(&[]);
    let request = |id: &str, len: usize| {
        let empty = call(id, "big", json!({"pad": ""})).len();
        call(id, "big", json!({"pad": "p".repeat(len - empty)}))
    };
    let limit = (10 << 20) - 1;
    session.send(&[ping(1), request("fits", limit), request("long", limit + 1), ping(2)]);
    assert_eq!(session.line(), pong(1));
    let mut answers = [session.json(), session.json(), session.json()];
    // Our own answer may overtake the server's.
    answers.sort_by_key(|answer| answer["id"].to_string());
    assert_eq!(answers[0]["id"], "fits");
    assert!(answers[0]["result"].is_object());
    assert_eq!(answers[1]["id"], "long");
    assert!(answers[1]["error"]["code"].is_i64());
    assert_eq!(answers[2], parsed(&pong(2)));
    session.close_input();
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
}

fn both_pipes_full(way: Way) {
    let go = temp("go");
    let mib = 1 << 20;
    // The server reads nothing before its notification is written, and writes nothing before ours is on its way.
    let options = ["--start-when", go.to_str().unwrap(), "--write-first", &mib.to_string()];
    let mut session = way.start(&options);
    session.send_deaf(&[call(1, "echo", json!({"text": "t".repeat(mib)}))]);
    std::fs::write(&go, "").unwrap();
    assert_eq!(session.json()["method"], "notifications/message");
    assert_eq!(session.json()["id"], 1);
    session.close_input();
    assert_eq!(session.finish().code, Some(0));

    // Much more than all queues hold together.
    let bytes = (9 * mib).to_string();
    let mut session = way.start(&["--write-first", &bytes]);
    session.send(&[call(1, "echo", json!({"text": "t".repeat(9 * mib)})), ping(2)]);
    assert_eq!(session.json()["method"], "notifications/message");
    assert_eq!(session.json()["id"], 1);
    assert_eq!(session.line(), pong(2));
    session.close_input();
    assert_eq!(session.finish().code, Some(0));
}

fn stop_with_a_blocked_write(way: Way) {
    let mut session = way.start(&["--start-when", "/nonexistent/never"]);
    session.send(&[call(1, "echo", json!({"text": "t".repeat(1 << 20)}))]);
    session.signal(Signal::TERM);
    let finished = session.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
}

/// The server reads nothing and dies of SIGTERM, the client closes its input: what is queued holds nothing up.
fn close_with_a_blocked_write(way: Way) {
    let mut session = way.start(&["--start-when", "/nonexistent/never"]);
    let note =
        json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": "t".repeat(1 << 20)}});
    session.send(&[note.to_string()]);
    session.close_input();
    assert_eq!(session.finish().code, Some(0));
}

fn death_in_a_line(way: Way) {
    let command = way.command(child_server(&["--die-mid-line-at", "4"]));
    let mut session = Session::start(command);
    session.send(&[INITIALIZE]);
    assert_eq!(session.json()["id"], 0);
    session.send(&[INITIALIZED.to_owned(), ping(3), ping(4), ping("5")]);
    assert_eq!(session.line(), pong(3));
    let errors = [session.json(), session.json()];
    for error in &errors {
        assert!(error["error"]["code"].is_i64() && error.get("result").is_none(), "{error}");
    }
    let mut ids = errors.map(|error| error["id"].to_string());
    ids.sort();
    assert_eq!(ids, ["\"5\"", "4"]);
    let finished = session.finish();
    assert_eq!(finished.code, Some(1));
    assert!(finished.lines.is_empty(), "{finished:?}");
    assert!(
        finished.stderr.contains("exit code 1") || finished.stderr.contains("code 1"),
        "{}",
        finished.stderr
    );
}
