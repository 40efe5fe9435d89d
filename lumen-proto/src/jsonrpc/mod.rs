//! F3: JSON-RPC by the bytes. No tree is built: a text is checked once and described by the ranges of its
//! parts, and what has to change is spliced, so that everything else leaves as it came.

mod cursor;
mod elements;
mod envelope;
mod id;
mod line;
mod message;
pub mod path;
pub mod reply;
mod scan;
mod span;
mod splice;
mod text;
mod token;
mod utf8;

#[cfg(test)]
pub(crate) mod oracle;

pub use elements::{Elements, elements};
pub use envelope::{Batch, Envelope, Kind, Refused, batch};
pub(crate) use envelope::{EMPTY_BATCH, Found, NO_CONTAINER, Name, ODD_BATCH};
pub use id::IdKey;
pub use line::{Lines, Step, Text};
pub use message::Message;
pub use path::{Member, Members, decode_str, find, members, text_is};
pub use scan::{Scan, Scanned};
pub use span::Span;
pub use splice::{Patch, Patches, apply, insert_member, remove_member};
pub(crate) use text::{Escaped, escape_into};
pub use token::Token;
