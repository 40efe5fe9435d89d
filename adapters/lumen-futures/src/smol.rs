//! lumen on smol.

pub use crate::{Client, Driver, Server, Stream};
