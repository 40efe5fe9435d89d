//! lumen over Streamable HTTP: drives the [`Bridge`](lumen_proto::endpoint::Bridge) machine, which forwards every
//! message between an agent on stdio and a server behind a URL.
//!
//! [`Bridge`] is the loop: the agent's stream through the driver of `lumen-tokio`, and beside it the exchanges that the
//! machine asks for, all owned by the one task that awaits [`Bridge::next_event`]. [`Client`] is the HTTP below: one
//! URL, the headers of a [`Config`], TLS that is set up at the first `https` connection, HTTP/1.1 or 2 as the server
//! picks, connections kept and used again, and proxies.
//!
//! Connections run as tasks of their own on the runtime, which needs I/O and time enabled.

mod bridge;
mod client;
mod connect;
mod error;
mod exchange;
mod proxy;
mod tls;
mod url;

pub use bridge::Bridge;
pub use client::{Client, Config};
pub use error::Error;
pub use proxy::Proxy;
pub use tls::Roots;
pub use url::ServerUrl;
