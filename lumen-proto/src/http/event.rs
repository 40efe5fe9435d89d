//! What a session tells its owner.

use alloc::string::String;

use bytes::Bytes;

use super::Failure;

/// What a session tells its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request was answered with an error of ours.
    Failed {
        /// Its id as spelled.
        id: Bytes,
        /// Why.
        failure: Failure,
    },
    /// A notification, or an answer of the agent's, was not delivered. Nobody is told but the owner.
    Undelivered {
        /// The notification's method; `None` for an answer.
        method: Option<String>,
        /// Why.
        failure: Failure,
    },
    /// An answer that nobody waits for; it was dropped. One of the server's, or of the agent's.
    Unasked {
        /// Its id as spelled.
        id: Bytes,
    },
    /// Something in a stream that is no message; it was dropped.
    Noise {
        /// The beginning of it.
        excerpt: Bytes,
        /// Its length in bytes.
        len: u64,
    },
    /// The session had ended at the server and was made anew.
    Renewed,
    /// The session had ended at the server and could not be made anew. Who waited for it has been answered.
    NotRenewed(Failure),
    /// The server has no stream of its own, or it cannot be had.
    NoStream(Failure),
    /// So many events were dropped because nobody took them.
    Dropped(u64),
}
