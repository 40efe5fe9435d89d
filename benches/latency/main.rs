//! Latency: round trips and many connections, for raw system calls and for each binding, both ends alike.
//!
//! `cargo bench -p lumen-benches --bench latency` prints the tables; `-- pairs` or `-- many` only one of them, and names as
//! they stand in the tables only these rows.
//!
//! A round trip is 64 bytes there and 64 bytes back between two processes, after both have agreed on LUMEN where a binding
//! is measured: its client asks, its server answers. `spin` looks for 100 us before it sleeps. On one core both processes
//! are on the same, on two each is on its own. `x` is how many times as long it takes as the same without lumen: as plain
//! system calls (`raw`, `raw-spin`), or as a bare echo on the same runtime (`bare-tokio`, `bare-smol`). `raw-poll` is `raw`
//! with a client that also waits for the end and the standard error of its server.
//!
//! The tables are Markdown, to be put where they are told of.

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

    /// What the same costs without lumen.
    fn reference(self) -> Self {
        match self {
            Self::StdSpin | Self::UringSpin | Self::RawSpin => Self::RawSpin,
            Self::Tokio | Self::TokioBare => Self::TokioBare,
            Self::Smol | Self::SmolBare => Self::SmolBare,
            _ => Self::Raw,
        }
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

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Unix => "Unix socket",
        }
    }
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

/// The 50th, 99th and 99.9th percentile of round trips.
type Times = [Duration; 3];

/// Prints a table for each place, and one of all together.
fn pairs(kinds: &[Kind], is_measuring: bool) {
    let (trips, rounds) = if is_measuring { (10_000, 8) } else { (20, 1) };
    let mut places = Vec::new();
    for (cores, way) in [(1_usize, Way::Pipe), (1, Way::Unix), (2, Way::Pipe), (2, Way::Unix)] {
        let all = sched_getaffinity(None).expect("this process has cores").count();
        if usize::try_from(all).is_ok_and(|all| all < cores) {
            continue;
        }
        let name = format!("{}, {cores} core{}", way.name(), if cores == 1 { "" } else { "s" });
        if cores == 1 {
            pin(Side::First);
        }
        // One who looks on one core keeps the other from answering. The client of a socket has nothing else to wait for.
        let is_told =
            |kind: &Kind| (cores > 1 || !kind.spins()) && (way == Way::Pipe || *kind != Kind::RawPoll);
        let kinds: Vec<Kind> = kinds.iter().copied().filter(is_told).collect();
        let mut best: Vec<Option<Times>> = vec![None; kinds.len()];
        // All of them in each round: whatever else the machine does meanwhile meets all alike. It only makes things worse,
        // so the best round counts.
        for _ in 0..rounds {
            for (kind, best) in kinds.iter().zip(&mut best) {
                let times = pair::measure(*kind, way, cores, trips);
                *best = Some(best.map_or(times, |best| if times[0] < best[0] { times } else { best }));
            }
        }
        unpin();
        let rows: Vec<(Kind, Times)> = kinds.into_iter().zip(best.into_iter().flatten()).collect();
        say(&format!("\n| us, {name} | p50 | p99 | p99.9 | x |\n|---|---:|---:|---:|---:|"));
        for (kind, times) in &rows {
            let [p50, p99, p999] = times.map(micros);
            say(&format!(
                "| {} | {p50:.2} | {p99:.2} | {p999:.2} | {} |",
                kind.name(),
                times_of(&rows, *kind)
            ));
        }
        places.push((name, rows));
    }
    let names = places.iter().map(|(name, _)| format!(" {name} |")).collect::<String>();
    say(&format!("\n| p50 us, x |{names}\n|---|{}", "---:|".repeat(places.len())));
    for kind in kinds {
        let cell = |rows: &[(Kind, Times)]| match rows.iter().find(|(known, _)| known == kind) {
            Some((_, times)) => format!(" {:.1}, {} |", micros(times[0]), times_of(rows, *kind)),
            None => " |".to_owned(),
        };
        say(&format!("| {} |{}", kind.name(), places.iter().map(|(_, rows)| cell(rows)).collect::<String>()));
    }
}

/// How many times as long as its reference one of these takes, in words; none if the reference was not measured.
fn times_of(rows: &[(Kind, Times)], kind: Kind) -> String {
    let p50 = |kind| rows.iter().find(|(known, _)| *known == kind).map(|(_, times)| micros(times[0]));
    match (p50(kind), p50(kind.reference())) {
        (Some(time), Some(reference)) => format!("{:.2}", time / reference),
        _ => String::new(),
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("somebody reads it");
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
    let counts = [1, 16, 256];
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
    let names = counts.map(|count| format!(" {count} |")).concat();
    say(&format!("\n| requests/s, CPU us each; connections: |{names}\n|---|---:|---:|---:|"));
    for (row, kind) in best.iter().zip(kinds) {
        let cells = row.map(|(rate, cpu)| format!(" {rate:.0}, {cpu:.2} |")).concat();
        say(&format!("| {} |{cells}", kind.name()));
    }
}
