//! lumen on smol: [`Mux::spawn`] starts its task on smol's global executor.
//!
//! ```no_run
//! use lumen_futures::smol::Mux;
//! use lumen_futures::{CommandSpec, MuxSpec};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! smol::block_on(async {
//!     let mut mux = Mux::bind(MuxSpec::new("/run/user/1000/s", CommandSpec::new("my-server")))?;
//!     while let Some(event) = mux.next_event().await {
//!         eprintln!("{event:?}");
//!     }
//!     Ok(())
//! })
//! # }
//! ```

use crate::mux::{self, Executor};

pub use crate::{Client, Driver, MuxHandle, Server, Stream};

/// smol's global executor.
#[derive(Debug)]
pub enum Smol {}

impl mux::sealed::Sealed for Smol {}

impl Executor for Smol {
    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        smol::spawn(task).detach();
    }
}

/// Shares a server between all who connect to a Unix socket.
pub type Mux = mux::Mux<Smol>;
