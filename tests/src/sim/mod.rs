//! A world without clock, kernel or threads: machines, pipes and scripted parties on virtual time.
//!
//! Everything here is written against the `Machine` trait and on plain bytes; nothing uses the parsers and
//! encoders that the machines under test are built from.

pub mod checked;
mod clock;
pub mod party;
pub mod pipe;
pub mod scripted;
#[cfg(test)]
mod toys;
pub mod wire;
pub mod world;

pub use checked::Checked;
pub use clock::Clock;
pub use party::{Outbox, Party};
pub use pipe::{Chop, Link};
pub use world::{Entry, Spawn, Spawned, World};
