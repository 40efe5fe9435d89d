//! Logging to stderr.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::EnvFilter;

/// Sets logging up: warnings by default, more with every `-v`; `RUST_LOG` decides alone if it is set.
pub(crate) fn init(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colour = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(colour)
        .with_target(false)
        .without_time()
        .log_internal_errors(false)
        .init();
}
