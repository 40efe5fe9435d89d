//! What went wrong with an exchange, and how the agent is told.

use alloc::string::String;
use core::fmt::{self, Write};

use bytes::{Bytes, BytesMut};

use crate::jsonrpc::{Escaped, escape_into};

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
#[non_exhaustive]
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
    /// The answer is longer than the limit; says how many bytes of it had been seen.
    TooLong(u64),
    /// The response ended and nothing in it was an answer.
    NoAnswer,
    /// The answer did not come in time.
    Timeout,
    /// The session had ended, and no new one could be made.
    SessionLost,
    /// The agent has closed its input, or we were told to end, and it is not waited for any longer.
    Ending,
}

/// The most bytes of an excerpt that are in the message, which users see; all of it is in the data.
const IN_MESSAGE: usize = 200;

impl Failure {
    /// Makes a failure without a response.
    pub(super) const fn new(cause: Cause) -> Self {
        Self { cause, status: None, excerpt: String::new(), retry_after: None }
    }

    /// Returns whether the same request may do better later: the server was not reached, or says that it is busy or
    /// down.
    pub const fn is_retryable(&self) -> bool {
        match &self.cause {
            Cause::Transport(error) => matches!(error.kind, TransportErrorKind::Connect),
            Cause::Status => matches!(self.status, Some(408 | 425 | 429 | 502..=504)),
            Cause::SessionLost => true,
            _ => false,
        }
    }

    /// Returns a stable machine-readable name, used in the `data` of error answers.
    pub const fn name(&self) -> &'static str {
        match &self.cause {
            Cause::Status => "http_status",
            Cause::Transport(error) => match error.kind {
                TransportErrorKind::Connect => "not_reached",
                TransportErrorKind::Reset => "connection_lost",
                TransportErrorKind::Redirect => "redirect",
                TransportErrorKind::Other => "transport",
            },
            Cause::ContentType(_) => "content_type",
            Cause::ContentEncoding(_) => "content_encoding",
            Cause::Body => "bad_body",
            Cause::TooLong(_) => "too_long",
            Cause::NoAnswer => "no_answer",
            Cause::Timeout => "timeout",
            Cause::SessionLost => "session_lost",
            Cause::Ending => "ending",
        }
    }

    /// Makes the error answer for the request with the id token `id`, which is JSON text and not checked.
    pub fn answer(&self, id: &[u8], url: &str) -> Bytes {
        let mut out = BytesMut::with_capacity(256 + self.excerpt.len());
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(id);
        out.extend_from_slice(b",\"error\":{\"code\":-32603,\"message\":\"lumen: ");
        // Writing to memory does not fail.
        let _ = write!(Escaped(&mut out), "{self}");
        let _ = write!(out, "\",\"data\":{{\"reason\":\"{}\"", self.name());
        if let Some(status) = self.status {
            let _ = write!(out, ",\"httpStatus\":{status}");
        }
        let _ = write!(out, ",\"retryable\":{}", self.is_retryable());
        let retry_after = self.retry_after.as_deref().unwrap_or_default();
        for (name, value) in [("excerpt", self.excerpt.as_str()), ("retryAfter", retry_after), ("url", url)] {
            if !value.is_empty() {
                let _ = write!(out, ",\"{name}\":\"");
                escape_into(&mut out, value);
                out.extend_from_slice(b"\"");
            }
        }
        out.extend_from_slice(b"}}}");
        out.freeze()
    }
}

/// Returns the longest beginning of `text` of at most `max` bytes that ends between characters.
pub(super) fn beginning(text: &str, max: usize) -> &str {
    (0..=max.min(text.len())).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, self.status) {
            (Cause::Status, Some(status)) => write!(f, "the server answered HTTP {status}")?,
            (Cause::Status, None) => f.write_str("the server answered with a failure")?,
            (Cause::Transport(error), _) => f.write_str(&error.text)?,
            (Cause::ContentType(media_type), _) => {
                write!(f, "the server answered with {media_type}, not with JSON or an event stream")?;
            }
            (Cause::ContentEncoding(coding), _) => {
                write!(f, "the server answered in {coding} although that was not asked for")?;
            }
            (Cause::Body, _) => f.write_str("the server's response is no answer to this request")?,
            (Cause::TooLong(len), _) => {
                write!(
                    f,
                    "the answer of {len} bytes or more is too long, more than {}",
                    crate::limits::MAX_MESSAGE
                )?;
            }
            (Cause::NoAnswer, Some(status)) => {
                write!(f, "the server ended its response (HTTP {status}) and had not answered")?;
            }
            (Cause::NoAnswer, None) => f.write_str("the server's stream ended and it had not answered")?,
            (Cause::Timeout, _) => f.write_str("the server did not answer in time")?,
            (Cause::SessionLost, status) => {
                f.write_str("the session has ended at the server, and a new one could not be made")?;
                if let Some(status) = status {
                    write!(f, " (HTTP {status})")?;
                }
            }
            (Cause::Ending, _) => f.write_str("the session ends, and the server has not answered")?,
        }
        let quoted = beginning(&self.excerpt, IN_MESSAGE);
        if quoted.is_empty() { Ok(()) } else { write!(f, ": {quoted}") }
    }
}

impl core::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_answer_says_what_the_server_said() {
        let excerpt = "<h1>\"bad\"\n\u{1}gateway\\</h1>".to_string();
        let failure = Failure {
            status: Some(502),
            excerpt: excerpt.clone(),
            retry_after: Some("3".into()),
            ..Failure::new(Cause::Status)
        };
        let answer = failure.answer(br#""a\"b""#, "https://host/mcp");
        assert!(!answer.contains(&b'\n'));
        let value: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(
            value,
            json!({"jsonrpc": "2.0", "id": "a\"b", "error": {
                "code": -32603,
                "message": "lumen: the server answered HTTP 502: ".to_string() + &excerpt,
                "data": {"reason": "http_status", "httpStatus": 502, "retryable": true, "excerpt": excerpt,
                         "retryAfter": "3", "url": "https://host/mcp"},
            }})
        );
    }

    #[test]
    fn the_message_quotes_less_than_the_data_and_cuts_between_characters() {
        let failure = Failure { excerpt: "漢".repeat(300), ..Failure::new(Cause::Body) };
        let value: Value = serde_json::from_slice(&failure.answer(b"1", "")).unwrap();
        let message = value["error"]["message"].as_str().unwrap();
        assert_eq!(message.chars().filter(|&char| char == '漢').count(), 66);
        assert_eq!(value["error"]["data"]["excerpt"].as_str().unwrap().chars().count(), 300);
        assert_eq!(value["error"]["data"].get("url"), None);
    }

    #[test]
    fn worth_trying_again_is_what_has_not_happened() {
        let transport = |kind| Cause::Transport(TransportError { kind, text: String::new() });
        assert!(Failure::new(transport(TransportErrorKind::Connect)).is_retryable());
        assert!(!Failure::new(transport(TransportErrorKind::Reset)).is_retryable());
        for (status, is_retryable) in [(503, true), (429, true), (500, false), (401, false), (404, false)] {
            let failure = Failure { status: Some(status), ..Failure::new(Cause::Status) };
            assert_eq!(failure.is_retryable(), is_retryable, "{status}");
        }
        assert!(!Failure { status: Some(503), ..Failure::new(Cause::Body) }.is_retryable());
    }
}
