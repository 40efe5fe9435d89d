//! What a start costs, from the spawn to the burial of the child: by `std`, by lumen-os, and below a guard. The guard is
//! this program itself. Then what a start costs that fails below a hub, for which a client has to come each time.
//!
//! `cargo bench -p lumen-benches --bench starts` prints the tables, and fails if the hub takes more than [`BAR`] times as
//! long as a bare loop.

use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lumen_os::{CommandSpec, Stderr, spawn};
use lumen_std::{Behind, HubConfig, HubEvent, Mode, Mux, MuxEvent, MuxSpec, ServerConfig};

const WORD: &str = "guard";

/// Has this program refuse one handshake.
const REFUSE: &str = "refuse";

/// How many times as long as a bare loop a hub may take over failing starts.
const BAR: f64 = 1.6;

/// Failing starts below a hub, of each kind, in one round.
const FAILING: u32 = 500;

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
"#;

/// Starts of one kind that are timed together, and how often; the fastest round counts.
const STARTS: u32 = 200;
const ROUNDS: usize = 5;

fn main() {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == WORD) {
        lumen_os::guard::run(words).expect("started as a guard");
        return;
    }
    if std::env::args().nth(1).is_some_and(|word| word == REFUSE) {
        return refuse();
    }
    // Only `cargo bench` says this; under `cargo test` it is tried once.
    let is_measuring = std::env::args().any(|word| word == "--bench");
    let (starts, rounds) = if is_measuring { (STARTS, ROUNDS) } else { (2, 1) };
    let mut out = std::io::stdout();
    let _ = writeln!(
        out,
        "{:<24} {:>10} {:>10} {:>6} {:>10} {:>6}",
        "ms a start", "std", "lumen-os", "x", "guarded", "x"
    );
    for program in ["/no/such/program", "/bin/false"] {
        let own = || spawn(&spec(program));
        let guarded = || spawn(&spec(program).guarded_by("/proc/self/exe", WORD));
        // In turn, so that what else the machine does meets all of them.
        let mut best = [Duration::MAX; 3];
        for _ in 0..rounds {
            best[0] = best[0].min(timed(starts, || bare(program)));
            best[1] = best[1].min(timed(starts, || ended(own())));
            best[2] = best[2].min(timed(starts, || ended(guarded())));
        }
        let [std, own, guarded] = best.map(|time| time.as_secs_f64() * 1e3);
        let _ = writeln!(
            out,
            "{program:<24} {std:>10.3} {own:>10.3} {:>6.2} {guarded:>10.3} {:>6.2}",
            own / std,
            guarded / std
        );
    }
    let (starts, rounds) = if is_measuring { (FAILING, 3) } else { (2, 1) };
    let slowest = below_a_hub(starts, rounds);
    if is_measuring && slowest > BAR {
        let _ = writeln!(out, "a hub takes {slowest:.2} times as long, which is more than {BAR}");
        std::process::exit(1);
    }
}

/// Prints what failing starts cost, and returns the worst ratio.
fn below_a_hub(starts: u32, rounds: usize) -> f64 {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "\n{:<24} {:>10} {:>10} {:>6}", "ms a failing start", "bare", "hub", "x");
    let own = std::env::current_exe().expect("it has a path");
    let own = own.to_string_lossy();
    let kinds: [(&str, &[&str]); 3] =
        [("missing", &["/no/such/program"]), ("exits", &["/bin/false"]), ("refuses", &[&own, REFUSE])];
    let ratios = kinds.map(|(name, words)| {
        let mut best = [Duration::MAX; 2];
        for _ in 0..rounds {
            best[0] = best[0].min(timed(starts, || asked(words)));
            best[1] = best[1].min(through_hub(starts, words));
        }
        let [bare, hub] = best.map(|time| time.as_secs_f64() * 1e3);
        let _ = writeln!(out, "{name:<24} {bare:>10.3} {hub:>10.3} {:>6.2}", hub / bare);
        hub / bare
    });
    ratios.into_iter().fold(0.0, f64::max)
}

/// A server that is asked once and refuses.
fn refuse() {
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    let refusal = r#""error":{"code":-32603,"message":"no"}}"#;
    let id =
        line.split_once("\"id\":").and_then(|(_, rest)| rest.split_once(',')).map_or("null", |(id, _)| id);
    let _ = writeln!(std::io::stdout(), r#"{{"jsonrpc":"2.0","id":{id},{refusal}"#);
    // Until it is told to go.
    let _ = std::io::stdin().lock().read_line(&mut line);
}

/// Starts a program, asks it for a handshake, hears what it says, and waits for its end.
fn asked(words: &[&str]) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return };
    let _ = child.stdin.as_mut().expect("piped").write_all(INITIALIZE);
    let mut line = String::new();
    let _ = BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line);
    black_box(child.wait_with_output()).expect("it ends");
}

/// The time for each of so many starts below a hub; each time a client comes that needs it.
fn through_hub(starts: u32, words: &[&str]) -> Duration {
    let path = std::env::temp_dir().join(format!("lumen-starts-{}", std::process::id()));
    let mut config = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off));
    (config.backoff.base, config.backoff.cap) = (Duration::from_micros(1), Duration::from_micros(1));
    let command = CommandSpec::new(words[0]).args(&words[1..]).stderr(Stderr::Ignore);
    let mut mux = Mux::bind(MuxSpec::new(&path, command).hub(config)).expect("it serves");
    let mut client = needing(&path);
    let (mut ended, began) = (0, Instant::now());
    while ended < starts {
        let event = mux.next_event().expect("it goes on").expect("it goes on");
        if let MuxEvent::Hub(HubEvent::Ended { .. }) = event {
            ended += 1;
            client = needing(&path);
        }
    }
    let took = began.elapsed();
    drop((client, mux));
    let _ = std::fs::remove_file(path.with_file_name(format!("lumen-starts-{}.lock", std::process::id())));
    took / starts
}

fn needing(path: &Path) -> UnixStream {
    let mut client = UnixStream::connect(path).expect("it serves");
    client.write_all(INITIALIZE).expect("there is room");
    client
}

fn spec(program: &str) -> CommandSpec {
    CommandSpec::new(program).stderr(Stderr::Ignore)
}

fn timed(starts: u32, start: impl Fn()) -> Duration {
    let began = Instant::now();
    (0..starts).for_each(|_| start());
    began.elapsed() / starts
}

/// The same pipes as a server gets.
fn bare(program: &str) {
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Ok(child) = command.spawn() {
        black_box(child.wait_with_output()).expect("it ends");
    }
}

/// Waits for the end as a binding does, then buries it.
fn ended(child: Result<lumen_os::Child, lumen_os::SpawnError>) {
    let Ok(mut child) = child else { return };
    while child.process.try_exit().is_none() {
        let mut fds = [rustix::event::PollFd::new(&child.process, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, None).expect("it ends");
    }
    black_box(child.process.end());
}
