//! lumen on async-std, which is [discontinued](https://rustsec.org/advisories/RUSTSEC-2025-0052): new programs do better
//! on smol.

pub use crate::{Client, Driver, Server, Stream};
