//! What went wrong with an exchange, and how the agent is told.

use alloc::string::String;
use core::fmt;

use bytes::Bytes;

/// What an adapter could not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// The kind, as far as it makes a difference.
    pub kind: TransportErrorKind,
    /// What to tell about it. It reaches the agent: no secret may be in it.
    pub text: String,
}

/// The kinds of [`TransportError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportErrorKind {
    /// The server was not reached: name, address, refused, TLS, proxy. It has seen nothing of the request.
    Connect,
    /// The connection ended while the exchange was under way.
    Reset,
    /// The server wants it elsewhere; the text names where.
    Redirect,
    /// Anything else.
    Other,
}

/// Why a message was not delivered, or not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub cause: Cause,
    /// The status, if there was one.
    pub status: Option<u16>,
    /// The beginning of what the server said, as text.
    pub excerpt: String,
    /// What the server said of when to come again, as it said it.
    pub retry_after: Option<String>,
}

/// The causes of a [`Failure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The status is none of success.
    Status,
    /// The adapter could not do it.
    Transport(TransportError),
    /// The body has this media type, which is none that can be read.
    ContentType(String),
    /// The body is coded like this although that was not asked for.
    ContentEncoding(String),
    /// The body is no JSON-RPC message, or no answer to what was asked.
    Body,
    /// The answer is longer than the limit, in bytes.
    TooLong(u64),
    /// The response ended and nothing in it was an answer.
    NoAnswer,
    /// The answer did not come in time.
    Timeout,
    /// The session had ended, and no new one could be made.
    SessionLost,
    /// The agent has closed its input, or we were told to end, and it cannot be waited for any longer.
    Ending,
    /// Too many requests are waiting.
    Busy,
}

impl Failure {
    /// Returns whether the same request may do better later.
    pub fn is_retryable(&self) -> bool {
        let _ = self;
        false
    }

    /// Makes the error answer for the request with the id token `id`.
    pub fn answer(&self, id: &[u8], url: &str) -> Bytes {
        let _ = (id, url, self);
        Bytes::new()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = self;
        f.write_str("")
    }
}

impl core::error::Error for Failure {}
