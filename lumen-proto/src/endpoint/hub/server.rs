//! The servers' side of a hub.

use alloc::format;
use alloc::string::String;

use bytes::{Bytes, BytesMut};

use super::{Hub, HubEvent, Phase};
use crate::connection::Event as StreamEvent;
use crate::endpoint::client_leg::refusal;
use crate::endpoint::event::{Event, pass};
use crate::endpoint::server_leg::LegEvent;
use crate::message::{Edits, Packet};
use crate::mux::{Next, SlotId};
use crate::supervisor::Ended;
use crate::{Input, OpenErrorKind, Port, Reason, Transmit};

impl Hub {
    pub(super) fn handle_server_input(&mut self, slot: SlotId, input: Input<'_>) {
        let now = self.now;
        let child = self.child_mut(slot);
        let is_opened = matches!(input, Input::Opened(port) if port == child.leg.port());
        child.leg.handle_input(now, input);
        if is_opened {
            self.mux.handle_child_opened(now, slot);
        }
    }

    pub(super) fn handle_server_timeout(&mut self, slot: SlotId) {
        let now = self.now;
        if !self.child_mut(slot).handle_timeout(now) {
            return;
        }
        if self.mux.is_needed(slot) {
            self.mux.handle_child_starting(now, slot);
            self.start_server(slot);
        } else {
            self.mux.handle_child_unneeded(now, slot);
        }
    }

    pub(super) fn start_server(&mut self, slot: SlotId) {
        self.child_mut(slot).start();
    }

    pub(super) fn on_server_ready(&mut self, slot: SlotId) {
        let now = self.now;
        self.child_mut(slot).handle_ready(now);
        let port = self.child(slot).leg.port();
        self.tell(HubEvent::Ready(port));
    }

    pub(super) fn send_to_server(&mut self, slot: SlotId, packet: Packet, edits: Edits, own: bool) {
        let now = self.now;
        let leg = &mut self.child_mut(slot).leg;
        if own {
            leg.send_own(packet);
        } else {
            leg.send_edited(now, packet, edits);
        }
    }

    pub(super) fn stop_servers(&mut self) {
        let (now, ladder) = (self.now, self.ladder);
        for slot in SlotId::ALL {
            self.child_mut(slot).stop(now, ladder);
            if !self.child(slot).is_alive() {
                let next = Next::Never(Reason::ShuttingDown);
                self.mux.handle_child_ended(now, slot, next, None);
            }
        }
    }

    /// Takes what servers said, and what became of them; returns whether there was anything.
    pub(super) fn take_server_events(&mut self) -> bool {
        let mut any = false;
        for slot in SlotId::ALL {
            while let Some(event) = self.child_mut(slot).leg.poll_event() {
                any = true;
                self.on_server_event(slot, event);
                self.do_outs();
            }
        }
        any
    }

    fn on_server_event(&mut self, slot: SlotId, event: LegEvent) {
        let now = self.now;
        match event {
            LegEvent::Stream(port, event) => self.on_server_stream(slot, port, event),
            LegEvent::Restarting(why) => {
                self.mux.handle_child_replaced(now, slot);
                let port = self.child(slot).leg.port();
                self.tell(HubEvent::Stream(Event::Restarting { port, why }));
            }
            // There is no deadline for the first answer but that of our handshake.
            LegEvent::NoAnswer => {}
            LegEvent::Ended(ended) => self.on_server_ended(slot, ended),
        }
    }

    fn on_server_stream(&mut self, slot: SlotId, port: Port, event: StreamEvent) {
        let now = self.now;
        let told = |event| self.tell(HubEvent::Stream(event));
        let Some(event) = pass(port, event, told) else { return };
        match event {
            StreamEvent::Message(packet) => self.mux.handle_child(now, slot, packet),
            StreamEvent::Rejected { reason, id, has_method } => {
                match &id {
                    Some(id) if has_method => self.refuse_server(slot, id, &reason),
                    Some(id) => self.mux.handle_child_broken(now, slot, id, reason),
                    None => {}
                }
                self.tell(HubEvent::Stream(Event::Rejected { port, id, reason }));
            }
            StreamEvent::Unsent { message, edits, reason } => {
                let id = edits
                    .token(&["id"])
                    .cloned()
                    .map(Bytes::from)
                    .or_else(|| message.id().map(|id| id.into_owned().into()));
                if message.envelope().method.is_some() {
                    self.mux.handle_child_unsent(now, slot, &edits, reason);
                } else if let Some(id) = &id {
                    self.refuse_server(slot, id, &reason);
                }
                self.tell(HubEvent::Stream(Event::Rejected { port, id, reason }));
            }
            _ => {}
        }
    }

    fn refuse_server(&mut self, slot: SlotId, id: &Bytes, reason: &Reason) {
        if let Some(message) = refusal(Some(id), reason, None) {
            self.child_mut(slot).leg.send_own(message);
        }
    }

    fn on_server_ended(&mut self, slot: SlotId, ended: Ended) {
        let now = self.now;
        let port = self.child(slot).leg.port();
        let next = self.child_mut(slot).handle_ended(now, ended);
        let is_stopping = !matches!(self.phase, Phase::Serving | Phase::Draining { .. });
        let detail = detail(ended);
        self.mux.handle_child_ended(now, slot, next, detail.as_deref());
        // Of a server that others share there may be more to tell than to this client: its owner decides.
        if self.config.mux.private && is_missing(ended) {
            self.mux.handle_child_missing(now, slot, detail.as_deref());
        }
        let again = match next {
            Next::At(at) => Some(at),
            Next::OnDemand | Next::Never(_) => None,
        };
        self.tell(HubEvent::Ended { port, ended, again });
        if matches!(next, Next::Never(_)) && !is_stopping {
            self.tell(HubEvent::GaveUp(port));
        }
    }

    pub(super) fn transmit_to_server(&mut self, slot: SlotId, port: Port, out: &mut BytesMut) -> Transmit {
        let now = self.now;
        let child = self.child_mut(slot);
        if port != child.leg.port() {
            return Transmit::Idle;
        }
        let transmit = child.leg.poll_transmit(now, out);
        if transmit != Transmit::More {
            child.ready.note_idle();
        }
        // Nothing follows of one message more that is out, but that there is room for those who wait.
        let follows = transmit != Transmit::More || child.leg.has_event();
        if follows || self.lines.iter().any(|line| !line.is_empty()) {
            self.settle();
        } else {
            self.note_server(slot);
        }
        transmit
    }

    /// Notes whether a server is to be read or written.
    pub(super) fn note_server(&mut self, slot: SlotId) {
        let port = self.child(slot).leg.port();
        let wanted = crate::Machine::wants_input(self, port) > 0;
        let child = self.child_mut(slot);
        if child.ready.note(wanted, child.leg.has_output()) {
            self.due.push_back(port);
        }
    }
}

/// Returns whether there was nothing to start.
fn is_missing(ended: Ended) -> bool {
    let Ended::Failed(error) = ended else { return false };
    matches!(error.kind, OpenErrorKind::NotFound | OpenErrorKind::PermissionDenied)
}

/// Says how a server ended, for error answers.
fn detail(ended: Ended) -> Option<String> {
    match ended {
        Ended::Failed(error) => Some(format!("{error}")),
        Ended::Exited(exit) => Some(format!("{exit}")),
        Ended::Closed => None,
    }
}
