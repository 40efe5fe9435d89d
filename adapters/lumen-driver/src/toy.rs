//! A scripted machine for tests: it says what it was told to say, and remembers what it heard.

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use lumen_proto::{Action, ChildEvent, Exit, Input, Instant, Machine, OpenError, Port, Transmit};

/// An [`Input`] that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Opened(Port),
    Data(Port, Vec<u8>),
    Eof(Port),
    Lost(Port),
    Finished(Port),
    Failed(Port, OpenError),
    Exited(Port, Exit),
}

#[derive(Default)]
pub(crate) struct Toy {
    pub(crate) heard: Vec<(Instant, Heard)>,
    pub(crate) timeouts: Vec<Instant>,
    pub(crate) deadline: Option<Instant>,
    /// What it wants of a port; of one that is not named, a lot.
    pub(crate) wants: BTreeMap<Port, usize>,
    /// Sends back what it reads, and finishes at the end.
    pub(crate) echo: bool,
    /// Sends to this port what it reads from any other.
    pub(crate) forwards_to: Option<Port>,
    pub(crate) actions: VecDeque<Action>,
    pub(crate) events: VecDeque<u32>,
    /// Said while output of this port is polled.
    pub(crate) aborts_in_transmit: Option<Port>,
    pub(crate) transmit_calls: usize,
    pub(crate) wants_calls: std::cell::Cell<usize>,
    output: BTreeMap<Port, VecDeque<Option<Vec<u8>>>>,
    ready: VecDeque<Port>,
}

impl Toy {
    pub(crate) fn echo() -> Self {
        Self { echo: true, ..Self::default() }
    }

    /// Queues one frame.
    pub(crate) fn send(&mut self, port: Port, frame: &[u8]) {
        self.output.entry(port).or_default().push_back(Some(frame.to_vec()));
        self.ready.push_back(port);
    }

    /// Ends the output.
    pub(crate) fn finish(&mut self, port: Port) {
        self.output.entry(port).or_default().push_back(None);
        self.ready.push_back(port);
    }

    pub(crate) fn want(&mut self, port: Port, bytes: usize) {
        self.wants.insert(port, bytes);
        self.ready.push_back(port);
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.iter().map(|(_, heard)| heard.clone()).collect()
    }

    pub(crate) fn bytes_of(&self, port: Port) -> Vec<u8> {
        let parts = self.heard.iter().filter_map(|(_, heard)| match heard {
            Heard::Data(of, bytes) if *of == port => Some(bytes.as_slice()),
            _ => None,
        });
        parts.flatten().copied().collect()
    }
}

impl Machine for Toy {
    type Event = u32;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        let heard = match input {
            Input::Opened(port) => Heard::Opened(port),
            Input::Data(port, bytes) => Heard::Data(port, bytes.to_vec()),
            Input::Eof(port) => Heard::Eof(port),
            Input::Lost(port) => Heard::Lost(port),
            Input::Finished(port) => Heard::Finished(port),
            Input::Child(port, ChildEvent::Failed(error)) => Heard::Failed(port, error),
            Input::Child(port, ChildEvent::Exited(exit)) => Heard::Exited(port, exit),
        };
        match input {
            Input::Data(port, bytes) if self.echo => self.send(port, bytes),
            Input::Eof(port) if self.echo => self.finish(port),
            Input::Data(port, bytes) => {
                if let Some(to) = self.forwards_to.filter(|to| *to != port) {
                    self.send(to, bytes);
                }
            }
            _ => {}
        }
        self.heard.push((now, heard));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timeouts.push(now);
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.events.push_back(0);
        }
    }

    fn wants_input(&self, port: Port) -> usize {
        self.wants_calls.set(self.wants_calls.get() + 1);
        self.wants.get(&port).copied().unwrap_or(usize::MAX)
    }

    fn poll_ready(&mut self) -> Option<Port> {
        self.ready.pop_front()
    }

    fn poll_transmit(&mut self, _now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        self.transmit_calls += 1;
        if self.aborts_in_transmit == Some(port) {
            self.actions.push_back(Action::Abort(port));
        }
        match self.output.get_mut(&port).and_then(VecDeque::pop_front) {
            Some(Some(frame)) => {
                out.extend_from_slice(&frame);
                Transmit::More
            }
            Some(None) => Transmit::Finish,
            None => Transmit::Idle,
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn poll_event(&mut self) -> Option<u32> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}
