//! The hop to a server behind HTTP: an agent's port, and the exchanges beside it.

use bytes::{Bytes, BytesMut};

use super::client_leg::ClientLeg;
use super::event::{Event, Events, Outcome};
use super::ready::Ready;
use crate::connection::{Config, Event as StreamEvent, Role};
use crate::http::{self, ExchangeId, Request, Session, TransportError};
use crate::jsonrpc::Kind;
use crate::message::Packet;
use crate::{Action, Input, Instant, Machine, Port, Reason, Transmit, limits};

/// What a [`Bridge`] tells its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeEvent {
    /// What concerns the agent's port, and the end: [`Event::Finished`] is always the last.
    Client(Event),
    /// What concerns the exchanges.
    Server(http::Event),
}

/// Passes messages between an agent's port and a server behind Streamable HTTP.
///
/// It is a [`Machine`] with one port, 0. The exchanges go beside it: after everything that was told, the adapter
/// asks [`poll_abort`](Self::poll_abort) and [`poll_request`](Self::poll_request) until both return `None`.
///
/// When the agent has closed its input and nothing is owed to it, at most [`http::Config::eof_grace`] later, the
/// session is ended at the server, and then the agent's output.
///
/// # Bounds
/// Toward the agent twice [`limits::MAX_QUEUE`] plus one message, and those of [`Session`].
#[derive(Debug)]
pub struct Bridge {
    client: ClientLeg,
    session: Session,
    phase: Phase,
    /// The session knows that the agent says no more.
    is_eof_told: bool,
    /// We were told to end.
    told: bool,
    /// The agent went away before the end.
    is_gone: bool,
    /// The agent's port is to be dropped.
    abort: bool,
    events: Events,
    ready: Ready,
    now: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// The last output to the agent is on its way.
    Flushing {
        until: Instant,
    },
    Done,
}

impl Bridge {
    /// Makes a bridge whose agent speaks JSON lines, or LUMEN if it asks for it.
    pub fn new(config: http::Config) -> Self {
        Self {
            client: ClientLeg::new(Config::new(Role::Server), Port::new(0)),
            session: Session::new(config),
            phase: Phase::Serving,
            is_eof_told: false,
            told: false,
            is_gone: false,
            abort: false,
            events: Events::default(),
            ready: Ready::default(),
            now: Instant::ZERO,
        }
    }

    /// Returns the agent's port, which the driver opens by itself.
    pub const fn client_port(&self) -> Port {
        self.client.port()
    }

    /// Ends the session because we were told to end: what is owed is waited for only shortly.
    pub fn terminate(&mut self, now: Instant) {
        self.advance(now);
        self.told = true;
        self.session.terminate(self.now);
        if let Phase::Flushing { until } = self.phase {
            self.phase = Phase::Flushing { until: until.min(self.patience()) };
        }
        self.settle();
    }

    /// As [`Session::handle_written`].
    pub fn handle_written(&mut self, now: Instant, id: ExchangeId) {
        self.advance(now);
        self.session.handle_written(self.now, id);
        self.settle();
    }

    /// As [`Session::handle_head`].
    pub fn handle_head(&mut self, now: Instant, id: ExchangeId, status: u16, headers: &[(&str, &str)]) {
        self.advance(now);
        self.session.handle_head(self.now, id, status, headers);
        self.settle();
    }

    /// As [`Session::handle_chunk`].
    pub fn handle_chunk(&mut self, now: Instant, id: ExchangeId, chunk: &[u8]) {
        self.advance(now);
        self.session.handle_chunk(self.now, id, chunk);
        self.settle();
    }

    /// As [`Session::handle_end`].
    pub fn handle_end(&mut self, now: Instant, id: ExchangeId, result: Result<(), TransportError>) {
        self.advance(now);
        self.session.handle_end(self.now, id, result);
        self.settle();
    }

    /// Returns the next request to make.
    #[must_use]
    pub fn poll_request(&mut self) -> Option<Request> {
        self.session.poll_request()
    }

    /// Returns an exchange to drop, however far it is.
    #[must_use]
    pub fn poll_abort(&mut self) -> Option<ExchangeId> {
        self.session.poll_abort()
    }

    /// Returns whether more of this response may be read now: not while the agent reads too slowly. Ask again
    /// after every other call.
    pub fn wants_chunks(&self, id: ExchangeId) -> bool {
        self.session.wants_chunks(id)
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Does all that the events of both sides imply, and notes whether the port has become ready.
    fn settle(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.on_client(event);
        }
        if self.phase == Phase::Serving
            && self.client.is_deaf()
            && !core::mem::replace(&mut self.is_gone, true)
        {
            // Nobody is left to wait for.
            self.session.terminate(self.now);
        }
        if self.client.is_eof() && !core::mem::replace(&mut self.is_eof_told, true) {
            self.session.handle_eof(self.now);
        }
        let mut is_drained = false;
        while !is_drained && (!self.client.is_full() || self.client.is_deaf()) {
            match self.session.poll_message() {
                Some(message) => self.client.send(message),
                None => is_drained = true,
            }
        }
        if self.phase == Phase::Serving && self.session.is_over() && is_drained {
            self.client.finish();
            self.phase = Phase::Flushing { until: self.patience() };
        }
        if matches!(self.phase, Phase::Flushing { .. }) && self.client.is_deaf() {
            self.done();
        }
        let wanted = self.wants_input(self.client.port()) > 0;
        self.ready.note(wanted, self.client.has_output());
    }

    fn on_client(&mut self, event: StreamEvent) {
        let port = self.client.port();
        let Some(event) = self.events.pass(port, event) else { return };
        match event {
            StreamEvent::Message(Packet::Text(message)) => self.session.handle_message(self.now, message),
            StreamEvent::Rejected { reason, id, has_method } => {
                let is_answer = match &id {
                    Some(id) if !has_method => self.session.handle_broken_answer(self.now, id, &reason),
                    _ => false,
                };
                if !is_answer {
                    self.client.refuse_unread(id.as_ref(), has_method, &reason);
                }
                self.events.push(Event::Rejected { port, id, reason });
            }
            StreamEvent::Unsent { message, reason, .. } => self.on_unsent(&message, reason),
            _ => {}
        }
    }

    /// A message to the agent turned out to be too long for it.
    fn on_unsent(&mut self, message: &Packet, reason: Reason) {
        let id = message.id().map(|id| Bytes::copy_from_slice(&id));
        match (message.kind(), &id) {
            (Kind::Response, Some(id)) => self.client.refuse(Some(id), &reason, Some("the server's answer")),
            (Kind::Request, Some(id)) => {
                self.session.handle_broken_answer(self.now, id, &reason);
            }
            _ => {}
        }
        self.events.push(Event::Rejected { port: self.client.port(), id, reason });
    }

    /// Returns how long the agent may leave the last output untouched from now on.
    fn patience(&self) -> Instant {
        self.now + if self.told { limits::STOP_STEP } else { limits::EOF_GRACE }
    }

    fn done(&mut self) {
        self.phase = Phase::Done;
        self.abort = true;
        let outcome = match self.session.unanswered() {
            _ if self.told => Outcome::Terminated(None),
            _ if self.is_gone => Outcome::Closed(None),
            0 => Outcome::Closed(None),
            unanswered => Outcome::Unanswered(unanswered),
        };
        self.events.push(Event::Finished(outcome));
    }
}

impl Machine for Bridge {
    type Event = BridgeEvent;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.advance(now);
        if self.phase != Phase::Done && input.port() == self.client.port() {
            self.client.handle_input(self.now, input);
            self.settle();
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        match self.phase {
            Phase::Flushing { until } if self.now >= until => self.done(),
            Phase::Done => return,
            _ => {}
        }
        self.session.handle_timeout(self.now);
        self.settle();
    }

    fn wants_input(&self, port: Port) -> usize {
        let wanted = port == self.client.port()
            && self.phase == Phase::Serving
            && !self.told
            && self.client.is_readable()
            && self.session.wants_messages();
        if wanted { limits::READ_CHUNK } else { 0 }
    }

    fn poll_ready(&mut self) -> Option<Port> {
        self.ready.take().then(|| self.client.port())
    }

    fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        self.advance(now);
        if port != self.client.port() {
            return Transmit::Idle;
        }
        let transmit = self.client.poll_transmit(out);
        if transmit != Transmit::More {
            self.ready.note_idle();
        } else if matches!(self.phase, Phase::Flushing { .. }) {
            // It reads.
            self.phase = Phase::Flushing { until: self.patience() };
        }
        self.settle();
        transmit
    }

    fn poll_action(&mut self) -> Option<Action> {
        core::mem::take(&mut self.abort).then(|| Action::Abort(self.client.port()))
    }

    fn poll_event(&mut self) -> Option<BridgeEvent> {
        let event = self.session.poll_event().map(BridgeEvent::Server);
        event.or_else(|| self.events.pop().map(BridgeEvent::Client))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Flushing { until } => Some(until),
            Phase::Serving => self.session.poll_timeout(),
            Phase::Done => None,
        }
    }
}

#[cfg(test)]
mod tests;
