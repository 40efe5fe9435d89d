//! What a session has told its server, to be told again to one that comes back.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::jsonrpc::{Envelope, IdKey, Kind, Message, batch, decode_str, find, text_is};
use crate::limits;
use crate::mcp::{Level, paths};
use crate::mux::own;

/// What a server knows of a session.
///
/// # Bounds
/// One message, the handshake; and [`limits::MAX_CLIENT_KEPT`] bytes for everything else, with [`COST`] for each. What is
/// more goes through and is not told again.
#[derive(Debug, Default)]
pub(super) struct Recall {
    handshake: Option<Handshake>,
    level: Option<Level>,
    /// The resources that the client is subscribed to: the URIs, and how each was spelled.
    resources: BTreeMap<String, Bytes>,
    listens: BTreeMap<IdKey, Listen>,
    /// Requests that change something of this when they are answered.
    pending: BTreeMap<IdKey, Change>,
    kept: usize,
}

/// What the maps around something small take.
const COST: usize = 128;

#[derive(Debug)]
struct Handshake {
    initialize: Message,
    key: IdKey,
    /// The revision that the client was told, as a JSON token; empty if it was told none.
    told: Option<Bytes>,
    is_confirmed: bool,
}

#[derive(Debug)]
struct Listen {
    request: Message,
    is_acknowledged: bool,
    /// Of the next acknowledgement the client has had one already.
    is_repeated: bool,
}

#[derive(Debug)]
enum Change {
    Level(Level),
    Subscribe(String, Bytes),
    Unsubscribe(String),
}

impl Recall {
    /// Takes a message that goes to the server.
    pub(super) fn on_sent(&mut self, message: &Message) {
        let text = message.bytes();
        for envelope in whole_and_parts(message) {
            let Some(method) = envelope.method.map(|method| method.of(text)) else { continue };
            match envelope.kind {
                Kind::Request if text_is(method, "initialize") => self.on_initialize(message),
                Kind::Request if text_is(method, "subscriptions/listen") => self.on_listen(message),
                Kind::Request => self.on_request(text, &envelope, method),
                Kind::Notification if text_is(method, "notifications/initialized") => {
                    if let Some(handshake) = &mut self.handshake {
                        handshake.is_confirmed = true;
                    }
                }
                Kind::Notification if text_is(method, "notifications/cancelled") => {
                    let id = envelope.params.and_then(|params| find(text, params, &["requestId"]));
                    if let Some(Ok(key)) = id.map(|id| IdKey::from_token(id.of(text))) {
                        self.forget(&key);
                    }
                }
                _ => {}
            }
        }
    }

    /// Takes a message that goes to the client. Returns whether it is news to that.
    pub(super) fn on_heard(&mut self, message: &Message) -> bool {
        let text = message.bytes();
        for envelope in whole_and_parts(message).filter(|one| one.kind == Kind::Response) {
            if let Some(Ok(key)) = envelope.id.map(|id| IdKey::from_token(id.of(text))) {
                self.on_answer(text, &envelope, &key);
            }
        }
        message.kind() != Kind::Notification
            || self.listens.is_empty()
            || !message.method_is("notifications/subscriptions/acknowledged")
            || self.on_acknowledged(message)
    }

    /// Returns the handshake, if it was answered.
    pub(super) fn handshake(&self) -> Option<&Message> {
        self.handshake.as_ref().filter(|known| known.told.is_some()).map(|known| &known.initialize)
    }

    /// Returns whether this answer to the handshake agrees on what the client was told.
    pub(super) fn is_same_revision(&self, answer: &Message) -> bool {
        let told = self.handshake.as_ref().and_then(|known| known.told.as_ref());
        told.is_some_and(|told| {
            let agreed = revision(answer.bytes(), answer.envelope());
            decode_str(told) == decode_str(&agreed)
        })
    }

    /// Returns whether the client has confirmed the handshake.
    pub(super) fn is_confirmed(&self) -> bool {
        self.handshake.as_ref().is_some_and(|known| known.is_confirmed)
    }

    /// Returns the level of logs that was set.
    pub(super) const fn level(&self) -> Option<Level> {
        self.level
    }

    /// Returns the URIs of the resources that the client is subscribed to, as JSON tokens.
    pub(super) fn resources(&self) -> Vec<Bytes> {
        self.resources.values().cloned().collect()
    }

    /// Takes that the server does not take this subscription again.
    pub(super) fn on_not_subscribed(&mut self, uri: &[u8]) {
        if let Some(uri) = decode_str(uri) {
            self.unsubscribe(&uri);
        }
    }

    /// Takes that the server is gone, and everything with it that it had not answered. Returns what goes to the next one
    /// as if for the first time: a handshake that was under way, and what the client listens to.
    pub(super) fn on_lost(&mut self) -> Vec<Message> {
        for change in core::mem::take(&mut self.pending).into_values() {
            self.kept -= change.cost();
        }
        let handshake = self.handshake.take_if(|handshake| handshake.told.is_none());
        let confirmed = handshake.as_ref().filter(|handshake| handshake.is_confirmed);
        let confirmed = confirmed.and_then(|_| own::notification("notifications/initialized"));
        let confirmed = confirmed.and_then(|packet| packet.to_text().ok());
        let listens = self.listens.values().map(|listen| listen.request.clone());
        handshake.map(|handshake| handshake.initialize).into_iter().chain(confirmed).chain(listens).collect()
    }

    /// Returns whether the request with this id is among what [`on_lost`](Self::on_lost) will return.
    pub(super) fn is_repeatable(&self, id: &[u8]) -> bool {
        let Ok(key) = IdKey::from_token(id) else { return false };
        let is_handshake =
            self.handshake.as_ref().is_some_and(|known| known.told.is_none() && known.key == key);
        is_handshake || self.listens.contains_key(&key)
    }

    fn on_initialize(&mut self, message: &Message) {
        let Some(Ok(key)) = message.id().map(IdKey::from_token) else { return };
        // A second one in the same session is the server's to refuse.
        if self.handshake().is_none() {
            let initialize = message.clone();
            self.handshake = Some(Handshake { initialize, key, told: None, is_confirmed: false });
        }
    }

    fn on_listen(&mut self, message: &Message) {
        let Some(Ok(key)) = message.id().map(IdKey::from_token) else { return };
        if let Some(listen) = self.listens.get_mut(&key) {
            listen.is_repeated = listen.is_acknowledged;
        } else if self.try_keep(message.len() + COST) {
            let request = message.clone();
            let listen = Listen { request, is_acknowledged: false, is_repeated: false };
            self.listens.insert(key, listen);
        }
    }

    fn on_request(&mut self, text: &[u8], envelope: &Envelope, method: &[u8]) {
        let Some(Ok(key)) = envelope.id.map(|id| IdKey::from_token(id.of(text))) else { return };
        let param = |name| envelope.params.and_then(|params| find(text, params, &[name]));
        let change = if text_is(method, "logging/setLevel") {
            let level = param("level").and_then(|level| decode_str(level.of(text)));
            level.and_then(|level| Level::parse(&level)).map(Change::Level)
        } else if text_is(method, "resources/subscribe") {
            let uri = param("uri").map(|uri| uri.of(text));
            let name = uri.and_then(decode_str).map(String::from);
            name.zip(uri).map(|(name, uri)| Change::Subscribe(name, Bytes::copy_from_slice(uri)))
        } else if text_is(method, "resources/unsubscribe") {
            param("uri").and_then(|uri| decode_str(uri.of(text))).map(|uri| Change::Unsubscribe(uri.into()))
        } else {
            None
        };
        if let Some(change) = change.filter(|change| self.try_keep(change.cost())) {
            self.drop_pending(&key);
            self.pending.insert(key, change);
        }
    }

    fn on_answer(&mut self, text: &[u8], envelope: &Envelope, key: &IdKey) {
        self.handshake.take_if(|known| {
            if known.told.is_some() || known.key != *key {
                return false;
            }
            if envelope.result.is_some() {
                known.told = Some(revision(text, envelope));
            }
            known.told.is_none()
        });
        match self.drop_pending(key) {
            Some(Change::Level(level)) if envelope.result.is_some() => self.level = Some(level),
            Some(Change::Subscribe(name, uri)) if envelope.result.is_some() => self.subscribe(name, uri),
            Some(Change::Unsubscribe(name)) if envelope.result.is_some() => self.unsubscribe(&name),
            _ => {}
        }
        self.drop_listen(key);
    }

    /// Returns whether the client had no acknowledgement of this before.
    fn on_acknowledged(&mut self, message: &Message) -> bool {
        let id = message.find(paths::SUBSCRIPTION).map(|at| IdKey::from_token(at.of(message.bytes())));
        let Some(listen) = id.and_then(Result::ok).and_then(|key| self.listens.get_mut(&key)) else {
            return true;
        };
        listen.is_acknowledged = true;
        !core::mem::take(&mut listen.is_repeated)
    }

    fn forget(&mut self, key: &IdKey) {
        self.drop_pending(key);
        self.drop_listen(key);
    }

    fn drop_pending(&mut self, key: &IdKey) -> Option<Change> {
        let change = self.pending.remove(key)?;
        self.kept -= change.cost();
        Some(change)
    }

    fn drop_listen(&mut self, key: &IdKey) {
        if let Some(listen) = self.listens.remove(key) {
            self.kept -= listen.request.len() + COST;
        }
    }

    fn subscribe(&mut self, name: String, uri: Bytes) {
        if !self.resources.contains_key(&name) && self.try_keep(name.len() + uri.len() + COST) {
            self.resources.insert(name, uri);
        }
    }

    fn unsubscribe(&mut self, name: &str) {
        if let Some((name, uri)) = self.resources.remove_entry(name) {
            self.kept -= name.len() + uri.len() + COST;
        }
    }

    fn try_keep(&mut self, bytes: usize) -> bool {
        let fits = self.kept + bytes <= limits::MAX_CLIENT_KEPT;
        self.kept += if fits { bytes } else { 0 };
        fits
    }
}

impl Change {
    fn cost(&self) -> usize {
        COST + match self {
            Self::Level(_) => 0,
            Self::Subscribe(name, uri) => name.len() + uri.len(),
            Self::Unsubscribe(name) => name.len(),
        }
    }
}

fn whole_and_parts(message: &Message) -> impl Iterator<Item = Envelope> {
    core::iter::once(*message.envelope()).chain(batch(message.bytes()))
}

/// Returns the token of the revision in an answer to a handshake; empty if there is none.
fn revision(text: &[u8], envelope: &Envelope) -> Bytes {
    let at = envelope.result.and_then(|result| find(text, result, &["protocolVersion"]));
    Bytes::copy_from_slice(at.map(|at| at.of(text)).unwrap_or_default())
}
