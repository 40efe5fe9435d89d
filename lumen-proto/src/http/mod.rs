//! F5: the client's side of Streamable HTTP as a machine: one agent, one URL, and the exchanges between them.
//!
//! [`Session`] takes the agent's messages and says which requests to make; an adapter makes them and reports what
//! comes back. See [`docs::http`](crate::docs::http) for what is done in which case.

mod config;
mod event;
mod exchange;
mod failure;
mod flight;
mod headers;
mod post;
mod response;
mod secrets;
mod sentinel;
mod session;
mod tools;

pub use config::Config;
pub use event::Event;
pub use exchange::{ExchangeId, Method, Request};
pub use failure::{Cause, Failure, TransportError, TransportErrorKind};
pub use secrets::Secrets;
pub use session::Session;
