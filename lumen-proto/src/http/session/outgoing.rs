//! What the agent says, on its way to the server.

use alloc::boxed::Box;

use bytes::Bytes;

use super::super::flight::{Gate, Purpose};
use super::super::headers::{self, add_modern, modern_version};
use super::super::post::{Class, Era, Post, cancelled, responses};
use super::super::{Cause, Event, ExchangeId, Failure, Method};
use super::{Phase, Session};
use crate::jsonrpc::{IdKey, Kind, Message, reply};
use crate::{Reason, limits};

impl Session {
    pub(super) fn on_agent_message(&mut self, message: Message) {
        if message.kind() == Kind::Request && message.method_is("initialize") {
            self.era = Era::Legacy;
        } else if let Some(version) = modern_version(&message) {
            self.era = Era::Modern;
            self.modern = Some(version.chars().take(limits::MAX_EXCERPT).collect());
        }
        let post = Post::new(message, self.era);
        if !matches!(self.phase, Phase::Serving | Phase::Grace { .. }) {
            return self.fail(post, &Failure::new(Cause::Ending));
        }
        if let Some(id) = cancelled(&post.message)
            && self.on_cancelled(&id)
        {
            return;
        }
        let mut is_asked = false;
        for id in responses(&post.message) {
            if self.settle_asked(id) {
                is_asked = true;
            } else {
                self.events.push(Event::Unasked { id: Bytes::copy_from_slice(id) });
            }
        }
        if post.message.kind() != Kind::Response || is_asked {
            self.queued += post.message.len();
            self.queue.push_back(post);
        }
    }

    /// Starts what may start.
    pub(super) fn on_queue(&mut self) {
        while !(self.queue.is_empty() && self.waiting.is_empty())
            && self.gate == Gate::Open
            && matches!(self.phase, Phase::Serving | Phase::Grace { .. })
            && self.flights.len() + self.parked.len() < limits::MAX_POSTS
        {
            let is_free = self.has_room();
            let post = if is_free && !self.waiting.is_empty() {
                self.waiting.pop_front()
            } else {
                match self.queue.front() {
                    // A notification tells about what was said before it.
                    Some(post) if !post.is_asking && is_note(&post.message) && self.has_unwritten() => return,
                    Some(_) => self.queue.pop_front(),
                    None => return,
                }
            };
            let Some(post) = post else { return };
            if post.is_asking && !is_free {
                self.waiting.push_back(post);
            } else {
                self.queued -= post.message.len();
                self.start(post);
            }
        }
    }

    /// Sends a message, for the first or the second time.
    pub(super) fn start(&mut self, mut post: Post) {
        let mut headers = headers::post();
        match (post.era, post.class) {
            (Era::Modern, _) => add_modern(&mut headers, &post, self.modern.as_deref(), &self.tools),
            (Era::Legacy, Class::Initialize) => {}
            (Era::Legacy, _) => {
                self.link.add_to(&mut headers);
                post.has_session = self.link.session.is_some();
            }
        }
        post.generation = self.link.generation;
        if post.due.is_none() {
            post.due = match post.class {
                Class::Listen => None,
                _ if post.is_asking => self.config.timeout.map(|timeout| self.now + timeout),
                _ => Some(self.now + limits::POST_PATIENCE),
            };
        }
        let is_handshake = matches!(post.class, Class::Initialize | Class::Initialized);
        let body = post.message.bytes().clone();
        let id = self.open(Method::Post, headers, body, Purpose::Post(Box::new(post)));
        if is_handshake {
            self.gate = Gate::Awaiting(id);
        }
    }

    /// Answers a request of the server's with an error. One of too many at once is not answered.
    pub(super) fn refuse_server(&mut self, id: &[u8], reason: &Reason) {
        if self.flights.len() + self.parked.len() < limits::MAX_POSTS
            && let Ok(message) = Message::parse(reply::error(Some(id), reason, None))
        {
            self.start(Post::new(message, Era::Legacy));
        }
    }

    /// Settles a request of the server's; returns whether it was waiting.
    pub(super) fn settle_asked(&mut self, id: &[u8]) -> bool {
        let Some(spelling) = IdKey::from_token(id).ok().and_then(|key| self.asked.remove(&key)) else {
            return false;
        };
        self.asked_bytes -= spelling.len() + super::ASKED_COST;
        true
    }

    /// Takes that the agent does not want an answer any more. Returns whether the server need not be told.
    fn on_cancelled(&mut self, id: &IdKey) -> bool {
        // What was not sent is not sent.
        for queue in [&mut self.waiting, &mut self.queue] {
            let is_it = |post: &Post| post.class != Class::Initialize && post.only_owes(id);
            if let Some(post) = queue.iter().position(is_it).and_then(|at| queue.remove(at)) {
                self.queued -= post.message.len();
                return true;
            }
        }
        let flying = self.flights.iter().filter_map(|(at, flight)| Some((*at, flight.purpose.post()?)));
        let flying = flying.filter(|(_, post)| post.class != Class::Initialize && post.owes(id));
        let found = flying.map(|(at, post)| (at, post.era)).next();
        match found {
            Some((at, Era::Modern)) => {
                self.abort(at);
            }
            Some((at, Era::Legacy)) => self.forget(at, id),
            None => {
                let owing = |parked: &super::Parked| parked.post.owes(id);
                if let Some(at) = self.parked.iter().position(owing)
                    && let Some(parked) = self.parked.get_mut(at)
                {
                    parked.post.take_key(id);
                    if !parked.post.is_owing() {
                        self.parked.remove(at);
                    }
                }
            }
        }
        self.era == Era::Modern
    }

    /// Forgets a request whose exchange goes on.
    fn forget(&mut self, at: ExchangeId, id: &IdKey) {
        let until = self.now + limits::STREAM_LINGER;
        if let Some(flight) = self.flights.get_mut(&at)
            && let Purpose::Post(post) = &mut flight.purpose
        {
            post.take_key(id);
            if !post.is_owing() {
                flight.due = Some(until);
            }
        }
    }

    /// Returns whether a message of the agent's is not yet with the server.
    fn has_unwritten(&self) -> bool {
        self.flights.values().any(|flight| !flight.is_written && flight.purpose.post().is_some())
    }
}

/// Whether it is no answer: those only concern the request that they answer.
fn is_note(message: &Message) -> bool {
    message.kind() != Kind::Response
}
