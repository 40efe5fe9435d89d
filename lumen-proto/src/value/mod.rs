//! F3: the value codec, LUMEN's binary form of a JSON document.
//!
//! | tag | meaning | then |
//! |---|---|---|
//! | E0 | null | |
//! | E1 | boolean | 00 or 01 |
//! | E2 | float | binary64 |
//! | E3 | integer | zigzag of an `i64` as LEB128, 1 to 10 bytes |
//! | E4 | string of the dictionary | its id |
//! | E5 | string | [`varint`](crate::varint) length, UTF-8 |
//! | E6 | array | [`varint`](crate::varint) count, values |
//! | E7 | object | [`varint`](crate::varint) count, pairs of key and value |
//!
//! A key has no tag: 00 to 7F is the id of one of the [`dict`]'s static words, 80 to FE an id of the session's
//! [`Table`], FF is followed by length and UTF-8. Members keep their order, and a key may occur twice. After
//! the value one line feed may follow, nothing else.

pub mod de;
pub mod dict;
pub mod encode;
#[cfg(test)]
mod model;
mod needs;
pub mod number;
mod outline;
pub mod path;
mod problem;
mod read;
mod scan;
pub mod ser;
mod table;
pub mod tag;
pub mod tape;
mod text;
pub mod transcode;
mod walk;

pub use de::{from_slice, from_slice_in_session};
pub use needs::{Needs, Profile};
pub use outline::outline;
pub use problem::{Invalid, Problem};
pub use read::{Reader, Text};
pub use scan::{Scan, Scanned};
pub use ser::{to_buf, to_vec};
pub use table::{SLOTS, Table};
