//! The connection itself.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use bytes::BytesMut;

use super::Event;
use super::codec::Codec;
use super::heartbeat::Heartbeat;
use super::reader::{Read, Reader};
use super::tally::Tally;
use crate::frame::{self, Flags, Kind};
use crate::jsonrpc::{self, IdKey, Message};
use crate::message::{Edits, Packet};
use crate::negotiate::hello::OPENING_PROBE;
use crate::negotiate::{Ack, Caps, Client, Hello, Mode, Server, offer};
use crate::{Instant, Transmit, limits};

/// The most handshakes in flight whose answers are looked at for an echo; a further one goes without the offer.
const MAX_HANDSHAKES: usize = 4;

/// Which part this side plays on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Asks the peer for LUMEN.
    Client {
        /// How.
        mode: Mode,
        /// How long the opening probe holds messages back.
        probe_timeout: Duration,
    },
    /// Answers whoever asks.
    Server,
    /// Speaks JSON lines only.
    Plain,
}

/// How a connection is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The part to play.
    pub role: Role,
    /// The largest message taken, in bytes.
    pub max_message: usize,
    /// The largest message sent as a JSON line, in bytes.
    pub max_line: usize,
    /// Whether a message that came compressed is told as it is. Otherwise it becomes text.
    pub keep_values: bool,
}

impl Config {
    /// Makes the usual set-up for a part.
    pub const fn new(role: Role) -> Self {
        Self { role, max_message: limits::MAX_MESSAGE, max_line: limits::MAX_MESSAGE, keep_values: false }
    }
}

#[derive(Debug)]
enum Part {
    Client(Client),
    Server(Server),
    Plain,
}

#[derive(Debug)]
struct Queued {
    packet: Packet,
    edits: Edits,
    own: bool,
}

impl Queued {
    /// Bytes that it takes: a queue of very short messages is mostly what it takes to keep them.
    fn len(&self) -> usize {
        size_of::<Self>() + self.packet.len() + self.edits.token_len()
    }

    /// Makes of a handshake, or of the answer to one, what `change` makes of it, if that makes anything of it.
    fn rebuild(&mut self, change: impl FnOnce(&Message) -> Option<Message>) {
        if let Some(message) = self.packet.edited(&self.edits).ok().and_then(|message| change(&message)) {
            self.packet = message.into();
            self.edits = Edits::none();
        }
    }
}

/// One stream as whole messages.
///
/// # Bounds
/// What is queued to be sent is bounded by its owner, who asks [`queued`](Self::queued) before it reads more.
/// Events are bounded by the input that caused them.
#[derive(Debug)]
pub struct Connection {
    part: Part,
    reader: Reader,
    heartbeat: Heartbeat,
    queue: VecDeque<Queued>,
    queued: usize,
    queued_own: usize,
    events: VecDeque<Event>,
    /// Handshakes whose answers have not come: they may carry an echo, or are to carry ours.
    handshakes: VecDeque<IdKey>,
    max_line: usize,
    /// What the peer said of itself.
    peer: Hello,
    codec: Codec,
    tally: Tally,
    /// The peer knows "exact" and is to be told that we do.
    exact_due: bool,
    open: bool,
    finishing: bool,
    finished: bool,
}

impl Connection {
    /// Makes a connection for a stream that is not open yet.
    pub fn new(config: Config) -> Self {
        let part = match config.role {
            Role::Client { mode, probe_timeout } => Part::Client(Client::new(mode, probe_timeout)),
            Role::Server => Part::Server(Server::new()),
            Role::Plain => Part::Plain,
        };
        Self {
            reader: Reader::new(config.max_message, !matches!(part, Part::Plain), config.keep_values),
            part,
            heartbeat: Heartbeat::default(),
            queue: VecDeque::new(),
            queued: 0,
            queued_own: 0,
            events: VecDeque::new(),
            handshakes: VecDeque::new(),
            max_line: config.max_line,
            peer: Hello::default(),
            codec: Codec::default(),
            tally: Tally::default(),
            exact_due: false,
            open: false,
            finishing: false,
            finished: false,
        }
    }

    /// Takes the fact that the stream is open.
    pub fn handle_opened(&mut self, now: Instant) {
        self.open = true;
        if let Part::Client(client) = &mut self.part {
            client.handle_opened(now);
        }
    }

    /// Takes bytes that arrived.
    pub fn handle_data(&mut self, mut data: &[u8]) {
        self.tally.received.bytes += data.len() as u64;
        while let Some(read) = self.reader.next(&mut data, &mut self.codec) {
            self.on_read(read);
        }
    }

    /// Takes the end of what arrives.
    pub fn handle_eof(&mut self) {
        if let Some(read) = self.reader.finish() {
            self.on_read(read);
        }
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Part::Client(client) = &mut self.part
            && client.handle_timeout(now)
        {
            self.events.push_back(Event::FellBack);
        }
    }

    /// Queues a message. It is encoded when it leaves, for the carrier agreed on by then.
    pub fn send(&mut self, message: impl Into<Packet>) {
        self.send_edited(message, Edits::none());
    }

    /// Queues a message in which something is exchanged when it leaves.
    pub fn send_edited(&mut self, message: impl Into<Packet>, edits: Edits) {
        self.push(Queued { packet: message.into(), edits, own: false });
    }

    /// Queues a message that was made here rather than passed on; see [`queued_own`](Self::queued_own).
    pub fn send_own(&mut self, message: impl Into<Packet>) {
        self.push(Queued { packet: message.into(), edits: Edits::none(), own: true });
    }

    /// Closes the writing half when everything queued is out. What is queued afterwards is dropped.
    pub fn finish(&mut self) {
        self.finishing = true;
    }

    /// Appends the next probe, ACK, heartbeat or message to `out`.
    pub fn poll_transmit(&mut self, out: &mut BytesMut) -> Transmit {
        let before = out.len();
        let transmit = self.transmit(out);
        self.tally.sent.bytes += (out.len() - before) as u64;
        transmit
    }

    fn transmit(&mut self, out: &mut BytesMut) -> Transmit {
        if !self.open {
            return Transmit::Idle;
        }
        if self.finished {
            return Transmit::Finish;
        }
        if self.encode_hello(out) {
            return Transmit::More;
        }
        if let Some(echo) = self.heartbeat.poll_echo() {
            frame::encode(Kind::HEARTBEAT, Flags::NONE, &echo, out);
            return Transmit::More;
        }
        if matches!(&self.part, Part::Client(client) if client.is_holding()) {
            return Transmit::Idle;
        }
        while let Some(queued) = self.queue.pop_front() {
            self.queued -= queued.len();
            self.queued_own -= if queued.own { queued.len() } else { 0 };
            if self.encode(queued, out) {
                return Transmit::More;
            }
        }
        if !self.finishing {
            return Transmit::Idle;
        }
        self.finished = true;
        Transmit::Finish
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns whether there is an event.
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns when the opening probe is given up.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match &self.part {
            Part::Client(client) => client.poll_timeout(),
            _ => None,
        }
    }

    /// Returns the bytes of messages that wait to be sent, with what it takes to keep each.
    pub const fn queued(&self) -> usize {
        self.queued
    }

    /// Returns how many of those are of messages made here. What is passed on is bounded by not reading the
    /// other side; this has to be bounded by not reading the same side.
    pub const fn queued_own(&self) -> usize {
        self.queued_own
    }

    /// Returns whether messages leave as frames.
    pub const fn is_lumen(&self) -> bool {
        match &self.part {
            Part::Client(client) => client.is_lumen(),
            Part::Server(server) => server.is_lumen(),
            Part::Plain => false,
        }
    }

    /// Returns what the peer said it can do, in its last probe or in the ACK that was taken.
    pub const fn peer(&self) -> Hello {
        self.peer
    }

    /// Returns what went through it.
    pub const fn tally(&self) -> Tally {
        Tally { converted: self.codec.converted, ..self.tally }
    }

    /// Returns whether `poll_transmit` would do something.
    pub fn has_output(&self) -> bool {
        let is_holding = || matches!(&self.part, Part::Client(client) if client.is_holding());
        let is_waiting = (self.finishing || !self.queue.is_empty()) && !is_holding();
        self.open && !self.finished && (is_waiting || self.heartbeat.is_due() || self.is_hello_due())
    }

    fn encode_hello(&mut self, out: &mut BytesMut) -> bool {
        match &mut self.part {
            Part::Client(client) => {
                if client.poll_probe() {
                    out.extend_from_slice(OPENING_PROBE);
                } else if core::mem::take(&mut self.exact_due) {
                    Hello::OURS.encode_probe(out);
                } else {
                    return false;
                }
                true
            }
            Part::Server(server) => {
                let due = server.poll_ack();
                if due {
                    Hello::OURS.encode_ack(self.peer.dialect, out);
                }
                due
            }
            Part::Plain => false,
        }
    }

    fn is_hello_due(&self) -> bool {
        match &self.part {
            Part::Client(client) => client.is_probe_due() || self.exact_due,
            Part::Server(server) => server.is_ack_due(),
            Part::Plain => false,
        }
    }

    fn push(&mut self, mut queued: Queued) {
        if self.finishing {
            return;
        }
        self.echo(&mut queued);
        self.queued += queued.len();
        self.queued_own += if queued.own { queued.len() } else { 0 };
        self.queue.push_back(queued);
    }

    /// Puts our echo into the answer to a handshake that carried an offer.
    fn echo(&mut self, queued: &mut Queued) {
        let is_server = matches!(self.part, Part::Server(_));
        if is_server && self.settles_handshake(&queued.packet, &queued.edits) {
            queued.rebuild(offer::add_echo);
        }
    }

    /// Returns whether it went into `out`.
    fn encode(&mut self, mut queued: Queued, out: &mut BytesMut) -> bool {
        self.offer(&mut queued);
        let Queued { packet, edits, .. } = queued;
        let written = if self.is_lumen() {
            let profile = self.peer.profile();
            self.codec.write_frame(&packet, &edits, profile.as_ref(), out)
        } else {
            self.codec.write_line(&packet, &edits, self.max_line, out)
        };
        match written {
            Ok(()) => {
                self.tally.sent.messages += 1;
                true
            }
            Err(reason) => {
                self.events.push_back(Event::Unsent { message: Box::new(packet), edits, reason });
                false
            }
        }
    }

    /// Puts our offer into a handshake, if the server was not asked otherwise. Every handshake's answer may carry an
    /// echo, be it asked for or not.
    fn offer(&mut self, queued: &mut Queued) {
        let Part::Client(client) = &self.part else { return };
        if !is_handshake(&queued.packet) || self.handshakes.len() >= MAX_HANDSHAKES {
            return;
        }
        let Some(key) = key_on_the_wire(&queued.packet, &queued.edits) else { return };
        self.handshakes.push_back(key);
        if client.is_offering() {
            queued.rebuild(offer::add);
        }
    }

    fn on_read(&mut self, read: Read) {
        match read {
            Read::Message { message, framed } => self.on_message(message, framed),
            Read::Rejected { reason, id, has_method } => {
                self.events.push_back(Event::Rejected { reason, id, has_method });
            }
            Read::Noise { excerpt, bytes } => self.on_noise(excerpt, bytes),
            Read::Skipped(kind) => self.on_skipped(kind),
            Read::Lost(reason) => self.events.push_back(Event::Lost(reason)),
            Read::Heartbeat(payload) => self.heartbeat.handle_payload(&payload),
            Read::Probe(hello) => match &mut self.part {
                Part::Server(server) => {
                    server.handle_probe();
                    self.peer = hello;
                }
                _ => self.on_skipped(Kind::PROBE),
            },
            Read::Ack(hello) => {
                let ack = if let Part::Client(client) = &mut self.part {
                    client.handle_ack()
                } else {
                    Ack::Ignored
                };
                match ack {
                    Ack::Upgraded => {
                        self.peer = hello;
                        // Only the protocol's own two names are in the opening probe.
                        self.exact_due = hello.caps.contains(Caps::EXACT);
                        self.events.push_back(Event::Upgraded);
                    }
                    Ack::Ignored => self.on_skipped(Kind::PROBE_ACK),
                }
            }
        }
    }

    fn on_message(&mut self, mut message: Packet, framed: bool) {
        self.tally.received.messages += 1;
        match &mut self.part {
            Part::Client(client) => {
                if is_stray(&message) {
                    if client.poll_stray() {
                        self.events.push_back(Event::Stray(message));
                        return;
                    }
                } else if message.kind() == jsonrpc::Kind::Response {
                    client.handle_answer();
                }
                self.take_echo(&mut message);
            }
            Part::Server(server) => {
                if framed && server.handle_message_frame() {
                    self.events.push_back(Event::Upgraded);
                }
                self.take_offer(&mut message);
            }
            Part::Plain => self.take_offer(&mut message),
        }
        self.events.push_back(Event::Message(message));
    }

    /// The offer is hop by hop: whoever is behind us is not asked by the one before us.
    fn take_offer(&mut self, message: &mut Packet) {
        if !is_handshake(message) {
            return;
        }
        let taken = message.to_text().ok().and_then(|text| offer::take(&text));
        let Some((stripped, _)) = taken else { return };
        if matches!(self.part, Part::Server(_))
            && self.handshakes.len() < MAX_HANDSHAKES
            && let Some(key) = message.id_key()
        {
            self.handshakes.push_back(key);
        }
        *message = stripped.into();
    }

    fn take_echo(&mut self, message: &mut Packet) {
        if !self.settles_handshake(message, &Edits::none()) {
            return;
        }
        let taken = message.to_text().ok().and_then(|text| offer::take_echo(&text));
        let Some((stripped, _)) = taken else { return };
        if let Part::Client(client) = &mut self.part {
            client.handle_echo();
        }
        *message = stripped.into();
    }

    /// Returns whether this answers one of the handshakes that are kept in mind, and forgets that one.
    fn settles_handshake(&mut self, message: &Packet, edits: &Edits) -> bool {
        if self.handshakes.is_empty() || message.kind() != jsonrpc::Kind::Response {
            return false;
        }
        let Some(key) = key_on_the_wire(message, edits) else { return false };
        let Some(at) = self.handshakes.iter().position(|waiting| *waiting == key) else { return false };
        self.handshakes.remove(at).is_some()
    }

    fn on_noise(&mut self, excerpt: bytes::Bytes, len: u64) {
        if let Some(Event::Noise { lines, bytes, .. }) = self.events.back_mut() {
            *lines += 1;
            *bytes += len;
        } else {
            self.events.push_back(Event::Noise { excerpt, lines: 1, bytes: len });
        }
    }

    fn on_skipped(&mut self, kind: Kind) {
        match self.events.back_mut() {
            Some(Event::Skipped { kind: last, frames }) if *last == kind => *frames += 1,
            _ => self.events.push_back(Event::Skipped { kind, frames: 1 }),
        }
    }
}

fn is_handshake(message: &Packet) -> bool {
    message.kind() == jsonrpc::Kind::Request && offer::METHODS.iter().any(|method| message.method_is(method))
}

/// Returns the id that the peer knows the message by.
fn key_on_the_wire(message: &Packet, edits: &Edits) -> Option<IdKey> {
    match edits.token(&["id"]) {
        Some(token) if message.has_id() => IdKey::from_token(token).ok(),
        _ => message.id_key(),
    }
}

/// Whether it is what servers say to a probe that they take for a broken line: an error without an id, or one
/// notification that logs an error. Other logs may well be the first that a server has to say.
fn is_stray(message: &Packet) -> bool {
    match message.kind() {
        jsonrpc::Kind::Response if !message.has_id() => {
            let code = message.token(&["error", "code"]);
            code.is_some_and(|code| matches!(&code[..], b"-32700" | b"-32600"))
        }
        jsonrpc::Kind::Notification if message.method_is("notifications/message") => {
            message.token(&["params", "level"]).is_some_and(|level| &level[..] == b"\"error\"")
        }
        _ => false,
    }
}
