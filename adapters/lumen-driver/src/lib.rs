//! Drives a [`Machine`](lumen_proto::Machine) without touching the world itself.
//!
//! [`Pump`] is the one place that calls a machine's poll verbs, so the order in which a machine is drained is
//! code. It is shaped by completion: it hands out operations ([`Op`]) and takes their results ([`Done`]). A
//! completion interface (a ring) maps to that one to one.

mod pump;
#[cfg(test)]
mod toy;

pub use pump::{Counters, Done, Op, Outcome, Pump, TURN_FRAMES, WRITE_GATHER};
