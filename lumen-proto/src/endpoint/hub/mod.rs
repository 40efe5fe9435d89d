//! The hub: many clients, up to one server for each of MCP's two eras.

mod child;
mod client;
mod config;
mod guests;
mod server;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeSet, VecDeque};

use bytes::BytesMut;

use self::child::Child;
use self::guests::Guests;
use super::event::{Event, Outcome};
use crate::connection::Tally;
use crate::idmap::WireId;
use crate::mux::{Mux, Out, Side, SlotId};
use crate::supervisor::{Ladder, State};
use crate::{Action, Input, Instant, Machine, Port, Transmit, limits};

pub use self::config::{ClientStatus, HubConfig, HubEvent, Parted, Pending, ServerStatus};

/// Shares stdio servers between many clients.
///
/// A client is let in by [`try_accept`](Self::try_accept), which names the port for its stream. Servers are started
/// when the first client needs one, and again when they end. See the page [`docs::mux`](crate::docs::mux) for what is
/// done with which message.
///
/// # Bounds
/// For each client one partial message, the messages of one [`limits::READ_CHUNK`], and
/// [`limits::MAX_CLIENT_QUEUE`] plus one message toward it; a client that does not read is sent away at that bound, or
/// when all clients together have [`limits::MAX_HUB_QUEUE`] waiting. A server is always read. Toward each server
/// [`limits::MAX_QUEUE`] plus one message: when it is full, what clients say waits, and then they are let go on one
/// message each. Besides what [`Mux`] keeps.
#[derive(Debug)]
pub struct Hub {
    config: HubConfig,
    mux: Mux,
    children: [Child; 2],
    guests: Guests,
    /// Clients that wait for room at a server, in the order of their turns.
    lines: [VecDeque<Port>; 2],
    /// When clients that are leaving have had time enough.
    farewells: BTreeSet<(Instant, Port)>,
    /// Clients that were told something, each once. What follows of it is done when all that there is to tell them is queued:
    /// one that has its last answer is let go.
    told: VecDeque<Port>,
    /// Bytes that wait for clients.
    queued: usize,
    /// What went through clients that are gone.
    past: Tally,
    due: VecDeque<Port>,
    aborts: VecDeque<Port>,
    events: VecDeque<HubEvent>,
    dropped: u64,
    /// Since when there has been no client that used a server, if there is none.
    empty_since: Instant,
    phase: Phase,
    /// How the servers are ended.
    ladder: Ladder,
    now: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// Nothing new is taken; what is in flight may still be answered.
    Draining {
        until: Instant,
    },
    /// The servers are being ended.
    Stopping,
    /// The last output to the clients is on its way.
    Flushing {
        until: Instant,
    },
    Done,
}

impl Hub {
    /// Makes a hub without clients. Nothing is started yet.
    pub fn new(config: HubConfig) -> Self {
        Self {
            mux: Mux::new(config.mux),
            children: SlotId::ALL.map(|slot| Child::new(&config, slot)),
            config,
            guests: Guests::default(),
            lines: [VecDeque::new(), VecDeque::new()],
            farewells: BTreeSet::new(),
            told: VecDeque::new(),
            queued: 0,
            past: Tally::default(),
            due: VecDeque::new(),
            aborts: VecDeque::new(),
            events: VecDeque::new(),
            dropped: 0,
            empty_since: Instant::ZERO,
            phase: Phase::Serving,
            ladder: Ladder::Quick,
            now: Instant::ZERO,
        }
    }

    /// Starts the first server now, not when a client needs it. Nothing is said to it before a client opens.
    pub fn start(&mut self, now: Instant) {
        self.advance(now);
        if self.phase == Phase::Serving {
            self.mux.start(SlotId::First);
            self.settle();
        }
    }

    /// Makes room for a client and returns the port to open for it. `None`: there are too many, or the hub is ending.
    ///
    /// Beyond the most clients, a few more are let in as visitors, see [`is_visitor`](Self::is_visitor).
    pub fn try_accept(&mut self) -> Option<Port> {
        let is_visitor = self.guests.len() - self.guests.visitors() >= self.config.max_clients;
        let is_full = is_visitor && self.guests.visitors() >= limits::MAX_VISITORS;
        if is_full || self.phase != Phase::Serving {
            return None;
        }
        self.guests.add(is_visitor)
    }

    /// Returns whether this client came when there was no room for one. It may say one thing, and within
    /// [`limits::VISIT_TIMEOUT`]: what asks how things stand is answered, any other request refused, and it is let go.
    pub fn is_visitor(&self, port: Port) -> bool {
        self.guests.find(port).is_some_and(|guest| guest.is_visitor)
    }

    /// Ends the hub because nobody needs it any more: its servers get the polite way out.
    pub(super) fn retire(&mut self, now: Instant) {
        self.advance(now);
        if self.phase == Phase::Serving {
            self.mux.close();
            self.ladder = Ladder::Polite;
            self.phase = Phase::Draining { until: self.now };
        }
        self.settle();
    }

    /// Sends all clients away, because too much waits for them.
    pub(super) fn send_away(&mut self, now: Instant) {
        self.advance(now);
        for port in self.guests.ports().collect::<alloc::vec::Vec<_>>() {
            self.part(port, Parted::Slow);
        }
        self.settle();
    }

    /// Ends the hub: nothing new is taken, what is in flight has [`limits::DRAIN_GRACE`] to be answered, then the
    /// servers are ended. The second time it does not wait for answers any more.
    pub fn shut_down(&mut self, now: Instant) {
        self.advance(now);
        match self.phase {
            Phase::Serving => {
                self.mux.close();
                self.phase = Phase::Draining { until: self.now + limits::DRAIN_GRACE };
            }
            Phase::Draining { .. } => self.phase = Phase::Draining { until: self.now },
            Phase::Stopping if self.ladder != Ladder::Quick => {
                self.ladder = Ladder::Quick;
                self.stop_servers();
            }
            Phase::Stopping | Phase::Flushing { .. } | Phase::Done => {}
        }
        self.settle();
    }

    /// Answers [`HubEvent::Asked`] with a JSON text.
    pub fn answer(&mut self, now: Instant, request: WireId, result: &str) {
        self.advance(now);
        self.mux.answer_own(self.now, request, result);
        self.settle();
    }

    /// Returns how many clients there are.
    pub const fn clients(&self) -> usize {
        self.guests.len()
    }

    /// Returns how things stand with a server.
    pub fn server(&self, slot: SlotId) -> ServerStatus {
        self.child(slot).status(self.mux.era_of(slot), self.mux.held(slot))
    }

    /// Returns whether somebody has needed this server.
    pub(super) fn is_used(&self, slot: SlotId) -> bool {
        self.server(slot).state != State::Idle
    }

    /// Returns the first of the clients.
    pub(super) fn client(&self) -> Option<Port> {
        self.guests.ports().next()
    }

    /// Returns how things stand with each client.
    pub(super) fn connected(&self) -> impl Iterator<Item = ClientStatus> {
        self.guests.iter().map(|(port, guest)| ClientStatus {
            port,
            is_lumen: guest.leg.is_lumen(),
            queued: guest.counted,
            tally: guest.leg.tally(),
        })
    }

    /// Returns what went through clients that are gone.
    pub(super) const fn past(&self) -> Tally {
        self.past
    }

    /// Returns all requests in flight, the oldest first.
    pub(super) fn pending(&self) -> impl Iterator<Item = Pending<'_>> {
        self.mux.calls().map(|call| Pending {
            client: call.client,
            server: if call.slot == SlotId::First { 0 } else { 1 },
            method: call.method,
            since: call.since,
        })
    }

    /// Returns the logic inside, to be asked how things stand.
    pub const fn mux(&self) -> &Mux {
        &self.mux
    }

    /// Returns the bytes that wait for clients.
    pub const fn queued(&self) -> usize {
        self.queued
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn child(&self, slot: SlotId) -> &Child {
        let [first, second] = &self.children;
        match slot {
            SlotId::First => first,
            SlotId::Second => second,
        }
    }

    fn child_mut(&mut self, slot: SlotId) -> &mut Child {
        let [first, second] = &mut self.children;
        match slot {
            SlotId::First => first,
            SlotId::Second => second,
        }
    }

    /// Does all that follows from what was told.
    fn settle(&mut self) {
        loop {
            self.do_outs();
            if self.follow_told() || self.take_server_events() || self.serve_lines() || self.do_phase() {
                continue;
            }
            break;
        }
        for slot in SlotId::ALL {
            self.note_server(slot);
        }
    }

    fn do_outs(&mut self) {
        while let Some(out) = self.mux.poll_out() {
            match out {
                Out::Client { client, packet, edits, own } => self.send_to_client(client, packet, edits, own),
                Out::Child { slot, packet, edits, own } => self.send_to_server(slot, packet, edits, own),
                Out::Start(slot) => self.start_server(slot),
                Out::Ready(slot) => self.on_server_ready(slot),
                Out::Refused(slot) => {
                    let now = self.now;
                    self.child_mut(slot).refuse(now);
                }
                Out::Unneeded(slot) => {
                    let now = self.now;
                    self.child_mut(slot).dismiss(now);
                }
                Out::Unasked { from, id } => {
                    let port = match from {
                        Side::Client(port) => port,
                        Side::Child(slot) => self.child(slot).leg.port(),
                    };
                    self.tell(HubEvent::Stream(Event::Unasked { port, id }));
                }
                // As many as there are requests in flight, at most.
                Out::Asked { wire, client } => {
                    self.events.push_back(HubEvent::Asked { request: wire, client });
                }
                Out::Ownerless(slot) => {
                    let port = self.child(slot).leg.port();
                    self.tell(HubEvent::Ownerless(port));
                }
            }
        }
    }

    /// Follows the way to the end; returns whether that led to something.
    fn do_phase(&mut self) -> bool {
        match self.phase {
            Phase::Serving if self.idle_end().is_some_and(|end| end <= self.now) => {
                self.mux.close();
                self.phase = Phase::Draining { until: self.now };
                true
            }
            Phase::Draining { until } if self.now >= until || self.mux.is_quiet() => {
                self.phase = Phase::Stopping;
                self.stop_servers();
                true
            }
            Phase::Stopping if self.children.iter().all(|child| !child.is_alive()) => {
                self.phase = Phase::Flushing { until: self.now + limits::STOP_STEP };
                for port in self.guests.ports().collect::<alloc::vec::Vec<_>>() {
                    self.flush_client(port);
                }
                true
            }
            Phase::Flushing { .. } if self.guests.len() == 0 => {
                self.phase = Phase::Done;
                self.events.push_back(HubEvent::Stream(Event::Finished(Outcome::Terminated(None))));
                true
            }
            _ => false,
        }
    }

    /// Tells the owner something; when nobody listens, only how much was not told.
    fn tell(&mut self, event: HubEvent) {
        if self.events.len() < limits::MAX_EVENTS {
            self.events.push_back(event);
        } else {
            self.dropped += 1;
        }
    }

    /// Returns when the hub ends because nobody has come.
    fn idle_end(&self) -> Option<Instant> {
        let is_empty = self.phase == Phase::Serving && self.guests.len() == 0;
        self.config.idle_exit.filter(|_| is_empty).map(|patience| self.empty_since + patience)
    }

    fn slot_of(port: Port) -> Option<SlotId> {
        SlotId::ALL.into_iter().find(|slot| slot.index() as u64 == u64::from(port.index()))
    }
}

impl Machine for Hub {
    type Event = HubEvent;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.advance(now);
        if self.phase == Phase::Done {
            return;
        }
        match Self::slot_of(input.port()) {
            Some(slot) => self.handle_server_input(slot, input),
            None => self.handle_client_input(input),
        }
        self.settle();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        if self.phase == Phase::Done {
            return;
        }
        self.mux.handle_timeout(self.now);
        for slot in SlotId::ALL {
            self.handle_server_timeout(slot);
        }
        self.handle_farewells();
        if let Phase::Flushing { until } = self.phase
            && self.now >= until
        {
            for port in self.guests.ports().collect::<alloc::vec::Vec<_>>() {
                self.part(port, Parted::ShutDown);
            }
        }
        self.settle();
    }

    fn wants_input(&self, port: Port) -> usize {
        if self.phase == Phase::Done {
            return 0;
        }
        match Self::slot_of(port) {
            Some(slot) => {
                let leg = &self.child(slot).leg;
                if port == leg.port() && leg.is_readable() { limits::READ_CHUNK } else { 0 }
            }
            // Whoever waits for room at a server is read a little further: to notice that it has gone.
            None => match self.guests.find(port) {
                Some(guest) if guest.leg.is_readable() => limits::READ_CHUNK.saturating_sub(guest.ahead),
                _ => 0,
            },
        }
    }

    fn poll_ready(&mut self) -> Option<Port> {
        while let Some(port) = self.due.pop_front() {
            // It may be gone by now, or be another generation.
            let (port, ready) = match Self::slot_of(port) {
                Some(slot) => {
                    let child = self.child_mut(slot);
                    (child.leg.port(), Some(&mut child.ready))
                }
                None => (port, self.guests.find_mut(port).map(|guest| &mut guest.ready)),
            };
            if ready.is_some_and(super::ready::Ready::take) {
                return Some(port);
            }
        }
        None
    }

    fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        self.advance(now);
        match Self::slot_of(port) {
            Some(slot) => self.transmit_to_server(slot, port, out),
            None => self.transmit_to_client(port, out),
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        let action = self.children.iter_mut().find_map(|child| child.leg.poll_action());
        action.or_else(|| self.aborts.pop_front().map(Action::Abort))
    }

    fn poll_event(&mut self) -> Option<HubEvent> {
        if self.dropped > 0 && self.events.len() < limits::MAX_EVENTS {
            return Some(HubEvent::Stream(Event::Dropped(core::mem::take(&mut self.dropped))));
        }
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Draining { until } | Phase::Flushing { until } => Some(until),
            Phase::Serving | Phase::Stopping => None,
            Phase::Done => return None,
        };
        let servers = self.children.iter().filter_map(Child::poll_timeout);
        let farewell = self.farewells.first().map(|(until, _)| *until);
        servers.chain(phase).chain(self.idle_end()).chain(farewell).chain(self.mux.poll_timeout()).min()
    }
}
