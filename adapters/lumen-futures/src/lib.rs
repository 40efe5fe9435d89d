//! lumen on smol, and on async-std.
//!
//! Start with [`Client`], which starts a server or connects to one, and [`Server`], which serves over own standard
//! streams or a socket. Both send and receive whole messages, and agree with the other end by themselves whether
//! these travel as LUMEN frames or as plain JSON lines.
//!
//! ```no_run
//! use lumen_futures::{Client, CommandSpec, Message};
//!
//! # async fn run() -> Result<(), lumen_futures::Error> {
//! let mut client = Client::spawn(CommandSpec::new("my-server").arg("--stdio"));
//! let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
//! client.send(Message::copy_from(ping).expect("a message")).await?;
//! while let Some(message) = client.recv().await {
//!     println!("{}", String::from_utf8_lossy(message.bytes()));
//!     if message.id() == Some(b"1") {
//!         break;
//!     }
//! }
//! println!("{:?}", client.close().await.outcome);
//! # Ok(())
//! # }
//! ```
//!
//! Under them is [`Driver`], which drives any [`Machine`](lumen_proto::Machine) inside whatever task awaits
//! [`next_event`](Driver::next_event): over child processes, this process's own standard streams and sockets.
//!
//! Nothing here spawns a task or asks for `Send`, but [`Mux::spawn`](mux::Mux::spawn) when asked; a driver is `Send` when
//! its machine is, and [`Client`] and [`Server`] are.
//!
//! # Which executor
//! All of it waits on [async-io](::async_io), whose reactor is the same for every executor: these types run on smol, on
//! async-std, on the `block_on` of any crate. Only what starts a task has to know which one it is: that is in
//! the modules `smol` and `async_std`, each with the feature of its name; both may be on.
//!
//! async-std is [discontinued](https://rustsec.org/advisories/RUSTSEC-2025-0052); its authors point to smol, and so does
//! this crate. The feature is for programs that are on it already, and off by default. Its tasks run on the same reactor,
//! so its sockets work here as smol's do, and no second runtime comes along.

#[cfg(feature = "async-std")]
pub mod async_std;
pub mod mux;
mod reactor;
#[cfg(feature = "smol")]
pub mod smol;
mod stream;

pub use lumen_driver::Counters;
pub use lumen_driver::door::{MuxEvent, Refusal};
pub use lumen_driver::session::{Closed, Error};
pub use lumen_os::StderrTail;
pub use lumen_os::reactor::{MAX_ENDED, MuxHandle};
pub use lumen_os::{CommandSpec, Stderr, Target};
pub use lumen_os::{ListenError, Listener, MuxSpec};
pub use lumen_proto::endpoint::{Event, HubConfig, HubEvent, Outcome, Parted, ServerConfig};
pub use lumen_proto::jsonrpc::{Message, Refused};
pub use lumen_proto::negotiate::Mode;
pub use lumen_proto::supervisor::Behind;
pub use reactor::AsyncIo;
pub use stream::Stream;

/// Drives one machine inside the task that awaits its events.
pub type Driver<M> = lumen_os::reactor::Driver<M, AsyncIo>;

/// A client and its server: a process that it starts, or a connection that it makes.
pub type Client = lumen_os::reactor::Client<AsyncIo>;

/// A server and its one client.
pub type Server = lumen_os::reactor::Server<AsyncIo>;

#[cfg(test)]
mod tests {
    use super::*;

    /// To be started as a task on an executor of several threads.
    fn task(future: impl Future + Send) {
        drop(future);
    }

    #[test]
    fn sessions_move_between_threads() {
        task(async {
            let mut client = Client::spawn(CommandSpec::new("true"));
            if let Ok(message) = Message::copy_from(b"{}") {
                drop(client.send(message).await);
            }
            (client.recv().await, client.flush().await, client.close().await)
        });
        task(async {
            let mut server = Server::stdio()?;
            Ok::<_, std::io::Error>((server.recv().await, server.close().await))
        });
    }
}
