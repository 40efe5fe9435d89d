//! What the command shows on the outside: streams and exit codes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const LUMEN: &str = env!("CARGO_BIN_EXE_lumen");

const REQUESTS: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\
    {\"jsonrpc\":\"2.0\",\"id\":\"two\",\"method\":\"ping\"}\n";

/// Runs it on this input, after which its stdin stays open until it has exited.
fn lumen_on(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(LUMEN);
    command.args(args).env_remove("RUST_LOG");
    // What one test's server minded is nothing for the next one.
    command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may have exited already.
    let _ = stdin.write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    output
}

fn lumen(args: &[&str]) -> Output {
    lumen_on(args, "")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Asserts that both requests were answered with an error, and nothing else was said.
fn assert_refused(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    let mut ids = Vec::new();
    for line in text(&output.stdout).lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert!(answer["error"]["code"].is_i64() && answer["error"]["message"].is_string(), "{line}");
        ids.push(answer["id"].to_string());
    }
    assert_eq!(ids, ["1", "\"two\""]);
    assert!(text(&output.stderr).contains("lumen: "), "{}", text(&output.stderr));
}

#[test]
fn help_goes_where_no_protocol_is() {
    for command in ["connect", "wrap"] {
        let output = lumen(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stdout.is_empty());
        assert!(text(&output.stderr).contains("Exit codes:"));
    }
    for args in [&["--help"][..], &["demo", "--help"]] {
        let output = lumen(args);
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stderr.is_empty());
        assert!(text(&output.stdout).contains("Exit codes:"));
    }
}

#[test]
fn version_is_one_line() {
    let output = lumen(&["--version"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), format!("lumen {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_wrong_command_line_is_2_and_starts_nothing() {
    for args in [
        &["connect", "--no-such-flag", "--", "true"][..],
        &["wrap", "--no-such-flag", "--", "true"],
        &["connect"],
        &["wrap", "--"],
        &["no-such-command"],
        &[],
    ] {
        let output = lumen_on(args, REQUESTS);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn what_cannot_be_started_is_3_and_every_request_is_answered() {
    for way in [&["connect", "--"][..], &["connect", "--negotiate", "off", "--"], &["wrap", "--"]] {
        for server in ["/nonexistent/server", "lumen-no-such-program", "/etc/passwd"] {
            let output = lumen_on(&[way, &[server]].concat(), REQUESTS);
            assert_refused(&output, 3);
            assert!(text(&output.stderr).contains(server));
        }
    }
}

#[test]
fn a_directory_that_is_not_there_is_3() {
    assert_refused(&lumen_on(&["wrap", "--cwd", "/nonexistent/folder", "--", "true"], REQUESTS), 3);
}

#[test]
fn a_server_that_exits_at_once_is_1_and_every_request_is_answered() {
    for way in [&["connect", "--"][..], &["connect", "--negotiate", "offer", "--"], &["wrap", "--"]] {
        for server in [&["true"][..], &["sh", "-c", "exit 7"]] {
            let output = lumen_on(&[way, server].concat(), REQUESTS);
            assert_refused(&output, 1);
        }
    }
}

#[test]
fn a_server_that_never_answers_is_4_and_every_request_is_answered() {
    for way in [&["connect", "--negotiate", "off"][..], &["wrap"]] {
        let rest = ["--start-timeout", "1", "--", "sh", "-c", "cat >/dev/null"];
        let output = lumen_on(&[way, &rest].concat(), REQUESTS);
        assert_refused(&output, 4);
    }
}

#[test]
fn the_demo_ends_with_its_table() {
    let output = lumen(&["demo", "--calls", "20"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("JSON") && table.contains("LUMEN"), "{table}");
}

#[test]
fn the_value_of_a_variable_is_never_quoted() {
    let output = lumen(&["connect", "--env", "=a-secret", "--", "cat"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("--env takes NAME=VALUE") && !said.contains("secret"), "{said}");
}

#[test]
fn a_start_that_fails_is_told_in_words() {
    let output = lumen(&["connect", "--cwd", "/no/such/place", "--", "cat"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("working directory"), "{}", text(&output.stderr));
}

/// A full disk is not a reader that has gone.
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for args in [
        &["--help"][..],
        &["demo", "--calls", "1"],
        &["connect", "--negotiate", "off", "--", LUMEN, "demo-server"],
        // Nobody listens there, so both requests are answered with an error.
        &["bridge", "--url", "http://127.0.0.1:1"],
    ] {
        let mut command = Command::new(LUMEN);
        command.args(args).stdin(Stdio::piped()).stdout(full()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let _ = stdin.write_all(REQUESTS.as_bytes());
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("cannot write to stdout"), "{}", text(&output.stderr));
    }
}
