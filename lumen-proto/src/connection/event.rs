//! What a connection tells its owner.

use alloc::boxed::Box;

use bytes::Bytes;

use crate::Reason;
use crate::frame::Kind;
use crate::message::{Edits, Packet};

/// What a connection tells its owner, in the order of the bytes that caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A whole message, without an offer or an echo that is not for whoever is behind this hop.
    Message(Packet),
    /// A message that cannot be passed on. The stream goes on behind it.
    Rejected {
        /// What is wrong with it.
        reason: Reason,
        /// Its id as spelled, if one was found.
        id: Option<Bytes>,
        /// Whether it had a method: with an id that makes it a request, which is owed an answer.
        has_method: bool,
    },
    /// A message of ours that this peer cannot take; it was not sent.
    Unsent {
        /// The message; apart, for this is rare and would make every event larger.
        message: Box<Packet>,
        /// What was to be exchanged in it.
        edits: Edits,
        /// Why.
        reason: Reason,
    },
    /// Text that is no message, as programs print it on a stream that is not theirs to print on.
    Noise {
        /// The beginning of the first such line.
        excerpt: Bytes,
        /// How many lines; neighbours are told together.
        lines: u64,
        /// How many bytes they had.
        bytes: u64,
    },
    /// The one line that a server answered a probe with because it did not know it. It goes no further.
    Stray(Packet),
    /// Frames of a type that means nothing here; skipped, as the protocol asks.
    Skipped {
        /// Their type.
        kind: Kind,
        /// How many in a row.
        frames: u64,
    },
    /// From now on messages go out as frames.
    Upgraded,
    /// The opening probe was not answered in time: messages go out as JSON lines.
    FellBack,
    /// The stream cannot be followed any further, or ended inside a message.
    Lost(Reason),
}
