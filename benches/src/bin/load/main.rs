//! A load for multiplexers: how much of what a server gives through pipes it gives through them.
//!
//! `load [OPTIONS] NAME=COMMAND..` starts each command, in which `{socket}` is the Unix socket to serve, `{exe}` this program
//! and `{server}` the command of a server that echoes; `NAME=@PATH,PID` takes a socket that is served already, by that process. Before
//! them the same load goes straight to the server's pipes: the reference. Prints two tables in Markdown.
//!
//! | option | |
//! |---|---|
//! | `--clients 1,16,256` | how many connections |
//! | `--pipeline 1` | requests that each has in flight |
//! | `--size 200` | bytes of a request |
//! | `--seconds 3` | how long each row is measured, after a third of that unmeasured |
//! | `--rate N` | open loop: N requests a second in all, at times fixed in advance, and latency counts from those times, also when a request could only be sent later; without it a closed loop, in which a client asks when it is answered |
//! | `--rounds 3` | how often the whole series is run; the best of each row counts |
//!
//! Each answer must carry its request's id and payload: what is not answered within 10 s of the end is `lost`, a second answer
//! `doubled`, another one's `misrouted`. Exits with 1 if there was any. CPU and memory are those of the multiplexer's process alone.

mod lane;
mod measure;
mod process;
mod server;

use std::io::Write as _;
use std::process::exit;

use crate::measure::{Load, Row};
use crate::process::{Started, Way};

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("echo") => return server::echo(),
        Some("hello") => return server::hello(&words[1]),
        _ => {}
    }
    let mut option = |name: &str, default: &str| -> String {
        words.iter().position(|word| word == name).map_or_else(
            || default.to_owned(),
            |at| {
                let value = words.get(at + 1).cloned().unwrap_or_else(|| usage());
                words.drain(at..at + 2);
                value
            },
        )
    };
    let clients: Vec<usize> = option("--clients", "1,16,256").split(',').map(number).collect();
    let load = Load {
        pipeline: number(&option("--pipeline", "1")),
        size: number(&option("--size", "200")),
        seconds: number(&option("--seconds", "3")),
        rate: Some(number(&option("--rate", "0"))).filter(|rate| *rate > 0),
    };
    let rounds: usize = number(&option("--rounds", "1"));
    let mut ways = vec![("direct".to_owned(), Way::Pipes)];
    ways.extend(words.iter().map(|word| Way::parse(word).unwrap_or_else(|| usage())));

    let starts: Vec<(String, Started)> = std::iter::once(("tokio hello".to_owned(), Way::Hello))
        .chain(ways.iter().skip(1).cloned())
        .filter_map(|(name, way)| Some((name, process::timed_start(&way)?)))
        .collect();
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..rounds {
        for &count in &clients {
            for (name, way) in &ways {
                let row = measure::run(name, way, count, &load);
                match rows.iter_mut().find(|old| (&old.name, old.clients) == (&row.name, row.clients)) {
                    Some(old) => old.keep_better(row),
                    None => rows.push(row),
                }
            }
        }
    }
    print(&starts, &rows, &load);
    exit(i32::from(rows.iter().any(Row::is_faulty)));
}

fn print(starts: &[(String, Started)], rows: &[Row], load: &Load) {
    let mut out = std::io::stdout();
    let loop_kind = load.rate.map_or("closed loop".to_owned(), |rate| format!("open loop, {rate} a second"));
    let _ =
        writeln!(out, "{} bytes a request, {} in flight a client, {loop_kind}\n", load.size, load.pipeline);
    let _ = writeln!(
        out,
        "| | clients | a second | of direct | p50 us | p99 us | p99.9 us | CPU us | KiB idle | KiB loaded | lost | doubled | misrouted |"
    );
    let _ = writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for row in rows {
        let direct = rows.iter().find(|other| other.name == "direct" && other.clients == row.clients);
        let _ = writeln!(out, "{}", row.line(direct.map_or(0.0, |direct| direct.per_second)));
    }
    let _ = writeln!(out, "\n| | ms until it is reached | ms until the first answer |\n|---|---:|---:|");
    for (name, started) in starts {
        let _ = writeln!(out, "| {name} | {:.1} | {:.1} |", started.reached_ms, started.answered_ms);
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| usage())
}

fn usage() -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "load [--clients 1,16,256] [--pipeline N] [--size N] [--seconds N] [--rate N] [--rounds N] NAME=COMMAND.. (with {{socket}}, {{server}} or {{exe}} echo)"
    );
    exit(2)
}
