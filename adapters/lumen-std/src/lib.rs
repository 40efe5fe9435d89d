//! lumen on plain std: one thread, and `poll(2)`.
//!
//! [`Loop`] drives any [`Machine`](lumen_proto::Machine) over child processes, this process's own standard
//! streams and sockets. No thread is started: on the machines this was measured on, handing each message over
//! between threads costs more than the rest of its way.
//!
//! `poll(2)` looks at every open port in each turn, which is right for one session or a few dozen; for many
//! hundreds of ports use a binding with a readiness queue.

mod event_loop;
mod stream;

pub use event_loop::{Loop, MAX_ENDED};
pub use stream::Stream;
