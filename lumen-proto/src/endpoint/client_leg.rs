//! The side toward a client: one stream that exists from the start and is never made again.

use bytes::{Bytes, BytesMut};

use crate::connection::{Config, Connection, Event, Tally};
use crate::jsonrpc::{Message, reply};
use crate::message::{Edits, Packet};
use crate::{Input, Instant, Port, Reason, Transmit, limits};

/// The side toward a client.
#[derive(Debug)]
pub(super) struct ClientLeg {
    port: Port,
    connection: Connection,
    state: State,
    /// Its input has ended: nothing more comes from it.
    eof: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open,
    /// Nothing can be delivered to it any more, or all was.
    Deaf,
}

impl ClientLeg {
    pub(super) fn new(config: Config, port: Port) -> Self {
        Self { port, connection: Connection::new(config), state: State::Closed, eof: false }
    }

    pub(super) fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Opened(_) if self.state == State::Closed => {
                self.state = State::Open;
                self.connection.handle_opened(now);
            }
            Input::Data(_, data) if !self.eof => self.connection.handle_data(data),
            Input::Eof(_) if !self.eof => {
                self.connection.handle_eof();
                self.eof = true;
            }
            Input::Lost(_) | Input::Finished(_) => self.state = State::Deaf,
            _ => {}
        }
    }

    /// Queues a message; drops it if nobody will read it.
    pub(super) fn send(&mut self, message: Message) {
        if self.state != State::Deaf {
            self.connection.send(message);
        }
    }

    /// Queues a message in which something is exchanged when it leaves.
    pub(super) fn send_edited(&mut self, packet: Packet, edits: Edits) {
        if self.state != State::Deaf {
            self.connection.send_edited(packet, edits);
        }
    }

    /// Queues a message of ours that answers what it has just sent.
    pub(super) fn send_own(&mut self, packet: Packet) {
        if self.state != State::Deaf {
            self.connection.send_own(packet);
        }
    }

    /// Answers the request with this id token (none: `null`) with an error.
    pub(super) fn refuse(&mut self, id: Option<&[u8]>, reason: &Reason, detail: Option<&str>) {
        if let Some(message) = refusal(id, reason, detail)
            && self.state != State::Deaf
        {
            self.connection.send_own(message);
        }
    }

    /// Answers what could not be passed on, if its sender may wait for an answer: a request by its id, anything
    /// that could not be read at all with `null`, a message known to be no request not at all.
    pub(super) fn refuse_unread(&mut self, id: Option<&Bytes>, has_method: bool, reason: &Reason) {
        match (id, reason) {
            (Some(id), _) if has_method => self.refuse(Some(id), reason, None),
            // Known to be a notification or an answer.
            (_, Reason::TooLong { .. }) => {}
            (_, Reason::Unsupported(_) | Reason::ReservedType(_) | Reason::ReservedFlags(_))
                if !has_method => {}
            _ => self.refuse(None, reason, None),
        }
    }

    pub(super) fn finish(&mut self) {
        self.connection.finish();
    }

    pub(super) fn poll_transmit(&mut self, out: &mut BytesMut) -> Transmit {
        self.connection.poll_transmit(out)
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        let event = self.connection.poll_event()?;
        // The boundary is lost: nothing more can be understood.
        self.eof |= matches!(event, Event::Lost(_));
        Some(event)
    }

    pub(super) const fn port(&self) -> Port {
        self.port
    }

    pub(super) const fn is_eof(&self) -> bool {
        self.eof
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.state == State::Deaf
    }

    /// Returns whether it can be read: open, not ended, and reading its own answers.
    pub(super) fn is_readable(&self) -> bool {
        self.state == State::Open && !self.eof && self.connection.queued_own() < limits::MAX_QUEUE
    }

    /// Returns whether no more should be read for it.
    pub(super) const fn is_full(&self) -> bool {
        self.connection.queued() >= limits::MAX_QUEUE
    }

    /// Returns the bytes of messages that wait for their turn.
    pub(super) const fn queued(&self) -> usize {
        self.connection.queued()
    }

    /// Returns whether something that came is not taken yet.
    pub(super) fn has_event(&self) -> bool {
        self.connection.has_event()
    }

    /// Returns whether messages wait for their turn.
    pub(super) fn has_unsent(&self) -> bool {
        self.state != State::Deaf && self.connection.queued() > 0
    }

    pub(super) const fn tally(&self) -> Tally {
        self.connection.tally()
    }

    pub(super) const fn is_lumen(&self) -> bool {
        self.connection.is_lumen()
    }

    pub(super) fn has_output(&self) -> bool {
        self.state == State::Open && self.connection.has_output()
    }
}

/// Makes an error answer. `None` only if `id` is no JSON text, which no id that was read is.
pub(super) fn refusal(id: Option<&[u8]>, reason: &Reason, detail: Option<&str>) -> Option<Message> {
    Message::parse(reply::error(id, reason, detail)).ok()
}
