//! F5: many clients on one server, so that each believes to be alone with it. See the page [`docs::mux`](crate::docs::mux).
//!
//! This is the logic alone: whole messages in, whole messages out, each with what has to be exchanged in it. Streams,
//! processes and their restarts belong to whoever owns it.

mod answer;
mod asked;
mod asks;
mod batch;
mod call;
mod cancel;
mod client;
mod dues;
mod greeting;
mod notice;
pub(crate) mod own;
mod request;
mod reverse;
mod share;
mod slot;
mod teardown;
mod waiting;

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::Bytes;

use self::asks::Asks;
use self::batch::Batches;
use self::call::{Call, Calls};
use self::client::{Client, Clients};
use self::slot::Slot;
use crate::idmap::WireId;
use crate::jsonrpc::Kind;
use crate::mcp::Era;
use crate::message::{Edits, Packet};
use crate::{Instant, Port, Reason, limits};

pub use self::asked::{InFlight, STATUS};
pub use self::slot::SlotId;
pub use self::teardown::Next;

/// Where the id of a message is.
const ID: &[&str] = &["id"];

/// How clients share a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long a request may stay unanswered; its own progress extends that. `None` is for ever.
    pub request_timeout: Option<Duration>,
    /// How long no progress extends it beyond.
    pub request_cap: Duration,
    /// How long a request waits for a server that is down.
    pub hold_timeout: Duration,
    /// How long a server may leave our handshake unanswered. `None` is for ever.
    pub start_timeout: Option<Duration>,
    /// Whether there is one server only, for whichever era comes first.
    pub one_child: bool,
    /// Whether there is one client only, and the server's session is that client's own: the server is told what the client
    /// says of itself, and the client all that the server says.
    pub private: bool,
    /// Tells what its clients are asked from what an earlier hub has asked them, which they may still answer: a part of the ids.
    /// 0 leaves it out.
    pub life: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            request_timeout: Some(limits::REQUEST_TIMEOUT),
            request_cap: limits::REQUEST_CAP,
            hold_timeout: limits::HOLD_TIMEOUT,
            start_timeout: Some(limits::START_TIMEOUT),
            one_child: false,
            private: false,
            life: 0,
        }
    }
}

/// What is to be done. To be taken after every input.
#[derive(Debug, PartialEq, Eq)]
pub enum Out {
    /// Send this to a client.
    Client {
        /// Which.
        client: Port,
        /// The message.
        packet: Packet,
        /// What is exchanged in it.
        edits: Edits,
        /// It answers something that the client has just sent, and nothing else: who floods us with such is to
        /// be read less.
        own: bool,
    },
    /// Send this to a server.
    Child {
        /// Which.
        slot: SlotId,
        /// The message.
        packet: Packet,
        /// What is exchanged in it.
        edits: Edits,
        /// It answers something that the server has just sent, and nothing else.
        own: bool,
    },
    /// Somebody needs this server.
    Start(SlotId),
    /// This server is in order: it has answered the handshake, or needs none.
    Ready(SlotId),
    /// This server refused the handshake: end it, that counts as a failed start.
    Refused(SlotId),
    /// Nobody needs this server any more: end it.
    Unneeded(SlotId),
    /// An answer to nothing that was asked, or asked still; it was dropped.
    Unasked {
        /// Who sent it.
        from: Side,
        /// Its id as a JSON token.
        id: Bytes,
    },
    /// A notification that belongs to nobody was dropped.
    Ownerless(SlotId),
    /// A client asks how things stand: to be answered by [`Mux::answer_own`] within [`limits::OWN_TIMEOUT`].
    Asked {
        /// The request.
        wire: WireId,
        /// Who asks.
        client: Port,
    },
}

/// One side of a message's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This client.
    Client(Port),
    /// This server.
    Child(SlotId),
}

/// The logic of sharing.
///
/// Every request of a client is answered once, unless the client cancels it or goes: by the server, or by an error
/// of ours. Whatever else the server says goes to whom it belongs, or nowhere.
///
/// # Bounds
/// [`limits::MAX_IN_FLIGHT`] requests in all and [`limits::MAX_CLIENT_CALLS`] of one client, each with at most
/// [`limits::MAX_ID`] for its id and as much for its progress token; as many requests of servers.
/// [`limits::MAX_HELD`] bytes for each server while it is not ready, [`limits::MAX_CLIENT_KEPT`] for each client's
/// subscriptions.
#[derive(Debug, Default)]
pub struct Mux {
    config: Config,
    clients: Clients,
    slots: [Slot; 2],
    calls: Calls,
    asks: Asks,
    batches: Batches,
    outs: VecDeque<Out>,
    /// Why a modern request is not even tried: the server has said that it does not know them.
    not_modern: bool,
    /// A server ended over a `server/discover`: if it serves the other era, it knows no modern requests.
    ended_by_discover: bool,
    /// We are about to end: nothing new is taken.
    closing: bool,
    now: Instant,
}

impl Mux {
    /// Makes one without clients.
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    /// Takes a new client.
    pub fn handle_client_opened(&mut self, client: Port) {
        self.clients.insert(client, Client::default());
    }

    /// Takes a client that may only ask how things stand.
    pub fn handle_visitor_opened(&mut self, client: Port) {
        self.clients.insert(client, Client { is_visitor: true, ..Client::default() });
    }

    /// Takes a message of a client.
    pub fn handle_client(&mut self, now: Instant, client: Port, packet: Packet) {
        self.advance(now);
        if self.clients.get(client).is_none() {
            return;
        }
        match packet.kind() {
            Kind::Request => self.on_request(client, packet, None),
            Kind::Notification => self.on_client_notification(client, packet),
            Kind::Response => self.on_reply(client, packet),
            Kind::Batch => self.on_batch(client, &packet),
        }
    }

    /// Takes a message of a server.
    pub fn handle_child(&mut self, now: Instant, slot: SlotId, packet: Packet) {
        self.advance(now);
        match packet.kind() {
            Kind::Request => self.on_ask(slot, packet),
            Kind::Notification => self.on_notification(slot, packet),
            Kind::Response => self.on_answer(slot, packet),
            Kind::Batch => {
                for element in packet.batch() {
                    self.handle_child(now, slot, element);
                }
            }
        }
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        self.on_due();
        for slot in SlotId::ALL {
            self.expire_held(slot);
        }
    }

    /// Takes nothing new from now on.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Returns what is to be done next.
    #[must_use]
    pub fn poll_out(&mut self) -> Option<Out> {
        self.outs.pop_front()
    }

    /// Returns when the next request is given up.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let held = self.slots.iter().filter_map(Slot::next_expiry);
        held.chain(self.calls.next_due()).min()
    }

    /// Returns what a server serves, once that is decided.
    pub fn era_of(&self, slot: SlotId) -> Option<Era> {
        self.slot(slot).era
    }

    /// Returns the server that a client uses.
    pub fn slot_of(&self, client: Port) -> Option<SlotId> {
        self.clients.get(client)?.slot
    }

    /// Returns how many requests of a client are not answered. Its subscriptions do not count.
    pub fn owed(&self, client: Port) -> usize {
        let calls = self.clients.get(client).into_iter().flat_map(|client| client.calls.values());
        calls.filter(|wire| self.calls.find(**wire).is_some_and(|call| !call.is_listen())).count()
    }

    /// Returns whether somebody uses a server, or waits for it.
    pub fn is_needed(&self, slot: SlotId) -> bool {
        let slot = self.slot(slot);
        !slot.users.is_empty() || !slot.held.is_empty() || !slot.greeting.is_empty()
    }

    /// Returns the bytes of messages that wait until a server is ready.
    pub fn held(&self, slot: SlotId) -> usize {
        self.slot(slot).held.bytes()
    }

    /// Returns whether no client waits for an answer. Subscriptions do not count.
    pub fn is_quiet(&self) -> bool {
        self.waited_for().next().is_none()
    }

    /// Returns how many requests of clients are not answered. Subscriptions do not count.
    pub fn owed_in_all(&self) -> usize {
        self.waited_for().count()
    }

    /// Returns how many requests are in flight, those of ours and the servers' included.
    pub fn in_flight(&self) -> usize {
        self.calls.len() + self.asks.len()
    }

    /// Returns whether nothing is kept for anybody: no request, no held message, no unfinished batch.
    pub fn is_empty(&self) -> bool {
        self.in_flight() == 0
            && self.batches.is_empty()
            && self.slots.iter().all(|slot| slot.held.is_empty() && slot.greeting.is_empty())
    }

    fn waited_for(&self) -> impl Iterator<Item = &Call> {
        let calls = self.calls.iter().map(|(_, call)| call);
        calls.filter(|call| call.owner.is_some() && !call.is_listen())
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn slot(&self, slot: SlotId) -> &Slot {
        let [first, second] = &self.slots;
        match slot {
            SlotId::First => first,
            SlotId::Second => second,
        }
    }

    fn slot_mut(&mut self, slot: SlotId) -> &mut Slot {
        let [first, second] = &mut self.slots;
        match slot {
            SlotId::First => first,
            SlotId::Second => second,
        }
    }

    fn tell_client(&mut self, client: Port, packet: Packet, edits: Edits) {
        self.outs.push_back(Out::Client { client, packet, edits, own: false });
    }

    fn tell_child(&mut self, slot: SlotId, packet: Packet, edits: Edits) {
        self.outs.push_back(Out::Child { slot, packet, edits, own: false });
    }

    /// Sends a message that was made here. There is none if it could not be made, which does not happen.
    fn tell_child_own(&mut self, slot: SlotId, packet: Option<Packet>) {
        if let Some(packet) = packet {
            self.tell_child(slot, packet, Edits::none());
        }
    }

    /// Answers something that a server asked, without a client.
    fn answer_child(&mut self, slot: SlotId, packet: Option<Packet>) {
        if let Some(packet) = packet {
            self.outs.push_back(Out::Child { slot, packet, edits: Edits::none(), own: true });
        }
    }

    /// Refuses what a client has just sent.
    fn refuse_client(&mut self, client: Port, id: Option<&[u8]>, reason: Reason) {
        if let Some(packet) = own::error(id, &reason, None) {
            self.outs.push_back(Out::Client { client, packet, edits: Edits::none(), own: true });
        }
    }
}
