//! lumen on plain std: one thread, and `poll(2)`.
//!
//! Start with [`Client`], which starts a server or connects to one, and [`Server`], which serves over own standard
//! streams or a socket. Both send and receive whole messages, and agree with the other end by themselves whether
//! these travel as LUMEN frames or as plain JSON lines.
//!
//! ```no_run
//! use lumen_std::{Client, CommandSpec, Message};
//!
//! let mut client = Client::spawn(CommandSpec::new("my-server").arg("--stdio"));
//! let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
//! client.send(Message::copy_from(ping).expect("a message"))?;
//! while let Some(message) = client.recv() {
//!     println!("{}", String::from_utf8_lossy(message.bytes()));
//!     if message.id() == Some(b"1") {
//!         break;
//!     }
//! }
//! println!("{:?}", client.close().outcome);
//! # Ok::<(), lumen_std::Error>(())
//! ```
//!
//! Under them is [`Loop`], which drives any [`Machine`](lumen_proto::Machine) over child processes, this process's
//! own standard streams and sockets. No thread is started (but by [`Mux::spawn`], when asked): on the machines this was measured on, handing each
//! message over between threads costs more than the rest of its way.
//!
//! `poll(2)` looks at every open port in each turn, which is right for one session or a few dozen; for many
//! hundreds of ports use a binding with a readiness queue.

mod engine;
mod stream;

pub use engine::Engine;
pub use lumen_driver::Counters;
pub use lumen_driver::door::{MuxEvent, Refusal};
pub use lumen_driver::session::{Closed, Error};
pub use lumen_os::StderrTail;
pub use lumen_os::engine::{MAX_ENDED, MuxHandle};
pub use lumen_os::{CommandSpec, Stderr, Target};
pub use lumen_os::{ListenError, Listener, MuxSpec};
pub use lumen_proto::endpoint::{Event, HubConfig, HubEvent, Outcome, Parted, ServerConfig};
pub use lumen_proto::jsonrpc::{Message, Refused};
pub use lumen_proto::negotiate::Mode;
pub use lumen_proto::supervisor::Behind;
pub use stream::Stream;

/// A client and its server: a process that it starts, or a connection that it makes.
pub type Client = lumen_os::engine::Client<Engine>;

/// A server and its one client.
pub type Server = lumen_os::engine::Server<Engine>;

/// Drives one machine on the thread that calls it.
pub type Loop<M> = lumen_os::engine::Loop<M, Engine>;

/// Shares a server, started by a command, between all who connect to a Unix socket, on the thread that calls it.
///
/// ```no_run
/// use std::time::Duration;
///
/// use lumen_std::{CommandSpec, Mux, MuxSpec};
///
/// let server = CommandSpec::new("my-server").arg("--stdio").cwd("/srv/data").env("TOKEN", "t");
/// let spec = MuxSpec::new("/run/user/1000/s", server)
///     .backoff(Duration::from_secs(1), Duration::from_secs(30))
///     .request_timeout(Some(Duration::from_secs(60)));
/// // It serves in a thread of its own. To serve here, ask `next_event` for what happens.
/// let handle = Mux::bind(spec)?.spawn(|event| eprintln!("{event:?}"))?;
/// handle.close();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Mux = lumen_os::engine::Mux<Engine>;
