//! What lumen's adapters need of a Unix system, without a runtime: child processes that end with their whole
//! tree, the process's own standard streams, sockets, a clock, and what is remembered of servers between starts.
//!
//! Everything here hands out descriptors that answer "would block" instead of blocking; a binding turns them
//! into its runtime's own types, or polls them. Nothing here starts a thread or waits for a peer, except
//! [`connect_unix`] and [`connect_tcp`], which wait up to [`CONNECT_TIMEOUT`], [`Process::end`], which waits for the
//! kernel to end what it has just killed, and [`spawn`] of a guarded command, which waits for its [`guard`]; and
//! [`detach::spawn`], which waits for its helper.
//!
//! [`reactor`] is what the bindings to runtimes that tell of readiness are made of, [`engine`] those that a thread turns.
//!
//! Built and tested on Linux (pidfds, `/proc`).

mod child;
mod clock;
mod command;
pub mod detach;
pub mod engine;
mod error;
pub mod guard;
mod listener;
mod mux;
pub mod reactor;
mod remembered;
mod socket;
mod stderr;
pub mod stdio;
mod told;
mod turn;
mod verdict;

pub use child::{Child, Process, spawn};
pub use clock::Clock;
pub use command::{CommandSpec, LineFn, Stderr, Target};
pub use error::{ConnectError, ListenError, SpawnError};
pub use listener::{Accepted, BACKLOG, Listener, own_uid};
pub use mux::{Listening, MuxSpec};
pub use socket::{
    CONNECT_TIMEOUT, MAX_UNIX_PATH, connect_tcp, connect_unix, is_hung_up, recv, send, set_nodelay,
    shutdown_write, stream_from,
};
pub use stderr::{Drained, MAX_STDERR_LINE, MAX_STDERR_TAIL, StderrDrain, StderrTail};
pub use turn::Turn;
pub use verdict::{MAX_VERDICTS, Verdicts};
