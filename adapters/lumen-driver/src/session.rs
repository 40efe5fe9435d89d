//! What the transports of every binding do with a [`Peer`] besides driving it: when a message may be sent, and what
//! an event means to whoever sends and receives messages.

use std::fmt;

use lumen_proto::endpoint::{Event, Outcome, Peer, SendError};
use lumen_proto::jsonrpc::Message;
use lumen_proto::{Instant, limits};

use crate::Pump;

/// Bytes of messages taken while a session is closed. When it is more, nothing is read until the session is over.
/// Worst case: this, plus what the [`Peer`] holds.
pub const MAX_CLOSING: usize = limits::MAX_MESSAGE;

/// Why a message was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The session has ended, or is bound to end, like this.
    Closed(Outcome),
    /// As much was received as is kept, so that waiting on might be for ever: receive some of it, then send this
    /// again. Only a client is told so before it has too many requests in flight.
    Unread(Message),
    /// It can never be sent: a batch of more requests than may be in flight.
    Refused(Message),
    /// The system has no memory to wait with.
    OutOfMemory(Message),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(outcome) => write!(f, "the session has ended: {outcome:?}"),
            Self::Unread(_) => f.write_str("received messages have to be taken before more can be sent"),
            Self::Refused(_) => f.write_str("the batch holds more requests than may be in flight"),
            Self::OutOfMemory(_) => f.write_str("there is no memory to wait with"),
        }
    }
}

impl std::error::Error for Error {}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// How, and of a client also how its server ended.
    pub outcome: Outcome,
    /// What was not received before the end. A request without an answer has an error here.
    pub messages: Vec<Message>,
}

/// What became of a message that was offered to a peer.
#[derive(Debug)]
pub enum Offer {
    /// It was sent, or cannot be.
    Done(Result<(), Error>),
    /// Offer it again when [`Side::is_worth_offering`].
    Wait(Message),
}

/// Which end of a session the owner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It asks.
    Client,
    /// It answers.
    Server,
}

impl Side {
    /// Sends a message, if there is room for it.
    ///
    /// What is received while a message waits for room stays with the peer, up to its bound; then it reads no
    /// more. If the other end reads no more either, until it has written, both wait for ever. A client therefore
    /// gives up waiting at that point. A server waits on: to read and answer one after the other is what servers
    /// do, and that its client reads is the client's duty. Neither waits for answers that it would not read.
    pub fn offer(self, peer: &mut Peer, now: Instant, message: Message) -> Offer {
        match peer.try_send(now, message) {
            Ok(()) => Offer::Done(Ok(())),
            Err(SendError::Closed(_)) => {
                Offer::Done(Err(Error::Closed(peer.outcome().unwrap_or(Outcome::Closed(None)))))
            }
            Err(SendError::Busy(message)) if !peer.is_asking() => Offer::Done(Err(Error::Refused(message))),
            Err(SendError::Full(message) | SendError::Busy(message)) if self.is_stuck(peer) => {
                Offer::Done(Err(Error::Unread(message)))
            }
            Err(SendError::Full(message) | SendError::Busy(message)) => Offer::Wait(message),
        }
    }

    /// Returns whether offering `message` would no longer say to wait.
    pub fn is_worth_offering(self, peer: &Peer, message: &Message) -> bool {
        peer.outcome().is_some() || peer.has_room_for(message) || self.is_stuck(peer)
    }

    /// Returns whether all that was sent is written, or that it will not be: the session is over, or waiting on might
    /// be for ever. `None` means that it is still being written.
    pub fn flushed(self, pump: &Pump<Peer>) -> Option<bool> {
        let peer = pump.machine();
        if peer.is_over() {
            Some(false)
        } else if !peer.has_unsent() && pump.is_written() {
            Some(true)
        } else {
            (self == Self::Client && peer.is_inbox_full()).then_some(false)
        }
    }

    fn is_stuck(self, peer: &Peer) -> bool {
        peer.is_inbox_full() && (self == Self::Client || !peer.is_full())
    }
}

/// What the owner of a peer is told.
#[derive(Default)]
pub struct Session {
    is_over: bool,
    on_notice: Option<Box<dyn FnMut(Event) + Send>>,
    kept: Vec<Message>,
    kept_bytes: usize,
}

impl Session {
    /// Sets who is told of every event that is no message.
    pub fn on_notice(&mut self, notice: impl FnMut(Event) + Send + 'static) {
        self.on_notice = Some(Box::new(notice));
    }

    /// Takes an event, and returns the message if it is one.
    pub fn on_event(&mut self, event: Event) -> Option<Message> {
        match event {
            Event::Message(message) => return Some(message),
            Event::InputClosed | Event::Finished(_) => self.is_over = true,
            _ => {}
        }
        if let Some(notice) = &mut self.on_notice {
            notice(event);
        }
        None
    }

    /// Returns whether no more messages come.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes an event while the session is closed. Returns whether more may be taken before it is over.
    pub fn on_last_event(&mut self, event: Event) -> bool {
        if let Some(message) = self.on_event(event) {
            self.kept_bytes += message.len();
            self.kept.push(message);
        }
        self.kept_bytes < MAX_CLOSING
    }

    /// Says how the session of `peer` ended.
    pub fn into_closed(self, peer: &Peer) -> Closed {
        Closed { outcome: peer.outcome().unwrap_or(Outcome::Closed(None)), messages: self.kept }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use lumen_proto::{Input, Machine, Transmit};

    use super::*;

    const T0: Instant = Instant::ZERO;

    fn message(text: &str) -> Message {
        Message::copy_from(text.as_bytes()).unwrap()
    }

    fn request(id: usize) -> String {
        format!(r#"{{"id":"{id}{}","method":"m"}}"#, "x".repeat(1000))
    }

    fn server() -> Peer {
        let mut peer = Peer::server();
        let port = peer.port();
        peer.handle_input(T0, Input::Opened(port));
        peer
    }

    #[test]
    fn nobody_waits_for_answers_that_would_not_be_read() {
        let mut peer = server();
        let port = peer.port();
        let mut id = 0;
        let waiting = loop {
            while peer.poll_transmit(T0, port, &mut BytesMut::new()) == Transmit::More {}
            match Side::Server.offer(&mut peer, T0, message(&request(id))) {
                Offer::Done(result) => result.unwrap(),
                Offer::Wait(message) => break message,
            }
            id += 1;
        };
        assert!(!Side::Server.is_worth_offering(&peer, &waiting));
        let news = format!("{{\"method\":\"{}\"}}\n", "n".repeat(60_000));
        while !peer.is_inbox_full() {
            peer.handle_input(T0, Input::Data(port, news.as_bytes()));
        }
        assert!(Side::Server.is_worth_offering(&peer, &waiting));
        let Offer::Done(Err(Error::Unread(waiting))) = Side::Server.offer(&mut peer, T0, waiting) else {
            panic!("it waits for ever");
        };
        assert!(peer.poll_event().is_some() && !Side::Server.is_worth_offering(&peer, &waiting));
    }

    #[test]
    fn a_server_waits_for_its_client_to_read() {
        let mut peer = server();
        let port = peer.port();
        let news = message(&format!("{{\"method\":\"{}\"}}", "n".repeat(60_000)));
        while !peer.is_full() {
            peer.try_send(T0, news.clone()).unwrap();
        }
        while !peer.is_inbox_full() {
            peer.handle_input(T0, Input::Data(port, news.bytes()));
            peer.handle_input(T0, Input::Data(port, b"\n"));
        }
        assert!(!Side::Server.is_worth_offering(&peer, &news));
        assert!(Side::Client.is_worth_offering(&peer, &news));
        assert!(matches!(Side::Server.offer(&mut peer, T0, news.clone()), Offer::Wait(_)));
        let offer = Side::Client.offer(&mut peer, T0, news);
        assert!(matches!(offer, Offer::Done(Err(Error::Unread(_)))), "{offer:?}");
    }

    #[test]
    fn what_never_fits_is_refused() {
        let requests: Vec<String> = (0..4300).map(request).collect();
        let batch = message(&format!("[{}]", requests.join(",")));
        let offer = Side::Server.offer(&mut server(), T0, batch);
        assert!(matches!(offer, Offer::Done(Err(Error::Refused(_)))));
    }

    #[test]
    fn what_is_taken_while_closing_is_bounded() {
        let mut session = Session::default();
        let large = message(&format!("{{\"method\":\"{}\"}}", "n".repeat(MAX_CLOSING / 8)));
        for _ in 0..7 {
            assert!(session.on_last_event(Event::Message(large.clone())));
        }
        assert!(!session.on_last_event(Event::Message(large)));
        assert_eq!(session.into_closed(&server()).messages.len(), 8);
    }
}
