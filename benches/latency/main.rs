//! Latency: round trips and many connections, for raw system calls and for each binding, both ends alike.
//!
//! `cargo bench -p lumen-benches --bench latency` prints the tables; `-- pairs` or `-- many` only one of them, and names as
//! they stand in the tables only these rows.
//!
//! A round trip is 64 bytes there and 64 bytes back between two processes, after both have agreed on LUMEN where a binding
//! is measured: its client asks, its server answers. `spin` looks for 100 us before it sleeps. On one core both processes
//! are on the same, on two each is on its own.

mod many;
mod pair;

use std::io::Write as _;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How long whoever spins looks before it sleeps.
const SPIN: Duration = Duration::from_micros(100);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Raw,
    /// Waits for two more descriptors, as the client of a process has to: for its end and its standard error.
    RawPoll,
    RawSpin,
    Std,
    StdSpin,
    Uring,
    UringSpin,
    TokioBare,
    Tokio,
    SmolBare,
    Smol,
}

impl Kind {
    const ALL: [(Self, &str); 11] = [
        (Self::Raw, "raw"),
        (Self::RawPoll, "raw-poll"),
        (Self::RawSpin, "raw-spin"),
        (Self::Std, "std"),
        (Self::StdSpin, "std-spin"),
        (Self::Uring, "uring"),
        (Self::UringSpin, "uring-spin"),
        (Self::TokioBare, "bare-tokio"),
        (Self::Tokio, "tokio"),
        (Self::SmolBare, "bare-smol"),
        (Self::Smol, "smol"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).expect("all are listed").1
    }

    fn from_name(name: &str) -> Self {
        Self::ALL.iter().find(|(_, known)| *known == name).expect("a name of the list").0
    }

    fn spins(self) -> bool {
        matches!(self, Self::RawSpin | Self::StdSpin | Self::UringSpin)
    }

    fn is_here(self) -> bool {
        !matches!(self, Self::Uring | Self::UringSpin) || lumen_uring::is_available().is_ok()
    }
}

/// How two processes are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Pipe,
    Unix,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", kind, path, cores] => {
            return pair::serve(Kind::from_name(kind), path, cores.parse().expect("a number"));
        }
        ["serve-many", kind, count, path] => {
            return many::serve(Kind::from_name(kind), count.parse().expect("a number"), path);
        }
        _ => {}
    }
    // Only `cargo bench` says this; under `cargo test` it is tried once.
    let is_measuring = words.contains(&"--bench");
    let wants = |table| words.contains(&table) || !["pairs", "many"].iter().any(|any| words.contains(any));
    let named = |kind: &Kind| words.contains(&kind.name());
    let is_any_named = Kind::ALL.iter().any(|(kind, _)| named(kind));
    let kinds = Kind::ALL.map(|(kind, _)| kind).into_iter();
    let kinds: Vec<Kind> = kinds.filter(|kind| kind.is_here() && (named(kind) || !is_any_named)).collect();
    if wants("pairs") {
        pairs(&kinds, is_measuring);
    }
    if wants("many") {
        connections(&kinds, is_measuring);
    }
}

fn pairs(kinds: &[Kind], is_measuring: bool) {
    let (trips, rounds) = if is_measuring { (10_000, 8) } else { (20, 1) };
    let mut out = std::io::stdout();
    let all = sched_getaffinity(None).expect("this process has cores");
    for cores in [1, 2] {
        if cores == 2 && all.count() < 2 {
            continue;
        }
        if cores == 1 {
            pin(Side::First);
        }
        for way in [Way::Pipe, Way::Unix] {
            let _ = writeln!(
                out,
                "\n{:<28} {:>8} {:>8} {:>8} {:>7}",
                format!("us, {way:?}, {cores} core(s)"),
                "p50",
                "p99",
                "p99.9",
                "x raw"
            );
            // One who looks on one core keeps the other from answering.
            let kinds = kinds.iter().filter(|kind| cores > 1 || !kind.spins());
            // The client of a socket has nothing else to wait for.
            let kinds = kinds.filter(|kind| way == Way::Pipe || **kind != Kind::RawPoll);
            let mut rows: Vec<(Kind, Option<[Duration; 3]>)> = kinds.map(|kind| (*kind, None)).collect();
            for _ in 0..rounds {
                // All of them in each round: whatever else the machine does meanwhile meets all alike.
                for (kind, best) in &mut rows {
                    let times = pair::measure(*kind, way, cores, trips);
                    // The best of the rounds: what else the machine does only makes it worse.
                    *best = Some(best.map_or(times, |best| if times[0] < best[0] { times } else { best }));
                }
            }
            let mut raw = [f64::NAN; 2];
            for (kind, best) in rows {
                let [p50, p99, p999] = best.expect("a round").map(|time| time.as_secs_f64() * 1e6);
                if let Kind::Raw | Kind::RawSpin = kind {
                    raw[usize::from(kind.spins())] = p50;
                }
                let ratio = p50 / raw[usize::from(kind.spins())];
                let _ = writeln!(out, "{:<28} {p50:>8.2} {p99:>8.2} {p999:>8.2} {ratio:>7.2}", kind.name());
            }
        }
        unpin();
    }
}

/// Which core of those there are.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    First,
    Last,
}

/// Keeps this thread on one core.
pub fn pin(side: Side) {
    unpin();
    let all = sched_getaffinity(None).expect("this process has cores");
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core));
    let core = match side {
        Side::First => cores.next(),
        Side::Last => cores.next_back(),
    };
    let mut one = CpuSet::new();
    one.set(core.expect("there is one"));
    sched_setaffinity(None, &one).expect("it is one of ours");
}

/// Lets this thread run on all cores that there are; the system knows which.
pub fn unpin() {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|core| all.set(core));
    sched_setaffinity(None, &all).expect("there is one");
}

fn connections(kinds: &[Kind], is_measuring: bool) {
    let (time, rounds) =
        if is_measuring { (Duration::from_millis(800), 6) } else { (Duration::from_millis(5), 1) };
    let mut out = std::io::stdout();
    let _ = write!(out, "\n{:<28}", "requests/s (CPU us each)");
    let counts = [1, 16, 256];
    for count in counts {
        let _ = write!(out, " {count:>18}");
    }
    let _ = writeln!(out);
    let kinds: Vec<Kind> = kinds.iter().copied().filter(|kind| many::KINDS.contains(kind)).collect();
    let mut best = vec![[(0.0, 0.0); 3]; kinds.len()];
    // All of them in each round, as above.
    for _ in 0..rounds {
        for (row, kind) in best.iter_mut().zip(&kinds) {
            for (best, count) in row.iter_mut().zip(counts) {
                let (rate, cpu) = many::measure(*kind, count, time);
                if rate > best.0 {
                    *best = (rate, cpu);
                }
            }
        }
    }
    for (row, kind) in best.iter().zip(kinds) {
        let _ = write!(out, "{:<28}", kind.name());
        for (rate, cpu) in row {
            let _ = write!(out, " {:>18}", format!("{rate:.0} ({cpu:.2})"));
        }
        let _ = writeln!(out);
    }
}
