//! The hop to a server behind HTTP: an agent's port, and the exchanges beside it.

use bytes::BytesMut;

use super::client_leg::ClientLeg;
use super::event::Event;
use crate::connection::{Config, Role};
use crate::http::{self, ExchangeId, Request, Session, TransportError};
use crate::{Action, Input, Instant, Machine, Port, Transmit};

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
#[derive(Debug)]
pub struct Bridge {
    client: ClientLeg,
    session: Session,
}

impl Bridge {
    /// Makes a bridge whose agent speaks JSON lines, or LUMEN if it asks for it.
    pub fn new(config: http::Config) -> Self {
        Self {
            client: ClientLeg::new(Config::new(Role::Server), Port::new(0)),
            session: Session::new(config),
        }
    }

    /// Returns the agent's port, which the driver opens by itself.
    pub const fn client_port(&self) -> Port {
        self.client.port()
    }

    /// Ends the session because we were told to end.
    pub fn terminate(&mut self, now: Instant) {
        self.session.terminate(now);
    }

    /// As [`Session::handle_written`].
    pub fn handle_written(&mut self, now: Instant, id: ExchangeId) {
        self.session.handle_written(now, id);
    }

    /// As [`Session::handle_head`].
    pub fn handle_head(&mut self, now: Instant, id: ExchangeId, status: u16, headers: &[(&str, &str)]) {
        self.session.handle_head(now, id, status, headers);
    }

    /// As [`Session::handle_chunk`].
    pub fn handle_chunk(&mut self, now: Instant, id: ExchangeId, chunk: &[u8]) {
        self.session.handle_chunk(now, id, chunk);
    }

    /// As [`Session::handle_end`].
    pub fn handle_end(&mut self, now: Instant, id: ExchangeId, result: Result<(), TransportError>) {
        self.session.handle_end(now, id, result);
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
}

impl Machine for Bridge {
    type Event = BridgeEvent;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.client.handle_input(now, input);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
    }

    fn wants_input(&self, _: Port) -> usize {
        0
    }

    fn poll_ready(&mut self) -> Option<Port> {
        None
    }

    fn poll_transmit(&mut self, _: Instant, _: Port, out: &mut BytesMut) -> Transmit {
        self.client.poll_transmit(out)
    }

    fn poll_action(&mut self) -> Option<Action> {
        None
    }

    fn poll_event(&mut self) -> Option<BridgeEvent> {
        self.session.poll_event().map(BridgeEvent::Server)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }
}
