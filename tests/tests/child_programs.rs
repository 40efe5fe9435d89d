//! The child programs do what their options say: a fault that does not happen proves nothing in another suite.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const PROBE: &str = "+\u{f}\0{\"v\":1}";
const CALL: &str = r#"{"jsonrpc":"2.0","id":18446744073709551616,"method":"tools/call","params":{"name":"echo","arguments":{"n":1.0}}}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":"p","result":{}}"#;

fn server(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_child_server"));
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Writes all lines, closes the input and waits for the end.
fn run(mut command: Command, lines: &[&str]) -> Output {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A server that has exited already reads nothing.
    let _ = stdin.write_all(lines.iter().map(|line| format!("{line}\n")).collect::<String>().as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn stdout(options: &[&str], lines: &[&str]) -> String {
    String::from_utf8(run(server(options), lines).stdout).unwrap()
}

fn temp(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("lumen-child-{}-{name}", std::process::id()))
}

#[test]
fn polite_server_answers_and_exits() {
    let unknown = r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let output = run(server(&[]), &[PROBE, INITIALIZE, note, "", PING, CALL, unknown]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    let first: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(first["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(first["result"]["serverInfo"]["name"], "child_server");
    assert_eq!(lines[1], PONG);
    assert_eq!(
        lines[2],
        r#"{"jsonrpc":"2.0","id":18446744073709551616,"result":{"content":[{"text":"{\"n\":1.0}","type":"text"}],"structuredContent":{"n":1.0}}}"#
    );
    assert!(lines[3].contains("-32601"));
}

#[test]
fn tools_say_what_they_are_asked() {
    let call = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    let text = stdout(&["--unicode"], &[&call("echo", json!({"text": "hi "}))]);
    assert!(text.contains("hi é—漢😀"), "{text}");
    let text = stdout(&["--result-bytes", "70000"], &[&call("echo", json!({}))]);
    assert!(text.contains(&format!("\"{}\"", "r".repeat(70_000))));
    let mut command = server(&[]);
    command.env("LUMEN_CHILD", "x y");
    let output = run(command, &[&call("env", json!({"name": "LUMEN_CHILD"}))]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("\"x y\""));
    let text = stdout(&[], &[&call("notify", json!({"count": 3}))]);
    assert_eq!(text.lines().filter(|line| line.contains("notifications/message")).count(), 3);
}

#[test]
fn output_is_spoilt_as_asked() {
    assert_eq!(stdout(&["--banner", "Server started"], &[PING]), format!("Server started\n{PONG}\n"));
    assert_eq!(stdout(&["--noise-every"], &[PING]), format!("warn: {{\"x\"\n{PONG}\n"));
    assert_eq!(stdout(&["--crlf"], &[PING]), format!("\r\n{PONG}\r\n"));
    assert_eq!(stdout(&["--byte-by-byte"], &[PING]), format!("{PONG}\n"));
    assert_eq!(stdout(&["--silent"], &[PING]), "");
    assert_eq!(stdout(&["--answer-after-eof"], &[PING, PING]), format!("{PONG}\n{PONG}\n"));
    assert!(stdout(&["--write-first", "100000"], &[]).len() > 100_000);
    for (options, lines) in
        [(&["--stderr-flood", "8000"][..], 100), (&["--stderr-flood", "8000", "--stderr-no-newline"], 0)]
    {
        let output = run(server(options), &[PING]);
        assert_eq!(output.stderr.len(), 8000);
        assert_eq!(output.stderr.iter().filter(|&&byte| byte == b'\n').count(), lines);
    }
}

#[test]
fn probes_are_taken_badly_as_asked() {
    assert_eq!(stdout(&["--deaf-on-probe"], &[PROBE, PING]), "");
    assert_eq!(stdout(&["--deaf-on-probe"], &[PING]), format!("{PONG}\n"));
    let stray = stdout(&["--stray-on-probe"], &[PROBE, PING, "noise"]);
    assert!(stray.starts_with("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700"), "{stray}");
    assert_eq!(stray.lines().count(), 2);
    let output = run(server(&["--exit-on-probe"]), &[PROBE, PING]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert_eq!(stdout(&["--exit-on-probe"], &[PING]), format!("{PONG}\n"));
}

#[test]
fn it_dies_as_asked() {
    let output = run(server(&["--exit-at-start", "7"]), &[]);
    assert_eq!(output.status.code(), Some(7));
    let output = run(server(&["--die-mid-line-at", "\"p\""]), &[CALL, PING]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.ends_with(&PONG.as_bytes()[..PONG.len() / 2]));
    let output = run(server(&["--crash-after", "2"]), &[PING, PING, PING]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, format!("{PONG}\n{PONG}\n").as_bytes());
}

#[test]
fn it_stays_as_asked() {
    for (option, signal) in [("--ignore-term", 9), ("--ignore-eof", 15)] {
        let mut child = server(&[option]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{PING}").unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        drop(stdin);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        if option == "--ignore-term" {
            // Which signal ends it says nothing here: KILL may overtake TERM. That TERM is caught is visible.
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
            assert_ne!(u64::from_str_radix(caught, 16).unwrap() & (1 << 14), 0);
            child.kill().unwrap();
        }
        assert_eq!(child.wait().unwrap().signal(), Some(signal), "{option}");
    }
}

#[test]
fn it_waits_for_a_file() {
    let file = temp("start");
    let mut child = server(&["--start-when", file.to_str().unwrap()]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{PING}").unwrap();
    drop(stdin);
    fs::write(&file, "").unwrap();
    assert!(child.wait().unwrap().success());
    fs::remove_file(&file).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, format!("{PONG}\n"));
}

#[test]
fn it_leaves_a_grandchild_that_holds_its_output() {
    let file = temp("grandchild");
    let mut child = server(&["--linger-grandchild", file.to_str().unwrap()]).spawn().unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let pid: i32 = fs::read_to_string(&file).unwrap().parse().unwrap();
    fs::remove_file(&file).unwrap();
    let held = fs::read_link(format!("/proc/{pid}/fd/1")).unwrap();
    let stdout = child.stdout.take().unwrap();
    let ours = fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&stdout))).unwrap();
    assert_eq!(held, ours);
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[test]
fn it_tells_its_arguments_and_environment() {
    let file = temp("argv");
    let args = [
        "--argv-to",
        file.to_str().unwrap(),
        "--env",
        "LUMEN_A",
        "--env",
        "LUMEN_B",
        "--",
        "a b",
        "",
        "é$\"'",
    ];
    let mut command = server(&args);
    command.env("LUMEN_A", "").current_dir("/");
    assert!(run(command, &[]).status.success());
    let told: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(told, json!({"argv": args, "env": {"LUMEN_A": "", "LUMEN_B": null}, "cwd": "/"}));
}

#[test]
fn tee_copies_both_ways_and_passes_the_exit_on() {
    let (into, out) = (temp("in"), temp("out"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_child_tee"));
    command.arg("--in").arg(&into).arg("--out").arg(&out).args([
        "--",
        "sh",
        "-c",
        "tr a b; printf end; exit 5",
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let output = run(command, &["aaa"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(5), &b"bbb\nend"[..]));
    assert_eq!(fs::read(&into).unwrap(), b"aaa\n");
    assert_eq!(fs::read(&out).unwrap(), b"bbb\nend");
    fs::remove_file(&into).unwrap();
    fs::remove_file(&out).unwrap();
}
