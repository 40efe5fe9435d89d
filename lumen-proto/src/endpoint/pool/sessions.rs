//! Private servers: a hub for each client, under ports of their own.
//!
//! Session `n` has the port indexes from `n * STRIDE` on: two for its hub's servers, of which it uses the first, then
//! its client. No session is ever numbered like another, so what belongs to one that is over finds nothing.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use bytes::BytesMut;

use crate::connection::Tally;
use crate::endpoint::event::{Event, Outcome};
use crate::endpoint::hub::{ClientStatus, Hub, HubConfig, HubEvent, Pending, ServerStatus};
use crate::idmap::WireId;
use crate::mux::{self, SlotId};
use crate::{Action, Input, Instant, Machine as _, Port, Transmit, limits};

/// The ports of one session: two of servers, one of its client.
const STRIDE: u32 = 3;

/// All sessions, by number.
#[derive(Debug)]
pub(super) struct Sessions {
    config: HubConfig,
    all: BTreeMap<u32, Session>,
    /// The number of the next.
    next: u32,
    wakes: BTreeSet<(Instant, u32)>,
    ready: VecDeque<Port>,
    actions: VecDeque<Action>,
    events: VecDeque<HubEvent>,
    dropped: u64,
    clients: usize,
    /// Bytes that wait for clients.
    queued: usize,
    past_clients: Tally,
    past_servers: Tally,
    /// Since when no client is there that used its server, if none is.
    empty_since: Instant,
    phase: Phase,
    now: Instant,
}

/// One client and its server.
#[derive(Debug)]
struct Session {
    hub: Hub,
    /// When it is to be told the time.
    wake: Option<Instant>,
    /// What waits for its client, as counted in the total.
    counted: usize,
    /// Its client is there.
    has_client: bool,
    /// Its client may only ask how things stand.
    is_visit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    Ending,
    Done,
}

impl Sessions {
    pub(super) fn new(config: HubConfig) -> Self {
        Self {
            config,
            all: BTreeMap::new(),
            next: 0,
            wakes: BTreeSet::new(),
            ready: VecDeque::new(),
            actions: VecDeque::new(),
            events: VecDeque::new(),
            dropped: 0,
            clients: 0,
            queued: 0,
            past_clients: Tally::default(),
            past_servers: Tally::default(),
            empty_since: Instant::ZERO,
            phase: Phase::Serving,
            now: Instant::ZERO,
        }
    }

    pub(super) fn try_accept(&mut self) -> Option<Port> {
        let visits = self.all.values().filter(|session| session.is_visit).count();
        let is_visit = self.all.len() - visits >= self.config.max_clients;
        if self.phase != Phase::Serving || (is_visit && visits >= limits::MAX_VISITORS) {
            return None;
        }
        let number = self.next;
        // The last of its ports has to have a number, too.
        self.next = number.checked_add(1).filter(|next| next.checked_mul(STRIDE).is_some())?;
        let mux = mux::Config { one_child: true, ..self.config.mux };
        let max_clients = usize::from(!is_visit);
        let mut hub = Hub::new(HubConfig { mux, max_clients, idle_exit: None, ..self.config });
        let client = hub.try_accept()?;
        let session = Session { hub, wake: None, counted: 0, has_client: true, is_visit };
        self.all.insert(number, session);
        self.clients += 1;
        Some(outer(number, client))
    }

    pub(super) fn is_visitor(&self, port: Port) -> bool {
        self.find(port).is_some_and(|(hub, port)| hub.is_visitor(port))
    }

    pub(super) fn shut_down(&mut self, now: Instant) {
        self.advance(now);
        if self.phase == Phase::Serving {
            self.phase = Phase::Ending;
        }
        for number in self.all.keys().copied().collect::<Vec<_>>() {
            self.with(number, Hub::shut_down);
        }
        self.follow_end();
    }

    pub(super) fn answer(&mut self, now: Instant, client: Port, request: WireId, result: &str) {
        self.advance(now);
        self.with(client.index() / STRIDE, |hub, now| hub.answer(now, request, result));
    }

    pub(super) const fn clients(&self) -> usize {
        self.clients
    }

    pub(super) const fn queued(&self) -> usize {
        self.queued
    }

    pub(super) fn owed(&self) -> usize {
        self.all.values().map(|session| session.hub.mux().owed_in_all()).sum()
    }

    pub(super) fn servers(&self) -> Vec<ServerStatus> {
        let used = self.all.iter().filter(|(_, session)| session.hub.is_used(SlotId::First));
        used.map(|(number, session)| {
            let status = session.hub.server(SlotId::First);
            let client = session.hub.client().map(|client| outer(*number, client));
            ServerStatus { port: outer(*number, status.port), client, ..status }
        })
        .collect()
    }

    pub(super) fn connected(&self) -> Vec<ClientStatus> {
        let mut all = Vec::new();
        for (number, session) in &self.all {
            let of_it = session.hub.connected();
            all.extend(of_it.map(|client| ClientStatus { port: outer(*number, client.port), ..client }));
        }
        all
    }

    /// Returns what went through clients that are gone.
    pub(super) fn past_clients(&self) -> Tally {
        let mut past = self.past_clients;
        self.all.values().for_each(|session| past += session.hub.past());
        past
    }

    /// Returns what went through servers of sessions that are over.
    pub(super) const fn past_servers(&self) -> Tally {
        self.past_servers
    }

    pub(super) fn pending(&self) -> Vec<Pending<'_>> {
        let mut all = Vec::new();
        for (number, session) in &self.all {
            all.extend(session.hub.pending().map(|call| Pending {
                client: call.client.map(|client| outer(*number, client)),
                server: number * STRIDE + call.server,
                ..call
            }));
        }
        all
    }

    pub(super) fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.advance(now);
        let port = input.port();
        self.with(port.index() / STRIDE, |hub, now| hub.handle_input(now, input.with_port(inner(port))));
        self.follow_end();
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some((_, number)) = self.wakes.first().copied().filter(|(at, _)| *at <= self.now) {
            self.with(number, Hub::handle_timeout);
        }
        self.follow_end();
    }

    pub(super) fn wants_input(&self, port: Port) -> usize {
        self.find(port).map_or(0, |(hub, port)| hub.wants_input(port))
    }

    pub(super) fn poll_ready(&mut self) -> Option<Port> {
        self.ready.pop_front()
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        self.advance(now);
        let transmit = self.with(port.index() / STRIDE, |hub, now| hub.poll_transmit(now, inner(port), out));
        transmit.unwrap_or(Transmit::Idle)
    }

    pub(super) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<HubEvent> {
        if self.dropped > 0 && self.events.len() < limits::MAX_EVENTS {
            return Some(HubEvent::Stream(Event::Dropped(core::mem::take(&mut self.dropped))));
        }
        self.events.pop_front()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.wakes.first().map(|(at, _)| *at), self.idle_end()].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn find(&self, port: Port) -> Option<(&Hub, Port)> {
        Some((&self.all.get(&(port.index() / STRIDE))?.hub, inner(port)))
    }

    /// Lets a session do something, and does what follows from it.
    fn with<R>(&mut self, number: u32, command: impl FnOnce(&mut Hub, Instant) -> R) -> Option<R> {
        let result = command(&mut self.all.get_mut(&number)?.hub, self.now);
        self.follow(number);
        if self.queued > limits::MAX_HUB_QUEUE {
            self.send_slowest_away();
        }
        Some(result)
    }

    /// Passes on what a session has to say. A session whose client has gone is ended, and one that has ended forgotten.
    fn follow(&mut self, number: u32) {
        let Some(session) = self.all.get_mut(&number) else { return };
        if session.has_client && session.hub.clients() == 0 {
            session.has_client = false;
            self.clients -= 1;
            if session.hub.is_used(SlotId::First) {
                self.empty_since = self.now;
            }
            session.hub.retire(self.now);
        }
        let mut is_over = false;
        while let Some(port) = session.hub.poll_ready() {
            self.ready.push_back(outer(number, port));
        }
        while let Some(action) = session.hub.poll_action() {
            self.actions.push_back(match action {
                Action::Spawn(port) => Action::Spawn(outer(number, port)),
                Action::Signal(port, signal) => Action::Signal(outer(number, port), signal),
                Action::Abort(port) => Action::Abort(outer(number, port)),
            });
        }
        while let Some(mut event) = session.hub.poll_event() {
            if let Some(port) = event.port_mut() {
                *port = outer(number, *port);
            }
            match event {
                HubEvent::Stream(Event::Finished(_)) => is_over = true,
                HubEvent::Stream(Event::Dropped(count)) => self.dropped += count,
                // Of the former there are as many as requests in flight, at most.
                HubEvent::Asked { .. } => self.events.push_back(event),
                _ if self.events.len() < limits::MAX_EVENTS => self.events.push_back(event),
                _ => self.dropped += 1,
            }
        }
        let (queued, wake) = (session.hub.queued(), session.hub.poll_timeout());
        self.queued = self.queued - session.counted + queued;
        session.counted = queued;
        if session.wake != wake {
            if let Some(old) = core::mem::replace(&mut session.wake, wake) {
                self.wakes.remove(&(old, number));
            }
            if let Some(new) = wake {
                self.wakes.insert((new, number));
            }
        }
        if is_over {
            self.past_clients += session.hub.past();
            self.past_servers += session.hub.server(SlotId::First).tally;
            self.all.remove(&number);
        }
    }

    fn send_slowest_away(&mut self) {
        let slowest = self.all.iter().max_by_key(|(_, session)| session.counted);
        let Some(number) = slowest.map(|(number, _)| *number) else { return };
        if let Some(session) = self.all.get_mut(&number) {
            session.hub.send_away(self.now);
            self.follow(number);
        }
    }

    fn follow_end(&mut self) {
        if self.idle_end().is_some_and(|end| end <= self.now) {
            return self.shut_down(self.now);
        }
        if self.phase == Phase::Ending && self.all.is_empty() {
            self.phase = Phase::Done;
            self.events.push_back(HubEvent::Stream(Event::Finished(Outcome::Terminated(None))));
        }
    }

    fn idle_end(&self) -> Option<Instant> {
        let is_empty = self.phase == Phase::Serving && self.clients == 0;
        self.config.idle_exit.filter(|_| is_empty).map(|patience| self.empty_since + patience)
    }
}

/// Returns what everybody else calls this port of session `number`.
const fn outer(number: u32, port: Port) -> Port {
    port.with_index(number * STRIDE + port.index())
}

/// Returns what its session calls this port.
const fn inner(port: Port) -> Port {
    port.with_index(port.index() % STRIDE)
}
