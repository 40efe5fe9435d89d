//! Sessions that begin, are lost and made anew, and lists of tools that are out of date.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use super::super::flight::{Gate, Parked, Purpose, Until};
use super::super::headers::{self, add_modern, meta};
use super::super::post::{Era, Post};
use super::super::{Cause, Event, ExchangeId, Failure, Method};
use super::Session;
use crate::jsonrpc::{Message, find, members};
use crate::limits;

/// What is sent after a hidden `initialize` if the agent never sent its own.
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Session {
    /// Takes the answer to an `initialize`.
    pub(super) fn on_begun(&mut self, answer: &Message, session: Option<String>) {
        self.link.begin(answer, session);
        // What the server asked before is void.
        self.asked.clear();
        self.asked_bytes = 0;
        self.close_stream();
    }

    /// Takes that the server has the `notifications/initialized`.
    pub(super) fn on_started(&mut self, id: ExchangeId) {
        if self.gate == Gate::Awaiting(id) {
            self.gate = Gate::Open;
        }
        self.open_stream();
    }

    /// Takes the answer to a hidden `initialize`.
    pub(super) fn on_renewal(&mut self, id: ExchangeId, answer: &Message) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        let session = flight.session.take();
        if answer.envelope().result.is_none() {
            let failure =
                flight.response.as_ref().map(|response| response.failure_with(Cause::Body, answer.bytes()));
            self.leave(id);
            return self.on_not_renewed(failure.unwrap_or(Failure::new(Cause::Body)));
        }
        self.leave(id);
        self.on_begun(answer, session);
        let mut headers = headers::post();
        self.link.add_to(&mut headers);
        let body =
            self.link.initialized.as_ref().map_or(Bytes::from_static(INITIALIZED), |m| m.bytes().clone());
        self.open(Method::Post, headers, body, Purpose::Confirm);
    }

    /// Takes that the server has the hidden `notifications/initialized`.
    pub(super) fn on_confirmed(&mut self) {
        self.events.push(Event::Renewed);
        self.gate = Gate::Open;
        self.open_stream();
    }

    /// Takes that there is no new session: whoever waited for one is told.
    pub(super) fn on_not_renewed(&mut self, failure: Failure) {
        self.gate = Gate::Open;
        let lost = Failure { cause: Cause::SessionLost, ..failure.clone() };
        for post in self.take_parked(|until| until == Until::Renewed) {
            self.fail(post, &lost);
        }
        self.events.push(Event::NotRenewed(self.config.secrets.hide_in(failure)));
    }

    /// Sends again what waited for a session that there is now, or makes one.
    pub(super) fn on_parked(&mut self) {
        let is_waiting = |parked: &Parked| parked.until == Until::Renewed;
        if self.gate != Gate::Open || !self.parked.iter().any(is_waiting) {
            return;
        }
        let now = self.link.generation;
        if self.parked.iter().any(|parked| is_waiting(parked) && parked.post.generation == now) {
            let Some(initialize) = &self.link.initialize else { return };
            let body = initialize.bytes().clone();
            self.close_stream();
            self.gate = Gate::Renewing;
            self.open(Method::Post, headers::post(), body, Purpose::Renew);
            return;
        }
        for mut post in self.take_parked(|until| until == Until::Renewed) {
            post.retried = true;
            self.start(post);
        }
    }

    /// Takes that a call was refused over its headers: the list of tools that they were made by is fetched anew.
    pub(super) fn on_mismatch(&mut self, post: Post) {
        let meta = own_meta(&post.message);
        self.parked.push(Parked { post, until: Until::Refreshed });
        if self.refresh.is_none() {
            self.refresh = Some((meta.clone(), 0));
            self.ask_page(&meta, None);
        }
    }

    /// Takes one page of it.
    pub(super) fn on_page(&mut self, id: ExchangeId, answer: &Message) {
        self.leave(id);
        self.tools.remember(answer);
        let text = answer.bytes();
        let next = answer.envelope().result.and_then(|result| find(text, result, &["nextCursor"]));
        let next = next.map(|next| next.of(text)).filter(|next| next.first() == Some(&b'"'));
        match (&mut self.refresh, next) {
            (Some((meta, pages)), Some(next)) if *pages < limits::MAX_TOOL_PAGES => {
                *pages += 1;
                let meta = meta.clone();
                self.ask_page(&meta, Some(next));
            }
            _ => self.on_refreshed(),
        }
    }

    /// Takes that there is no more of it to be had: the calls go again, with what is known now.
    pub(super) fn on_refreshed(&mut self) {
        self.refresh = None;
        for mut post in self.take_parked(|until| until == Until::Refreshed) {
            post.retried = true;
            self.start(post);
        }
    }

    pub(super) fn take_parked(&mut self, is_due: impl Fn(Until) -> bool) -> Vec<Post> {
        let due = self.parked.extract_if(.., |parked| is_due(parked.until));
        due.map(|parked| parked.post).collect()
    }

    fn ask_page(&mut self, meta: &[u8], cursor: Option<&[u8]>) {
        let mut body = BytesMut::new();
        body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"lumen","method":"tools/list","params":{"#);
        if let Some(cursor) = cursor {
            body.extend_from_slice(b"\"cursor\":");
            body.extend_from_slice(cursor);
            body.extend_from_slice(b",");
        }
        body.extend_from_slice(b"\"_meta\":");
        body.extend_from_slice(meta);
        body.extend_from_slice(b"}}");
        let Ok(message) = Message::parse(body.freeze()) else { return self.on_refreshed() };
        let post = Post::new(message, Era::Modern);
        let mut headers = headers::post();
        add_modern(&mut headers, &post, self.modern.as_deref(), &self.tools);
        self.open(Method::Post, headers, post.message.bytes().clone(), Purpose::Refresh);
    }
}

/// Returns of a request's `_meta` what is about the protocol, not about the request.
fn own_meta(message: &Message) -> Bytes {
    let text = message.bytes();
    let mut out = BytesMut::from(&b"{"[..]);
    for member in meta(message).into_iter().flat_map(|meta| members(text, meta)) {
        let key = member.key.of(text);
        if key.starts_with(b"\"io.modelcontextprotocol/") {
            if out.len() > 1 {
                out.extend_from_slice(b",");
            }
            out.extend_from_slice(key);
            out.extend_from_slice(b":");
            out.extend_from_slice(member.value.of(text));
        }
    }
    out.extend_from_slice(b"}");
    out.freeze()
}
