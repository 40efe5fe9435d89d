//! A machine that says what a test tells it to, and reports all it hears.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::VecDeque;

use bytes::BytesMut;
use lumen_os::{CommandSpec, Target};
use lumen_proto::limits::READ_CHUNK;
use lumen_proto::{Action, ChildEvent, Exit, Input, Instant, Machine, OpenError, Port, Transmit};

pub(crate) const PORT: Port = Port::new(0);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Opened,
    Data(Vec<u8>),
    Eof,
    Lost,
    Finished,
    Failed(OpenError),
    Exited(Exit),
    Due,
}

/// Speaks on [`PORT`] only.
#[derive(Debug, Default)]
pub(crate) struct Toy {
    pub(crate) actions: VecDeque<Action>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) events: VecDeque<Event>,
    /// Never runs out of events.
    pub(crate) chatty: bool,
    pub(crate) output: VecDeque<Option<Vec<u8>>>,
    pub(crate) is_ready: bool,
}

impl Toy {
    /// Asks for the target at once.
    pub(crate) fn spawning() -> Self {
        Self { actions: [Action::Spawn(PORT)].into(), ..Self::default() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.output.push_back(Some(bytes.to_vec()));
        self.is_ready = true;
    }

    pub(crate) fn finish(&mut self) {
        self.output.push_back(None);
        self.is_ready = true;
    }
}

impl Machine for Toy {
    type Event = Event;

    fn handle_input(&mut self, _now: Instant, input: Input<'_>) {
        assert_eq!(input.port(), PORT);
        self.events.push_back(match input {
            Input::Opened(_) => Event::Opened,
            Input::Data(_, bytes) => Event::Data(bytes.to_vec()),
            Input::Eof(_) => Event::Eof,
            Input::Lost(_) => Event::Lost,
            Input::Finished(_) => Event::Finished,
            Input::Child(_, ChildEvent::Failed(error)) => Event::Failed(error),
            Input::Child(_, ChildEvent::Exited(exit)) => Event::Exited(exit),
        });
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.events.push_back(Event::Due);
        }
    }

    fn wants_input(&self, _port: Port) -> usize {
        READ_CHUNK
    }

    fn poll_ready(&mut self) -> Option<Port> {
        std::mem::take(&mut self.is_ready).then_some(PORT)
    }

    fn poll_transmit(&mut self, _now: Instant, _port: Port, out: &mut BytesMut) -> Transmit {
        match self.output.pop_front() {
            Some(Some(bytes)) => {
                out.extend_from_slice(&bytes);
                Transmit::More
            }
            Some(None) => Transmit::Finish,
            None => Transmit::Idle,
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.chatty.then_some(Event::Due))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}

/// A command of the shell.
pub(crate) fn sh(script: &str) -> CommandSpec {
    CommandSpec::new("/bin/sh").arg("-c").arg(script)
}

pub(crate) fn command(script: &str) -> Option<Target> {
    Some(Target::Command(sh(script)))
}

/// Bytes that tell when their order is wrong.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..=250).cycle().zip(0..len).map(|(byte, at)| byte ^ (at / 65536).to_le_bytes()[0]).collect()
}
