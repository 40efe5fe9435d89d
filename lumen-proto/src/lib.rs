//! MCP transports as pure state machines: they consume and emit bytes, and know no clock, no I/O, no threads
//! and no async.
//!
//! One invariant holds everywhere: what a machine does depends only on what it was told, in which order. So a
//! test can play any fault, and any runtime can run it.
//!
//! - [`endpoint`] has the machines to drive, which implement [`Machine`]: [`endpoint::Peer`] is one end of a session,
//!   [`endpoint::Relay`] the hop in the middle, [`endpoint::Hub`] many clients on one server, [`endpoint::Bridge`] the
//!   hop to a server behind HTTP.
//! - [`docs::contract`] says what a driver owes a machine and the other way round, [`docs::wire`] what goes over
//!   the wire, [`docs::mux`] how a server is shared, [`docs::http`] how one behind HTTP is spoken to, [`docs::adapter`] how
//!   to bind a runtime of your own. Drivers that exist, all over `lumen-driver`: `lumen-std`,
//!   `lumen-uring`, `lumen-tokio`, `lumen-futures`.
//! - The floors below can be used by themselves: [`varint`], [`frame`], [`jsonrpc`], [`value`], [`message`],
//!   [`negotiate`], [`sse`], [`mcp`], [`idmap`], [`backoff`], [`connection`], [`http`], [`mux`], [`supervisor`].
//!
//! # Features
//! `alloc` (default): everything that owns growing buffers; without it [`varint`], [`frame`] over fixed storage
//! and the state machines of [`negotiate`]. `heapless`: fixed storage for [`frame::Assembler`]. `simd` (default,
//! needs std): the same results, faster.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod backoff;
mod base;
#[cfg(feature = "alloc")]
pub mod connection;
#[cfg(feature = "alloc")]
pub mod endpoint;
pub mod frame;
#[cfg(feature = "alloc")]
pub mod http;
pub mod idmap;
#[cfg(feature = "alloc")]
pub mod jsonrpc;
pub mod mcp;
#[cfg(feature = "alloc")]
pub mod message;
#[cfg(feature = "alloc")]
pub mod mux;
pub mod negotiate;
#[cfg(feature = "alloc")]
pub mod sse;
#[cfg(feature = "alloc")]
pub mod supervisor;
#[cfg(feature = "alloc")]
pub mod value;
pub mod varint;

pub use base::*;

/// Pages that belong to no single item.
#[cfg(all(doc, feature = "alloc"))]
pub mod docs {
    #[doc = include_str!("../docs/adapter.md")]
    pub mod adapter {}
    #[doc = include_str!("../docs/contract.md")]
    pub mod contract {}
    #[doc = include_str!("../docs/http.md")]
    pub mod http {}
    #[doc = include_str!("../docs/mux.md")]
    pub mod mux {}
    #[doc = include_str!("../docs/wire.md")]
    pub mod wire {}
}
