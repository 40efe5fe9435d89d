//! What the suites of this package share: a simulated world for machines, helpers for real processes, a server to start.

pub mod echo;
pub mod mux;
pub mod procs;
pub mod ring;
pub mod rng;
pub mod sim;
