//! MCP transports as pure state machines: they consume and emit bytes, and know no clock, no I/O, no threads
//! and no async.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod base;
pub mod frame;
pub mod varint;

pub mod negotiate;

#[cfg(feature = "alloc")]
pub mod connection;
#[cfg(feature = "alloc")]
pub mod endpoint;
#[cfg(feature = "alloc")]
pub mod jsonrpc;
#[cfg(feature = "alloc")]
pub mod supervisor;
#[cfg(feature = "alloc")]
pub mod value;

pub use base::*;
