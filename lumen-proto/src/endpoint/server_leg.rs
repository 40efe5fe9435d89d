//! The side toward a server: its life, its stream, and a second start if a probe was too much for it.

use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::BytesMut;

use super::event::Why;
use crate::connection::{Config, Connection, Event as StreamEvent, Role, Tally};
use crate::jsonrpc::{self, Message};
use crate::message::{Edits, Packet};
use crate::negotiate::Mode;
use crate::supervisor::{Behind, Ended, Ladder, Supervisor};
use crate::{Action, ChildEvent, Input, Instant, Port, Transmit, limits};

/// How a server is started and asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// What stands behind its port.
    pub behind: Behind,
    /// Whether and how it is asked for LUMEN.
    pub mode: Mode,
    /// How long an opening probe holds messages back.
    pub probe_timeout: Duration,
    /// How long the first request may stay unanswered after a probe before it is started again without; not
    /// longer than `start_timeout`.
    pub probed_answer_timeout: Duration,
    /// How long the first request may stay unanswered otherwise; `None` is for ever.
    pub start_timeout: Option<Duration>,
    /// The largest message taken from it, in bytes.
    pub max_message: usize,
    /// The largest message sent to it as a JSON line, in bytes.
    pub max_line: usize,
    /// Whether its messages stay in the encoding they came in; see [`Config::keep_values`].
    pub keep_values: bool,
}

impl ServerConfig {
    /// Makes the usual set-up for a server of this kind.
    pub const fn new(behind: Behind, mode: Mode) -> Self {
        Self {
            behind,
            mode,
            probe_timeout: limits::PROBE_TIMEOUT,
            probed_answer_timeout: limits::PROBED_ANSWER_TIMEOUT,
            start_timeout: Some(limits::START_TIMEOUT),
            max_message: limits::MAX_MESSAGE,
            max_line: limits::MAX_LINE_TO_SERVER,
            keep_values: false,
        }
    }

    /// Sets whether LUMEN is not asked for at all.
    #[must_use]
    pub const fn with_force_json_rpc(mut self, force: bool) -> Self {
        self.mode = if force { Mode::Off } else { Mode::Auto };
        self
    }

    /// Sets how long an opening probe holds messages back.
    #[must_use]
    pub const fn with_probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = timeout;
        self
    }

    /// Sets how long the first request may stay unanswered; `None` is for ever.
    #[must_use]
    pub const fn with_start_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.start_timeout = timeout;
        self
    }

    fn connection(&self, mode: Mode) -> Connection {
        let role = Role::Client { mode, probe_timeout: self.probe_timeout };
        let Self { max_message, max_line, keep_values, .. } = *self;
        Connection::new(Config { max_message, max_line, keep_values, ..Config::new(role) })
    }
}

/// What the leg tells the endpoint.
#[derive(Debug)]
pub(super) enum LegEvent {
    /// What came of the stream on this port, which may be that of a start before.
    Stream(Port, StreamEvent),
    /// It is being started again; whatever it asked before is void.
    Restarting(Why),
    /// The first answer did not come, and no further start is tried. It is still alive.
    NoAnswer,
    /// It is over.
    Ended(Ended),
}

/// The side toward a server.
#[derive(Debug)]
pub(super) struct ServerLeg {
    config: ServerConfig,
    supervisor: Supervisor,
    connection: Connection,
    /// What went through the connections before.
    past: Tally,
    /// How the next start is asked for LUMEN.
    mode: Mode,
    first: First,
    events: VecDeque<LegEvent>,
}

/// How far the first answer is.
#[derive(Debug)]
enum First {
    /// A probe was sent: messages are kept for a second start.
    Probed {
        kept: VecDeque<(Packet, Edits)>,
        bytes: usize,
        due: Option<Instant>,
    },
    /// It is being ended because nothing came; the kept messages go to the next one.
    Replacing {
        kept: VecDeque<(Packet, Edits)>,
        bytes: usize,
    },
    /// There will be no second start.
    Awaited {
        due: Option<Instant>,
    },
    Answered,
}

impl First {
    const fn new(mode: Mode) -> Self {
        match mode {
            Mode::Auto | Mode::Probe => Self::Probed { kept: VecDeque::new(), bytes: 0, due: None },
            Mode::Offer | Mode::Off => Self::Awaited { due: None },
        }
    }
}

impl ServerLeg {
    pub(super) fn new(config: ServerConfig, port: Port) -> Self {
        Self {
            supervisor: Supervisor::new(config.behind, port),
            connection: config.connection(config.mode),
            past: Tally::default(),
            mode: config.mode,
            first: First::new(config.mode),
            config,
            events: VecDeque::new(),
        }
    }

    /// Starts it, also again when it is over: as it was asked for LUMEN last.
    pub(super) fn start(&mut self) {
        if !self.supervisor.is_alive() {
            self.past += self.connection.tally();
            self.connection = self.config.connection(self.mode);
            self.first = First::new(self.mode);
            self.supervisor.start();
        }
    }

    /// Makes a connection that has ended again. One that did not come to carry LUMEN is not probed again.
    pub(super) fn start_again(&mut self, is_lumen: bool) {
        self.mode = match self.config.mode {
            Mode::Auto if !is_lumen => Mode::Offer,
            mode => mode,
        };
        self.start();
    }

    pub(super) fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        let port = input.port();
        if port != self.port() || !self.supervisor.is_alive() {
            return;
        }
        match input {
            Input::Opened(_) => {
                self.supervisor.handle_opened(port);
                self.connection.handle_opened(now);
            }
            Input::Data(_, data) => {
                if !matches!(self.first, First::Replacing { .. }) {
                    self.connection.handle_data(data);
                    self.take_events(now);
                }
            }
            Input::Eof(_) => {
                if !matches!(self.first, First::Replacing { .. }) {
                    self.connection.handle_eof();
                    self.take_events(now);
                }
                self.supervisor.handle_eof(now, port);
                if self.supervisor.is_stopping() {
                    self.connection.finish();
                }
            }
            // It takes nothing any more, so nothing new can come of it.
            Input::Lost(_) => self.end(now, Ladder::Polite),
            Input::Finished(_) => {}
            Input::Child(_, ChildEvent::Failed(error)) => self.supervisor.handle_failed(port, error),
            Input::Child(_, ChildEvent::Exited(exit)) => self.supervisor.handle_exited(now, port, exit),
        }
        self.on_ended(now);
    }

    /// Takes the passing of time. `is_awaited`: somebody waits for an answer of it.
    pub(super) fn handle_timeout(&mut self, now: Instant, is_awaited: bool) {
        if !self.supervisor.is_alive() {
            return;
        }
        self.connection.handle_timeout(now);
        self.take_events(now);
        self.supervisor.handle_timeout(now);
        match &mut self.first {
            First::Probed { due, bytes, .. } if !is_awaited && is_due(*due, now) => {
                *due = None;
                if *bytes >= limits::MAX_KEPT {
                    self.first = First::Awaited { due: None };
                }
            }
            First::Probed { kept, bytes, due } if is_due(*due, now) => {
                let kept = core::mem::take(kept);
                self.first = First::Replacing { kept, bytes: *bytes };
                self.end(now, Ladder::Polite);
            }
            First::Awaited { due } if is_due(*due, now) => {
                *due = None;
                if is_awaited {
                    self.events.push_back(LegEvent::NoAnswer);
                }
            }
            _ => {}
        }
        self.on_ended(now);
    }

    /// Takes whether there is room for what it says.
    pub(super) fn handle_reading(&mut self, now: Instant, is_read: bool) {
        self.supervisor.handle_reading(now, is_read);
    }

    /// Queues a message.
    pub(super) fn send(&mut self, now: Instant, message: Message) {
        self.send_edited(now, message.into(), Edits::none());
    }

    /// Queues a message in which something is exchanged when it leaves.
    pub(super) fn send_edited(&mut self, now: Instant, packet: Packet, edits: Edits) {
        self.keep(now, &packet, &edits);
        self.connection.send_edited(packet, edits);
    }

    /// Queues an answer of our own to a request of the server.
    pub(super) fn send_own(&mut self, message: impl Into<Packet>) {
        self.connection.send_own(message);
    }

    /// Ends it for good.
    pub(super) fn stop(&mut self, now: Instant, ladder: Ladder) {
        self.first = First::Answered;
        self.end(now, ladder);
        self.on_ended(now);
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut BytesMut) -> Transmit {
        let transmit = self.connection.poll_transmit(out);
        self.take_events(now);
        transmit
    }

    pub(super) fn poll_action(&mut self) -> Option<Action> {
        self.supervisor.poll_action()
    }

    pub(super) fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn poll_event(&mut self) -> Option<LegEvent> {
        self.events.pop_front()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if !self.supervisor.is_alive() {
            return None;
        }
        let due = match &self.first {
            First::Probed { due, .. } | First::Awaited { due } => *due,
            First::Replacing { .. } | First::Answered => None,
        };
        [self.connection.poll_timeout(), self.supervisor.poll_timeout(), due].into_iter().flatten().min()
    }

    pub(super) const fn port(&self) -> Port {
        self.supervisor.port()
    }

    /// Returns whether it was started and has not ended.
    pub(super) const fn is_alive(&self) -> bool {
        self.supervisor.is_alive()
    }

    /// Returns whether it can be read.
    pub(super) fn is_readable(&self) -> bool {
        self.supervisor.is_alive() && self.connection.queued_own() < limits::MAX_QUEUE
    }

    /// Returns whether no more should be read for it.
    pub(super) fn is_full(&self) -> bool {
        if !self.supervisor.is_alive() {
            return false;
        }
        let kept = match &self.first {
            First::Probed { bytes, .. } | First::Replacing { bytes, .. } => *bytes,
            First::Awaited { .. } | First::Answered => 0,
        };
        self.connection.queued() >= limits::MAX_QUEUE || kept >= limits::MAX_KEPT
    }

    /// Returns whether messages wait, be it for their turn, for a verdict or for another start.
    pub(super) fn has_unsent(&self) -> bool {
        let is_replacing = matches!(&self.first, First::Replacing { kept, .. } if !kept.is_empty());
        self.supervisor.is_alive() && (self.connection.queued() > 0 || is_replacing)
    }

    /// Returns what went through all its connections.
    pub(super) fn tally(&self) -> Tally {
        let mut tally = self.past;
        tally += self.connection.tally();
        tally
    }

    /// Returns the bytes of messages that wait for it.
    pub(super) fn queued(&self) -> usize {
        let kept = match &self.first {
            First::Replacing { bytes, .. } => *bytes,
            First::Probed { .. } | First::Awaited { .. } | First::Answered => 0,
        };
        if self.supervisor.is_alive() { self.connection.queued() + kept } else { 0 }
    }

    pub(super) const fn is_lumen(&self) -> bool {
        self.connection.is_lumen()
    }

    pub(super) fn has_output(&self) -> bool {
        self.supervisor.is_alive() && self.connection.has_output()
    }

    fn end(&mut self, now: Instant, ladder: Ladder) {
        self.connection.finish();
        self.supervisor.stop(now, ladder);
    }

    /// Keeps a message for a second start, and starts the clock of the first answer.
    fn keep(&mut self, now: Instant, message: &Packet, edits: &Edits) {
        let is_request = matches!(message.kind(), jsonrpc::Kind::Request | jsonrpc::Kind::Batch);
        match &mut self.first {
            First::Probed { kept, bytes, due } => {
                *bytes += message.len();
                kept.push_back((message.clone(), edits.clone()));
                if is_request && due.is_none() {
                    let patience = self.config.probed_answer_timeout;
                    *due =
                        Some(now + self.config.start_timeout.map_or(patience, |start| start.min(patience)));
                } else if due.is_none() && *bytes >= limits::MAX_KEPT {
                    // No answer will make room, for nothing was asked.
                    self.first = First::Awaited { due: None };
                }
            }
            First::Replacing { kept, bytes } => {
                *bytes += message.len();
                kept.push_back((message.clone(), edits.clone()));
            }
            First::Awaited { due } if is_request && due.is_none() => {
                *due = self.config.start_timeout.map(|timeout| now + timeout);
            }
            First::Awaited { .. } | First::Answered => {}
        }
    }

    fn take_events(&mut self, now: Instant) {
        while let Some(event) = self.connection.poll_event() {
            match &event {
                StreamEvent::Message(message) if is_answer(message) => self.first = First::Answered,
                StreamEvent::Rejected { id: Some(_), has_method: false, .. } => self.first = First::Answered,
                // It knows what a probe is, so that was not too much for it.
                StreamEvent::Upgraded => {
                    if let First::Probed { due, .. } = self.first {
                        let due = due.and(self.config.start_timeout).map(|timeout| now + timeout);
                        self.first = First::Awaited { due };
                    }
                }
                // The boundary is lost while the server goes on: nothing it says can be understood.
                StreamEvent::Lost(reason) if !matches!(reason, crate::Reason::Truncated { .. }) => {
                    self.end(now, Ladder::Polite);
                }
                _ => {}
            }
            self.events.push_back(LegEvent::Stream(self.port(), event));
        }
    }

    /// Starts it again, or tells that it is over.
    fn on_ended(&mut self, now: Instant) {
        let Some(ended) = self.supervisor.poll_ended() else { return };
        let (kept, why) = match core::mem::replace(&mut self.first, First::Answered) {
            First::Probed { kept, .. } if !matches!(ended, Ended::Failed(_)) => (kept, Why::Ended(ended)),
            First::Replacing { kept, .. } => (kept, Why::NoAnswer),
            _ => return self.events.push_back(LegEvent::Ended(ended)),
        };
        self.mode = if self.mode == Mode::Auto { Mode::Offer } else { Mode::Off };
        self.start();
        self.events.push_back(LegEvent::Restarting(why));
        for (packet, edits) in kept {
            self.send_edited(now, packet, edits);
        }
    }
}

fn is_due(due: Option<Instant>, now: Instant) -> bool {
    due.is_some_and(|due| now >= due)
}

/// Whether it answers something that was asked: an error without an id may be about the probe.
fn is_answer(message: &Packet) -> bool {
    match message.kind() {
        jsonrpc::Kind::Response => message.has_id(),
        jsonrpc::Kind::Batch => true,
        jsonrpc::Kind::Request | jsonrpc::Kind::Notification => false,
    }
}
