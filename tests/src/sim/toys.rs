//! Two machines of the smallest kind: one that keeps the contract and one that breaks a rule of choice.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use lumen_proto::{Action, Input, Instant, Machine, Port, Signal, Transmit};

/// The one port of both.
pub(super) const PORT: Port = Port::new(0);

/// How long an echo takes.
pub(super) const DELAY: Duration = Duration::from_millis(1);

/// What the broken machine does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// Rule 1: sets deadlines by a clock that went back.
    Clock,
    /// Rule 2: leaves output for the next timeout without saying so.
    Late,
    /// Rule 2: gives output on a port that it called Idle and never named again.
    Unannounced,
    /// Rule 3: does its work at an early timeout.
    Early,
    /// Rule 3: moves its deadline at every timeout.
    Moves,
    /// Rule 3: is still due after its timeout.
    Due,
    /// Rule 5: two lines at once.
    TwoLines,
    /// Rule 5: changes what was in the buffer.
    Overwrites,
    /// `More` without a byte.
    Empty,
    /// A byte with `Idle`.
    IdleBytes,
    /// Output after `Finish`.
    Undead,
    /// Rule 8: an event after the end.
    Talks,
    /// Rule 8: still reads after the end.
    Reads,
    /// Rule 9: reads again without saying so.
    Hushed,
    /// Spawns one port twice.
    Respawns,
    /// Signals a port that was never spawned.
    Shoots,
    /// Aborts twice.
    AbortsTwice,
    /// Never at rest: a timer that fires for nothing.
    Ticks,
    /// Names its port without end.
    Ready,
}

/// Sends every line back after a while; a line `end` ends it.
pub(super) struct Toy {
    fault: Fault,
    now: Instant,
    partial: BytesMut,
    held: VecDeque<(Instant, BytesMut)>,
    output: VecDeque<BytesMut>,
    ready: VecDeque<Port>,
    actions: VecDeque<Action>,
    events: VecDeque<String>,
    full: bool,
    open: bool,
    ended: bool,
    finish_told: bool,
    finished: bool,
}

/// More than this many queued bytes stop reading.
const FULL: usize = 30;

impl Toy {
    pub(super) fn new(fault: Fault) -> Self {
        Self {
            fault,
            now: Instant::ZERO,
            partial: BytesMut::new(),
            held: VecDeque::new(),
            output: VecDeque::new(),
            ready: VecDeque::new(),
            actions: VecDeque::new(),
            events: VecDeque::new(),
            full: false,
            open: false,
            ended: false,
            finish_told: false,
            finished: false,
        }
    }

    fn clamp(&mut self, now: Instant) {
        self.now = if self.fault == Fault::Clock { now } else { self.now.max(now) };
    }

    fn queued(&self) -> usize {
        self.output.iter().chain(self.held.iter().map(|(_, line)| line)).map(BytesMut::len).sum()
    }

    fn release(&mut self, early: bool) {
        let mut any = false;
        while self.held.front().is_some_and(|(due, _)| early || *due <= self.now) {
            self.output.extend(self.held.pop_front().map(|(_, line)| line));
            any = true;
        }
        if any && !self.finished && self.fault != Fault::Unannounced {
            self.ready.push_back(PORT);
        }
    }

    fn on_line(&mut self, line: BytesMut) {
        match &line[..] {
            b"end\n" => {
                self.ended = true;
                self.finish_told = true;
                self.held.clear();
                self.events.push_back("ended".to_owned());
                self.ready.push_back(PORT);
            }
            b"child\n" => {
                self.actions.push_back(Action::Spawn(Port::new(1)));
                if self.fault == Fault::Respawns {
                    self.actions.push_back(Action::Spawn(Port::new(1)));
                }
                if self.fault == Fault::Shoots {
                    self.actions.push_back(Action::Signal(Port::new(2), Signal::Kill));
                }
            }
            b"abort\n" => {
                self.actions.push_back(Action::Abort(Port::new(1)));
                if self.fault == Fault::AbortsTwice {
                    self.actions.push_back(Action::Abort(Port::new(1)));
                }
            }
            _ if self.fault == Fault::Late => self.output.push_back(line),
            _ => self.held.push_back((self.now + DELAY, line)),
        }
    }
}

impl Machine for Toy {
    type Event = String;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.clamp(now);
        if self.ended {
            if self.fault == Fault::Talks {
                self.events.push_back("late".to_owned());
            }
            return;
        }
        match input {
            Input::Opened(PORT) => self.open = true,
            Input::Data(PORT, data) => {
                self.partial.extend_from_slice(data);
                while let Some(end) = self.partial.iter().position(|&byte| byte == b'\n') {
                    let line = self.partial.split_to(end + 1);
                    self.on_line(line);
                }
                self.full = self.queued() > FULL;
            }
            Input::Eof(PORT) => self.on_line(BytesMut::from(&b"end\n"[..])),
            _ => self.events.push_back(format!("{input:?}")),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.clamp(now);
        match self.fault {
            Fault::Due => {}
            Fault::Moves => {
                for (due, _) in &mut self.held {
                    *due = self.now + DELAY;
                }
            }
            Fault::Early => self.release(true),
            _ => self.release(false),
        }
        if self.fault == Fault::Late && !self.output.is_empty() {
            self.ready.push_back(PORT);
        }
    }

    fn wants_input(&self, port: Port) -> usize {
        let reads = self.open && port == PORT && (!self.ended || self.fault == Fault::Reads);
        if reads && !self.full { 100 } else { 0 }
    }

    fn poll_ready(&mut self) -> Option<Port> {
        if self.fault == Fault::Ready { Some(PORT) } else { self.ready.pop_front() }
    }

    fn poll_transmit(&mut self, _now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        if port != PORT {
            return Transmit::Idle;
        }
        if self.fault == Fault::Overwrites && !out.is_empty() {
            out[0] = b'!';
        }
        if self.finished && self.fault != Fault::Undead {
            return Transmit::Finish;
        }
        let Some(line) = self.output.pop_front() else {
            if self.finish_told && self.fault != Fault::Undead {
                self.finished = true;
                return Transmit::Finish;
            }
            if self.fault == Fault::Undead && self.finish_told {
                let first = !std::mem::replace(&mut self.finished, true);
                return if first { Transmit::Finish } else { Transmit::Idle };
            }
            if self.held.is_empty() && std::mem::take(&mut self.full) && self.fault != Fault::Hushed {
                self.ready.push_back(PORT);
            }
            if self.fault == Fault::IdleBytes {
                out.extend_from_slice(b"x");
            }
            return Transmit::Idle;
        };
        match self.fault {
            Fault::Empty => {}
            Fault::TwoLines => {
                out.extend_from_slice(&line);
                out.extend_from_slice(&line);
            }
            _ => out.extend_from_slice(line.chunk()),
        }
        Transmit::More
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn poll_event(&mut self) -> Option<String> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.fault == Fault::Ticks {
            return Some(self.now + Duration::from_micros(1));
        }
        self.held.front().map(|(due, _)| *due)
    }
}
