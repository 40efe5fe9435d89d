//! What the suites of this package share: a simulated world for machines, and helpers for real processes.

pub mod procs;
pub mod sim;
