//! A message of the agent's on its way, and who waits for what comes of it.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::jsonrpc::{IdKey, Kind, Message, Patch, Patches, batch, decode_str, find, insert_member};
use crate::{Instant, limits};

/// How the agent and the server speak about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// With `initialize`, sessions and streams of the server's own; also whatever is no MCP.
    Legacy,
    /// 2026-07-28: every request by itself.
    Modern,
}

/// What a message means to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Initialize,
    Initialized,
    ListTools,
    CallTool,
    /// Is answered only when it ends, so nobody waits for the answer.
    Listen,
    Other,
}

impl Class {
    fn of(message: &Message) -> Self {
        let is = |method| message.method_is(method);
        match message.kind() {
            Kind::Request if is("initialize") => Self::Initialize,
            Kind::Request if is("tools/list") => Self::ListTools,
            Kind::Request if is("tools/call") => Self::CallTool,
            Kind::Request if is("subscriptions/listen") => Self::Listen,
            Kind::Notification if is("notifications/initialized") => Self::Initialized,
            _ => Self::Other,
        }
    }
}

/// Where an interrupted stream goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Tries in a row that brought nothing.
    tries: u32,
}

impl Resume {
    /// Takes the id of an event that came.
    pub(super) fn on_id(&mut self, id: &[u8]) {
        let id = core::str::from_utf8(id).ok().filter(|id| !id.is_empty() && super::sentinel::is_safe(id));
        self.last_id = id.map(String::from);
    }

    /// Takes that the stream is alive.
    pub(super) const fn on_event(&mut self) {
        self.tries = 0;
    }

    /// Takes what the stream said of the wait before the next try.
    pub(super) fn on_retry(&mut self, retry: Option<Duration>) {
        self.retry = retry.or(self.retry);
    }

    /// Returns when to try again after the stream has ended; `None` after too many tries in vain.
    pub(super) fn next_try(&mut self, now: Instant) -> Option<Instant> {
        let base = self.retry.unwrap_or(limits::RETRY_BASE).max(limits::RETRY_FLOOR);
        let grown = base.saturating_mul(1 << self.tries.min(16)).min(limits::RETRY_CAP.max(base));
        self.tries += 1;
        (self.tries <= limits::MAX_RESUMES).then(|| now + grown)
    }

    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }
}

/// A message of the agent's on its way.
#[derive(Debug)]
pub(super) struct Post {
    pub(super) message: Message,
    pub(super) class: Class,
    pub(super) era: Era,
    /// Requests in it that are not answered.
    owed: Vec<(IdKey, Bytes)>,
    /// Whether there was any request in it.
    pub(super) is_asking: bool,
    /// Whether it is sent for the second time.
    pub(super) retried: bool,
    /// In which of the server's sessions it was sent.
    pub(super) generation: u64,
    /// Whether it named that session.
    pub(super) has_session: bool,
    pub(super) due: Option<Instant>,
    pub(super) resume: Resume,
}

impl Post {
    pub(super) fn new(message: Message, era: Era) -> Self {
        let owed: Vec<_> = requests(&message)
            .filter_map(|id| IdKey::from_token(id).ok().map(|key| (key, Bytes::copy_from_slice(id))))
            .collect();
        Self {
            class: Class::of(&message),
            era,
            is_asking: !owed.is_empty(),
            owed,
            message,
            retried: false,
            generation: 0,
            has_session: false,
            due: None,
            resume: Resume::default(),
        }
    }

    /// Settles the request with this id; returns whether it was one of these and not settled.
    pub(super) fn settle(&mut self, id: &[u8]) -> bool {
        self.take(id).is_some()
    }

    /// Settles the request with this id; returns the id as spelled.
    pub(super) fn take(&mut self, id: &[u8]) -> Option<Bytes> {
        IdKey::from_token(id).ok().and_then(|key| self.take_key(&key))
    }

    /// Settles the request with this id; returns the id as spelled.
    pub(super) fn take_key(&mut self, id: &IdKey) -> Option<Bytes> {
        let at = self.owed.iter().position(|(owed, _)| owed == id)?;
        Some(self.owed.swap_remove(at).1)
    }

    /// Returns whether this id is that of a request not settled.
    pub(super) fn owes(&self, id: &IdKey) -> bool {
        self.owed.iter().any(|(owed, _)| owed == id)
    }

    /// Settles everything; returns the ids as spelled.
    pub(super) fn settle_all(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        core::mem::take(&mut self.owed).into_iter().map(|(_, spelling)| spelling)
    }

    /// Returns the id of the only request not settled.
    pub(super) fn only(&self) -> Option<&Bytes> {
        match self.owed.as_slice() {
            [(_, spelling)] => Some(spelling),
            _ => None,
        }
    }

    /// Returns whether it is one request, with this id, not settled.
    pub(super) fn only_owes(&self, id: &IdKey) -> bool {
        self.message.kind() == Kind::Request && self.owes(id)
    }

    /// Returns whether it may go again in a new session if the server has lost the one it was sent in.
    pub(super) fn may_renew(&self) -> bool {
        self.has_session && !self.retried && self.message.kind() != Kind::Response
    }

    /// Returns whether something is not settled.
    pub(super) const fn is_owing(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Returns how many answers somebody waits for.
    pub(super) fn awaited(&self) -> usize {
        if self.class == Class::Listen { 0 } else { self.owed.len() }
    }

    /// Returns the method, if it is one message that has one.
    pub(super) fn method(&self) -> Option<Cow<'_, str>> {
        let method = self.message.envelope().method?;
        decode_str(method.of(self.message.bytes()))
    }
}

/// Returns the ids of the requests in a message, be it one or a batch.
pub(super) fn requests(message: &Message) -> impl Iterator<Item = &[u8]> {
    let text = message.bytes();
    let whole = core::iter::once(*message.envelope());
    let asking = whole.chain(batch(text)).filter(|one| one.kind == Kind::Request);
    asking.filter_map(|one| one.id).map(|id| id.of(text))
}

/// Returns the ids of the answers in a message, be it one or a batch.
pub(super) fn responses(message: &Message) -> impl Iterator<Item = &[u8]> {
    let text = message.bytes();
    let whole = core::iter::once(*message.envelope());
    let answers = whole.chain(batch(text)).filter(|one| one.kind == Kind::Response);
    answers.filter_map(|one| one.id).map(|id| id.of(text)).filter(|id| *id != b"null")
}

/// Returns the id that a `notifications/cancelled` names.
pub(super) fn cancelled(message: &Message) -> Option<IdKey> {
    if message.kind() != Kind::Notification || !message.method_is("notifications/cancelled") {
        return None;
    }
    let id = find(message.bytes(), message.envelope().params?, &["requestId"])?;
    IdKey::from_token(id.of(message.bytes())).ok()
}

/// Returns the code of an error answer, as spelled.
pub(super) fn error_code(message: &Message) -> Option<&[u8]> {
    let code = find(message.bytes(), message.envelope().error?, &["code"])?;
    Some(code.of(message.bytes()))
}

/// Returns the answer with `id` in the place of its id.
pub(super) fn with_id(message: &Message, id: &Bytes) -> Option<Message> {
    let patch = match message.envelope().id {
        Some(at) => Patch { at, with: id.clone().into() },
        None => insert_member(message.bytes(), message.envelope().body, "id", id),
    };
    let mut patches = Patches::new();
    patches.try_add(patch).ok()?;
    let mut out = BytesMut::new();
    message.write_text(&patches, &mut out);
    Message::parse(out.freeze()).ok()
}
