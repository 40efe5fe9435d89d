//! Drives a [`Machine`](lumen_proto::Machine) without touching the world itself.
//!
//! [`Pump`] is the one place that calls a machine's poll verbs, so the order in which a machine is drained is
//! code. It is shaped by completion: it hands out operations ([`Op`]) and takes their results ([`Done`]). A
//! completion interface (a ring) maps to that one to one; [`PollIo`] imitates it for a runtime that tells of
//! readiness ([`World`], [`Stream`]), by polling what was started. Nothing here asks for `Send` or spawns a task.
//!
//! [`spin`] decides how long a binding that can look without sleeping does so.
//!
//! [`session`] is what the transports of all bindings share, [`door`], [`desk`] and [`status`] what their
//! multiplexers do, and [`MuxIo`] a whole multiplexer over [`PollIo`].

pub mod desk;
/// How to bind a runtime of your own, in code; in words it is the page `lumen_proto::docs::adapter`.
#[cfg(doc)]
pub mod docs {
    #[doc = include_str!("../docs/completion.md")]
    pub mod completion {}
    #[doc = include_str!("../docs/readiness.md")]
    pub mod readiness {}
}
pub mod door;
mod mux_io;
mod poll_io;
mod port_map;
mod pump;
pub mod session;
pub mod spin;
pub mod status;
#[cfg(test)]
mod toy;

pub use mux_io::{Listen, MuxIo, Processes};
pub use poll_io::{PollIo, Stream, TURNS, World, is_gone};
pub use port_map::PortMap;
pub use pump::{Counters, Done, MAX_REMEMBERED, Op, Outcome, Pump, TURN_FRAMES, WRITE_GATHER};
