//! lumen on io_uring: one thread, one ring, and no runtime.
//!
//! Start with [`Client`], which starts a server or connects to one, [`Server`], which serves over own standard streams or
//! a socket, and [`Mux`], which shares one server between many clients. They are used like those of `lumen-std`, but
//! that there may be no ring to be had ([`Unavailable`]), and that all of them stay on the thread that made them.
//!
//! ```no_run
//! use lumen_uring::{Client, CommandSpec, Message};
//!
//! let mut client = Client::spawn(CommandSpec::new("my-server").arg("--stdio"))?;
//! let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
//! client.send(Message::copy_from(ping).expect("a message"))?;
//! while let Some(message) = client.recv() {
//!     println!("{}", String::from_utf8_lossy(message.bytes()));
//!     if message.id() == Some(b"1") {
//!         break;
//!     }
//! }
//! println!("{:?}", client.close().outcome);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reads wait in the kernel without a buffer and are filled into one of a few when something arrives; a write owns its
//! bytes until it has completed. All that was started since the last wait is submitted with the next one, in one call.
//! Clients of a [`Mux`] are accepted by plain calls, when the ring says that there are some: with each come credentials to
//! look at, and who finds the house full has to wait outside.

mod engine;
mod error;
mod ring;
mod stream;

pub use engine::Engine;
pub use error::Unavailable;
pub use lumen_driver::Counters;
pub use lumen_driver::door::{MuxEvent, Refusal};
pub use lumen_driver::session::{Closed, Error};
pub use lumen_os::engine::{MAX_ENDED, MuxHandle};
pub use lumen_os::{CommandSpec, ListenError, Listener, MuxSpec, Stderr, StderrTail, Target};
pub use lumen_proto::endpoint::{Event, HubConfig, HubEvent, Outcome, Parted, ServerConfig};
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

/// Shares a server, started by a command, between all who connect to a Unix socket, on the thread that calls it; in one of
/// its own with [`bind_and_spawn`](Mux::bind_and_spawn).
pub type Mux = lumen_os::engine::Mux<Engine>;

/// Finds out whether there is a ring to be had.
///
/// # Errors
/// Why not.
pub fn is_available() -> Result<(), Unavailable> {
    Ok(ring::Ring::<()>::new().map(drop)?)
}
