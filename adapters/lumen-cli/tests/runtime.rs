//! The same session on everything that it can run on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

const LUMEN: &str = env!("CARGO_BIN_EXE_lumen");

const ASKED: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":"two","method":"tools/list"}"#,
    "\n",
);

fn session(options: &[&str]) -> Output {
    let mut child = Command::new(LUMEN)
        .arg("connect")
        .args(options)
        .args(["--", LUMEN, "wrap"])
        .args(options)
        .args(["--", LUMEN, "demo-server"])
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(ASKED.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_session_is_the_same_on_each_runtime_and_with_spinning() {
    let expected = session(&[]);
    assert!(expected.status.success(), "{expected:?}");
    let text = String::from_utf8(expected.stdout).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains(r#""id":"two""#), "{text}");
    let mut runtimes = vec!["std"];
    match lumen_uring::is_available() {
        Ok(()) => runtimes.push("uring"),
        // Not by a macro: it would be caught.
        Err(error) => writeln!(std::io::stderr(), "skipped on io_uring: {error}").unwrap(),
    }
    for runtime in runtimes {
        for spin in ["0", "50"] {
            let output = session(&["--runtime", runtime, "--spin", spin]);
            assert!(output.status.success(), "{runtime}, {spin}: {output:?}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{runtime}, {spin}");
        }
    }
}

#[test]
fn a_runtime_that_cannot_spin_says_so() {
    let mux = ["mux", "--socket", "/nowhere/s", "--spin", "50", "--", "true"];
    let output = Command::new(LUMEN).args(mux).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("--runtime std"), "{told}");
}
