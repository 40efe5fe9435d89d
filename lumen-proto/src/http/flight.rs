//! What an exchange under way is for, and what waits for its turn.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;

use super::headers::{Headers, add};
use super::post::{Post, Resume};
use super::response::{Head, Response};
use super::{ExchangeId, sentinel};
use crate::jsonrpc::{Message, decode_str, find};
use crate::{Instant, limits};

/// An exchange under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) purpose: Purpose,
    /// The server has its request, or will have.
    pub(super) is_written: bool,
    /// It goes on with a stream that was interrupted.
    pub(super) is_resumed: bool,
    pub(super) response: Option<Response>,
    /// The session that the response names.
    pub(super) session: Option<String>,
    pub(super) due: Option<Instant>,
}

/// What an exchange is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A message of the agent's.
    Post(Box<Post>),
    /// The hidden `initialize` of a session made anew.
    Renew,
    /// The hidden `notifications/initialized` after that.
    Confirm,
    /// A hidden `tools/list`.
    Refresh,
    /// The server's own stream.
    Stream,
    /// The end of the session.
    Delete,
}

impl Purpose {
    /// Returns the message of the agent's that it is for.
    pub(super) const fn post(&self) -> Option<&Post> {
        match self {
            Self::Post(post) => Some(post),
            _ => None,
        }
    }
}

/// A message of the agent's that was sent and has to be sent or asked for again.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) post: Post,
    pub(super) until: Until,
}

/// What a parked message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// A session at the server.
    Renewed,
    /// A newer list of tools.
    Refreshed,
    /// The time to open its stream again.
    Time(Instant),
}

/// Whether messages of the agent's may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// Not before the handshake in this exchange has been answered.
    Awaiting(ExchangeId),
    /// Not before there is a new session.
    Renewing,
}

/// What is agreed with the server in a session.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Counts sessions; 0 before the first.
    pub(super) generation: u64,
    pub(super) session: Option<String>,
    version: Option<String>,
    /// The agent's `initialize`, once it was answered well.
    pub(super) initialize: Option<Message>,
    /// The agent's `notifications/initialized`, once it was taken.
    pub(super) initialized: Option<Message>,
}

impl Link {
    /// Takes the answer to an `initialize`: a session begins.
    pub(super) fn begin(&mut self, answer: &Message, session: Option<String>) {
        let text = answer.bytes();
        let version = answer.envelope().result.and_then(|result| find(text, result, &["protocolVersion"]));
        let version = version.and_then(|version| decode_str(version.of(text)));
        self.version = version.as_deref().and_then(header_value);
        self.session = session;
        self.generation += 1;
    }

    /// Adds what every request after the `initialize` has.
    pub(super) fn add_to(&self, headers: &mut Headers) {
        let named = [("mcp-session-id", &self.session), ("mcp-protocol-version", &self.version)];
        for (name, value) in named {
            if let Some(value) = value {
                add(headers, name, value);
            }
        }
    }
}

/// Returns the session that a response names.
pub(super) fn session(head: &Head<'_>) -> Option<String> {
    head.session.and_then(header_value)
}

fn header_value(value: &str) -> Option<String> {
    let is_good = !value.is_empty() && value.len() <= limits::MAX_HEADER && sentinel::is_safe(value);
    is_good.then(|| value.to_owned())
}

/// The server's own stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) exchange: Option<ExchangeId>,
    pub(super) resume: Resume,
    pub(super) opened: Instant,
    /// When to open it again.
    pub(super) again: Option<Instant>,
}
