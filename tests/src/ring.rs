//! Whether tests can have a ring.

use std::io::{self, Write as _};

/// Returns whether this system lets a process have a ring. If not, says so past what captures the output of tests, so that
/// whoever runs them can see that they were skipped.
///
/// # Panics
/// If it cannot be said.
pub fn is_here() -> bool {
    let available = lumen_uring::is_available();
    if let Err(error) = &available {
        writeln!(io::stderr(), "skipped on io_uring: {error}").expect("standard error is open");
    }
    available.is_ok()
}
