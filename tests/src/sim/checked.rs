//! A machine in a cage: every call is passed on, and both sides of the contract are asserted.
//!
//! A panic names whose fault it is: `machine broke rule N` or `driver broke ..`. What one call cannot show is
//! left to suites that compare runs: rule 10, that earlier bytes are never looked at (rule 5), and bounds in
//! bytes (rule 9). Rule 7 needs no check here: a panic on peer bytes is a panic.

use std::cell::Cell;
use std::collections::BTreeMap;

use bytes::BytesMut;
use lumen_proto::{Action, ChildEvent, Input, Instant, Machine, Port, Transmit};

use super::wire;

/// Wraps a machine and asserts the contract on every call.
pub struct Checked<M: Machine> {
    inner: M,
    is_last: fn(&M::Event) -> bool,
    ended: bool,
    latest: Instant,
    ports: BTreeMap<Port, Record>,
    drained: Drained,
    after: After,
    transmits: usize,
}

/// What the wrapper knows about one port.
#[derive(Debug, Default)]
struct Record {
    spawned: bool,
    opened: bool,
    failed: bool,
    exited: bool,
    eof: bool,
    lost: bool,
    finished: bool,
    aborted: bool,
    output: Output,
    stalled: Cell<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Output {
    /// Named by `poll_ready` (or just opened) and not asked since.
    #[default]
    Named,
    /// Asked, gave something, and there may be more: the driver is blocked or comes back.
    More,
    Idle,
    Finished,
}

/// Which of the poll verbs have said "nothing" since the last call that may have changed that.
#[derive(Clone, Copy, Debug, Default)]
struct Drained {
    actions: bool,
    ready: bool,
    events: bool,
}

/// What the next deadline is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Time was passed on: nothing may be due any more.
    Timeout,
    /// Something else happened while nothing was due: nothing may have become due by it.
    Input,
    /// Something else happened while a deadline was overdue already, or the start.
    Overdue,
}

impl<M: Machine> Checked<M> {
    /// Wraps a machine that nobody has called yet.
    pub fn new(inner: M) -> Self {
        Self {
            inner,
            is_last: |_| false,
            ended: false,
            latest: Instant::ZERO,
            ports: BTreeMap::new(),
            drained: Drained::default(),
            after: After::Overdue,
            transmits: 0,
        }
    }

    /// Tells which event is the last, so that rule 8 can be checked.
    #[must_use]
    pub fn with_last(mut self, is_last: fn(&M::Event) -> bool) -> Self {
        self.is_last = is_last;
        self
    }

    /// Runs a command of the machine's own.
    pub fn with<R>(&mut self, now: Instant, command: impl FnOnce(&mut M) -> R) -> R {
        let ended = self.before(now);
        let result = command(&mut self.inner);
        self.check_inert(ended, "a command");
        result
    }

    /// Returns whether the last event was taken.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the machine.
    pub fn inner(&self) -> &M {
        &self.inner
    }

    /// Checks what can be checked while everything is drained, then takes the new time. Returns whether the
    /// machine had ended.
    fn before(&mut self, now: Instant) -> bool {
        let drained = self.is_drained();
        let mut ended = false;
        let mut overdue = true;
        if drained {
            let deadline = self.poll_timeout();
            self.check_quiet(self.latest);
            ended = self.ended;
            overdue = deadline.is_some_and(|deadline| deadline <= self.latest.max(now));
        }
        self.latest = self.latest.max(now);
        self.drained = Drained::default();
        self.after = if overdue { After::Overdue } else { After::Input };
        ended
    }

    fn is_drained(&self) -> bool {
        let Drained { actions, ready, events } = self.drained;
        actions
            && ready
            && events
            && self.ports.values().all(|port| port.output != Output::Named || !port.is_writable())
    }

    /// Whatever the machine has not announced it must not have.
    fn check_quiet(&mut self, now: Instant) {
        for (&port, record) in &self.ports {
            if record.is_readable() && record.stalled.get() {
                assert_eq!(
                    self.inner.wants_input(port),
                    0,
                    "machine broke rule 9: wants_input of {port} rose from 0 and poll_ready did not name it"
                );
            }
            let expected = match record.output {
                Output::Idle => Transmit::Idle,
                Output::Finished => Transmit::Finish,
                Output::Named | Output::More => continue,
            };
            if record.is_writable() {
                let mut out = BytesMut::new();
                let transmit = self.inner.poll_transmit(now, port, &mut out);
                assert!(
                    transmit == expected && out.is_empty(),
                    "machine broke rule 2: {port} gave {transmit:?} after {expected:?}, not named by poll_ready"
                );
            }
        }
    }

    fn check_nothing(&mut self, rule: u8, what: &str) {
        assert_eq!(self.inner.poll_action(), None, "machine broke rule {rule}: an action came of {what}");
        assert!(self.inner.poll_event().is_none(), "machine broke rule {rule}: an event came of {what}");
        while let Some(port) = self.inner.poll_ready() {
            // Naming a port again that is known to have more tells nothing new and starts nothing.
            let blocked = self.ports.get(&port).is_some_and(|record| record.output == Output::More);
            assert!(blocked && rule == 3, "machine broke rule {rule}: {port} got ready by {what}");
        }
        self.check_quiet(self.latest);
    }

    fn check_inert(&mut self, ended: bool, what: &str) {
        if !ended {
            return;
        }
        self.check_nothing(8, &format!("{what} after the end"));
        assert_eq!(self.inner.poll_timeout(), None, "machine broke rule 8: it has ended and has a deadline");
        for &port in self.ports.keys() {
            assert_eq!(
                self.inner.wants_input(port),
                0,
                "machine broke rule 8: it has ended and reads {port}"
            );
        }
    }

    fn check_driver(&mut self, input: Input<'_>) {
        let port = input.port();
        let wants = self.inner.wants_input(port);
        let record = self.ports.entry(port).or_default();
        assert!(!record.aborted && !record.failed, "driver broke off: {input:?} after {port} was gone");
        match input {
            Input::Opened(_) => {
                assert!(!record.opened, "driver broke order: {port} opened twice");
                record.opened = true;
            }
            Input::Child(_, ChildEvent::Failed(_)) => {
                assert!(record.spawned && !record.opened, "driver broke order: {input:?}");
                record.failed = true;
            }
            Input::Child(_, ChildEvent::Exited(_)) => {
                assert!(record.spawned && record.opened && !record.exited, "driver broke order: {input:?}");
                record.exited = true;
            }
            Input::Data(_, data) => {
                assert!(
                    record.opened && !record.eof,
                    "driver broke order: data of {port} when it is not open"
                );
                assert!(!data.is_empty(), "driver broke the contract: empty data for {port}");
                let len = data.len();
                assert!(len <= wants, "driver broke rule 6: {len} bytes for {port}, which wants {wants}");
            }
            Input::Eof(_) => {
                assert!(record.opened && !record.eof, "driver broke order: {input:?}");
                record.eof = true;
            }
            Input::Lost(_) => {
                assert!(record.is_writable() && !record.finished, "driver broke order: {input:?}");
                record.lost = true;
            }
            Input::Finished(_) => {
                let fits = record.is_writable() && record.output == Output::Finished && !record.finished;
                assert!(fits, "driver broke order: {input:?}");
                record.finished = true;
            }
        }
    }
}

impl<M: Machine> Machine for Checked<M> {
    type Event = M::Event;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        let ended = self.before(now);
        self.check_driver(input);
        self.inner.handle_input(now, input);
        self.check_inert(ended, "an input");
    }

    fn handle_timeout(&mut self, now: Instant) {
        let known = self.is_drained().then(|| self.inner.poll_timeout());
        let ended = self.before(now);
        self.inner.handle_timeout(now);
        self.check_inert(ended, "a timeout");
        if let Some(deadline) = known
            && deadline.is_none_or(|deadline| deadline > self.latest)
        {
            self.check_nothing(3, "an early timeout");
            assert_eq!(
                self.inner.poll_timeout(),
                deadline,
                "machine broke rule 3: an early timeout moved the deadline"
            );
        }
        self.after = After::Timeout;
    }

    fn wants_input(&self, port: Port) -> usize {
        let wants = self.inner.wants_input(port);
        if let Some(record) = self.ports.get(&port) {
            record.stalled.set(wants == 0);
        }
        wants
    }

    fn poll_ready(&mut self) -> Option<Port> {
        let ready = self.inner.poll_ready();
        self.drained.ready = ready.is_none();
        if let Some(port) = ready {
            let record = self.ports.entry(port).or_default();
            record.stalled.set(false);
            if record.output == Output::Idle {
                record.output = Output::Named;
            }
        }
        ready
    }

    fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        self.latest = self.latest.max(now);
        self.drained = Drained::default();
        let record = self.ports.entry(port).or_default();
        assert!(record.is_writable(), "driver broke order: asked {port} for output when it is not open");

        self.transmits += 1;
        let before: &[u8] = [&b""[..], b"\xff", b"{\"half\":", b"\x05\x01\x00", b"\n"][self.transmits % 5];
        let mut buffer = BytesMut::from(before);
        let transmit = self.inner.poll_transmit(now, port, &mut buffer);
        assert!(buffer.starts_with(before), "machine broke rule 5: it changed earlier bytes in the buffer");
        let appended = &buffer[before.len()..];
        match transmit {
            Transmit::More => {
                assert!(!appended.is_empty(), "machine broke the contract: {port} gave More and no byte");
                assert!(
                    wire::is_one_unit(appended),
                    "machine broke rule 5: {port} gave no single line or frame: {:?}",
                    appended.escape_ascii().to_string()
                );
            }
            Transmit::Idle | Transmit::Finish => {
                assert!(appended.is_empty(), "machine broke the contract: bytes of {port} with {transmit:?}");
            }
        }
        let allowed = match record.output {
            Output::Idle => transmit == Transmit::Idle,
            Output::Finished => transmit == Transmit::Finish,
            Output::Named | Output::More => true,
        };
        let was = record.output;
        assert!(
            allowed,
            "machine broke rule 2: {port} gave {transmit:?} after {was:?}, not named by poll_ready"
        );
        record.output = match transmit {
            Transmit::More => Output::More,
            Transmit::Idle => Output::Idle,
            Transmit::Finish => Output::Finished,
        };
        out.extend_from_slice(appended);
        transmit
    }

    fn poll_action(&mut self) -> Option<Action> {
        let action = self.inner.poll_action();
        self.drained.actions = action.is_none();
        match action {
            None => {}
            Some(Action::Spawn(port)) => {
                let record = self.ports.entry(port).or_default();
                assert!(
                    !record.spawned && !record.opened,
                    "machine broke the contract: {port} spawned again"
                );
                record.spawned = true;
            }
            Some(Action::Signal(port, _)) => {
                let alive = self.ports.get(&port).is_some_and(|record| record.spawned && !record.is_gone());
                assert!(alive, "machine broke the contract: a signal to {port}, which is no living child");
            }
            Some(Action::Abort(port)) => {
                let record = self.ports.entry(port).or_default();
                assert!(
                    (record.spawned || record.opened) && !record.is_gone(),
                    "machine broke the contract: Abort of {port}, which is not there"
                );
                record.aborted = true;
            }
        }
        action
    }

    fn poll_event(&mut self) -> Option<M::Event> {
        let event = self.inner.poll_event();
        self.drained.events = event.is_none();
        assert!(!self.ended || event.is_none(), "machine broke rule 8: an event after the last one");
        self.ended |= event.as_ref().is_some_and(self.is_last);
        event
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let deadline = self.inner.poll_timeout();
        if self.is_drained() {
            let due = deadline.is_some_and(|deadline| deadline <= self.latest);
            match self.after {
                After::Timeout => assert!(!due, "machine broke rule 3: still due after handle_timeout"),
                After::Input => {
                    assert!(
                        !due,
                        "machine broke rule 1 or 2: what just happened set a deadline that is past"
                    );
                }
                After::Overdue => {}
            }
        }
        deadline
    }
}

impl Record {
    fn is_gone(&self) -> bool {
        self.aborted || self.failed
    }

    fn is_readable(&self) -> bool {
        self.opened && !self.eof && !self.is_gone()
    }

    fn is_writable(&self) -> bool {
        self.opened && !self.lost && !self.is_gone()
    }
}

#[cfg(test)]
mod tests;
