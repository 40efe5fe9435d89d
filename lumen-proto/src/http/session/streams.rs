//! Streams that end before their time, and the server's own.

use alloc::boxed::Box;

use bytes::Bytes;

use super::super::flight::{Parked, Purpose, Stream, Until};
use super::super::headers::{Headers, add};
use super::super::post::{Class, Era, Post, Resume};
use super::super::{Cause, Event, ExchangeId, Failure, Method, TransportError};
use super::{Phase, Session};
use crate::jsonrpc::Message;
use crate::limits;
use crate::sse::Step;

impl Session {
    /// Takes the end of a stream, whoever ended it.
    pub(super) fn on_stream_end(&mut self, id: ExchangeId, error: Option<TransportError>) {
        let Some(response) = self.flights.get_mut(&id).and_then(|flight| flight.response.as_mut()) else {
            return;
        };
        let before = response.pending();
        let last = response.finish();
        self.collected -= before;
        match last {
            // It is whole if it is a message.
            Some(Step::Event(event)) if Message::copy_from(&event.data).is_err() => {}
            Some(step) => self.on_step(id, step),
            None => {}
        }
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let Some(response) = &flight.response else { return };
        let failure = response.failure(error.map_or(Cause::NoAnswer, Cause::Transport));
        let retry = response.retry();
        match &mut flight.purpose {
            Purpose::Post(post) if post.is_owing() && post.era == Era::Legacy => {
                post.resume.on_retry(retry);
                if let Some(Purpose::Post(post)) = self.close(id).map(|flight| flight.purpose) {
                    self.resume(*post, failure);
                }
            }
            Purpose::Stream => {
                self.stream.resume.on_retry(retry);
                self.on_failed(id, failure, None);
            }
            Purpose::Post(post) if post.is_owing() => self.on_failed(id, failure, None),
            Purpose::Renew | Purpose::Refresh => self.on_failed(id, failure, None),
            Purpose::Post(_) | Purpose::Confirm | Purpose::Delete => self.on_done(id),
        }
    }

    /// Takes that the stream of a request could not be opened again.
    pub(super) fn on_resume_failed(&mut self, post: Post, failure: Failure) {
        let is_passing =
            matches!(failure.cause, Cause::Transport(_)) || matches!(failure.status, Some(429 | 500..));
        if is_passing { self.resume(post, failure) } else { self.fail(post, &failure) }
    }

    /// Goes on with the stream of a request later, if that can be.
    fn resume(&mut self, mut post: Post, failure: Failure) {
        // Before the answer to the handshake there is no session to go on in.
        let may_resume = post.resume.last_id().is_some() && post.class != Class::Initialize;
        let time = if may_resume { post.resume.next_try(self.now) } else { None };
        match time {
            Some(time) => self.parked.push(Parked { post, until: Until::Time(time) }),
            None => self.fail(post, &failure),
        }
    }

    /// Opens the streams again whose time has come.
    pub(super) fn on_resume_time(&mut self) {
        let now = self.now;
        for post in self.take_parked(|until| matches!(until, Until::Time(time) if time <= now)) {
            let headers = self.stream_headers(&post.resume);
            self.open(Method::Get, headers, Bytes::new(), Purpose::Post(Box::new(post)));
        }
        if self.stream.again.is_some_and(|again| again <= now) {
            self.stream.again = None;
            self.open_stream();
        }
    }

    /// Opens the server's own stream.
    pub(super) fn open_stream(&mut self) {
        if self.phase != Phase::Serving || self.stream.exchange.is_some() {
            return;
        }
        let headers = self.stream_headers(&self.stream.resume);
        self.stream.opened = self.now;
        self.stream.exchange = Some(self.open(Method::Get, headers, Bytes::new(), Purpose::Stream));
    }

    /// Drops the server's own stream.
    pub(super) fn close_stream(&mut self) {
        let stream = core::mem::take(&mut self.stream);
        if let Some(id) = stream.exchange {
            self.abort(id);
        }
    }

    /// Takes that there is no stream in the response to a request for the server's own.
    pub(super) fn on_no_stream(&mut self, id: ExchangeId) {
        let Some(flight) = self.abort(id) else { return };
        let Some(response) = flight.response else { return };
        let failure = response.fault().unwrap_or_else(|| response.failure(Cause::Body));
        self.on_own_stream_end(failure);
    }

    /// Takes the end of the server's own stream, and opens it again later unless the server has none.
    pub(super) fn on_own_stream_end(&mut self, failure: Failure) {
        let Stream { exchange, resume, opened, again } = &mut self.stream;
        *exchange = None;
        // One that was open for long was of use, even if nothing came.
        if self.now.saturating_since(*opened) >= limits::RETRY_CAP {
            resume.on_event();
        }
        let is_passing = matches!(failure.cause, Cause::Transport(_) | Cause::NoAnswer)
            || matches!(failure.status, Some(429 | 500..));
        *again = if is_passing { resume.next_try(self.now) } else { None };
        if again.is_none() {
            self.events.push(Event::NoStream(self.config.secrets.hide_in(failure)));
        }
    }

    fn stream_headers(&self, resume: &Resume) -> Headers {
        let mut headers = Headers::new();
        add(&mut headers, "accept", "text/event-stream");
        self.link.add_to(&mut headers);
        if let Some(last_id) = resume.last_id() {
            add(&mut headers, "last-event-id", last_id);
        }
        headers
    }
}
