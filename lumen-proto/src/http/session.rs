//! The session.

use super::{Config, Event, ExchangeId, Request, TransportError};
use crate::Instant;
use crate::jsonrpc::Message;

/// One agent's session with one URL.
///
/// # Order of calls
/// After every `handle_*`, and after a message was taken, ask [`poll_abort`](Self::poll_abort) and
/// [`poll_request`](Self::poll_request) until both return `None`, then look at
/// [`poll_timeout`](Self::poll_timeout). Of one exchange: `handle_written`, `handle_head`, `handle_chunk` any
/// number of times, then once `handle_end`; `handle_end` may come at any point and ends it. What is told of an
/// exchange that has ended or was aborted is ignored.
#[derive(Debug)]
pub struct Session {
    config: Config,
}

impl Session {
    /// Makes a session; nothing is sent before the agent says something.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// Takes a message of the agent's.
    pub fn handle_message(&mut self, now: Instant, message: Message) {
        let _ = (now, message, &self.config);
    }

    /// Takes that the body of a request is with the server, or on its way there: what depends on the order may
    /// follow. A head or an end implies it.
    pub fn handle_written(&mut self, now: Instant, id: ExchangeId) {
        let _ = (now, id);
    }

    /// Takes a response's status and headers, with names in lower case. Those looked at are `content-type`,
    /// `content-encoding`, `mcp-session-id` and `retry-after`.
    pub fn handle_head(&mut self, now: Instant, id: ExchangeId, status: u16, headers: &[(&str, &str)]) {
        let _ = (now, id, status, headers);
    }

    /// Takes bytes of a response's body.
    pub fn handle_chunk(&mut self, now: Instant, id: ExchangeId, chunk: &[u8]) {
        let _ = (now, id, chunk);
    }

    /// Takes the end of an exchange: the response was read to its end, or something failed.
    pub fn handle_end(&mut self, now: Instant, id: ExchangeId, result: Result<(), TransportError>) {
        let _ = (now, id, result);
    }

    /// Takes that the agent has closed its input.
    pub fn handle_eof(&mut self, now: Instant) {
        let _ = now;
    }

    /// Ends the session because we were told to end.
    pub fn terminate(&mut self, now: Instant) {
        let _ = now;
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// Returns the next request to make.
    #[must_use]
    pub fn poll_request(&mut self) -> Option<Request> {
        None
    }

    /// Returns an exchange to drop, however far it is. Nothing more needs to be told of it.
    #[must_use]
    pub fn poll_abort(&mut self) -> Option<ExchangeId> {
        None
    }

    /// Returns the next message for the agent.
    #[must_use]
    pub fn poll_message(&mut self) -> Option<Message> {
        None
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is next due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Returns whether more of this response may be read now. Ask again after every other call: what changes it
    /// is that messages were taken, or that other responses have ended.
    pub fn wants_chunks(&self, id: ExchangeId) -> bool {
        let _ = id;
        true
    }

    /// Returns whether more messages of the agent may be taken now. One more always can.
    pub fn wants_messages(&self) -> bool {
        true
    }

    /// Returns whether everything is over: all is answered and the session has ended at the server.
    pub fn is_over(&self) -> bool {
        false
    }
}
