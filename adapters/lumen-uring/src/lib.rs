//! lumen on io_uring: one thread, one ring, and no runtime.

mod engine;
mod error;
mod ring;
mod stream;

pub use engine::Engine;
pub use error::Unavailable;
pub use lumen_driver::Counters;
pub use lumen_driver::session::{Closed, Error};
pub use lumen_os::engine::MAX_ENDED;
pub use lumen_os::{CommandSpec, Stderr, StderrTail, Target};
pub use lumen_proto::endpoint::{Event, Outcome, ServerConfig};
pub use lumen_proto::jsonrpc::{Message, Refused};
pub use lumen_proto::negotiate::Mode;
pub use lumen_proto::supervisor::Behind;
pub use stream::Stream;

/// Drives one machine on the thread that calls it, and stays there.
pub type Loop<M> = lumen_os::engine::Loop<M, Engine>;

/// A client and its server: a process that it starts, or a connection that it makes.
pub type Client = lumen_os::engine::Client<Engine>;

/// A server and its one client.
pub type Server = lumen_os::engine::Server<Engine>;
