//! The hub between parties in memory, on a clock that is moved by hand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::BytesMut;
use lumen_proto::endpoint::{Event, Hub, HubConfig, HubEvent, Parted, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{
    Action, ChildEvent, Exit, Input, Instant, Machine, OpenError, OpenErrorKind, Port, Signal, Transmit,
};
use lumen_tests::sim::Checked;
use lumen_tests::sim::wire;

use super::model::{Child, Client, Model, Said, Style};
use super::rng::Rng;
use super::stream::{Carrier, Got, Stream};

/// Into which pieces bytes are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chop {
    Whole,
    Byte,
    Seeded,
}

/// More polls than this without rest are a failure.
const MAX_POLLS: usize = 10_000;

/// Everything around one hub.
pub struct World {
    pub hub: Checked<Hub>,
    pub now: Instant,
    pub rng: Rng,
    pub model: Model,
    pub chop: Chop,
    pub mode: Mode,
    /// No faults: starts succeed and servers end when they are told.
    pub calm: bool,
    pub ended: bool,
    trace: VecDeque<String>,
    ready: BTreeSet<Port>,
}

impl World {
    pub fn new(seed: u64, chop: Chop) -> Self {
        let mut rng = Rng::new(seed);
        let mode = *rng.pick(&[Mode::Auto, Mode::Probe, Mode::Offer, Mode::Off, Mode::Off]);
        let config = HubConfig::new(ServerConfig::new(Behind::Process, mode));
        let is_last = |event: &HubEvent| matches!(event, HubEvent::Stream(Event::Finished(_)));
        Self {
            hub: Checked::new(Hub::new(config)).with_last(is_last),
            now: Instant::ZERO,
            rng,
            model: Model::default(),
            chop,
            mode,
            calm: false,
            ended: false,
            trace: VecDeque::new(),
            ready: BTreeSet::new(),
        }
    }

    /// Notes what happens, for the report of a failure.
    pub fn note(&mut self, what: String) {
        if self.trace.len() == 60 {
            self.trace.pop_front();
        }
        self.trace.push_back(what);
    }

    pub fn trace(&self) -> String {
        self.trace.iter().map(|line| format!("  {line}\n")).collect()
    }

    /// Does everything that can be done without time.
    pub fn settle(&mut self) {
        loop {
            self.drain();
            if !self.feed() {
                return;
            }
        }
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..MAX_POLLS {
            let due = self.hub.poll_timeout();
            let next = due.filter(|due| *due <= until).unwrap_or(until);
            self.now = self.now.max(next);
            self.hub.handle_timeout(self.now);
            self.settle();
            let after = self.hub.poll_timeout();
            assert!(after.is_none_or(|after| after > self.now), "due {after:?}, and it is {:?}", self.now);
            if self.now >= until {
                return;
            }
        }
        panic!("time does not pass");
    }

    /// Takes all that the hub has to say.
    fn drain(&mut self) {
        for _ in 0..MAX_POLLS {
            let mut quiet = true;
            while let Some(action) = self.hub.poll_action() {
                quiet = false;
                self.act(action);
            }
            while let Some(port) = self.hub.poll_ready() {
                quiet = false;
                self.ready.insert(port);
                self.unpause(port);
            }
            while let Some(event) = self.hub.poll_event() {
                quiet = false;
                self.on_event(&event);
            }
            if let Some(port) = self.ready.pop_first() {
                quiet = false;
                self.transmit(port);
            }
            if quiet {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn unpause(&mut self, port: Port) {
        if let Some(client) = self.model.clients.iter_mut().find(|client| client.port == port) {
            client.paused = false;
        }
    }

    fn on_event(&mut self, event: &HubEvent) {
        self.model.count(match event {
            HubEvent::Stream(Event::Unasked { .. }) => "event unasked",
            HubEvent::Stream(Event::Rejected { .. }) => "event rejected",
            HubEvent::Stream(Event::Restarting { .. }) => "event restarting",
            HubEvent::Stream(Event::Finished(_)) => "event finished",
            HubEvent::Stream(_) => "event of a stream",
            HubEvent::Parted { .. } => "event parted",
            HubEvent::Ready(_) => "event ready",
            HubEvent::Ended { .. } => "event ended",
            HubEvent::GaveUp(_) => "event gave up",
            HubEvent::Ownerless(_) => "event ownerless",
            _ => "event",
        });
        self.note(format!("event {event:?}"));
        match event {
            HubEvent::Stream(Event::Finished(_)) => self.ended = true,
            // What the one before said while it was being ended for its silence was not heard.
            HubEvent::Stream(Event::Restarting { port, .. }) => {
                let before = self
                    .model
                    .children
                    .iter_mut()
                    .rfind(|child| child.port != *port && child.port.index() == port.index());
                before.expect("a server").answered_any = false;
            }
            HubEvent::Parted { port, why } => {
                let client = self.model.clients.iter().find(|client| client.port == *port);
                let client = client.expect("a client");
                let is_right = match why {
                    Parted::Left => client.deaf || client.finished || client.poisoned,
                    Parted::Slow => client.stalled,
                    Parted::Unanswered => client.eof || client.poisoned,
                    Parted::ShutDown => self.model.ending,
                };
                assert!(is_right, "client {} is parted with: {why:?}", client.number);
            }
            _ => {}
        }
    }

    fn act(&mut self, action: Action) {
        self.note(format!("{action:?}"));
        match action {
            Action::Spawn(port) => self.spawn(port),
            Action::Signal(port, signal) => {
                let at = self.child_at(port).expect("a server");
                if signal == Signal::Kill || self.calm || !self.model.children[at].stubborn {
                    self.die(at, Exit::Signal(15));
                }
            }
            Action::Abort(port) => match self.child_at(port) {
                Some(at) => {
                    self.model.children[at].aborted = true;
                    // It may not have read it, so who asked is what counts.
                    let mut asked = self.model.clients.iter().flat_map(|client| &client.asked);
                    let has_discover = asked.any(|asked| asked.method == "server/discover");
                    self.model.not_modern |= has_discover;
                    self.model.last_end = Some(self.now);
                }
                None => {
                    let client = self.model.clients.iter_mut().find(|client| client.port == port);
                    let client = client.expect("a client");
                    client.gone = true;
                    let number = client.number;
                    self.model.awaited.retain(|(to, _)| *to != number);
                }
            },
        }
    }

    fn spawn(&mut self, port: Port) {
        let fails = !self.calm && self.rng.percent(5);
        let late = !self.calm && self.rng.percent(10);
        let knows_lumen = self.rng.percent(50);
        self.model.children.push(Child {
            port,
            stream: Stream::new(Carrier::Line),
            knows_lumen,
            opened: false,
            failed: fails,
            eof: false,
            exited: false,
            aborted: false,
            finished: false,
            lost: false,
            deaf: false,
            blocked: false,
            stubborn: self.rng.percent(20),
            initialized: 0,
            told_initialized: 0,
            is_modern: false,
            seen: BTreeSet::new(),
            jobs: Vec::new(),
            done: Vec::new(),
            questions: Vec::new(),
            answered_any: false,
            subscribed: BTreeSet::new(),
            next_question: 1,
        });
        let at = self.model.children.len() - 1;
        if knows_lumen {
            // It reads frames, and writes them once it was asked whether it does.
            self.model.children[at].stream.carrier = Carrier::Line;
        }
        if fails {
            self.model.last_end = Some(self.now);
            let error = OpenError { kind: OpenErrorKind::NotFound, errno: 2 };
            self.hub.handle_input(self.now, Input::Child(port, ChildEvent::Failed(error)));
        } else if !late {
            self.open_child(at);
        }
    }

    pub fn open_child(&mut self, at: usize) {
        let child = &mut self.model.children[at];
        child.opened = true;
        let port = child.port;
        self.ready.insert(port);
        self.hub.handle_input(self.now, Input::Opened(port));
    }

    fn child_at(&self, port: Port) -> Option<usize> {
        self.model.children.iter().rposition(|child| child.port == port)
    }

    /// Makes a server end: its output and its exit, in either order, now or one of them later.
    pub fn die(&mut self, at: usize, exit: Exit) {
        let first_eof = self.rng.percent(50);
        let both = self.calm || self.rng.percent(80);
        if !self.model.children[at].opened {
            self.open_child(at);
        }
        if first_eof {
            self.end_output(at);
        } else {
            self.exit(at, exit);
        }
        if both && first_eof {
            self.exit(at, exit);
        } else if both {
            self.end_output(at);
        }
    }

    pub fn exit(&mut self, at: usize, exit: Exit) {
        let child = &mut self.model.children[at];
        if child.exited || child.aborted || !child.opened || child.failed {
            return;
        }
        child.exited = true;
        let port = child.port;
        self.model.last_end = Some(self.now);
        self.hub.handle_input(self.now, Input::Child(port, ChildEvent::Exited(exit)));
    }

    pub fn end_output(&mut self, at: usize) {
        let child = &mut self.model.children[at];
        if child.eof || child.aborted || !child.opened || child.failed {
            return;
        }
        child.eof = true;
        let port = child.port;
        self.hub.handle_input(self.now, Input::Eof(port));
    }

    /// Lets a client in.
    pub fn connect(&mut self, style: Style, carrier: Carrier) {
        let Some(port) = self.hub.with(self.now, Hub::try_accept) else { return };
        let number = self.model.clients.len();
        self.note(format!("client {number} connects: {style:?} {carrier:?} {port}"));
        let mut client = Client {
            port,
            number,
            style,
            stream: Stream::new(carrier),
            paused: false,
            acked: carrier == Carrier::Line,
            asked: Vec::new(),
            asks: Vec::new(),
            blames: 0,
            greeted: false,
            batches: false,
            capable: ["roots", "sampling", "elicitation"].into(),
            level: None,
            last_level: 0,
            subscribed: BTreeMap::new(),
            stalled: false,
            blocked: false,
            eof: false,
            deaf: false,
            poisoned: false,
            finished: false,
            gone: false,
            heard: BTreeSet::new(),
        };
        client.capable.retain(|_| self.rng.percent(80));
        match carrier {
            Carrier::Line => {}
            Carrier::Plain => client
                .stream
                .send_raw(&wire::frame(wire::PROBE, 0, b"{\"v\":1,\"caps\":[]}\n"), Said::Nothing),
            Carrier::Value => client.stream.send_raw(
                &wire::frame(wire::PROBE, 0, b"{\"v\":1,\"caps\":[\"compression\",\"exact\"]}\n"),
                Said::Nothing,
            ),
        }
        self.model.clients.push(client);
        self.ready.insert(port);
        self.hub.handle_input(self.now, Input::Opened(port));
        self.settle();
    }

    /// Hands the hub the next bytes of whoever has some; returns whether there were any.
    fn feed(&mut self) -> bool {
        for number in 0..self.model.clients.len() {
            if self.feed_client(number) {
                return true;
            }
        }
        for at in 0..self.model.children.len() {
            if self.feed_child(at) {
                return true;
            }
        }
        false
    }

    fn piece(&mut self, wants: usize) -> usize {
        match self.chop {
            Chop::Whole => wants,
            Chop::Byte => 1.min(wants),
            Chop::Seeded => {
                let most = *self.rng.pick(&[3, 17, 120, 4000]);
                (1 + self.rng.below(most)).min(wants)
            }
        }
    }

    fn feed_client(&mut self, number: usize) -> bool {
        let client = &self.model.clients[number];
        if client.gone || client.eof || client.paused || !client.stream.has_output() {
            return false;
        }
        let port = client.port;
        let wants = self.hub.wants_input(port);
        if wants == 0 {
            self.model.clients[number].paused = true;
            self.model.count("paused");
            return false;
        }
        let len = self.piece(wants);
        let (bytes, said) = self.model.clients[number].stream.take(len);
        let mut cancelled = None;
        let is_alone = said.len() == 1;
        for said in said {
            if let Said::Cancel(value) = &said {
                cancelled = Some(value.clone()).filter(|_| is_alone);
            }
            self.model.on_said(self.now, number, said, false);
        }
        self.hub.handle_input(self.now, Input::Data(port, &bytes));
        self.drain();
        // Nothing is on its way any more, unless it has not read what was.
        let client = &self.model.clients[number];
        let is_prompt = !client.stalled && !client.paused && !client.gone;
        if let Some(value) = cancelled.filter(|_| is_prompt && self.hub.wants_input(port) > 0) {
            self.model.on_said(self.now, number, Said::Cancel(value), true);
        }
        true
    }

    fn feed_child(&mut self, at: usize) -> bool {
        let child = &self.model.children[at];
        if !child.is_open() || !child.stream.has_output() {
            return false;
        }
        let port = child.port;
        let wants = self.hub.wants_input(port);
        if wants == 0 {
            return false;
        }
        let len = self.piece(wants);
        let (bytes, _) = self.model.children[at].stream.take(len);
        self.hub.handle_input(self.now, Input::Data(port, &bytes));
        self.drain();
        true
    }

    /// Writes what a port has for its party, if that reads.
    pub fn transmit(&mut self, port: Port) {
        match self.child_at(port) {
            Some(at) => self.transmit_to_child(at),
            None => {
                let client = self.model.clients.iter().rposition(|client| client.port == port);
                if let Some(number) = client {
                    self.transmit_to_client(number);
                }
            }
        }
    }

    fn transmit_to_child(&mut self, at: usize) {
        let child = &mut self.model.children[at];
        if !child.opened || child.aborted || child.lost {
            return;
        }
        child.blocked = child.deaf;
        let port = child.port;
        while !self.model.children[at].blocked && !self.model.children[at].aborted {
            let mut out = BytesMut::new();
            match self.hub.poll_transmit(self.now, port, &mut out) {
                Transmit::More => {
                    if self.model.children[at].exited {
                        continue;
                    }
                    self.model.children[at].stream.push(&out);
                    self.read_child(at);
                }
                Transmit::Idle => return,
                Transmit::Finish => {
                    if !std::mem::replace(&mut self.model.children[at].finished, true) {
                        self.hub.handle_input(self.now, Input::Finished(port));
                        if self.calm || !self.model.children[at].stubborn {
                            self.die(at, Exit::Code(0));
                        }
                    }
                    return;
                }
            }
        }
    }

    fn read_child(&mut self, at: usize) {
        let child = &mut self.model.children[at];
        let reads_frames = child.knows_lumen;
        let carrier = child.stream.carrier;
        // What it writes is another matter than what it can read.
        if reads_frames {
            child.stream.carrier = Carrier::Plain;
        }
        let got = child.stream.next();
        child.stream.carrier = carrier;
        match got {
            Some(Got::Message(text)) => {
                self.note(format!("server {at} gets {text}"));
                self.model.on_child_got(self.now, at, &text);
            }
            Some(Got::Probe) => {
                let carrier = *self.rng.pick(&[Carrier::Plain, Carrier::Value]);
                let child = &mut self.model.children[at];
                let ack: &[u8] = match carrier {
                    Carrier::Value => b"{\"v\":1,\"caps\":[\"compression\",\"exact\"]}\n",
                    _ => b"{\"v\":1,\"caps\":[]}\n",
                };
                if child.stream.carrier == Carrier::Line {
                    child.stream.carrier = carrier;
                    child.stream.send_raw(&wire::frame(wire::PROBE_ACK, 0, ack), ());
                }
            }
            Some(Got::Ack | Got::Noise) | None => {}
        }
    }

    fn transmit_to_client(&mut self, number: usize) {
        let client = &mut self.model.clients[number];
        if client.gone || client.deaf {
            return;
        }
        client.blocked = client.stalled;
        let port = client.port;
        while !self.model.clients[number].blocked && !self.model.clients[number].gone {
            let mut out = BytesMut::new();
            match self.hub.poll_transmit(self.now, port, &mut out) {
                Transmit::More => {
                    self.model.clients[number].stream.push(&out);
                    self.read_client(number);
                }
                Transmit::Idle => return,
                Transmit::Finish => return self.on_client_finished(number),
            }
        }
    }

    fn on_client_finished(&mut self, number: usize) {
        let client = &mut self.model.clients[number];
        if std::mem::replace(&mut client.finished, true) {
            return;
        }
        let open = |asked: &&super::model::Asked| {
            asked.withdrawn == super::model::Withdrawn::No && (self.model.ending || !asked.is_listen())
        };
        let is_whole = client.poisoned || client.stream.has_output();
        let left: Vec<_> = client.asked.iter().filter(open).filter(|_| !is_whole).collect();
        assert!(left.is_empty(), "client {number} is let go without answers: {left:?}");
        let port = client.port;
        self.hub.handle_input(self.now, Input::Finished(port));
    }

    fn read_client(&mut self, number: usize) {
        let client = &mut self.model.clients[number];
        match client.stream.next() {
            Some(Got::Message(text)) => {
                self.note(format!("client {number} gets {text}"));
                self.model.on_client_got(self.now, number, &text, false);
            }
            Some(Got::Ack) => client.acked = true,
            Some(Got::Probe | Got::Noise) => panic!("client {number} got what is no message"),
            None => panic!("client {number} got half a message"),
        }
    }
}
