//! What the server says, on its way to the agent.

use bytes::Bytes;

use super::super::flight::{Gate, Parked, Purpose, Until};
use super::super::post::{Class, Era, Post, error_code, with_id};
use super::super::{Cause, Event, ExchangeId, Failure};
use super::Session;
use crate::jsonrpc::{IdKey, Kind, Message, batch};
use crate::sse::Step;
use crate::{Reason, limits};

/// The error of a server that misses a header, or finds another value in it than in the body.
const HEADER_MISMATCH: &[u8] = b"-32020";

/// The error of a server that does not know a method.
const UNKNOWN_METHOD: &[u8] = b"-32601";

impl Session {
    /// Takes that a response has begun.
    pub(super) fn on_head(&mut self, id: ExchangeId) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let Some(response) = &flight.response else { return };
        match &flight.purpose {
            Purpose::Stream if !response.is_stream() => self.on_no_stream(id),
            _ if !response.is_success() => {}
            Purpose::Post(post) if post.is_owing() => {}
            Purpose::Post(post) => {
                let started = (post.class == Class::Initialized).then(|| post.message.clone());
                flight.due = Some(self.now + limits::STREAM_LINGER);
                if let Some(message) = started {
                    self.link.initialized = Some(message);
                    self.on_started(id);
                }
            }
            Purpose::Confirm => {
                flight.due = Some(self.now + limits::STREAM_LINGER);
                self.on_confirmed();
            }
            _ => {}
        }
    }

    /// Takes what a stream has come to.
    pub(super) fn on_step(&mut self, id: ExchangeId, step: Step) {
        let resume = match self.flights.get_mut(&id).map(|flight| &mut flight.purpose) {
            Some(Purpose::Post(post)) => Some(&mut post.resume),
            Some(Purpose::Stream) => Some(&mut self.stream.resume),
            _ => None,
        };
        let (Step::Event(crate::sse::Event { id: event, .. }) | Step::Skipped { id: event, .. }) = &step;
        if let Some(resume) = resume {
            resume.on_event();
            if let Some(event) = event {
                resume.on_id(event);
            }
        }
        match step {
            Step::Event(event) if event.is_message && !event.data.is_empty() => self.on_data(id, event.data),
            Step::Event(_) => {}
            Step::Skipped { len, scan, .. } => {
                self.events.push(Event::Noise { excerpt: Bytes::new(), len });
                let reason = Reason::TooLong { len, max: limits::MAX_MESSAGE as u64 };
                let is_request = scan.has_method;
                match scan.id {
                    Some(token) if is_request => self.refuse_server(&token, &reason),
                    Some(token) => self.on_broken(id, &token, Cause::TooLong(len), &[]),
                    None => {}
                }
            }
        }
    }

    /// Takes the data of an event.
    fn on_data(&mut self, id: ExchangeId, data: Bytes) {
        let len = data.len() as u64;
        match Message::parse(data) {
            Ok(message) => self.on_message(id, message),
            Err((refused, data)) => {
                let beginning = data.get(..limits::MAX_EXCERPT).unwrap_or(&data);
                let mut excerpt = alloc::string::String::from_utf8_lossy(beginning).into_owned();
                self.config.secrets.hide(&mut excerpt);
                let excerpt = Bytes::from(excerpt);
                self.events.push(Event::Noise { excerpt, len });
                match refused.id.map(|span| span.of(&data)) {
                    Some(token) if refused.has_method => self.refuse_server(token, &refused.reason),
                    Some(token) => self.on_broken(id, token, Cause::Body, &data),
                    None => {}
                }
            }
        }
    }

    /// Takes that the answer to `token` has come and cannot be read.
    fn on_broken(&mut self, id: ExchangeId, token: &[u8], cause: Cause, said: &[u8]) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let (Purpose::Post(post), Some(response)) = (&mut flight.purpose, &flight.response) else { return };
        let failure = self.config.secrets.hide_in(response.failure_with(cause, said));
        let Some(spelling) = post.take(token) else { return };
        if let Ok(message) = Message::parse(failure.answer(&spelling, &self.config.url)) {
            self.tell(message);
        }
        self.events.push(Event::Failed { id: spelling, failure });
        self.on_answered(id);
    }

    /// Takes a message of the server's.
    fn on_message(&mut self, from: ExchangeId, message: Message) {
        if message.kind() != Kind::Batch {
            if self.is_wanted(from, &message) {
                self.tell(message);
            }
            return;
        }
        // The agent gets a batch if it sent one, and if nothing in it has to be left out.
        let sent = self.flights.get(&from).and_then(|flight| flight.purpose.post());
        let keeps = sent.is_some_and(|post| post.message.kind() == Kind::Batch);
        let text = message.bytes();
        let elements = batch(text).filter_map(|element| Message::copy_from(element.body.of(text)).ok());
        let mut wanted = alloc::vec::Vec::new();
        let mut is_whole = keeps;
        for element in elements {
            if self.is_wanted(from, &element) {
                wanted.push(element);
            } else {
                is_whole = false;
            }
        }
        if is_whole {
            return self.tell(message);
        }
        for element in wanted {
            self.tell(element);
        }
    }

    /// Takes note of one message of the server's; returns whether it is for the agent.
    fn is_wanted(&mut self, from: ExchangeId, message: &Message) -> bool {
        match message.kind() {
            Kind::Request => self.on_request(message),
            Kind::Response => self.on_response(from, message),
            Kind::Notification | Kind::Batch => true,
        }
    }

    fn on_request(&mut self, message: &Message) -> bool {
        let id = message.id().unwrap_or_default();
        let Ok(key) = IdKey::from_token(id) else { return false };
        let cost = id.len() + super::ASKED_COST;
        let refused = if self.phase != super::Phase::Serving {
            Some(Reason::ClientGone)
        } else if self.asked_bytes + cost > limits::MAX_OWED {
            Some(Reason::Busy)
        } else {
            None
        };
        if let Some(reason) = refused {
            self.refuse_server(id, &reason);
            return false;
        }
        if self.asked.insert(key, Bytes::copy_from_slice(id)).is_none() {
            self.asked_bytes += cost;
        }
        true
    }

    /// Takes an answer. In the server's own stream it may be to anything.
    fn on_response(&mut self, from: ExchangeId, message: &Message) -> bool {
        let token = message.id().filter(|id| *id != b"null");
        let at = match self.flights.get(&from).map(|flight| &flight.purpose) {
            Some(Purpose::Post(_)) => Some(from),
            Some(Purpose::Stream) => {
                let key = token.and_then(|token| IdKey::from_token(token).ok());
                key.and_then(|key| {
                    let owing = |post: &Post| post.owes(&key);
                    self.flights
                        .iter()
                        .find(|(_, flight)| flight.purpose.post().is_some_and(owing))
                        .map(|(id, _)| *id)
                })
            }
            Some(Purpose::Renew) => {
                self.on_renewal(from, message);
                return false;
            }
            Some(Purpose::Refresh) => {
                self.on_page(from, message);
                return false;
            }
            _ => None,
        };
        let Some(flight) = at.and_then(|at| self.flights.get_mut(&at)) else { return self.on_unasked(token) };
        let Purpose::Post(post) = &mut flight.purpose else { return self.on_unasked(token) };
        let Some(token) = token else {
            // An error of whoever could not read the only request there was.
            let only = post.only().filter(|_| message.envelope().error.is_some()).cloned();
            if let Some(adopted) = only.and_then(|only| with_id(message, &only)) {
                for _ in post.settle_all() {}
                self.tell(adopted);
                self.on_answered(from);
            }
            return false;
        };
        if !post.settle(token) {
            return self.on_unasked(Some(token));
        }
        if message.envelope().result.is_some() {
            match post.class {
                Class::Initialize => {
                    self.link.initialize = Some(post.message.clone());
                    let session = flight.session.take();
                    self.on_begun(message, session);
                }
                Class::ListTools if post.era == Era::Modern => self.tools.remember(message),
                _ => {}
            }
        }
        if let Some(at) = at {
            self.on_answered(at);
        }
        true
    }

    fn on_unasked(&mut self, token: Option<&[u8]>) -> bool {
        if let Some(token) = token {
            self.events.push(Event::Unasked { id: Bytes::copy_from_slice(token) });
        }
        false
    }

    /// Takes that something was answered in this exchange: if that was all, the rest need not take long.
    fn on_answered(&mut self, id: ExchangeId) {
        let until = self.now + limits::STREAM_LINGER;
        let Some(flight) = self.flights.get_mut(&id) else { return };
        if flight.purpose.post().is_some_and(|post| !post.is_owing()) {
            flight.due = Some(until);
            if self.gate == Gate::Awaiting(id) {
                self.gate = Gate::Open;
            }
        }
    }

    /// Takes the end of a body that is no stream.
    pub(super) fn on_body_end(&mut self, id: ExchangeId) {
        let Some(response) = self.flights.get_mut(&id).and_then(|flight| flight.response.as_mut()) else {
            return;
        };
        let before = response.pending();
        let Some(text) = response.take_text() else {
            match response.fault() {
                Some(failure) => self.on_failed(id, failure, None),
                None => self.on_done(id),
            }
            return;
        };
        self.collected -= before;
        let is_success = response.is_success();
        let is_blank = text.iter().all(u8::is_ascii_whitespace);
        let cause = match (is_success, is_blank) {
            (false, _) => Cause::Status,
            (true, true) => Cause::NoAnswer,
            (true, false) => Cause::Body,
        };
        let failure = response.failure_with(cause, &text);
        match Message::parse(text) {
            Ok(message) if is_success => {
                self.on_message(id, message);
                self.on_failed(id, failure, None);
            }
            Ok(message) if message.envelope().error.is_some() => self.on_failed(id, failure, Some(message)),
            _ => self.on_failed(id, failure, None),
        }
    }

    /// Ends an exchange that brought no answer, or not all; `answer` is the error answer that the server refused it
    /// with.
    pub(super) fn on_failed(&mut self, id: ExchangeId, failure: Failure, answer: Option<Message>) {
        let Some(flight) = self.close(id) else { return };
        let mut post = match flight.purpose {
            Purpose::Post(post) => *post,
            Purpose::Renew | Purpose::Confirm => return self.on_not_renewed(failure),
            Purpose::Refresh => return self.on_refreshed(),
            Purpose::Stream => return self.on_own_stream_end(failure),
            Purpose::Delete => return self.on_deleted(),
        };
        if post.is_asking && !post.is_owing() {
            return;
        }
        let code = answer.as_ref().and_then(error_code);
        if flight.is_resumed {
            return self.on_resume_failed(post, failure);
        }
        if failure.status == Some(404)
            && failure.cause == Cause::Status
            && post.may_renew()
            && code != Some(UNKNOWN_METHOD)
        {
            self.parked.push(Parked { post, until: Until::Renewed });
            return;
        }
        if code == Some(HEADER_MISMATCH)
            && post.class == Class::CallTool
            && post.era == Era::Modern
            && !post.retried
        {
            return self.on_mismatch(post);
        }
        if let Some(answer) = answer {
            self.adopt(&mut post, answer);
        }
        if post.is_owing() || !post.is_asking {
            self.fail(post, &failure);
        }
    }

    /// Passes on the error that a whole request was refused with. Servers that did not look at the id put another one.
    fn adopt(&mut self, post: &mut Post, answer: Message) {
        if answer.id().is_some_and(|id| post.settle(id)) {
            self.tell(answer);
        } else if let Some(adopted) = post.only().and_then(|only| with_id(&answer, only)) {
            for _ in post.settle_all() {}
            self.tell(adopted);
        }
    }

    /// Ends an exchange of which no answer was expected.
    pub(super) fn on_done(&mut self, id: ExchangeId) {
        let Some(flight) = self.close(id) else { return };
        if matches!(flight.purpose, Purpose::Delete) {
            self.on_deleted();
        }
    }
}
