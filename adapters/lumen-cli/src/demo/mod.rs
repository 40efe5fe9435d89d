//! `demo`: a small server behind `wrap`, asked over JSON-RPC and over LUMEN. Whatever the table says was counted
//! at the pipe to `wrap`, by the loop that read and wrote it.

mod client;
pub(crate) mod server;
mod table;

use lumen_proto::negotiate::Mode;

use crate::args::{Demo, print};
use crate::exit::Exit;
use crate::report::say;

pub(crate) fn run(demo: &Demo) -> Exit {
    let runs = [(Mode::Off, "JSON-RPC"), (Mode::Probe, "LUMEN")];
    let mut rows = Vec::new();
    for (mode, carrier) in runs {
        match client::measure(mode, demo.calls) {
            Ok(kinds) => rows.push((carrier, kinds)),
            Err(error) => {
                say(&format!("{carrier}: {error}; run it with -vv, or `lumen demo-server` by itself"));
                return Exit::Failed;
            }
        }
    }
    print(&table::render(&rows))
}
