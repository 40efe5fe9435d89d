//! What sessions run on.

use std::time::Duration;

use clap::ValueEnum;

use crate::report::say;

/// What one session runs on.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Runs {
    /// What it runs on; both do the same.
    #[arg(long, value_enum, default_value_t = Runtime::Std)]
    pub(crate) runtime: Runtime,

    #[command(flatten)]
    pub(crate) spin: Spin,
}

/// What a session can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Runtime {
    /// Plain system calls: poll.
    Std,
    /// io_uring, where the kernel lets this process have it.
    Uring,
}

/// Says so if there is no ring to be had; returns whether there is.
pub(crate) fn has_ring() -> bool {
    let available = lumen_uring::is_available();
    if let Err(error) = &available {
        say(&format!("io_uring cannot be used here: {}; leave out --runtime uring", error.source));
    }
    available.is_ok()
}

/// How long is looked before sleeping.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Spin {
    /// Look for up to so many microseconds whether something comes, before sleeping until it does. Saves the 30 to 50 us
    /// of waking up, and costs the core while it looks; given up while it does not pay, and on one core.
    #[arg(long = "spin", value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    micros: u64,
}

impl Spin {
    pub(crate) const fn bound(self) -> Duration {
        Duration::from_micros(self.micros)
    }
}
