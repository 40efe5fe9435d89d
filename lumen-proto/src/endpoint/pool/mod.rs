//! The clients of one socket: all on one hub, or each with a hub of its own.

mod sessions;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::BytesMut;

use self::sessions::Sessions;
use super::hub::{ClientStatus, Hub, HubConfig, HubEvent, Pending, ServerStatus};
use crate::connection::Tally;
use crate::idmap::WireId;
use crate::mux::SlotId;
use crate::{Action, Input, Instant, Machine, Port, Transmit};

/// Serves many clients: a [`Hub`] for all of them, or, with [`mux::Config::private`](crate::mux::Config::private), one
/// for each, so that each has a server to itself.
///
/// # Bounds
/// Those of [`Hub`]; with private servers for each client, but for what waits for clients, which is
/// [`limits::MAX_HUB_QUEUE`](crate::limits::MAX_HUB_QUEUE) for all of them together. As many servers as
/// [`max_clients`](HubConfig::max_clients), those that are being ended included, each with its own
/// [`limits::MAX_QUEUE`](crate::limits::MAX_QUEUE) and [`limits::MAX_HELD`](crate::limits::MAX_HELD).
#[derive(Debug)]
pub struct Pool {
    kind: Kind,
    /// Who connects is to wait until then.
    held_until: Option<Instant>,
}

#[derive(Debug)]
enum Kind {
    Shared(Box<Hub>),
    Private(Box<Sessions>),
}

impl Pool {
    /// Makes one without clients. Nothing is started yet.
    pub fn new(config: HubConfig) -> Self {
        let kind = if config.mux.private {
            Kind::Private(Box::new(Sessions::new(config)))
        } else {
            Kind::Shared(Box::new(Hub::new(config)))
        };
        Self { kind, held_until: None }
    }

    /// Starts the server now, not when a client needs it; does nothing if each client has its own.
    pub fn start(&mut self, now: Instant) {
        if let Kind::Shared(hub) = &mut self.kind {
            hub.start(now);
        }
    }

    /// Makes room for a client, as [`Hub::try_accept`].
    pub fn try_accept(&mut self) -> Option<Port> {
        match &mut self.kind {
            Kind::Shared(hub) => hub.try_accept(),
            Kind::Private(sessions) => sessions.try_accept(),
        }
    }

    /// Returns whether this client came when there was no room for one; see [`Hub::is_visitor`].
    pub fn is_visitor(&self, port: Port) -> bool {
        match &self.kind {
            Kind::Shared(hub) => hub.is_visitor(port),
            Kind::Private(sessions) => sessions.is_visitor(port),
        }
    }

    /// Leaves those who connect waiting until then, because the system has no room for one more.
    pub const fn hold_clients(&mut self, until: Instant) {
        self.held_until = Some(until);
    }

    /// Returns whether who connects is to be looked at now.
    pub const fn is_taking_clients(&self) -> bool {
        self.held_until.is_none()
    }

    /// Ends it, as [`Hub::shut_down`].
    pub fn shut_down(&mut self, now: Instant) {
        match &mut self.kind {
            Kind::Shared(hub) => hub.shut_down(now),
            Kind::Private(sessions) => sessions.shut_down(now),
        }
    }

    /// Answers [`HubEvent::Asked`] of this client with a JSON text.
    pub fn answer(&mut self, now: Instant, client: Port, request: WireId, result: &str) {
        match &mut self.kind {
            Kind::Shared(hub) => hub.answer(now, request, result),
            Kind::Private(sessions) => sessions.answer(now, client, request, result),
        }
    }

    /// Returns how many clients there are, visitors included.
    pub fn clients(&self) -> usize {
        match &self.kind {
            Kind::Shared(hub) => hub.clients(),
            Kind::Private(sessions) => sessions.clients(),
        }
    }

    /// Returns the bytes that wait for clients.
    pub fn queued(&self) -> usize {
        match &self.kind {
            Kind::Shared(hub) => hub.queued(),
            Kind::Private(sessions) => sessions.queued(),
        }
    }

    /// Returns how many requests of clients are not answered; subscriptions do not count.
    pub fn owed(&self) -> usize {
        match &self.kind {
            Kind::Shared(hub) => hub.mux().owed_in_all(),
            Kind::Private(sessions) => sessions.owed(),
        }
    }

    /// Returns the hub, if all clients share one.
    pub fn shared(&self) -> Option<&Hub> {
        match &self.kind {
            Kind::Shared(hub) => Some(hub),
            Kind::Private(_) => None,
        }
    }

    /// Returns whether each client has a server to itself.
    pub const fn is_private(&self) -> bool {
        matches!(self.kind, Kind::Private(_))
    }

    /// Returns how things stand with each server that was ever used and is not forgotten, and with the first in any case
    /// if it is shared.
    pub fn servers(&self) -> Vec<ServerStatus> {
        match &self.kind {
            Kind::Shared(hub) => {
                let is_told = |slot: &SlotId| *slot == SlotId::First || hub.is_used(*slot);
                SlotId::ALL.into_iter().filter(is_told).map(|slot| hub.server(slot)).collect()
            }
            Kind::Private(sessions) => sessions.servers(),
        }
    }

    /// Returns how things stand with each client.
    pub fn connected(&self) -> Vec<ClientStatus> {
        match &self.kind {
            Kind::Shared(hub) => hub.connected().collect(),
            Kind::Private(sessions) => sessions.connected(),
        }
    }

    /// Returns what came from all clients there ever were, and went to them.
    pub fn clients_tally(&self) -> Tally {
        let past = match &self.kind {
            Kind::Shared(hub) => hub.past(),
            Kind::Private(sessions) => sessions.past_clients(),
        };
        sum(past, self.connected().iter().map(|client| client.tally))
    }

    /// Returns what went to all servers there ever were, and came from them.
    pub fn servers_tally(&self) -> Tally {
        let past = match &self.kind {
            Kind::Shared(_) => Tally::default(),
            Kind::Private(sessions) => sessions.past_servers(),
        };
        sum(past, self.servers().iter().map(|server| server.tally))
    }

    /// Returns all requests in flight; those of each server the oldest first.
    pub fn pending(&self) -> Vec<Pending<'_>> {
        match &self.kind {
            Kind::Shared(hub) => hub.pending().collect(),
            Kind::Private(sessions) => sessions.pending(),
        }
    }
}

fn sum(mut past: Tally, all: impl Iterator<Item = Tally>) -> Tally {
    all.for_each(|tally| past += tally);
    past
}

impl Machine for Pool {
    type Event = HubEvent;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        match &mut self.kind {
            Kind::Shared(hub) => hub.handle_input(now, input),
            Kind::Private(sessions) => sessions.handle_input(now, input),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.held_until = self.held_until.filter(|until| *until > now);
        match &mut self.kind {
            Kind::Shared(hub) => hub.handle_timeout(now),
            Kind::Private(sessions) => sessions.handle_timeout(now),
        }
    }

    fn wants_input(&self, port: Port) -> usize {
        match &self.kind {
            Kind::Shared(hub) => hub.wants_input(port),
            Kind::Private(sessions) => sessions.wants_input(port),
        }
    }

    fn poll_ready(&mut self) -> Option<Port> {
        match &mut self.kind {
            Kind::Shared(hub) => hub.poll_ready(),
            Kind::Private(sessions) => sessions.poll_ready(),
        }
    }

    fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        match &mut self.kind {
            Kind::Shared(hub) => hub.poll_transmit(now, port, out),
            Kind::Private(sessions) => sessions.poll_transmit(now, port, out),
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        match &mut self.kind {
            Kind::Shared(hub) => hub.poll_action(),
            Kind::Private(sessions) => sessions.poll_action(),
        }
    }

    fn poll_event(&mut self) -> Option<HubEvent> {
        match &mut self.kind {
            Kind::Shared(hub) => hub.poll_event(),
            Kind::Private(sessions) => sessions.poll_event(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = match &self.kind {
            Kind::Shared(hub) => hub.poll_timeout(),
            Kind::Private(sessions) => sessions.poll_timeout(),
        };
        [next, self.held_until].into_iter().flatten().min()
    }
}
