//! What can go wrong with a transport.

use lumen_proto::jsonrpc::Refused;
use lumen_tokio::Outcome;

/// Why a message was not sent, or a transport not closed in good order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The transport was closed or dropped before there was room for the message.
    #[error("the transport is closed")]
    Closed,
    /// The session is over, or does not take the message.
    #[error(transparent)]
    Session(lumen_tokio::Error),
    /// It ended in another way than by being closed: its server could not be started, say, or died.
    #[error("the session has ended: {0:?}")]
    Ended(Outcome),
    /// The message cannot be written as JSON.
    #[error("the message cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
    /// What was written is no message that may be sent, because of its id say.
    #[error("the message cannot be sent: {0}")]
    Message(#[from] Refused),
}
