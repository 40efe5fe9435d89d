//! lumen on async-std: [`Mux::spawn`] starts its task on async-std's executor.
//!
//! async-std is [discontinued](https://rustsec.org/advisories/RUSTSEC-2025-0052): new programs do better on smol, with
//! the same types.

use crate::mux::{self, Executor};

pub use crate::{Client, Driver, MuxHandle, Server, Stream};

/// async-std's executor.
#[derive(Debug)]
pub enum AsyncStd {}

impl mux::sealed::Sealed for AsyncStd {}

impl Executor for AsyncStd {
    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        // Dropping its handle leaves it alone.
        drop(async_std::task::spawn(task));
    }
}

/// Shares a server between all who connect to a Unix socket.
pub type Mux = mux::Mux<AsyncStd>;
