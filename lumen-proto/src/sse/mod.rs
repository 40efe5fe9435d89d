//! F4: the grammar of `text/event-stream`, byte by byte, whatever the pieces it comes in.

mod reader;

pub use reader::{Event, Reader, Step};
