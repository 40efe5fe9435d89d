//! F4: requests in flight, by the id they have on the shared wire.
//!
//! An entry is deleted when it is taken, and ids are never used again. So of several answers with one id only the
//! first finds anything, and no tombstones are needed.

mod map;
mod slots;
mod wire_id;

pub use map::{Full, IdMap};
#[cfg(feature = "alloc")]
pub use slots::Growing;
pub use slots::Slots;
pub use wire_id::{Token, WireId};

#[cfg(test)]
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod tests;
