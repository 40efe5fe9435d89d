//! `lumen connect unix:PATH` as the one line that never needs a restart: muxes that are started, shared, killed, replaced.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FlockOperation, Mode, flock, mkfifoat};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use serde_json::Value;

const LUMEN: &str = env!("CARGO_BIN_EXE_lumen");
const LIMIT: Duration = Duration::from_secs(30);

/// A server that answers a handshake and lists, and nothing else.
const SERVER: &str = r#"
echo "token ${TOKEN:-none}" >&2
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%,*}
    case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"t","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[]}' ;;
    *) continue ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done"#;

const INIT: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A socket of a test's own. Whoever serves it at the end is ended.
struct Place {
    folder: PathBuf,
    socket: PathBuf,
}

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lumen-cli-connect-{}-{nth}", std::process::id()));
        let socket = folder.join("s");
        Self { folder, socket }
    }

    fn target(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("s.log")).unwrap_or_default()
    }

    /// The process that serves it.
    fn server(&self) -> Option<Pid> {
        let stream = UnixStream::connect(&self.socket).ok()?;
        Some(socket_peercred(stream).unwrap().pid)
    }

    fn status(&self) -> Value {
        let output = Command::new(LUMEN).args(["status", "--json"]).arg(&self.socket).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Ends who serves it, and waits for that.
    fn kill(&self, signal: Signal) -> Option<Pid> {
        let pid = self.server()?;
        end(pid, signal);
        Some(pid)
    }

    /// Starts a mux in the ordinary way and waits until it serves.
    fn serve(&self) -> Child {
        let mut child = Command::new(LUMEN)
            .args(["mux", "--socket", self.socket.to_str().unwrap(), "--", "sh", "-c", SERVER])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready, serving") {
            assert!(stderr.read_line(&mut line).unwrap() > 0, "{line}");
        }
        child
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill(Signal::TERM);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn end(pid: Pid, signal: Signal) {
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let _ = kill_process(pid, signal);
    assert!(has_ended_by(&fd, LIMIT), "{pid:?} does not end");
}

fn has_ended_by(pidfd: &std::os::fd::OwnedFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).unwrap();
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&limit)).unwrap() > 0
}

/// `lumen connect`, and whoever started it.
struct Agent {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Agent {
    fn new(args: &[&str]) -> Self {
        let mut command = Command::new(LUMEN);
        command.arg("connect").args(args).env_remove("RUST_LOG").process_group(0);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, stdout: BufReader::new(stdout) }
    }

    fn start(place: &Place, options: &[&str]) -> Self {
        let target = place.target();
        Self::new(&[&[&*target, "--start"], options, &["--", "sh", "-c", SERVER]].concat())
    }

    fn greeted(mut self) -> Self {
        self.say(INIT);
        let answer = self.hear();
        assert!(answer["result"].is_object(), "{answer}");
        self.say(INITIALIZED);
        self
    }

    fn say(&mut self, text: &str) {
        self.stdin.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// Asks in vain, and ends for it; returns what people were told.
    fn loses_its_server(mut self) -> String {
        self.ask(1, "tools/list");
        assert_lost(&self.hear(), 1);
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    }

    fn ask(&mut self, id: u32, method: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#));
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let message = serde_json::from_str(&line);
        assert!(message.is_ok(), "{line:?}");
        message.unwrap()
    }

    fn leave(mut self) -> Output {
        drop(self.stdin);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        self.child.wait_with_output().unwrap()
    }
}

/// Asks until the mux has so many requests in flight.
fn wait_in_flight(place: &Place, count: u64) {
    while place.status()["inFlightCount"] != count {}
}

fn assert_lost(answer: &Value, id: u32) {
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&id.into(), &(-32011).into()), "{answer}");
}

#[test]
fn a_session_goes_on_at_a_mux_that_is_started_in_place_of_a_killed_one() {
    let place = Place::new();
    let mut agent = Agent::start(&place, &[]).greeted();
    let mut before = None;
    for round in 0..3 {
        agent.ask(10 + round, "tools/call");
        agent.ask(20 + round, "tools/call");
        wait_in_flight(&place, 2);
        let killed = place.kill(Signal::KILL);
        assert!(killed.is_some() && killed != before);
        before = killed;
        let answers = [agent.hear(), agent.hear()];
        assert_lost(&answers[0], 10 + round);
        assert_lost(&answers[1], 20 + round);
        agent.ask(30 + round, "tools/list");
        let answer = agent.hear();
        assert!(answer["id"] == 30 + round && answer["result"].is_object(), "{answer}");
    }
    assert_eq!(agent.leave().status.code(), Some(0));
}

#[test]
fn a_session_goes_on_at_a_mux_that_somebody_else_starts() {
    let place = Place::new();
    let mut first = place.serve();
    let mut agent = Agent::new(&[&place.target()]).greeted();
    agent.ask(1, "tools/call");
    wait_in_flight(&place, 1);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_lost(&agent.hear(), 1);
    agent.ask(2, "tools/list");
    let mut second = place.serve();
    let answer = agent.hear();
    assert!(answer["id"] == 2 && answer["result"].is_object(), "{answer}");
    assert_eq!(agent.leave().status.code(), Some(0));
    place.kill(Signal::TERM);
    second.wait().unwrap();
}

#[test]
fn without_reconnecting_the_session_ends_with_its_mux() {
    for limit in ["0", "1"] {
        let place = Place::new();
        let mut mux = place.serve();
        let agent = Agent::new(&["--reconnect", limit, &place.target()]).greeted();
        mux.kill().unwrap();
        mux.wait().unwrap();
        let told = agent.loses_its_server();
        assert!(told.contains("was closed"), "{told}");
        assert_eq!(told.contains("could not be made again"), limit == "1", "{told}");
    }
}

#[test]
fn whoever_comes_to_the_socket_and_says_nothing_is_no_server() {
    let place = Place::new();
    let mut mux = place.serve();
    let agent = Agent::new(&["--reconnect", "1", &place.target()]).greeted();
    // It is there when the mux is not any more.
    let mute = place.folder.join("mute");
    let _listener = UnixListener::bind(&mute).unwrap();
    std::fs::rename(mute, &place.socket).unwrap();
    mux.kill().unwrap();
    mux.wait().unwrap();
    let told = agent.loses_its_server();
    assert!(told.contains("nobody answers now"), "{told}");
}

#[test]
fn twenty_at_once_share_one() {
    let place = Place::new();
    let mut agents: Vec<Agent> = (0..20).map(|_| Agent::start(&place, &[])).collect();
    for agent in &mut agents {
        agent.say(INIT);
    }
    for agent in &mut agents {
        let answer = agent.hear();
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(place.status()["clients"], 21);
    let log = place.log();
    assert_eq!(log.matches("ready, serving").count(), 1, "{log}");
    assert!(!log.contains("served by another"), "{log}");
    // All lose it at once, and again have one.
    place.kill(Signal::KILL);
    for agent in &mut agents {
        agent.ask(1, "tools/list");
    }
    for agent in &mut agents {
        let answer = agent.hear();
        assert!(answer["id"] == 1, "{answer}");
    }
    while place.status()["clients"] != 21 {}
    assert_eq!(place.log().matches("ready, serving").count(), 2);
    for agent in agents {
        assert_eq!(agent.leave().status.code(), Some(0));
    }
    let mut left: Vec<_> =
        std::fs::read_dir(&place.folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["s", "s.lock", "s.log"]);
}

#[test]
fn a_command_that_cannot_be_started_is_told_with_the_log() {
    let place = Place::new();
    let mut agent = Agent::new(&[&place.target(), "--start", "--", "/nonexistent/server"]);
    agent.say(INIT);
    let answer = agent.hear();
    let told = answer["error"]["message"].as_str().unwrap();
    let said =
        format!("the mux that was started for {} has ended; its log is {0}.log", place.socket.display());
    assert!(answer["id"] == 0 && told.ends_with(&said), "{answer}");
    let output = agent.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let told = String::from_utf8(output.stderr).unwrap();
    let (_, quoted) = told.split_once("s.log\n  | ").unwrap();
    let (time, said) = quoted.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && said.starts_with("lumen: cannot start the server"), "{told}");
    assert!(told.contains("/nonexistent/server") && told.contains("not found"), "{told}");
    assert!(!place.socket.exists());
}

#[test]
fn one_that_cannot_be_started_again_ends_the_session() {
    let place = Place::new();
    std::fs::create_dir(&place.folder).unwrap();
    let program = place.folder.join("server");
    std::fs::write(&program, format!("#!/bin/sh\n{SERVER}")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agent = Agent::new(&[&place.target(), "--start", "--", program.to_str().unwrap()]);
    let mut agent = agent.greeted();
    std::fs::remove_file(&program).unwrap();
    place.kill(Signal::KILL);
    agent.ask(1, "tools/list");
    let answer = agent.hear();
    assert_lost(&answer, 1);
    assert!(answer["error"]["message"].as_str().unwrap().contains("its log is "), "{answer}");
    let output = agent.child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("could not be made again: the mux that was started"), "{told}");
}

#[test]
fn a_socket_that_is_served_is_only_connected_to() {
    let place = Place::new();
    let mut mux = place.serve();
    let given = [&place.target(), "--start", "--", "/nonexistent/server", "--flag"];
    let told = String::from_utf8(Agent::new(&given).greeted().leave().stderr).unwrap();
    assert!(told.contains("served by a mux of another command, which is used: sh -c"), "{told}");
    assert!(told.contains("is not started: /nonexistent/server --flag"), "{told}");
    let output = Agent::start(&place, &[]).greeted().leave();
    assert_eq!((output.status.code(), &*String::from_utf8(output.stderr).unwrap()), (Some(0), ""));
    assert!(!place.folder.join("s.log").exists());
    place.kill(Signal::TERM);
    mux.wait().unwrap();
}

/// Nobody may read it, and a mux that waits for that serves nobody.
#[test]
fn a_pipe_is_no_log() {
    let place = Place::new();
    std::fs::create_dir(&place.folder).unwrap();
    let pipe = place.folder.join("pipe");
    mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
    let log = format!("--log={}", pipe.display());
    let socket = format!("--socket={}", place.socket.display());
    for words in [
        &["connect", &place.target(), "--start", &log, "--", "true"][..],
        &["mux", &socket, &log, "--", "true"],
    ] {
        let output = Command::new(LUMEN).args(words).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{words:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("pipe: a log is a regular file"), "{told}");
    }
}

/// The session that a process belongs to; 0 if that was begun outside this PID namespace, as in a container.
fn session(pid: Pid) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    after_name.split_ascii_whitespace().nth(3).unwrap().parse().unwrap()
}

#[test]
fn it_outlives_whoever_started_it_until_it_is_idle() {
    let place = Place::new();
    let options = ["--idle-exit", "1", "--env", "TOKEN=hunter2"];
    let mut agent = Agent::start(&place, &options).greeted();
    let mux = place.server().unwrap();
    assert_ne!(session(mux), session(rustix::process::getpid()), "the terminal's end is not its own");
    kill_process_group(Pid::from_child(&agent.child), Signal::KILL).unwrap();
    agent.child.wait().unwrap();
    let fd = pidfd_open(mux, PidfdFlags::empty()).unwrap();
    let another = Agent::start(&place, &options).greeted();
    assert_eq!(place.server(), Some(mux));
    let command = std::fs::read(format!("/proc/{}/cmdline", mux.as_raw_nonzero())).unwrap();
    assert!(!command.windows(7).any(|part| part == b"hunter2"), "every user can read that");
    assert!(place.log().contains("token hunter2"), "{}", place.log());
    let mode = std::fs::metadata(place.folder.join("s.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(place.status()["log"], place.folder.join("s.log").to_str().unwrap());
    assert_eq!(another.leave().status.code(), Some(0));
    assert!(has_ended_by(&fd, LIMIT));
    assert!(!place.socket.exists());
}

#[test]
fn what_goes_together_and_what_does_not() {
    for args in [
        &["--start", "--", "x"][..],
        &["unix:s", "--start"],
        &["tcp:localhost:1", "--start", "--", "x"],
        &["unix:s", "--", "x"],
        &["unix:s", "--idle-exit", "5"],
        &["unix:s", "--log", "l"],
        &["--reconnect", "5", "--", "x"],
    ] {
        let output = Command::new(LUMEN).arg("connect").args(args).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

/// Whoever asks need not see what is said to people.
#[test]
fn where_there_is_no_server_the_client_is_told_what_to_try() {
    for (args, where_to, to_try) in [
        (&["unix:/nonexistent/s"][..], "/nonexistent/s", "--start -- COMMAND"),
        (&["tcp:127.0.0.1:1"], "127.0.0.1:1", "does anything serve"),
        (&["--", "/nonexistent/server", "secret"], "/nonexistent/server", "on this PATH?"),
    ] {
        let mut agent = Agent::new(args);
        agent.say(INIT);
        let answer = agent.hear();
        let told = answer["error"]["message"].as_str().unwrap();
        assert!(told.contains(where_to) && told.contains(to_try) && !told.contains("secret"), "{told}");
        let output = agent.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(where_to), "{said}");
    }
}

/// Somebody owns the path and does not serve it: that is waited for, but not against whoever wants this process to end.
#[test]
fn told_to_end_it_waits_for_no_mux() {
    let place = Place::new();
    std::fs::create_dir(&place.folder).unwrap();
    let lock = std::fs::File::create(place.folder.join("s.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let mut agent = Agent::start(&place, &[]);
    let turn = place.folder.join("s.start");
    while !turn.exists() {}
    kill_process(Pid::from_child(&agent.child), Signal::TERM).unwrap();
    assert_eq!(agent.child.wait().unwrap().code(), Some(0));
    assert!(!turn.exists() && place.server().is_none());
}

#[test]
fn each_may_have_a_server_of_its_own() {
    let place = Place::new();
    let agents: Vec<_> = (0..3).map(|_| Agent::start(&place, &["--child-per-session"]).greeted()).collect();
    assert_eq!(place.log().matches("token none").count(), 3);
    assert_eq!(place.status()["private"], true);
    for agent in agents {
        assert_eq!(agent.leave().status.code(), Some(0));
    }
}

/// What the folder of a socket is made of, if it is missing.
#[test]
fn the_folder_is_made_and_private() {
    let place = Place::new();
    let agent = Agent::start(&place, &[]).greeted();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place.folder), mode(&place.socket)), (0o700, 0o600));
    assert_eq!(agent.leave().status.code(), Some(0));
}
