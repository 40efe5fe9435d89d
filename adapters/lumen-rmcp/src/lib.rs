//! lumen as a transport of [rmcp]: a drop-in for its child process and standard stream transports.
//!
//! A client that starts its server says [`ChildTransport::spawn`] where it said `TokioChildProcess::new`, a server
//! says [`ServerTransport::stdio`] where it said `stdio()`, and both go on as before. Where the other end speaks LUMEN
//! too, messages travel as its frames; where it does not, as the JSON lines that it expects. Sockets go the same way:
//! [`ClientTransport::unix`] and [`ClientTransport::tcp`], [`ServerTransport::socket`].
//!
//! ```no_run
//! use lumen_rmcp::{ChildOptions, ChildTransport};
//! use rmcp::ServiceExt as _;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ChildOptions::new("my-server").arg("--stdio").env("LEVEL", "debug");
//! let client = ().serve(ChildTransport::spawn(server)).await?;
//! println!("{:?}", client.list_all_tools().await?);
//! client.cancel().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # How messages go
//! A typed message is serialised once, to JSON text, and queued in the order of the calls of `send`, not in the order
//! in which their futures happen to be polled. What carries it is known only when it leaves: then a text becomes the
//! bytes of a value in one pass over it, without a tree, or goes as it is. That is why it is text that waits: the
//! first messages are sent before the other end has said what it takes, and they are the ones in which the offer is
//! put. Received values become text the same way, and are deserialised from that.
//!
//! No task is started: what is to be read and written is read and written by whichever of rmcp's futures is polled.
//!
//! # When it ends
//! `close` writes what was sent and waits for the server that was started, which gets SIGTERM and then SIGKILL if it
//! does not end by itself. Without `close`, dropping the transport ends that server at once. If it ends by itself,
//! each call in flight is answered by an error, and then `receive` says that nothing more comes.

mod bell;
mod codec;
mod end;
mod error;
mod link;
mod options;
mod sending;
mod transport;

pub use end::Seen;
pub use error::Error;
pub use lumen_tokio::{CommandSpec, Counters, Event, Mode, Outcome, ServerConfig, Stderr, Stream, Target};
pub use options::ChildOptions;
pub use transport::{ChildTransport, ClientTransport, ServerTransport, Watch};
