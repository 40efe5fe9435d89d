//! Servers that a probe hurts, behind `lumen connect`: each ends in a working session with the client's first request
//! intact, and the next start of one that had to be started again does not probe, which what the server received shows.

#[path = "../cases/support.rs"]
#[expect(dead_code, unused_imports, unused_macros, reason = "some of it is for other suites")]
mod support;

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use lumen_proto::jsonrpc::Message;
use lumen_proto::negotiate::hello::OPENING_PROBE;
use lumen_proto::negotiate::offer;
use lumen_tests::procs::{Mark, lumen, read_until, sibling};
use rustix::process::{Pid, Signal, kill_process};
use support::{Finished, INITIALIZE, INITIALIZED, LIMIT, Session, child_server, parsed, ping, pong, temp};

/// A server, and what it received so far, start by start.
struct Rig {
    /// Options of `connect`.
    options: Vec<String>,
    server: Vec<String>,
    record: PathBuf,
    cache: PathBuf,
}

impl Rig {
    fn new(options: &[&str], server: &[&str]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Self { options: owned(options), server: owned(server), record: temp("record"), cache: temp("cache") }
    }

    fn start(&self, more: &[&str]) -> Session {
        let mut command = std::process::Command::new(lumen());
        command.arg("connect").args(more).args(&self.options).arg("--");
        command.args(child_server(&["--record", self.record.to_str().unwrap()])).args(&self.server);
        command.env("XDG_CACHE_HOME", &self.cache);
        Session::start(command)
    }

    /// Has a session, and asserts that it is what the client would have had without us.
    #[track_caller]
    fn session(&self, more: &[&str]) -> Finished {
        let mut session = self.start(more);
        session.send(&[INITIALIZE]);
        let answer = session.json();
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&0.into(), &"2025-06-18".into()));
        session.send(&[INITIALIZED.to_owned(), ping(1)]);
        assert_eq!(session.line(), pong(1));
        session.close_input();
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
        finished
    }

    /// Takes what was received since the last time: the lines of each start.
    fn received(&self) -> Vec<Vec<Vec<u8>>> {
        let bytes = fs::read(&self.record).unwrap();
        fs::remove_file(&self.record).unwrap();
        let mut starts: Vec<Vec<Vec<u8>>> = Vec::new();
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            match (line, starts.last_mut()) {
                (b"start\n", _) => starts.push(Vec::new()),
                (line, Some(start)) => start.push(line.to_vec()),
                _ => panic!("a line before the first start"),
            }
        }
        starts
    }

    fn verdicts(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.cache.join("lumen/no-probe"));
        folder.map(|folder| folder.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
    }

    /// Asserts that a start has all of the session, after a probe or without one.
    #[track_caller]
    fn assert_start(&self, lines: &[Vec<u8>], is_probed: bool, is_offered: bool) {
        let mut lines = lines.iter();
        if is_probed {
            assert_eq!(lines.next().map(Vec::as_slice), Some(OPENING_PROBE));
        }
        assert_intact(lines.next().expect("initialize"), is_offered);
        let rest: Vec<_> = lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        assert_eq!(rest, [format!("{INITIALIZED}\n"), format!("{}\n", ping(1))]);
    }

    /// Asserts two sessions: one in which it was started again, and one that does not probe.
    #[track_caller]
    fn assert_learns(&self, received_before: usize) {
        let finished = self.session(&[]);
        assert!(finished.stderr.contains("starting it again"), "{}", finished.stderr);
        let starts = self.received();
        let [first, second] = starts.as_slice() else { panic!("{} starts", starts.len()) };
        assert_eq!(first.first().map_or(b"".as_slice(), |line| line), OPENING_PROBE);
        assert_eq!(first.len(), received_before);
        self.assert_start(second, false, true);
        let [verdict] = self.verdicts().try_into().expect("one verdict");
        let text = fs::read_to_string(verdict).unwrap();
        assert!(text.contains("after the probe") && text.contains("child_server"), "{text}");

        let finished = self.session(&[]);
        assert!(finished.stderr.is_empty(), "{}", finished.stderr);
        let starts = self.received();
        assert_eq!(starts.len(), 1);
        self.assert_start(&starts[0], false, true);
    }
}

/// Asserts that this is the client's first request and nothing else than our offer was added to it.
#[track_caller]
fn assert_intact(line: &[u8], is_offered: bool) {
    let line = line.strip_suffix(b"\n").unwrap();
    let message = Message::copy_from(line).unwrap();
    let taken = offer::take(&message);
    assert_eq!(taken.is_some(), is_offered, "{}", String::from_utf8_lossy(line));
    let message = taken.map_or(message, |(message, _)| message);
    assert_eq!(String::from_utf8_lossy(message.bytes()), INITIALIZE);
}

#[test]
fn one_that_exits_is_started_again_and_not_probed_the_next_time() {
    let rig = Rig::new(&["--probe-timeout", "30000"], &["--exit-on-probe"]);
    rig.assert_learns(1);

    // Whoever wants it probed gets it probed.
    rig.session(&["--negotiate", "probe"]);
    let starts = rig.received();
    assert_eq!((starts.len(), starts[0].as_slice()), (2, &[OPENING_PROBE.to_vec()][..]));
    rig.assert_start(&starts[1], false, false);
    // And whoever removes the file.
    fs::remove_file(&rig.verdicts()[0]).unwrap();
    rig.session(&[]);
    assert_eq!(rig.received()[0], [OPENING_PROBE]);
}

#[test]
fn one_that_goes_deaf_is_started_again_and_not_probed_the_next_time() {
    let rig = Rig::new(&["--probe-timeout", "100", "--probed-timeout", "500"], &["--deaf-on-probe"]);
    rig.assert_learns(2);
}

#[test]
fn one_that_starts_late_is_waited_for_and_probed_again() {
    let slow = ["--start-after", "800"];
    for more in [&[][..], &["--stray-on-probe"]] {
        let rig = Rig::new(&["--probe-timeout", "100"], &[&slow, more].concat());
        for _ in 0..2 {
            rig.session(&[]);
            let starts = rig.received();
            assert_eq!(starts.len(), 1);
            rig.assert_start(&starts[0], true, true);
        }
        assert!(rig.verdicts().is_empty());
    }
}

#[test]
fn one_that_starts_too_late_is_started_again_and_not_probed_the_next_time() {
    let rig = Rig::new(&["--probe-timeout", "100", "--probed-timeout", "200"], &["--start-after", "1500"]);
    let finished = rig.session(&[]);
    assert!(finished.stderr.contains("starting it again"), "{}", finished.stderr);
    // Nothing was read by the first start, or all of it at its end: only how it went on counts.
    rig.assert_start(rig.received().last().unwrap(), false, true);
    rig.session(&[]);
    let starts = rig.received();
    assert_eq!(starts.len(), 1);
    rig.assert_start(&starts[0], false, true);
}

/// A server that speaks LUMEN reads the stale probe when it is up, and answers it: too late to be of use, and no harm.
#[test]
fn a_stale_answer_is_dropped_and_the_offer_upgrades() {
    let (into, out) = (temp("in"), temp("out"));
    let script = format!("sleep 0.8; exec {}", sibling("child_peer").display());
    let mut command = std::process::Command::new(lumen());
    command.args(["-v", "connect", "--probe-timeout", "100", "--"]).arg(sibling("child_tee"));
    command.arg("--in").arg(&into).arg("--out").arg(&out);
    command.args(["--", "sh", "-c", &script]).env("XDG_CACHE_HOME", temp("cache"));
    let mut session = Session::start(command);
    session.send(&[INITIALIZE]);
    assert_eq!(session.json()["id"], 0);
    session.send(&[ping(1)]);
    assert_eq!(session.json()["id"], 1);
    session.send(&[ping(2)]);
    assert_eq!(session.json()["id"], 2);
    session.close_input();
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
    assert!(finished.stderr.contains("no answer to the probe"), "{}", finished.stderr);
    assert!(finished.stderr.contains("LUMEN frames from now on"), "{}", finished.stderr);
    let sent = fs::read(into).unwrap();
    assert!(sent.starts_with(OPENING_PROBE));
    let first = sent[OPENING_PROBE.len()..].split_inclusive(|&byte| byte == b'\n').next().unwrap();
    assert_intact(first, true);
    // The first thing that it said was the stale answer: a frame of type 10.
    assert_eq!(fs::read(out).unwrap()[1], 0x10);
}

#[test]
fn one_that_floods_its_log_at_a_probe_works() {
    let rig = Rig::new(&["--probe-timeout", "100"], &["--flood-on-probe", "1048576"]);
    let finished = rig.session(&[]);
    assert!(finished.stderr.bytes().filter(|&byte| byte == b'e').count() > 1_000_000);
    let starts = rig.received();
    assert_eq!(starts.len(), 1);
    rig.assert_start(&starts[0], true, true);
}

/// A server that a probe leaves cold is probed every time; one that never says anything is not blamed on the probe.
#[test]
fn one_that_stays_silent_is_told_from_one_that_minds() {
    let rig = Rig::new(&["--probe-timeout", "100"], &[]);
    rig.session(&[]);
    rig.assert_start(&rig.received()[0], true, true);

    let options = ["--probe-timeout", "100", "--probed-timeout", "200", "--start-timeout", "1"];
    let silent = Rig::new(&options, &["--silent"]);
    let broken = Rig::new(&options, &["--exit-at-start", "1"]);
    for (rig, code) in [(silent, 4), (broken, 1)] {
        for _ in 0..2 {
            let mut session = rig.start(&[]);
            session.send(&[INITIALIZE]);
            let answer = session.json();
            assert!(answer["id"] == 0 && answer["error"].is_object(), "{answer}");
            session.close_input();
            assert_eq!(session.finish().code, Some(code));
            assert_eq!(rig.received().len(), 2);
            assert!(rig.verdicts().is_empty());
        }
    }
}

#[test]
fn without_a_place_to_keep_it_everything_works_but_learning() {
    let mut rig = Rig::new(&["--probe-timeout", "30000"], &["--exit-on-probe"]);
    rig.cache = Path::new("/proc/no/such/cache").to_owned();
    for _ in 0..2 {
        let finished = rig.session(&[]);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        assert_eq!(rig.received().len(), 2);
    }
    let finished = rig.session(&["-vv"]);
    assert_eq!(finished.stderr.matches("the next start will not know").count(), 1, "{}", finished.stderr);
}

/// A shared server is remembered as well, whatever the mux runs on, and by the same file.
#[test]
fn a_shared_server_is_not_probed_again_either() {
    for runtime in ["std", "tokio"] {
        let rig = Rig::new(&[], &["--exit-on-probe"]);
        for is_known in [false, true] {
            let mark = Mark::new();
            let socket = temp("socket");
            let mut command = std::process::Command::new(lumen());
            command
                .args(["mux", "--negotiate", "auto", "--runtime", runtime, "--socket"])
                .arg(&socket)
                .arg("--");
            command.args(child_server(&["--record", rig.record.to_str().unwrap()])).args(&rig.server);
            mark.put_on(command.env("XDG_CACHE_HOME", &rig.cache).stderr(Stdio::piped()));
            let mut mux = command.spawn().unwrap();
            let mut stderr = mux.stderr.take().unwrap();
            let is_ready = |said: &[u8]| said.windows(14).any(|window| window == b"ready, serving");
            assert!(read_until(&mut stderr, LIMIT, is_ready).1);
            let mut client = UnixStream::connect(&socket).unwrap();
            client.write_all(format!("{INITIALIZE}\n").as_bytes()).unwrap();
            let (answer, is_whole) = read_until(&mut client, LIMIT, |bytes| bytes.ends_with(b"\n"));
            assert!(is_whole);
            assert_eq!(parsed(&answer)["result"]["protocolVersion"], "2025-06-18");
            drop(client);
            kill_process(Pid::from_child(&mux), Signal::TERM).unwrap();
            assert_eq!(mux.wait().unwrap().code(), Some(0), "{runtime}");
            assert_eq!(mark.wait_gone(LIMIT), [0; 0]);
            let starts = rig.received();
            assert_eq!(starts.len(), if is_known { 1 } else { 2 }, "{runtime}");
            assert_eq!(starts[0][0] == OPENING_PROBE, !is_known, "{runtime}");
            assert_eq!(rig.verdicts().len(), 1);
        }
    }
}
