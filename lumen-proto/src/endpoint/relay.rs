//! The hop in the middle: one client, one server, and every message from one to the other.

mod link;
mod recall;
mod resume;

use alloc::string::String;

use bytes::{Bytes, BytesMut};

use self::link::Link;
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

/// Passes messages between one client and one server, on whatever carrier each of them speaks.
///
/// Messages are passed on as they came. Every request that was read is answered once: by the server, or by an
/// error of ours when it cannot be. The server is started at once and ended when the client has closed its
/// input and nothing is owed to it, at most [`limits::EOF_GRACE`] later.
///
/// # Bounds
/// Toward each side [`limits::MAX_QUEUE`] plus one message, [`limits::MAX_OWED`] for ids each way, one partial
/// message from each side; and [`limits::MAX_KEPT`] until the first answer after a probe. With
/// [`with_reconnect`](Self::with_reconnect) also [`limits::MAX_QUEUE`] plus one message while there is no server, the
/// client's handshake, and [`limits::MAX_CLIENT_KEPT`] for what it is subscribed to.
#[derive(Debug)]
pub struct Relay {
    client: ClientLeg,
    server: ServerLeg,
    /// Requests of the client that the server has not answered.
    owed: Ids,
    /// Requests of the server that the client has not answered.
    asked: Ids,
    phase: Phase,
    outcome: Outcome,
    events: Events,
    /// Of the client and of the server.
    ready: [Ready; 2],
    /// The client's port is to be dropped.
    abort: bool,
    /// We were told to end.
    told: bool,
    /// How the server ends then.
    hurry: Ladder,
    /// The connection to the server, if it is made again.
    link: Option<Link>,
    /// What error answers say to a server that cannot be started or reached.
    advice: String,
    now: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// The client's input has ended while answers are owed.
    Grace {
        until: Instant,
    },
    /// The server was told to end.
    Stopping,
    /// The server is gone; what the client still sends is answered with an error.
    Lingering {
        until: Instant,
    },
    /// The last output to the client is on its way.
    Flushing {
        until: Instant,
    },
    Done,
}

impl Relay {
    /// Makes the relay of `lumen connect`: its client speaks JSON lines, its server is asked for LUMEN.
    pub fn connect(server: ServerConfig) -> Self {
        Self::new(Role::Plain, Ladder::Quick, server)
    }

    /// Makes the relay of `lumen wrap`: its client may ask for LUMEN, its server speaks JSON lines. Who asks for it
    /// is a hop like us, so this one is quicker when it is told to end.
    pub fn wrap(server: ServerConfig) -> Self {
        Self::new(Role::Server, Ladder::Quickest, server)
    }

    fn new(client: Role, hurry: Ladder, server: ServerConfig) -> Self {
        // The ids on both sides are looked up in texts.
        let mut server = ServerLeg::new(ServerConfig { keep_values: false, ..server }, Port::new(1));
        server.start();
        Self {
            client: ClientLeg::new(Config::new(client), Port::new(0)),
            server,
            owed: Ids::default(),
            asked: Ids::default(),
            phase: Phase::Serving,
            outcome: Outcome::Closed(None),
            events: Events::default(),
            ready: [Ready::default(); 2],
            abort: false,
            told: false,
            hurry,
            link: None,
            advice: String::new(),
            now: Instant::ZERO,
        }
    }

    /// Ends the session because we were told to end: the server gets SIGTERM at once.
    pub fn terminate(&mut self, now: Instant) {
        self.advance(now);
        self.told = true;
        match self.phase {
            Phase::Serving | Phase::Grace { .. } | Phase::Stopping => {
                self.outcome = Outcome::Terminated(None);
                self.end_server(self.hurry);
            }
            Phase::Lingering { .. } => self.flush(),
            Phase::Flushing { until } => {
                self.phase = Phase::Flushing { until: until.min(self.patience()) };
            }
            Phase::Done => {}
        }
        self.settle();
    }

    /// Has error answers say this besides when the server cannot be started or reached: where it was looked for, and what to
    /// try. They quote 1 KiB of it.
    pub fn set_advice(&mut self, advice: impl Into<String>) {
        self.advice = advice.into();
    }

    /// Returns the port of the client, which the driver opens by itself.
    pub const fn client_port(&self) -> Port {
        self.client.port()
    }

    /// Returns the port of the server as it is now.
    pub const fn server_port(&self) -> Port {
        self.server.port()
    }

    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Does all that the events of both sides imply, and notes which ports have become ready.
    fn settle(&mut self) {
        loop {
            if let Some(event) = self.client.poll_event() {
                self.on_client(event);
            } else if let Some(event) = self.server.poll_event() {
                self.on_server(event);
            } else {
                break;
            }
        }
        self.on_client_state();
        let is_awaited = !self.owed.is_quiet();
        if let Some(link) = &mut self.link {
            link.handle_awaited(self.now, is_awaited);
        }
        let is_read = self.has_room() || !matches!(self.phase, Phase::Serving | Phase::Grace { .. });
        self.server.handle_reading(self.now, is_read);
        let wanted = [self.client.port(), self.server.port()].map(|port| self.wants_input(port) > 0);
        let output = [self.client.has_output(), self.server.has_output()];
        for ((ready, wanted), output) in self.ready.iter_mut().zip(wanted).zip(output) {
            ready.note(wanted, output);
        }
    }

    fn on_client(&mut self, event: StreamEvent) {
        let port = self.client.port();
        let Some(event) = self.events.pass(port, event) else { return };
        match event {
            StreamEvent::Message(Packet::Text(message)) => self.on_client_message(message),
            StreamEvent::Rejected { reason, id, has_method } => {
                match &id {
                    // A broken answer to the server.
                    Some(id) if !has_method && self.asked.settle(id) => self.refuse_server(id, reason),
                    _ => self.client.refuse_unread(id.as_ref(), has_method, &reason),
                }
                self.events.push(Event::Rejected { port, id, reason });
            }
            StreamEvent::Unsent { message, reason, .. } => {
                if let Packet::Text(message) = &*message {
                    self.on_unsent_to_client(message, reason);
                }
            }
            _ => {}
        }
    }

    fn on_client_message(&mut self, message: Message) {
        let gone = match self.phase {
            Phase::Serving | Phase::Grace { .. } => None,
            _ => Some(self.gone_reason()),
        };
        if let Some(reason) = gone {
            return self.refuse_all(&message, reason);
        }
        if let Some(link) = &mut self.link {
            if !link.is_up() {
                return link.hold(message);
            }
            if request_ids(&message).any(|id| link.is_private(&id)) {
                return self.refuse_all(&message, Reason::IdInUse);
            }
        }
        if let Err(reason) = self.owed.try_add(&message) {
            self.refuse_all(&message, reason);
            for id in response_ids(&message) {
                if self.asked.settle(id) {
                    self.refuse_server(id, reason);
                }
            }
            return;
        }
        self.owed.handle_cancelled(&message);
        let port = self.client.port();
        let unasked = |id| self.events.push(Event::Unasked { port, id });
        if let Some(message) = self.asked.settle_message(message, unasked) {
            if let Some(link) = &mut self.link {
                link.recall.on_sent(&message);
            }
            self.server.send(self.now, message);
        }
    }

    fn on_server(&mut self, event: LegEvent) {
        let (port, event) = match event {
            LegEvent::Restarting(why) => {
                self.asked.forget();
                return self.events.push(Event::Restarting { port: self.server.port(), why });
            }
            LegEvent::NoAnswer => {
                self.outcome = Outcome::NoAnswer;
                self.answer_owed(Reason::NoAnswer);
                return self.end_server(Ladder::Polite);
            }
            LegEvent::Ended(ended) => return self.on_server_ended(ended),
            LegEvent::Stream(port, event) => (port, event),
        };
        if let (Some(link), StreamEvent::Message(_) | StreamEvent::Upgraded) = (&mut self.link, &event) {
            link.on_heard(self.server.is_lumen());
        }
        let Some(event) = self.events.pass(port, event) else { return };
        match event {
            StreamEvent::Message(Packet::Text(message)) => self.on_server_message(port, message),
            StreamEvent::Rejected { reason, id, has_method } => {
                if let Some(id) = &id
                    && (has_method || !self.on_private(Some(id), None))
                {
                    if has_method {
                        self.refuse_server(id, reason);
                    } else if self.owed.settle(id) {
                        self.client.refuse(Some(id), &reason, Some("the server's answer"));
                    }
                }
                self.events.push(Event::Rejected { port, id, reason });
            }
            StreamEvent::Unsent { message, edits, reason }
                if !self.on_private(edits.token(&["id"]).map(|id| &id[..]), None) =>
            {
                if let Packet::Text(message) = &*message {
                    self.on_unsent(message, reason);
                }
            }
            _ => {}
        }
    }

    fn on_server_message(&mut self, port: Port, message: Message) {
        if message.kind() == Kind::Response && self.on_private(message.id(), Some(&message)) {
            return;
        }
        // A request that was the last word of a start before is void, as are all it asked.
        let is_late = port != self.server.port();
        if is_late || self.client.is_eof() || self.client.is_deaf() {
            if !is_late {
                // It will never be answered from there.
                for id in request_ids(&message) {
                    self.refuse_server(&id, Reason::ClientGone);
                }
            }
            if message.kind() == Kind::Request {
                return;
            }
        } else if let Err(reason) = self.asked.try_add(&message) {
            for id in request_ids(&message) {
                self.refuse_server(&id, reason);
            }
            for id in response_ids(&message) {
                if self.owed.settle(id) {
                    self.client.refuse(Some(id), &reason, Some("the server's answer"));
                }
            }
            return;
        }
        self.asked.handle_cancelled(&message);
        let unasked = |id| self.events.push(Event::Unasked { port, id });
        if let Some(message) = self.owed.settle_message(message, unasked)
            && self.link.as_mut().is_none_or(|link| link.recall.on_heard(&message))
        {
            self.client.send(message);
        }
    }

    /// A message to the server turned out to be too long for it.
    fn on_unsent(&mut self, message: &Message, reason: Reason) {
        for id in request_ids(message) {
            if self.owed.settle(&id) {
                self.client.refuse(Some(&id), &reason, None);
            }
        }
        for id in response_ids(message) {
            self.refuse_server(id, reason);
        }
        let id = message.id().map(Bytes::copy_from_slice);
        self.events.push(Event::Rejected { port: self.server.port(), id, reason });
    }

    /// A message to the client turned out to be too long for it.
    fn on_unsent_to_client(&mut self, message: &Message, reason: Reason) {
        for id in response_ids(message) {
            self.client.refuse(Some(id), &reason, Some("the server's answer"));
        }
        for id in request_ids(message) {
            if self.asked.settle(&id) {
                self.refuse_server(&id, reason);
            }
        }
        let id = message.id().map(Bytes::copy_from_slice);
        self.events.push(Event::Rejected { port: self.client.port(), id, reason });
    }

    fn on_server_ended(&mut self, ended: Ended) {
        if self.try_reconnect(ended) {
            return;
        }
        self.asked = Ids::default();
        let phase = self.phase;
        match (&mut self.outcome, phase) {
            (Outcome::Closed(how) | Outcome::Terminated(how), Phase::Stopping) => *how = Some(ended),
            (_, Phase::Stopping) => {}
            (outcome, _) => {
                let was_there = self.link.as_ref().is_some_and(Link::is_proven);
                *outcome = match ended {
                    Ended::Failed(error) if !was_there => Outcome::NotStarted(error),
                    _ => Outcome::ServerGone(ended),
                };
            }
        }
        self.answer_owed(self.gone_reason());
        let is_wanted = phase == Phase::Stopping && !matches!(self.outcome, Outcome::NotResumed(_));
        if is_wanted || self.client.is_eof() || self.client.is_deaf() {
            self.flush();
        } else {
            self.phase = Phase::Lingering { until: self.now + limits::LINGER };
        }
    }

    /// Follows the client's half-closes.
    fn on_client_state(&mut self) {
        match self.phase {
            Phase::Serving if self.client.is_deaf() => self.stop(),
            Phase::Serving if self.client.is_eof() => {
                for id in self.asked.take_all() {
                    self.refuse_server(&id, Reason::ClientGone);
                }
                if self.is_quiet() {
                    self.stop();
                } else {
                    self.phase = Phase::Grace { until: self.now + limits::EOF_GRACE };
                }
            }
            Phase::Grace { .. } if self.client.is_deaf() || self.is_quiet() => self.stop(),
            Phase::Lingering { .. } if self.client.is_eof() || self.client.is_deaf() => self.flush(),
            Phase::Flushing { .. } if self.client.is_deaf() => {
                self.done();
            }
            _ => return,
        }
        // One step may lead to the next.
        self.on_client_state();
    }

    /// Returns whether nobody waits for an answer of the server.
    fn is_quiet(&self) -> bool {
        self.owed.is_quiet() && self.link.as_ref().is_none_or(|link| link.held().is_empty())
    }

    /// Ends the server for good, if there is one at this time.
    fn end_server(&mut self, ladder: Ladder) {
        self.phase = Phase::Stopping;
        if self.server.is_alive() {
            self.server.stop(self.now, ladder);
        } else {
            self.on_server_ended(Ended::Closed);
        }
    }

    fn stop(&mut self) {
        self.end_server(Ladder::Polite);
        while let Some(event) = self.server.poll_event() {
            self.on_server(event);
        }
    }

    fn flush(&mut self) {
        self.client.finish();
        self.phase = Phase::Flushing { until: self.patience() };
    }

    /// Returns how long the client may leave the last output untouched from now on.
    fn patience(&self) -> Instant {
        self.now + if self.told { limits::STOP_STEP } else { limits::EOF_GRACE }
    }

    /// Returns whether more may be read for the client.
    fn has_room(&self) -> bool {
        !self.client.is_full() || self.client.is_deaf()
    }

    fn done(&mut self) {
        self.phase = Phase::Done;
        self.abort = true;
        self.events.push(Event::Finished(self.outcome));
    }

    fn answer_owed(&mut self, reason: Reason) {
        let detail = self.detail();
        for id in self.owed.take_all() {
            self.client.refuse(Some(&id), &reason, detail.as_deref());
        }
        for message in self.link.as_mut().map(Link::take_held).into_iter().flatten() {
            self.refuse_all(&message, reason);
        }
    }

    fn refuse_all(&mut self, message: &Message, reason: Reason) {
        let detail = self.detail();
        for id in request_ids(message) {
            self.client.refuse(Some(&id), &reason, detail.as_deref());
        }
    }

    fn refuse_server(&mut self, id: &[u8], reason: Reason) {
        if let Some(message) = refusal(Some(id), &reason, None) {
            self.server.send_own(message);
        }
    }

    const fn gone_reason(&self) -> Reason {
        match self.outcome {
            Outcome::NotStarted(_) => Reason::NotStarted,
            Outcome::NoAnswer => Reason::NoAnswer,
            _ => Reason::ServerGone,
        }
    }

    /// Says how the server ended, for error answers.
    fn detail(&self) -> Option<String> {
        match self.outcome {
            Outcome::NotStarted(error) | Outcome::ServerGone(Ended::Failed(error)) => {
                let separator = if self.advice.is_empty() { "" } else { "; " };
                Some(alloc::format!("{error}{separator}{}", self.advice))
            }
            Outcome::ServerGone(Ended::Exited(exit)) => Some(alloc::format!("{exit}")),
            Outcome::NotResumed(unlike) => Some(alloc::format!("{unlike}")),
            _ => None,
        }
    }
}

impl Machine for Relay {
    type Event = Event;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.advance(now);
        if self.phase == Phase::Done {
            return;
        }
        if input.port() == self.client.port() {
            self.client.handle_input(self.now, input);
        } else {
            self.server.handle_input(self.now, input);
            if input == Input::Opened(self.server.port()) {
                self.on_opened();
            }
        }
        self.settle();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        match self.phase {
            Phase::Grace { until } if self.now >= until => {
                let held = self.link.iter().flat_map(Link::held).flat_map(request_ids).count();
                self.outcome = Outcome::Unanswered(self.owed.awaited() + held);
                self.answer_owed(Reason::NoAnswer);
                self.stop();
            }
            Phase::Lingering { until } if self.now >= until => self.flush(),
            Phase::Flushing { until } if self.now >= until => self.done(),
            Phase::Done => return,
            Phase::Serving | Phase::Grace { .. } => self.follow_link(),
            _ => {}
        }
        let is_awaited = !self.owed.is_quiet() || self.link.as_ref().is_some_and(|link| !link.is_up());
        self.server.handle_timeout(self.now, is_awaited);
        self.settle();
    }

    fn wants_input(&self, port: Port) -> usize {
        let wanted = if port == self.client.port() {
            matches!(self.phase, Phase::Serving | Phase::Lingering { .. })
                && self.client.is_readable()
                && !self.server.is_full()
                && self.link.as_ref().is_none_or(|link| !link.is_full())
        } else {
            port == self.server.port() && self.server.is_readable() && self.has_room()
        };
        if wanted { limits::READ_CHUNK } else { 0 }
    }

    fn poll_ready(&mut self) -> Option<Port> {
        let [client, server] = &mut self.ready;
        if client.take() {
            return Some(self.client.port());
        }
        server.take().then(|| self.server.port())
    }

    fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        self.advance(now);
        let [client, server] = &mut self.ready;
        let (transmit, ready) = if port == self.client.port() {
            (self.client.poll_transmit(out), client)
        } else if port == self.server.port() {
            (self.server.poll_transmit(self.now, out), server)
        } else {
            return Transmit::Idle;
        };
        if transmit != Transmit::More {
            ready.note_idle();
        } else if port == self.client.port() && matches!(self.phase, Phase::Flushing { .. }) {
            // It reads.
            self.phase = Phase::Flushing { until: self.patience() };
        }
        self.settle();
        transmit
    }

    fn poll_action(&mut self) -> Option<Action> {
        let action = self.server.poll_action();
        action.or_else(|| core::mem::take(&mut self.abort).then(|| Action::Abort(self.client.port())))
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Grace { until } | Phase::Lingering { until } | Phase::Flushing { until } => Some(until),
            Phase::Done => return None,
            Phase::Serving | Phase::Stopping => None,
        };
        let link = self.link.as_ref().filter(|_| matches!(self.phase, Phase::Serving | Phase::Grace { .. }));
        let link = link.and_then(Link::poll_timeout);
        [phase, link, self.server.poll_timeout()].into_iter().flatten().min()
    }
}
