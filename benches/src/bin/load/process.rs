//! The ways to the server, and what their processes cost.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#,
    "\n"
);

/// How long a multiplexer has to serve.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Straight to the server.
    Pipes,
    /// A program that does nothing but serve.
    Hello,
    /// Through a multiplexer that this starts.
    Command(Vec<String>),
    /// Through one that is there.
    Socket(PathBuf, u32),
}

impl Way {
    /// Takes `NAME=COMMAND` or `NAME=@PATH,PID`.
    pub(crate) fn parse(word: &str) -> Option<(String, Self)> {
        let (name, what) = word.split_once('=')?;
        let way = match what.strip_prefix('@') {
            Some(place) => {
                let (path, pid) = place.rsplit_once(',')?;
                Self::Socket(path.into(), pid.parse().ok()?)
            }
            None => Self::Command(what.split_whitespace().map(str::to_owned).collect()),
        };
        Some((name.to_owned(), way))
    }
}

/// A multiplexer that serves; one that was started here ends with this.
pub(crate) struct Served {
    pub(crate) socket: PathBuf,
    pub(crate) pid: u32,
    child: Option<(Child, PathBuf)>,
}

/// How long a start took.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) reached_ms: f64,
    pub(crate) answered_ms: f64,
}

/// Starts what serves a socket, or finds it. The first client that is answered is told of in `Started`.
pub(crate) fn serve(way: &Way) -> (Served, Started) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if let Way::Socket(path, pid) = way {
        let served = Served { socket: path.clone(), pid: *pid, child: None };
        return (served, Started { reached_ms: 0.0, answered_ms: 0.0 });
    }
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("lumen-load-{}-{count}", std::process::id()));
    fs::create_dir(&folder).expect("a temporary folder");
    let socket = folder.join("s");
    let exe = std::env::current_exe().expect("it has a path").to_string_lossy().into_owned();
    let words: Vec<String> = match way {
        Way::Command(words) => words.clone(),
        _ => ["{exe}", "hello", "{socket}"].map(str::to_owned).to_vec(),
    };
    let mut words = words.iter().flat_map(|word| {
        let word = word.replace("{socket}", &socket.to_string_lossy()).replace("{exe}", &exe);
        if word == "{server}" { vec![exe.clone(), "echo".to_owned()] } else { vec![word] }
    });
    let mut command = Command::new(words.next().expect("a command"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let child = command.spawn().unwrap_or_else(|error| panic!("{way:?}: {error}"));
    let served = Served { pid: child.id(), socket, child: Some((child, folder)) };
    let mut stream = loop {
        match UnixStream::connect(&served.socket) {
            Ok(stream) => break stream,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{way:?} does not serve: {error}"),
        }
        std::thread::sleep(Duration::from_micros(100));
    };
    let reached = began.elapsed();
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(INITIALIZE.as_bytes()).expect("it reads");
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).expect("it answers");
    assert!(!line.is_empty(), "{way:?} hangs up");
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    (served, Started { reached_ms: millis(reached), answered_ms: millis(began.elapsed()) })
}

/// The fastest of several starts; `None` where nothing is started.
pub(crate) fn timed_start(way: &Way) -> Option<Started> {
    if matches!(way, Way::Socket(..) | Way::Pipes) {
        return None;
    }
    let starts = (0..5).map(|_| serve(way).1);
    starts.min_by(|one, other| one.answered_ms.total_cmp(&other.answered_ms))
}

impl Drop for Served {
    fn drop(&mut self) {
        let Some((child, folder)) = &mut self.child else { return };
        let pid = rustix::process::Pid::from_child(child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let began = Instant::now();
        while !matches!(child.try_wait(), Ok(Some(_))) {
            if began.elapsed() > Duration::from_secs(10) {
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = fs::remove_dir_all(folder);
    }
}

/// Memory in KiB; 0 if the process is gone.
pub(crate) fn memory(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Time on all cores so far.
pub(crate) fn cpu(pid: u32) -> Duration {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    // In nanoseconds, for one thread each.
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanos = tasks.map(|task| {
        let text = read(&task.path().join("schedstat"));
        text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
    });
    Duration::from_nanos(nanos.sum())
}
