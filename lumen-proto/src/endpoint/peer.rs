//! One end of a session: whole messages in and out, for programs that speak MCP themselves.

use bytes::BytesMut;

use super::client_leg::{ClientLeg, refusal};
use super::event::{Event, Events, Outcome};
use super::ids::{Ids, request_ids, response_ids};
use super::ready::Ready;
use super::server_leg::{LegEvent, ServerConfig, ServerLeg};
use crate::connection::{Config, Event as StreamEvent, Role};
use crate::jsonrpc::{Kind, Message};
use crate::message::Packet;
use crate::supervisor::{Ended, Ladder};
use crate::{Action, Input, Instant, Machine, Port, Reason, Transmit, limits};

/// One end of a session.
///
/// As a client it starts its server and asks it for LUMEN; as a server it answers whoever asks. Messages come
/// out as [`Event::Message`] and go in by [`try_send`](Self::try_send). A request that was sent and cannot be
/// answered any more is answered by an error message of ours, so that each gets exactly one answer.
///
/// A server does not end by itself when its client closes its input: after [`Event::InputClosed`] answers may
/// still go, until the owner calls [`close`](Self::close).
///
/// # Bounds
/// Each way [`limits::MAX_QUEUE`] plus one message, [`limits::MAX_OWED`] for ids, one partial message.
#[derive(Debug)]
pub struct Peer {
    side: Side,
    /// Our requests that are not answered.
    asked: Ids,
    /// Bytes of messages that the owner has not taken.
    inbox: usize,
    phase: Phase,
    outcome: Outcome,
    events: Events,
    ready: Ready,
    abort: bool,
    /// The other end has closed its side, and the owner knows.
    input_closed: bool,
    /// We were told to end.
    told: bool,
    now: Instant,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one a session, and a box would cost every message a detour")]
enum Side {
    /// We are the client; the server is there.
    Client(ServerLeg),
    /// We are the server; the client is there.
    Server(ClientLeg),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Told to end; output is on its way or the server is ending.
    Closing {
        until: Option<Instant>,
    },
    Done,
}

/// Why a message was not taken. It is given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// So much waits to be written already; it fits again when output has left.
    Full(Message),
    /// The session is ending or has ended.
    Closed(Message),
    /// Too many requests are in flight; it fits again when answers have come.
    Busy(Message),
}

impl Peer {
    /// Makes a client that starts the server behind `config` at once.
    pub fn client(config: ServerConfig) -> Self {
        // Its owner gets texts.
        let mut leg = ServerLeg::new(ServerConfig { keep_values: false, ..config }, Port::new(0));
        leg.start();
        Self::new(Side::Client(leg))
    }

    /// Makes a server for the client on [`port`](Self::port), which the driver opens by itself. The session goes
    /// on after [`Event::InputClosed`], until its owner closes it or nothing can be written any more.
    pub fn server() -> Self {
        Self::new(Side::Server(ClientLeg::new(Config::new(Role::Server), Port::new(0))))
    }

    fn new(side: Side) -> Self {
        Self {
            side,
            asked: Ids::default(),
            inbox: 0,
            phase: Phase::Open,
            outcome: Outcome::Closed(None),
            events: Events::default(),
            ready: Ready::default(),
            abort: false,
            input_closed: false,
            told: false,
            now: Instant::ZERO,
        }
    }

    /// Queues a message to the other end.
    ///
    /// # Errors
    /// Gives it back when there is no room for it or the session is ending.
    pub fn try_send(&mut self, now: Instant, message: Message) -> Result<(), SendError> {
        self.advance(now);
        if self.phase != Phase::Open || matches!(&self.side, Side::Server(leg) if leg.is_deaf()) {
            return Err(SendError::Closed(message));
        }
        if self.is_full() {
            return Err(SendError::Full(message));
        }
        match message.kind() {
            Kind::Request | Kind::Batch if self.asked.try_add(&message).is_err() => {
                return Err(SendError::Busy(message));
            }
            _ => self.asked.handle_cancelled(&message),
        }
        match &mut self.side {
            Side::Client(leg) => leg.send(self.now, message),
            Side::Server(leg) => leg.send(message),
        }
        if self.input_closed {
            // Nobody will answer it.
            self.fail_asked(Reason::ClientGone);
        }
        self.settle();
        Ok(())
    }

    /// Closes the session: what is queued is still written, a server of ours is given its time to end. The last
    /// event tells how it ended.
    pub fn close(&mut self, now: Instant) {
        self.end(now, Ladder::Polite);
    }

    /// Closes the session because we were told to end: a server of ours gets SIGTERM at once.
    pub fn terminate(&mut self, now: Instant) {
        if self.phase == Phase::Open {
            self.outcome = Outcome::Terminated(None);
        }
        self.told = true;
        self.end(now, Ladder::Quick);
    }

    /// Returns the port of the other end as it is now.
    pub const fn port(&self) -> Port {
        match &self.side {
            Side::Client(leg) => leg.port(),
            Side::Server(leg) => leg.port(),
        }
    }

    /// Returns whether [`try_send`](Self::try_send) would say that it is full.
    pub fn is_full(&self) -> bool {
        match &self.side {
            Side::Client(leg) => leg.is_full(),
            Side::Server(leg) => leg.is_full(),
        }
    }

    /// Returns whether [`try_send`](Self::try_send) would say neither that it is full nor that it is busy.
    pub fn has_room_for(&self, message: &Message) -> bool {
        !self.is_full()
            && (!matches!(message.kind(), Kind::Request | Kind::Batch) || self.asked.has_room_for(message))
    }

    /// Returns whether a request of ours is unanswered.
    pub fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Returns whether messages that were sent have not left yet, such as those that a probe holds back.
    pub fn has_unsent(&self) -> bool {
        match &self.side {
            Side::Client(leg) => leg.has_unsent(),
            Side::Server(leg) => leg.has_unsent(),
        }
    }

    /// Returns whether as much was received as is kept for the owner: nothing more is read until it takes some.
    pub const fn is_inbox_full(&self) -> bool {
        self.inbox >= limits::MAX_QUEUE
    }

    /// Returns whether messages leave as frames.
    pub const fn is_lumen(&self) -> bool {
        match &self.side {
            Side::Client(leg) => leg.is_lumen(),
            Side::Server(leg) => leg.is_lumen(),
        }
    }

    /// Returns whether nothing more will happen: [`Event::Finished`] was reported, or waits to be taken.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Returns how the session ended, or is bound to end.
    pub fn outcome(&self) -> Option<Outcome> {
        (self.is_over() || self.outcome == Outcome::NoAnswer).then_some(self.outcome)
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    fn end(&mut self, now: Instant, ladder: Ladder) {
        self.advance(now);
        match (&mut self.side, self.phase) {
            (_, Phase::Done) => return,
            (Side::Client(leg), _) => {
                self.phase = Phase::Closing { until: None };
                leg.stop(self.now, ladder);
            }
            (Side::Server(leg), _) => {
                leg.finish();
                self.on_flushing();
            }
        }
        self.settle();
    }

    /// Gives the other end its time to read what is left.
    fn on_flushing(&mut self) {
        let patience = if self.told { limits::STOP_STEP } else { limits::EOF_GRACE };
        self.phase = Phase::Closing { until: Some(self.now + patience) };
    }

    fn settle(&mut self) {
        while let Some(event) = self.next_leg_event() {
            self.on_leg(event);
        }
        // Its last words come before the news that there are no more.
        if let Side::Server(leg) = &self.side {
            let (is_eof, is_deaf) = (leg.is_eof(), leg.is_deaf());
            if is_eof && !self.input_closed {
                self.input_closed = true;
                self.fail_asked(Reason::ClientGone);
                self.events.push(Event::InputClosed);
            }
            if is_deaf && self.phase != Phase::Done {
                self.done();
            }
        }
        self.note();
    }

    /// Tells the server's supervisor and the driver how things stand.
    fn note(&mut self) {
        let has_room = !self.is_inbox_full();
        let is_open = self.phase == Phase::Open;
        let output = match &mut self.side {
            Side::Client(leg) => {
                leg.handle_reading(self.now, has_room || !is_open);
                leg.has_output()
            }
            Side::Server(leg) => leg.has_output(),
        };
        self.ready.note(self.is_readable(), output);
    }

    /// Returns whether the other end is to be read.
    fn is_readable(&self) -> bool {
        let is_readable = match &self.side {
            Side::Client(leg) => leg.is_readable(),
            Side::Server(leg) => leg.is_readable() && self.phase == Phase::Open,
        };
        is_readable && !self.is_inbox_full()
    }

    fn has_leg_event(&self) -> bool {
        match &self.side {
            Side::Client(leg) => leg.has_event(),
            Side::Server(leg) => leg.has_event(),
        }
    }

    fn next_leg_event(&mut self) -> Option<LegEvent> {
        match &mut self.side {
            Side::Client(leg) => leg.poll_event(),
            Side::Server(leg) => leg.poll_event().map(|event| LegEvent::Stream(leg.port(), event)),
        }
    }

    fn on_leg(&mut self, event: LegEvent) {
        match event {
            LegEvent::Stream(port, event) => {
                if let Some(event) = self.events.pass(port, event) {
                    self.on_stream(port, event);
                }
            }
            LegEvent::Restarting(why) => self.events.push(Event::Restarting { port: self.port(), why }),
            LegEvent::NoAnswer => {
                self.outcome = Outcome::NoAnswer;
                self.fail_asked(Reason::NoAnswer);
                self.phase = Phase::Closing { until: None };
                if let Side::Client(leg) = &mut self.side {
                    leg.stop(self.now, Ladder::Polite);
                }
            }
            LegEvent::Ended(ended) => self.on_ended(ended),
        }
    }

    fn on_stream(&mut self, port: Port, event: StreamEvent) {
        match event {
            StreamEvent::Message(Packet::Text(message)) => {
                let unasked = |id| self.events.push(Event::Unasked { port, id });
                if let Some(message) = self.asked.settle_message(message, unasked) {
                    self.receive(message);
                }
            }
            StreamEvent::Rejected { reason, id, has_method } => {
                match &mut self.side {
                    Side::Server(leg) => leg.refuse_unread(id.as_ref(), has_method, &reason),
                    Side::Client(leg) if has_method => {
                        if let Some(answer) = id.as_ref().and_then(|id| refusal(Some(id), &reason, None)) {
                            leg.send_own(answer);
                        }
                    }
                    Side::Client(_) => {}
                }
                if let Some(id) = &id
                    && !has_method
                    && self.asked.settle(id)
                {
                    self.receive_refusal(id, reason);
                }
                self.events.push(Event::Rejected { port, id, reason });
            }
            StreamEvent::Unsent { message, reason, .. } => {
                let Packet::Text(message) = *message else { return };
                let id = message.id().map(|id| id.to_vec().into());
                for id in request_ids(&message) {
                    if self.asked.settle(&id) {
                        self.receive_refusal(&id, reason);
                    }
                }
                for id in response_ids(&message) {
                    match &mut self.side {
                        Side::Server(leg) => leg.refuse(Some(id), &reason, None),
                        Side::Client(leg) => refusal(Some(id), &reason, None)
                            .into_iter()
                            .for_each(|answer| leg.send_own(answer)),
                    }
                }
                self.events.push(Event::Rejected { port, id, reason });
            }
            _ => {}
        }
    }

    fn on_ended(&mut self, ended: Ended) {
        match (&mut self.outcome, self.phase) {
            (Outcome::Closed(how) | Outcome::Terminated(how), Phase::Closing { .. }) => *how = Some(ended),
            (_, Phase::Closing { .. }) => {}
            (outcome, _) => {
                *outcome = match ended {
                    Ended::Failed(error) => Outcome::NotStarted(error),
                    _ => Outcome::ServerGone(ended),
                };
            }
        }
        self.done();
    }

    fn done(&mut self) {
        self.fail_asked(match (&self.side, self.outcome) {
            (Side::Server(_), _) => Reason::ClientGone,
            (_, Outcome::NotStarted(_)) => Reason::NotStarted,
            _ => Reason::ServerGone,
        });
        self.phase = Phase::Done;
        self.abort = matches!(self.side, Side::Server(_));
        self.events.push(Event::Finished(self.outcome));
    }

    fn fail_asked(&mut self, reason: Reason) {
        for id in self.asked.take_all() {
            self.receive_refusal(&id, reason);
        }
    }

    fn receive_refusal(&mut self, id: &[u8], reason: Reason) {
        if let Some(answer) = refusal(Some(id), &reason, None) {
            self.receive(answer);
        }
    }

    fn receive(&mut self, message: Message) {
        self.inbox += message.len();
        self.events.push_message(message);
    }
}

impl Machine for Peer {
    type Event = Event;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.advance(now);
        if self.phase == Phase::Done {
            return;
        }
        match &mut self.side {
            Side::Client(leg) => leg.handle_input(self.now, input),
            Side::Server(leg) => leg.handle_input(self.now, input),
        }
        self.settle();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        if self.phase == Phase::Done {
            return;
        }
        let is_awaited = !self.asked.is_quiet();
        if let Side::Client(leg) = &mut self.side {
            leg.handle_timeout(self.now, is_awaited);
        }
        if matches!(self.phase, Phase::Closing { until: Some(until) } if self.now >= until) {
            self.done();
        }
        self.settle();
    }

    fn wants_input(&self, port: Port) -> usize {
        if port == self.port() && self.is_readable() { limits::READ_CHUNK } else { 0 }
    }

    fn poll_ready(&mut self) -> Option<Port> {
        self.ready.take().then(|| self.port())
    }

    fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        self.advance(now);
        if port != self.port() {
            return Transmit::Idle;
        }
        let transmit = match &mut self.side {
            Side::Client(leg) => leg.poll_transmit(self.now, out),
            Side::Server(leg) => leg.poll_transmit(out),
        };
        if transmit != Transmit::More {
            self.ready.note_idle();
            if transmit == Transmit::Idle && !self.has_leg_event() {
                return transmit;
            }
        } else if matches!(self.phase, Phase::Closing { until: Some(_) }) {
            // It reads.
            self.on_flushing();
        }
        self.settle();
        transmit
    }

    fn poll_action(&mut self) -> Option<Action> {
        if core::mem::take(&mut self.abort) {
            return Some(Action::Abort(self.port()));
        }
        match &mut self.side {
            Side::Client(leg) => leg.poll_action(),
            Side::Server(_) => None,
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop()?;
        if let Event::Message(message) = &event {
            self.inbox -= message.len();
            // All that has come is settled; there is only room again.
            self.note();
        }
        Some(event)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (&self.side, self.phase) {
            (_, Phase::Done) => None,
            (Side::Client(leg), _) => leg.poll_timeout(),
            (Side::Server(_), Phase::Closing { until }) => until,
            (Side::Server(_), Phase::Open) => None,
        }
    }
}
