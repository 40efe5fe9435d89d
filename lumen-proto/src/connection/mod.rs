//! F5: one stream as whole messages: carrier, framing and what the peer can take. Knows no ids but those of the
//! handshake.

mod codec;
mod event;
mod heartbeat;
mod kind;
mod reader;
mod stream;
mod tally;
#[cfg(test)]
mod tests;

pub use event::Event;
pub use kind::frame_kind;
pub use stream::{Config, Connection, Role};
pub use tally::{Amount, Converted, Tally};
