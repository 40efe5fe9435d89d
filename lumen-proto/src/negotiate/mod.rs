//! F4: who speaks LUMEN, found out without losing a message.
//!
//! Both roles are plain state machines over facts (opened, an ACK came, time passed); the bytes they need are in
//! [`hello`]. [`offer`] carries the same question inside an ordinary `initialize`.

pub mod hello;

mod caps;
mod client;
#[cfg(feature = "alloc")]
pub mod offer;
mod server;

pub use caps::Caps;
pub use client::{Ack, Client, Mode};
#[cfg(feature = "alloc")]
pub use hello::{Dialect, Hello};
pub use server::Server;
