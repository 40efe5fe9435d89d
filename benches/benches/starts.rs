//! What a start costs, from the spawn to the burial of the child: by `std`, by lumen-os, and below a guard. The guard is
//! this program itself.
//!
//! `cargo bench -p lumen-benches --bench starts` prints the table.

use std::hint::black_box;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lumen_os::{CommandSpec, Stderr, spawn};

const WORD: &str = "guard";

/// Starts of one kind that are timed together, and how often; the fastest round counts.
const STARTS: u32 = 200;
const ROUNDS: usize = 5;

fn main() {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == WORD) {
        lumen_os::guard::run(words).expect("started as a guard");
        return;
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
