//! Two minutes of chaos around a real `lumen mux`, and an account of every id.
//!
//! `soak [SECONDS [SEED]]`: 64 clients on Unix sockets, whose server is killed fifty times at moments that follow from the seed.
//! Some clients go on and on; some vanish with requests in flight, stall with large answers unread, or send what is no
//! message. Of those that stay, each request that they do not take back is answered exactly once, by a result that is
//! theirs or by an error; nothing is answered twice, nothing reaches another client. Then all go, and the mux has to have as many
//! descriptors as before they came, no zombie, and at the end no more memory than after the first quarter and 2 MiB
//! besides; when it is told to end it leaves no process and no socket. Prints the counters and a verdict; exits with 1 if
//! anything is amiss.

mod session;
mod tally;

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lumen_tests::mux::{Client, MuxProcess, PATIENCE, child_server};
use lumen_tests::procs::{children, descriptors};
use lumen_tests::rng::Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::session::{Era, greet, run_client};
use crate::tally::Tally;

const CLIENTS: u64 = 64;
const KILLS: u64 = 50;

/// What more the mux may have at the end than after the first quarter, in KiB.
const GROWTH_KIB: u64 = 2048;

/// What the mux has given back its allocator is to give back too: else what a burst of large messages leaves scattered over
/// the heap, which is many times what is looked for, would be taken for growth.
const GIVE_BACK: [(&str, &str); 2] =
    [("MALLOC_MMAP_THRESHOLD_", "65536"), ("MALLOC_TRIM_THRESHOLD_", "65536")];

fn main() {
    let mut words = std::env::args().skip(1);
    let seconds: u64 = words.next().map_or(120, |word| word.parse().expect("SECONDS is a number"));
    let seed: u64 = words.next().map_or_else(any_seed, |word| word.parse().expect("SEED is a number"));
    assert!(seconds >= 4, "SECONDS is at least 4");
    say(&format!("soak of {seconds} s, seed {seed}"));

    let tally = Tally::default();
    let mux = MuxProcess::start_with(
        &["--backoff", "10ms..50ms"],
        child_server(&["--modern", "--late-progress"]),
        &GIVE_BACK,
    );
    let before = Quiet::of(&mux, &tally);
    let first = seconds.div_ceil(4);
    let early = round(&mux, &tally, Duration::from_secs(first), KILLS / 4, seed);
    let late =
        round(&mux, &tally, Duration::from_secs(seconds - first), KILLS - KILLS / 4, seed.wrapping_add(1));
    for quiet in [&early, &late] {
        if quiet.descriptors != before.descriptors {
            tally.violation(&format!("{} descriptors, {} before", quiet.descriptors, before.descriptors));
        }
        if quiet.children != before.children {
            tally.violation(&format!("children {:?}, {:?} before", quiet.children, before.children));
        }
    }
    if late.rss_kib > early.rss_kib + GROWTH_KIB {
        tally.violation(&format!("memory grew from {} to {} KiB", early.rss_kib, late.rss_kib));
    }
    let restarts: u64 = each_server(&late.status).filter_map(|server| server["restarts"].as_u64()).sum();
    mux.signal(Signal::TERM);
    let ended = mux.finish(PATIENCE);
    if ended.code != Some(0) || !ended.left.is_empty() || ended.has_socket {
        let (code, left) = (ended.code, &ended.left);
        tally.violation(&format!("it ended with {code:?}, processes {left:?}, socket {}", ended.has_socket));
    }
    say(&format!(
        "memory in KiB: {} before, {} after {first} s, {} at the end, {} at most; descriptors {} / {} / {}; {restarts} restarts",
        before.rss_kib,
        early.rss_kib,
        late.rss_kib,
        early.peak_kib.max(late.peak_kib),
        before.descriptors,
        early.descriptors,
        late.descriptors,
    ));
    std::process::exit(i32::from(!tally.judge(KILLS)));
}

/// A seed that differs each time; it is printed, so that a run can be had again.
fn any_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos().into())
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// What the mux has while nobody is connected and its servers run.
struct Quiet {
    descriptors: usize,
    /// The states of its children.
    children: Vec<char>,
    rss_kib: u64,
    /// The most that it had on the way there.
    peak_kib: u64,
    status: Value,
}

impl Quiet {
    /// Waits until all clients are gone, and until a server of each era runs.
    fn of(mux: &MuxProcess, tally: &Tally) -> Self {
        let only_us = |status: &Value| {
            status["clients"] == 1 && status["inFlightCount"] == 0 && status["queuedBytes"] == 0
        };
        mux.wait_status(only_us);
        for era in [Era::Legacy, Era::Modern] {
            let mut client = Client::connect(&mux.socket()).expect("it serves");
            if let Err(error) = greet(&mut client, era) {
                tally.violation(&format!("the server of {era:?} is not there: {error}"));
            }
        }
        let runs =
            |status: &Value| each_server(status).filter(|server| server["state"] == "running").count() == 2;
        mux.wait_status(|status| only_us(status) && runs(status));
        let status = mux.status();
        // Its last client is gone when the next one is told so.
        mux.wait_status(only_us);
        let mut client = mux.client();
        let status_again = client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"lumen/status"}"#);
        assert!(status_again["result"].is_object(), "{status_again}");
        let mut children: Vec<char> = children(mux.pid()).into_iter().map(|(_, state)| state).collect();
        children.iter_mut().filter(|state| **state != 'Z').for_each(|state| *state = '.');
        Self {
            descriptors: descriptors(mux.pid()).expect("it is there"),
            children,
            rss_kib: memory(mux.pid(), "VmRSS:"),
            peak_kib: memory(mux.pid(), "VmHWM:"),
            status,
        }
    }
}

fn each_server(status: &Value) -> impl Iterator<Item = &Value> {
    status["servers"].as_array().into_iter().flatten()
}

fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it is there");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel counts it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Lets all clients loose for so long, kills servers meanwhile, and waits until all is quiet again.
fn round(mux: &MuxProcess, tally: &Tally, time: Duration, kills: u64, seed: u64) -> Quiet {
    let is_over = AtomicBool::new(false);
    let socket = mux.socket();
    let began = Instant::now();
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let rng = Rng::new(seed ^ (number << 32));
            let (socket, is_over) = (&socket, &is_over);
            scope.spawn(move || run_client(number, socket, rng, tally, is_over));
        }
        let mut rng = Rng::new(seed ^ u64::MAX);
        let span = u64::try_from(time.as_millis()).expect("a sensible time").saturating_sub(500);
        let mut moments: Vec<u64> = (0..kills).map(|_| rng.below(span)).collect();
        moments.sort_unstable();
        for moment in moments {
            thread::sleep((began + Duration::from_millis(moment)).saturating_duration_since(Instant::now()));
            if kill_one(mux, &mut rng) {
                tally.add(&tally.kills, 1);
            }
        }
        thread::sleep((began + time).saturating_duration_since(Instant::now()));
        is_over.store(true, Ordering::Relaxed);
    });
    Quiet::of(mux, tally)
}

/// Kills one of the servers, as soon as there is one.
fn kill_one(mux: &MuxProcess, rng: &mut Rng) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let servers = mux.processes_of("child_server");
        if !servers.is_empty() {
            let at = usize::try_from(rng.below(servers.len() as u64)).expect("small");
            let pid = i32::try_from(servers[at]).ok().and_then(Pid::from_raw).expect("a process id");
            // It may just have ended by itself.
            if kill_process(pid, Signal::KILL).is_ok() {
                return true;
            }
        }
        thread::yield_now();
    }
    false
}
