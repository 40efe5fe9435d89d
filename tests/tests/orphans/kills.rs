//! The commands that start servers are killed, as are the guards of those.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lumen_tests::procs::{Mark, children, lumen, sibling, wait_exit};
use rustix::process::{Pid, Signal, kill_process};

/// How long anything may take on a busy machine. What a guard allows itself is far less, and stated there.
const LIMIT: Duration = Duration::from_secs(60);

/// A shell that waits for a server in the background. It gives it its own input, which it would not without being told.
const WAITING: &str = "exec 3<&0; \"$@\" <&3 & wait";

/// Starts a process that has left the group and the session, and is nobody's child any more; then becomes the server.
const DAEMON: &str = "setsid sh -c 'sleep 1000 &' </dev/null >/dev/null; exec \"$@\"";

/// The same with one that is still a child, and ignores being told to end.
const SESSION: &str = "trap '' TERM; setsid sleep 1000 </dev/null >/dev/null & exec \"$@\"";

#[derive(Clone, Copy, Debug)]
enum Way {
    Connect,
    Wrap,
    Both,
    Mux,
}

const WAYS: [Way; 4] = [Way::Connect, Way::Wrap, Way::Both, Way::Mux];

struct Session {
    lumen: Child,
    mark: Mark,
    folder: PathBuf,
    to: Box<dyn Write>,
    from: BufReader<Box<dyn Read>>,
}

impl Session {
    /// Starts a server below a shell below `lumen`, and hears it once.
    fn start(way: Way, script: &str, options: &[&str]) -> Self {
        let folder = folder();
        let socket = folder.join("s");
        let mut command = Command::new(lumen());
        match way {
            Way::Connect => command.args(["connect", "--negotiate", "off", "--"]),
            Way::Wrap => command.args(["wrap", "--"]),
            Way::Both => {
                command.args(["connect", "--probe-timeout", "30000", "--"]).arg(lumen()).args(["wrap", "--"])
            }
            Way::Mux => command.args(["mux", "--socket"]).arg(&socket).arg("--"),
        };
        command.args(["sh", "-c", script]).arg("sh").arg(sibling("child_server")).args(options);
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
        let mark = Mark::new();
        mark.put_on(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut lumen = command.spawn().unwrap();
        let (to, from): (Box<dyn Write>, Box<dyn Read>) = if matches!(way, Way::Mux) {
            let mut line = String::new();
            BufReader::new(lumen.stderr.take().unwrap()).read_line(&mut line).unwrap();
            assert!(line.contains("ready"), "{line}");
            let stream = UnixStream::connect(&socket).unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            (Box::new(stream.try_clone().unwrap()), Box::new(stream))
        } else {
            (Box::new(lumen.stdin.take().unwrap()), Box::new(lumen.stdout.take().unwrap()))
        };
        let mut session = Self { lumen, mark, folder, to, from: BufReader::new(from) };
        session.say(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        );
        assert!(session.hear().contains("\"result\""));
        session
    }

    fn say(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    /// The next line; empty at the end.
    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line
    }

    /// The only child of a process that is a guard or has one.
    fn only_child(&self, pid: u32) -> u32 {
        let found = children(pid);
        assert_eq!(found.len(), 1, "children of {pid}: {found:?}");
        found[0].0
    }

    fn is_gone(&self) {
        let left = self.mark.wait_gone(LIMIT);
        assert!(left.is_empty(), "still there: {left:?}");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // After a failed assertion.
        self.mark.processes().into_iter().for_each(kill);
        let _ = self.lumen.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
    let _ = kill_process(pid, Signal::KILL);
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("lumen-orphans-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir(&folder).unwrap();
    folder
}

fn each_tree(way: Way, check: impl Fn(Session)) {
    for script in [WAITING, DAEMON, SESSION] {
        // Polite servers, and servers that see neither the end of their input nor SIGTERM.
        for options in [&[][..], &["--ignore-term"]] {
            check(Session::start(way, script, options));
        }
    }
}

#[test]
fn lumen_is_killed() {
    for way in WAYS {
        each_tree(way, |mut session| {
            assert!(session.mark.processes().len() >= 3, "it does not see the tree");
            session.lumen.kill().unwrap();
            session.is_gone();
        });
    }
}

/// The inner one has a guard of its own, which ends; the outer one sees a server that has ended.
#[test]
fn the_inner_lumen_is_killed() {
    each_tree(Way::Both, |mut session| {
        let wrap = session.only_child(session.only_child(session.lumen.id()));
        kill(wrap);
        assert_eq!(session.hear(), "");
        assert_eq!(session.lumen.wait().unwrap().code(), Some(1));
        session.is_gone();
    });
}

/// Then it is as without a guard: the group is ended, and what is owed is answered.
#[test]
fn a_guard_is_killed() {
    for way in [Way::Connect, Way::Wrap, Way::Both] {
        let mut session = Session::start(way, WAITING, &["--ignore-term", "--unanswered", "resources/list"]);
        session.say(r#"{"jsonrpc":"2.0","id":7,"method":"resources/list"}"#);
        kill(session.only_child(session.lumen.id()));
        let answer = session.hear();
        assert!(answer.contains("\"id\":7") && answer.contains("\"error\""), "{answer}");
        assert_eq!(session.lumen.wait().unwrap().code(), Some(1));
        session.is_gone();
    }
}

/// Also a session that ends in order leaves nobody behind, wherever he went.
#[test]
fn a_session_ends() {
    for way in [Way::Connect, Way::Wrap, Way::Both] {
        each_tree(way, |mut session| {
            session.to = Box::new(std::io::sink());
            assert_eq!(session.lumen.wait().unwrap().code(), Some(0));
            session.is_gone();
        });
    }
    each_tree(Way::Mux, |mut session| {
        kill_process(Pid::from_child(&session.lumen), Signal::TERM).unwrap();
        assert_eq!(session.lumen.wait().unwrap().code(), Some(0));
        session.is_gone();
    });
}

/// What hangs between a server's start and its first word is ended too.
#[test]
fn lumen_is_killed_while_the_server_starts() {
    let mark = Mark::new();
    let mut command = Command::new(lumen());
    command.args([
        "connect",
        "--negotiate",
        "off",
        "--",
        "sh",
        "-c",
        "trap '' TERM; echo started >&2; sleep 1000",
    ]);
    let mut lumen = mark
        .put_on(&mut command)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = lumen.stdin.take().unwrap();
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(lumen.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    lumen.kill().unwrap();
    assert!(wait_exit(lumen.id(), LIMIT));
    lumen.wait().unwrap();
    assert_eq!(mark.wait_gone(LIMIT), [0; 0]);
}

/// The words of a guard are not words of the command line: what follows them is nobody's but the server's.
#[test]
fn a_guard_is_of_no_use_by_hand() {
    let words: [OsString; 2] = ["guard".into(), "true".into()];
    let output = Command::new(lumen()).args(words).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("lumen starts guards itself"));
}

/// What a process is told to ignore it ignores, with a guard before it or not.
#[test]
fn ignored_signals_stay_ignored() {
    let script = "trap '' USR1; exec \"$0\" connect -- sh -c 'grep SigIgn /proc/self/status >&2'";
    let output = Command::new("sh").args(["-c", script]).arg(lumen()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let mask = said.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_else(|| panic!("{said}"));
    // The tenth signal.
    assert_ne!(u64::from_str_radix(mask.trim(), 16).unwrap() & 0x200, 0, "{said}");
}
