//! F4: one message in the encoding it came in, and what is exchanged in it when it leaves. A message between two
//! sides that both speak the binary codec is never transcoded: its envelope is found in either encoding, and a
//! splice leaves all other bytes as they came.

mod edits;
mod packet;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
mod value;

pub use edits::{Edits, Path};
pub use packet::{Encoding, Packet};
pub use value::{Refused, Value};
