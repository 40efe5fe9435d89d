//! The session.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

use super::event::Events;
use super::flight::{Flight, Gate, Link, Parked, Purpose, Stream, session};
use super::headers::Headers;
use super::post::{Era, Post};
use super::response::{Head, Response};
use super::tools::Tools;
use super::{Cause, Config, Event, ExchangeId, Failure, Method, Request, TransportError};
use crate::jsonrpc::{IdKey, Message};
use crate::{Instant, limits};

mod ending;
mod incoming;
mod outgoing;
mod renewal;
mod streams;

/// What a map takes for one request of the server's, and the error that may have to answer it.
const ASKED_COST: usize = 64;

/// One agent's session with one URL.
///
/// # Order of calls
/// After every `handle_*`, and after a message was taken, ask [`poll_abort`](Self::poll_abort) and
/// [`poll_request`](Self::poll_request) until both return `None`, then look at
/// [`poll_timeout`](Self::poll_timeout). Of one exchange: `handle_written`, `handle_head`, `handle_chunk` any
/// number of times, then once `handle_end`; `handle_end` may come at any point and ends it. What is told of an
/// exchange that has ended or was aborted is ignored.
///
/// # Bounds
/// [`limits::MAX_POSTS`] exchanges and two of our own; [`limits::MAX_RUNNING`] plus one message for requests that run;
/// [`limits::MAX_QUEUE`] plus one message in the queue of each direction; [`limits::MAX_COLLECTED`] of unfinished responses; [`limits::MAX_OWED`] for ids of the server's requests;
/// [`limits::MAX_TOOLS`].
#[derive(Debug)]
pub struct Session {
    config: Config,
    now: Instant,
    phase: Phase,
    /// We were told to end.
    told: bool,
    /// How many answers somebody waited for when the grace was over.
    unanswered: usize,
    next: u64,
    flights: BTreeMap<ExchangeId, Flight>,
    /// Bytes of responses in `flights`.
    collected: usize,
    /// What the agent said and has not started, in order.
    queue: VecDeque<Post>,
    /// Requests that come before all of `queue`, for which too many others are under way.
    waiting: VecDeque<Post>,
    /// Bytes in both.
    queued: usize,
    gate: Gate,
    parked: Vec<Parked>,
    era: Era,
    /// The version that the last modern request was made in.
    modern: Option<String>,
    link: Link,
    stream: Stream,
    tools: Tools,
    /// The `_meta` of the hidden `tools/list` under way, and how many pages came.
    refresh: Option<(Bytes, u32)>,
    /// Requests of the server that the agent has not answered.
    asked: BTreeMap<IdKey, Bytes>,
    asked_bytes: usize,
    requests: VecDeque<Request>,
    aborts: VecDeque<ExchangeId>,
    /// For the agent, and whether it is an error of ours.
    messages: VecDeque<(Message, bool)>,
    /// Bytes in `messages`.
    outgoing: usize,
    /// How many of those are of errors of ours.
    outgoing_own: usize,
    events: Events,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// The agent says no more, or shall not; what is owed is waited for.
    Grace {
        until: Instant,
    },
    /// The session is being ended at the server.
    Deleting,
    Over,
}

impl Session {
    /// Makes a session; nothing is sent before the agent says something.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            now: Instant::ZERO,
            phase: Phase::Serving,
            told: false,
            unanswered: 0,
            next: 0,
            flights: BTreeMap::new(),
            collected: 0,
            queue: VecDeque::new(),
            waiting: VecDeque::new(),
            queued: 0,
            gate: Gate::Open,
            parked: Vec::new(),
            era: Era::Legacy,
            modern: None,
            link: Link::default(),
            stream: Stream::default(),
            tools: Tools::default(),
            refresh: None,
            asked: BTreeMap::new(),
            asked_bytes: 0,
            requests: VecDeque::new(),
            aborts: VecDeque::new(),
            messages: VecDeque::new(),
            outgoing: 0,
            outgoing_own: 0,
            events: Events::default(),
        }
    }

    /// Takes a message of the agent's.
    pub fn handle_message(&mut self, now: Instant, message: Message) {
        self.advance(now);
        self.on_agent_message(message);
        self.settle();
    }

    /// Takes that the body of a request is with the server, or on its way there: what depends on the order may
    /// follow. A head or an end implies it.
    pub fn handle_written(&mut self, now: Instant, id: ExchangeId) {
        self.advance(now);
        if let Some(flight) = self.flights.get_mut(&id) {
            flight.is_written = true;
        }
        self.settle();
    }

    /// Takes a response's status and headers, with names in lower case. Those looked at are `content-type`,
    /// `content-encoding`, `mcp-session-id` and `retry-after`.
    pub fn handle_head(&mut self, now: Instant, id: ExchangeId, status: u16, headers: &[(&str, &str)]) {
        self.advance(now);
        let head = Head::new(status, headers);
        if let Some(flight) = self.flights.get_mut(&id)
            && flight.response.is_none()
        {
            let is_asked = match &flight.purpose {
                Purpose::Post(post) => post.is_owing(),
                Purpose::Renew | Purpose::Refresh | Purpose::Stream => true,
                Purpose::Confirm | Purpose::Delete => false,
            };
            flight.is_written = true;
            flight.session = session(&head);
            flight.response = Some(Response::new(&head, is_asked));
            self.on_head(id);
        }
        self.settle();
    }

    /// Takes bytes of a response's body.
    pub fn handle_chunk(&mut self, now: Instant, id: ExchangeId, mut chunk: &[u8]) {
        self.advance(now);
        while !chunk.is_empty() {
            let Some(response) = self.flights.get_mut(&id).and_then(|flight| flight.response.as_mut()) else {
                break;
            };
            let before = response.pending();
            let pushed = response.push(&mut chunk);
            self.collected = (self.collected + response.pending()).saturating_sub(before);
            match pushed {
                Ok(Some(step)) => self.on_step(id, step),
                Ok(None) => {}
                Err(failure) => {
                    self.aborts.push_back(id);
                    self.on_failed(id, failure, None);
                }
            }
        }
        self.settle();
    }

    /// Takes the end of an exchange: the response was read to its end, or something failed.
    pub fn handle_end(&mut self, now: Instant, id: ExchangeId, result: Result<(), TransportError>) {
        self.advance(now);
        match self.flights.get(&id).map(|flight| &flight.response) {
            None => {}
            Some(None) => {
                let cause = result.err().map_or(Cause::NoAnswer, Cause::Transport);
                self.on_failed(id, Failure::new(cause), None);
            }
            Some(Some(response)) if response.is_stream() => self.on_stream_end(id, result.err()),
            Some(Some(response)) => match result {
                Ok(()) => self.on_body_end(id),
                Err(_) if response.is_ignored() => self.on_done(id),
                Err(error) => {
                    let failure = response.failure(Cause::Transport(error));
                    self.on_failed(id, failure, None);
                }
            },
        }
        self.settle();
    }

    /// Takes that an answer of the agent's to the server cannot be read; `id` is its id as spelled. Returns whether the
    /// server waits for it: then it is told.
    pub fn handle_broken_answer(&mut self, now: Instant, id: &[u8], reason: &crate::Reason) -> bool {
        self.advance(now);
        let was_asked = self.settle_asked(id);
        if was_asked {
            self.refuse_server(id, reason);
        }
        self.settle();
        was_asked
    }

    /// Takes that the agent has closed its input. What it waits for is still answered.
    pub fn handle_eof(&mut self, now: Instant) {
        self.advance(now);
        self.on_eof();
        self.settle();
    }

    /// Ends the session because we were told to end.
    pub fn terminate(&mut self, now: Instant) {
        self.advance(now);
        self.on_told();
        self.settle();
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.on_time();
        self.settle();
    }

    /// Returns the next request to make.
    #[must_use]
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Returns an exchange to drop, however far it is. Nothing more needs to be told of it.
    #[must_use]
    pub fn poll_abort(&mut self) -> Option<ExchangeId> {
        self.aborts.pop_front()
    }

    /// Returns the next message for the agent.
    #[must_use]
    pub fn poll_message(&mut self) -> Option<Message> {
        let (message, is_own) = self.messages.pop_front()?;
        self.outgoing -= message.len();
        self.outgoing_own -= if is_own { message.len() } else { 0 };
        Some(message)
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is next due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_time()
    }

    /// Returns whether more of this response may be read now. Ask again after every other call: what changes it
    /// is that messages were taken, or that other responses have ended.
    pub fn wants_chunks(&self, id: ExchangeId) -> bool {
        self.outgoing < limits::MAX_QUEUE
            && (self.collected < limits::MAX_COLLECTED || self.largest().is_none_or(|largest| largest == id))
    }

    /// Returns whether more messages of the agent may be taken now. One more always can.
    pub fn wants_messages(&self) -> bool {
        // What the server says does not count: an agent may well read it only when it has written all it has to say.
        self.queued < limits::MAX_QUEUE && self.outgoing_own < limits::MAX_QUEUE
    }

    /// Returns whether everything is over: all is answered and the session has ended at the server.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Returns how many answers somebody waited for when the grace was over.
    pub const fn unanswered(&self) -> usize {
        self.unanswered
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Does what has become possible.
    fn settle(&mut self) {
        self.on_parked();
        self.on_queue();
        self.on_phase();
    }

    /// Starts an exchange.
    fn open(&mut self, method: Method, headers: Headers, body: Bytes, purpose: Purpose) -> ExchangeId {
        let id = ExchangeId(self.next);
        self.next += 1;
        let due = match &purpose {
            Purpose::Post(post) => post.due,
            Purpose::Stream => None,
            Purpose::Delete if self.told => Some(self.now + limits::QUICK_DELETE_PATIENCE),
            Purpose::Delete => Some(self.now + limits::DELETE_PATIENCE),
            Purpose::Renew | Purpose::Confirm | Purpose::Refresh => Some(self.now + limits::POST_PATIENCE),
        };
        let is_resumed = method == Method::Get;
        let flight = Flight { purpose, is_written: false, is_resumed, response: None, session: None, due };
        self.flights.insert(id, flight);
        self.requests.push_back(Request { id, method, headers, body });
        id
    }

    /// Forgets an exchange that has ended.
    fn close(&mut self, id: ExchangeId) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        self.collected -= flight.response.as_ref().map_or(0, Response::pending);
        if self.gate == Gate::Awaiting(id) {
            self.gate = Gate::Open;
        }
        Some(flight)
    }

    /// Drops an exchange.
    fn abort(&mut self, id: ExchangeId) -> Option<Flight> {
        let flight = self.close(id)?;
        let before = self.requests.len();
        self.requests.retain(|request| request.id != id);
        if self.requests.len() == before {
            self.aborts.push_back(id);
        }
        Some(flight)
    }

    /// Drops an exchange of which nothing more is wanted; one that was no stream has come to its end.
    fn leave(&mut self, id: ExchangeId) {
        let response = self.flights.get(&id).and_then(|flight| flight.response.as_ref());
        if response.is_some_and(Response::is_stream) {
            self.abort(id);
        } else {
            self.close(id);
        }
    }

    /// Queues a message for the agent.
    fn tell(&mut self, message: Message) {
        self.outgoing += message.len();
        self.messages.push_back((message, false));
    }

    /// Answers whatever a message of the agent's still waits for with an error of ours.
    fn fail(&mut self, mut post: Post, failure: &Failure) {
        let failure = self.config.secrets.hide_in(failure.clone());
        for id in post.settle_all() {
            if let Ok(message) = Message::parse(failure.answer(&id, &self.config.url)) {
                self.outgoing += message.len();
                self.outgoing_own += message.len();
                self.messages.push_back((message, true));
            }
            self.events.push(Event::Failed { id, failure: failure.clone() });
        }
        if !post.is_asking {
            let method = post.method().map(|method| method.chars().take(limits::MAX_EXCERPT).collect());
            self.events.push(Event::Undelivered { method, failure });
        }
    }

    /// Returns the exchange of whose response most is kept.
    fn largest(&self) -> Option<ExchangeId> {
        let kept = |flight: &Flight| flight.response.as_ref().map_or(0, Response::pending);
        self.flights.iter().max_by_key(|(_, flight)| kept(flight)).map(|(id, _)| *id)
    }

    /// Returns whether one more request of the agent's may run.
    fn has_room(&self) -> bool {
        let flying = self.flights.values().filter_map(|flight| flight.purpose.post());
        let running =
            flying.chain(self.parked.iter().map(|parked| &parked.post)).filter(|post| post.is_owing());
        let (count, bytes) =
            running.fold((0, 0), |(count, bytes), post| (count + 1, bytes + post.message.len()));
        count < limits::MAX_EXCHANGES && bytes < limits::MAX_RUNNING
    }
}

#[cfg(test)]
mod tests;
