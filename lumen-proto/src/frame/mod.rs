//! F2: frames.
//!
//! A frame is `LEN TYPE FLAGS PAYLOAD`: the length of the payload alone as a [`varint`](crate::varint), one
//! byte of type, one of flags, the payload. Frames follow each other with nothing in between.
//!
//! [`encode`](encode()) and [`encode_header`] write frames, [`Assembler`] takes them out of a byte stream
//! however it is cut up. What a type or a flag means is not judged here.

mod assembler;
mod encode;
mod header;
mod kind;
mod storage;

pub use assembler::{Assembler, Step};
pub use encode::encode_to_slice;
#[cfg(feature = "alloc")]
pub use encode::{encode, encode_header};
pub use header::{Header, MAX_HEADER_LEN};
pub use kind::{Flags, Kind};
#[cfg(feature = "alloc")]
pub use storage::Growing;
pub use storage::{Payload, Storage};

#[cfg(test)]
mod tests;
