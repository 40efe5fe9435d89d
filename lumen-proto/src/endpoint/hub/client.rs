//! The clients' side of a hub.

use alloc::collections::VecDeque;

use bytes::BytesMut;

use super::guests::Leaving;
use super::{Hub, HubEvent, Parted, Phase};
use crate::connection::Event as StreamEvent;
use crate::endpoint::event::{Event, pass};
use crate::message::{Edits, Packet};
use crate::mux::SlotId;
use crate::{Input, Port, Transmit, limits};

impl Hub {
    pub(super) fn handle_client_input(&mut self, input: Input<'_>) {
        let port = input.port();
        let now = self.now;
        let is_opened = matches!(input, Input::Opened(_));
        let Some(guest) = self.guests.find_mut(port) else { return };
        if let Input::Data(_, data) = &input {
            guest.ahead += data.len();
        }
        guest.leg.handle_input(now, input);
        if is_opened {
            guest.opened = true;
            if guest.is_visitor {
                self.mux.handle_visitor_opened(port);
                self.set_leaving(port, Leaving::Owed { until: now + limits::VISIT_TIMEOUT });
            } else {
                self.mux.handle_client_opened(port);
            }
        }
        self.read_client(port);
    }

    /// Takes what a client sent, as long as its server has room.
    fn read_client(&mut self, port: Port) {
        while self.guests.find(port).is_some_and(|guest| !guest.in_line && guest.has_event()) {
            if self.is_next_too_much(port) {
                break;
            }
            self.take_client_event(port);
            self.do_outs();
        }
        self.follow_client(port);
    }

    /// Lets those who wait for room go on, one message each and turn by turn; returns whether one did.
    pub(super) fn serve_lines(&mut self) -> bool {
        for slot in SlotId::ALL {
            if self.child(slot).leg.is_full() {
                continue;
            }
            let Some(port) = self.lines.get_mut(slot.index()).and_then(VecDeque::pop_front) else { continue };
            let Some(guest) = self.guests.find_mut(port) else { return true };
            guest.in_line = false;
            if !self.is_next_too_much(port) {
                self.take_client_event(port);
                self.do_outs();
            }
            self.follow_client(port);
            return true;
        }
        false
    }

    fn take_client_event(&mut self, port: Port) {
        let now = self.now;
        let Some(guest) = self.guests.find_mut(port) else { return };
        let Some(event) = guest.poll_event() else { return };
        let told = |event| self.tell(HubEvent::Stream(event));
        let Some(event) = pass(port, event, told) else { return };
        match event {
            StreamEvent::Message(packet) => self.mux.handle_client(now, port, packet),
            StreamEvent::Rejected { reason, id, has_method } => {
                let is_reply = id
                    .as_ref()
                    .is_some_and(|id| !has_method && self.mux.handle_client_broken(now, port, id, reason));
                if !is_reply && let Some(guest) = self.guests.find_mut(port) {
                    guest.leg.refuse_unread(id.as_ref(), has_method, &reason);
                }
                self.tell(HubEvent::Stream(Event::Rejected { port, id, reason }));
            }
            StreamEvent::Unsent { message, edits, reason } => {
                self.mux.handle_client_unsent(now, port, &message, &edits, reason);
                let id = message.id().map(|id| id.into_owned().into());
                self.tell(HubEvent::Stream(Event::Rejected { port, id, reason }));
            }
            _ => {}
        }
    }

    /// Does what the state of a client's stream asks for, and notes whether it is to be read or written.
    pub(super) fn follow_client(&mut self, port: Port) {
        let Some(guest) = self.guests.find_mut(port) else { return };
        if guest.leg.is_deaf() {
            let why = if self.phase == Phase::Serving { Parted::Left } else { Parted::ShutDown };
            return self.part(port, why);
        }
        if guest.is_visitor
            && guest.is_told
            && matches!(guest.leaving, Leaving::Owed { .. })
            && self.mux.owed(port) == 0
        {
            return self.flush_client(port);
        }
        let waits = guest.has_event();
        if !waits {
            guest.ahead = 0;
        }
        if waits && !guest.in_line {
            guest.in_line = true;
            let slot = self.next_slot(port).unwrap_or(SlotId::First);
            if let Some(line) = self.lines.get_mut(slot.index()) {
                line.push_back(port);
            }
        } else if !waits && guest.leg.is_eof() {
            self.on_client_eof(port);
        }
        self.note_client(port);
    }

    fn on_client_eof(&mut self, port: Port) {
        let now = self.now;
        let Some(guest) = self.guests.find(port) else { return };
        match guest.leaving {
            Leaving::No => {
                self.mux.handle_client_eof(now, port);
                if self.mux.owed(port) == 0 {
                    self.flush_client(port);
                } else {
                    self.set_leaving(port, Leaving::Owed { until: now + limits::EOF_GRACE });
                }
            }
            Leaving::Owed { .. } if self.mux.owed(port) == 0 => self.flush_client(port),
            Leaving::Owed { .. } | Leaving::Flushing { .. } => {}
        }
    }

    /// Sends a client what waits for it, and nothing more.
    pub(super) fn flush_client(&mut self, port: Port) {
        let Some(guest) = self.guests.find_mut(port) else { return };
        let is_patient = self.phase == Phase::Serving && !guest.is_visitor;
        let until = self.now + if is_patient { limits::EOF_GRACE } else { limits::STOP_STEP };
        guest.leg.finish();
        self.set_leaving(port, Leaving::Flushing { until });
        self.note_client(port);
    }

    fn set_leaving(&mut self, port: Port, leaving: Leaving) {
        let Some(guest) = self.guests.find_mut(port) else { return };
        if let Some(until) = guest.leaving.until() {
            self.farewells.remove(&(until, port));
        }
        guest.leaving = leaving;
        if let Some(until) = leaving.until() {
            self.farewells.insert((until, port));
        }
    }

    /// Ends the patience with those who have had time enough.
    pub(super) fn handle_farewells(&mut self) {
        while let Some((until, port)) =
            self.farewells.first().copied().filter(|(until, _)| *until <= self.now)
        {
            self.farewells.remove(&(until, port));
            match self.guests.find(port).map(|guest| guest.leaving) {
                Some(Leaving::Owed { .. }) => {
                    self.mux.give_up_client(self.now, port);
                    self.do_outs();
                    self.flush_client(port);
                }
                Some(_) => self.part(port, Parted::Unanswered),
                None => {}
            }
        }
    }

    /// Lets a client go: nothing of it is left, and nobody else notices.
    pub(super) fn part(&mut self, port: Port, why: Parted) {
        let Some(guest) = self.guests.remove(port) else { return };
        self.queued -= guest.counted;
        self.past += guest.leg.tally();
        // Who only asked how things stand keeps nobody's server waiting.
        if self.mux.slot_of(port).is_some() {
            self.empty_since = self.now;
        }
        if let Some(until) = guest.leaving.until() {
            self.farewells.remove(&(until, port));
        }
        if guest.in_line {
            for line in &mut self.lines {
                line.retain(|waiting| *waiting != port);
            }
        }
        if guest.opened {
            self.aborts.push_back(port);
        }
        self.mux.handle_client_gone(self.now, port);
        self.tell(HubEvent::Parted { port, why });
    }

    pub(super) fn send_to_client(&mut self, port: Port, packet: Packet, edits: Edits, own: bool) {
        let Some(guest) = self.guests.find_mut(port) else { return };
        if guest.leg.queued() > limits::MAX_CLIENT_QUEUE {
            return self.part(port, Parted::Slow);
        }
        guest.is_told = true;
        if own {
            guest.leg.send_own(packet);
        } else {
            guest.leg.send_edited(packet, edits);
        }
        self.count(port);
        if self.queued > limits::MAX_HUB_QUEUE {
            let slowest = self.guests.iter().max_by_key(|(_, guest)| guest.counted).map(|(port, _)| port);
            if let Some(slowest) = slowest {
                self.part(slowest, Parted::Slow);
            }
        }
        if let Some(guest) = self.guests.find_mut(port)
            && !core::mem::replace(&mut guest.in_told, true)
        {
            self.told.push_back(port);
        }
    }

    /// Does what follows for one of the clients that were told something; returns whether there was one.
    pub(super) fn follow_told(&mut self) -> bool {
        let Some(port) = self.told.pop_front() else { return false };
        if let Some(guest) = self.guests.find_mut(port) {
            guest.in_told = false;
        }
        self.follow_client(port);
        true
    }

    pub(super) fn transmit_to_client(&mut self, port: Port, out: &mut BytesMut) -> Transmit {
        let Some(guest) = self.guests.find_mut(port) else { return Transmit::Idle };
        let transmit = guest.leg.poll_transmit(out);
        if transmit != Transmit::More {
            guest.ready.note_idle();
        }
        let waits = guest.has_event();
        self.count(port);
        if waits || transmit == Transmit::Finish {
            self.read_client(port);
            self.settle();
        } else {
            self.note_client(port);
        }
        transmit
    }

    /// Counts anew what waits for a client.
    fn count(&mut self, port: Port) {
        let Some(guest) = self.guests.find_mut(port) else { return };
        let queued = guest.leg.queued();
        self.queued = self.queued - guest.counted + queued;
        guest.counted = queued;
    }

    fn note_client(&mut self, port: Port) {
        let wanted = crate::Machine::wants_input(self, port) > 0;
        let Some(guest) = self.guests.find_mut(port) else { return };
        if guest.ready.note(wanted, guest.leg.has_output()) {
            self.due.push_back(port);
        }
    }

    /// Returns whether the server that this client's next message is for has no room.
    fn is_next_too_much(&mut self, port: Port) -> bool {
        if self.children.iter().all(|child| !child.leg.is_full()) {
            return false;
        }
        self.next_slot(port).is_some_and(|slot| self.child(slot).leg.is_full())
    }

    /// Returns the server that this client's next message is for; `None` if for none.
    fn next_slot(&mut self, port: Port) -> Option<SlotId> {
        match self.guests.find_mut(port)?.peek_event() {
            Some(StreamEvent::Message(packet)) => self.mux.goes_to(port, packet),
            _ => self.mux.slot_of(port),
        }
    }
}
