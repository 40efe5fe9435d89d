//! `lumen mux` and `lumen status` from the outside: who is served, what is said, how it ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const LUMEN: &str = env!("CARGO_BIN_EXE_lumen");

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A mux that serves the demo's server.
struct Mux {
    child: Child,
    stderr: BufReader<ChildStderr>,
    socket: PathBuf,
}

/// What a mux can run on here.
fn runtimes() -> Vec<&'static str> {
    let mut runtimes = vec!["tokio", "std"];
    match lumen_uring::is_available() {
        Ok(()) => runtimes.push("uring"),
        #[expect(clippy::explicit_write, reason = "`eprintln` would be caught with the output of the test")]
        Err(error) => writeln!(std::io::stderr(), "skipped on io_uring: {error}").unwrap(),
    }
    runtimes
}

impl Mux {
    fn start(options: &[&str]) -> Self {
        let socket = scratch().join("lumen.sock");
        Self::start_at(&socket, options)
    }

    fn start_at(socket: &Path, options: &[&str]) -> Self {
        let mut child = Command::new(LUMEN)
            .args(["mux", "--socket", socket.to_str().unwrap()])
            .args(options)
            .args(["--", LUMEN, "demo-server"])
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, socket: socket.to_owned() }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    fn ready(mut self) -> Self {
        let line = self.line();
        assert!(line.starts_with("lumen: ready, serving "), "{line:?}");
        self
    }

    fn client(&self) -> BufReader<UnixStream> {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        BufReader::new(stream)
    }

    fn end(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(!self.socket.exists());
        let mut stdout = String::new();
        std::io::Read::read_to_string(&mut self.child.stdout.take().unwrap(), &mut stdout).unwrap();
        assert_eq!(stdout, "");
        std::fs::remove_dir_all(self.socket.parent().unwrap()).unwrap();
    }
}

impl Drop for Mux {
    /// Whatever failed, it stays behind no test.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("lumen-cli-mux-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(name)
}

fn ask(client: &mut BufReader<UnixStream>, request: &str) -> Value {
    client.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn status(socket: &Path, options: &[&str]) -> std::process::Output {
    Command::new(LUMEN).arg("status").args(options).arg(socket).output().unwrap()
}

#[test]
fn clients_are_served_on_each_runtime_until_it_is_told_to_end() {
    for runtime in runtimes() {
        let signal = if runtime == "tokio" { Signal::TERM } else { Signal::INT };
        let mux = Mux::start(&["--runtime", runtime]).ready();
        let mut clients = [mux.client(), mux.client()];
        for client in &mut clients {
            let answer = ask(
                client,
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
            );
            assert_eq!((&answer["id"], answer["result"].is_object()), (&1.into(), true), "{answer}");
            let answer = ask(client, r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#);
            assert_eq!((&answer["id"], answer["result"]["tools"].is_array()), (&"x".into(), true));
        }
        let output = status(&mux.socket, &["--json"]);
        assert_eq!(output.status.code(), Some(0));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&told["clients"], &told["servers"][0]["state"]), (&3.into(), &"running".into()));
        let output = status(&mux.socket, &[]);
        assert!(
            String::from_utf8(output.stdout)
                .unwrap()
                .contains("; 3 clients with this one, 0 requests in flight")
        );
        mux.end(signal);
    }
}

#[test]
fn an_agent_on_stdio_reaches_it_by_connect() {
    let mux = Mux::start(&[]).ready();
    let target = format!("unix:{}", mux.socket.display());
    let mut agents: Vec<Child> = (0..2)
        .map(|_| {
            Command::new(LUMEN)
                .args(["connect", &target])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for agent in &mut agents {
        let mut stdin = agent.stdin.take().unwrap();
        stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n").unwrap();
        drop(stdin);
    }
    for agent in agents {
        let output = agent.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let answers = String::from_utf8(output.stdout).unwrap();
        let ids: Vec<Value> = answers
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|answer| {
                assert!(answer["result"].is_object(), "{answer}");
                answer["id"].clone()
            })
            .collect();
        assert_eq!(ids, [1, 2]);
    }
    mux.end(Signal::TERM);
    let output = Command::new(LUMEN).args(["connect", &target]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_socket_has_one_owner() {
    let mux = Mux::start(&[]).ready();
    let mut second = Mux::start_at(&mux.socket, &[]);
    let line = second.line();
    assert!(line.contains("is served by another process"), "{line:?}");
    assert_eq!(second.child.wait().unwrap().code(), Some(3));
    assert!(status(&mux.socket, &[]).status.success());
    mux.end(Signal::TERM);
}

#[test]
fn a_server_that_is_not_there_is_told_at_once() {
    for runtime in runtimes() {
        let socket = scratch().join("s");
        let output = Command::new(LUMEN)
            .args(["mux", "--runtime", runtime, "--socket", socket.to_str().unwrap()])
            .args(["--", "/nonexistent/server"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("/nonexistent/server") && told.contains("not found"), "{told}");
        assert!(!socket.exists());
        std::fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    }
}

#[test]
fn of_a_server_for_each_client_that_is_not_there_the_client_is_told() {
    let socket = scratch().join("s");
    let mut child = Command::new(LUMEN)
        .args(["mux", "--child-per-session", "--socket", socket.to_str().unwrap()])
        .args(["--", "/nonexistent/program"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mux = Mux { child, stderr, socket }.ready();
    for _ in 0..2 {
        let answer = ask(&mut mux.client(), INITIALIZE);
        assert_eq!(answer["error"]["data"]["reason"], "not_started", "{answer}");
    }
    mux.end(Signal::TERM);
}

#[test]
fn what_a_server_says_last_is_kept_and_passed_on() {
    for runtime in runtimes() {
        let socket = scratch().join("s");
        let mut child = Command::new(LUMEN)
            .args(["mux", "--runtime", runtime, "--socket", socket.to_str().unwrap()])
            .args(["--", "sh", "-c", "echo no token >&2; exec cat"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = [String::new(), String::new()];
        for line in &mut said {
            stderr.read_line(line).unwrap();
        }
        said.sort();
        assert!(said[0].starts_with("lumen: ready") && said[1] == "no token\n", "{said:?}");
        let told = String::from_utf8(status(&socket, &[]).stdout).unwrap();
        assert!(told.contains("\n  | no token\n"), "{told}");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        std::fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    }
}

/// A socket can be mounted into a container. Its processes have no id here, or as here the other way round.
#[test]
fn clients_of_another_pid_namespace_are_served() {
    // Without these the mux would be alone in making them, which not every user may.
    let unshare = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let is_able = Command::new("unshare").args(unshare).arg("true").output();
    if !is_able.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user cannot make a PID namespace with `unshare`");
        return;
    }
    for runtime in runtimes() {
        let socket = scratch().join("s");
        let mut child = Command::new("unshare")
            .args(unshare)
            .args([LUMEN, "mux", "--runtime", runtime, "--socket", socket.to_str().unwrap()])
            .args(["--", LUMEN, "demo-server"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mux = Mux { child, stderr, socket }.ready();
        assert_eq!(ask(&mut mux.client(), INITIALIZE)["id"], 1);
        std::fs::remove_dir_all(mux.socket.parent().unwrap()).unwrap();
    }
}

/// Asks in JSON until it is as it should be.
fn status_until(socket: &Path, is_meant: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let output = status(socket, &["--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        if is_meant(&told) {
            return told;
        }
        assert!(Instant::now() < deadline, "{told}");
    }
}

#[test]
fn each_client_can_have_a_server_to_itself_that_goes_with_it() {
    for runtime in runtimes() {
        let mux = Mux::start(&["--child-per-session", "--runtime", runtime]).ready();
        let told = status_until(&mux.socket, |_| true);
        assert_eq!((&told["private"], &told["servers"]), (&true.into(), &Value::Array(Vec::new())));
        let mut clients = [mux.client(), mux.client()];
        for client in &mut clients {
            let answer = ask(client, INITIALIZE);
            assert!(answer["result"].is_object(), "{answer}");
        }
        let told = status_until(&mux.socket, |_| true);
        let pids: Vec<u64> = told["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|server| {
                assert!(server["client"].is_string(), "{server}");
                assert_eq!(server["traffic"]["out"]["messages"], 1, "{server}");
                server["pid"].as_u64().unwrap()
            })
            .collect();
        assert_eq!(pids.len(), 2);
        let [one, mut other] = clients;
        drop(one);
        let told = status_until(&mux.socket, |told| told["servers"].as_array().unwrap().len() == 1);
        assert_eq!(told["servers"][0]["pid"], pids[1]);
        assert!(!Path::new(&format!("/proc/{}", pids[0])).exists());
        let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", mux.child.id())).unwrap().count();
        let before = descriptors();
        for _ in 0..20 {
            let mut client = mux.client();
            assert!(ask(&mut client, INITIALIZE)["result"].is_object());
            drop(client);
            status_until(&mux.socket, |told| told["servers"].as_array().unwrap().len() == 1);
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        // The last one's own connection is closed a moment later.
        while descriptors() > before {
            assert!(Instant::now() < deadline, "{} descriptors, {before} before", descriptors());
        }
        assert!(ask(&mut other, r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)["result"].is_object());
        mux.end(Signal::TERM);
    }
}

#[test]
fn a_full_one_still_says_how_it_does_and_where_its_log_is() {
    let directory = scratch();
    std::fs::create_dir_all(&directory).unwrap();
    let log = directory.join("log");
    let mux = Mux::start_at(
        &directory.join("lumen.sock"),
        &["--max-clients", "1", "--lazy", "--log", log.to_str().unwrap()],
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(&log).is_ok_and(|log| log.contains("ready, serving")) {
        assert!(Instant::now() < deadline, "it never serves");
    }
    let mut client = mux.client();
    assert!(ask(&mut client, INITIALIZE)["result"].is_object());
    let told = status_until(&mux.socket, |_| true);
    assert_eq!((&told["clients"], &told["log"]), (&2.into(), &log.to_str().unwrap().into()));
    let text = String::from_utf8(status(&mux.socket, &[]).stdout).unwrap();
    assert!(text.contains("\ntraffic: clients 3 messages, "), "{text}");
    let said = std::fs::read_to_string(&log).unwrap();
    for line in said.lines() {
        let (time, _) = line.split_once(' ').unwrap();
        assert!(time.len() == 27 && time.starts_with("20") && time.ends_with('Z'), "{said}");
    }
    let refused = ask(&mut mux.client(), INITIALIZE);
    assert_eq!(refused["error"]["data"]["reason"], "full", "{refused}");
    mux.end(Signal::TERM);
}

#[test]
fn told_to_end_it_says_what_it_waits_for_and_told_again_it_does_not() {
    for runtime in runtimes() {
        let socket = scratch().join("s");
        let mut child = Command::new(LUMEN)
            .args(["mux", "--runtime", runtime, "--socket", socket.to_str().unwrap()])
            .args(["--", "sh", "-c", "read line; echo asked >&2; exec sleep 600"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(stderr.next().unwrap().starts_with("lumen: ready"));
        let mut client = UnixStream::connect(&socket).unwrap();
        client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n").unwrap();
        assert_eq!(stderr.next().unwrap(), "asked");
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM).unwrap();
        let said = stderr.next().unwrap();
        assert!(said.contains("waiting for 1 requests in flight, 5 s at most"), "{said}");
        kill_process(pid, Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).unwrap();
        assert!(answer.contains("\"id\":1,\"error\""), "{answer}");
        std::fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    }
}

#[test]
fn nobody_to_ask_is_told_as_well() {
    let output = status(Path::new("/nonexistent/socket"), &[]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("does `lumen mux` serve it?"));
}
