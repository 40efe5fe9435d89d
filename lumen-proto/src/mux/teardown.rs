//! Clients that go, and servers that come and go.

use alloc::string::String;
use alloc::vec::Vec;

use super::call::{Stage, What};
use super::request::edits_up;
use super::slot::Phase;
use super::{Mux, Out, SlotId};
use crate::idmap::WireId;
use crate::mcp::{self, Era};
use crate::{Instant, Port, Reason};

/// What follows the end of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is started again then.
    At(Instant),
    /// It is started again when somebody needs it.
    OnDemand,
    /// It is not started again: this is what requests are told.
    Never(Reason),
}

impl Mux {
    /// A client is gone: nobody else must notice.
    pub fn handle_client_gone(&mut self, now: Instant, client: Port) {
        self.advance(now);
        let Some(known) = self.clients.remove(client) else { return };
        self.batches.drop_client(client);
        self.drop_asks_of_client(known.asks);
        for wire in known.calls.into_values() {
            if let Some(call) = self.drop_call(wire)
                && call.stage == Stage::Sent
            {
                self.cancel_at_child(call.slot, wire, "the client is gone");
            }
        }
        let Some(slot) = known.slot else { return };
        self.slot_mut(slot).users.remove(&client);
        self.drop_subscriptions(slot, client, known.subscriptions);
        if known.level.is_some() {
            self.sync_level(slot);
        }
    }

    /// A client goes on at another server: it wants nothing of this one any more but the answers it waits for.
    pub(super) fn leave(&mut self, client: Port, slot: SlotId) {
        if !self.slot_mut(slot).users.remove(&client) {
            return;
        }
        let Some(known) = self.clients.get_mut(client) else { return };
        let subscriptions = core::mem::take(&mut known.subscriptions);
        known.kept = known.kept.saturating_sub(subscriptions.iter().map(String::len).sum());
        let had_level = known.level.take().is_some();
        self.drop_subscriptions(slot, client, subscriptions);
        if had_level {
            self.sync_level(slot);
        }
    }

    /// A client will send nothing more, but may still be told what it asked for.
    pub fn handle_client_eof(&mut self, now: Instant, client: Port) {
        self.advance(now);
        let Some(known) = self.clients.get_mut(client) else { return };
        // Nobody is left to ask.
        known.can_reply = false;
        let asks = known.asks.clone();
        self.drop_asks_of_client(asks);
    }

    /// A client has waited long enough for what it asked.
    pub fn give_up_client(&mut self, now: Instant, client: Port) {
        self.advance(now);
        let calls = self.clients.get(client).into_iter().flat_map(|known| known.calls.values());
        for wire in calls.copied().collect::<Vec<_>>() {
            let Some(call) = self.calls.take(wire) else { continue };
            if call.stage == Stage::Held {
                self.slot_mut(call.slot).forget(wire);
            } else {
                self.cancel_at_child(call.slot, wire, "the client is gone");
            }
            self.refuse(call, Reason::NoAnswer, None);
        }
    }

    /// Starts a server that nobody has needed yet.
    pub fn start(&mut self, slot: SlotId) {
        if self.slot(slot).phase == Phase::Idle {
            self.slot_mut(slot).phase = Phase::Starting;
            self.outs.push_back(Out::Start(slot));
        }
    }

    /// A server that was down is not needed.
    pub fn handle_child_unneeded(&mut self, now: Instant, slot: SlotId) {
        self.advance(now);
        self.slot_mut(slot).phase = Phase::Idle;
    }

    /// A server was started anew before it had answered anything: what it was sent goes to it again.
    pub fn handle_child_replaced(&mut self, now: Instant, slot: SlotId) {
        self.advance(now);
        self.drop_asks_of_slot(slot);
    }

    /// A server is being started again.
    pub fn handle_child_starting(&mut self, now: Instant, slot: SlotId) {
        self.advance(now);
        self.slot_mut(slot).phase = Phase::Starting;
    }

    /// A server has been started: it can be talked to.
    pub fn handle_child_opened(&mut self, now: Instant, slot: SlotId) {
        self.advance(now);
        if self.slot(slot).phase != Phase::Starting {
            return;
        }
        self.slot_mut(slot).has_answered = false;
        if self.slot(slot).era == Some(Era::Legacy) {
            self.begin_greeting(slot);
        } else {
            self.on_ready(slot);
        }
    }

    /// Takes that a server could not be started because it is not there, or is not to be run. It may be by the next time,
    /// but nobody has to wait for that.
    pub fn handle_child_missing(&mut self, now: Instant, slot: SlotId, detail: Option<&str>) {
        self.advance(now);
        self.refuse_waiting(slot, Reason::NotStarted, detail);
    }

    /// A server is gone. Requests that it had are answered with an error; what it had not been sent waits.
    pub fn handle_child_ended(&mut self, now: Instant, slot: SlotId, next: Next, detail: Option<&str>) {
        self.advance(now);
        self.drop_asks_of_slot(slot);
        let place = self.slot_mut(slot);
        let had_answered = place.has_answered;
        place.level = None;
        place.level_asking = None;
        place.last_end = detail.map(String::from);
        place.phase = match next {
            Next::At(until) => Phase::Down { until },
            Next::OnDemand => Phase::Idle,
            Next::Never(reason) => Phase::Gone(reason),
        };
        for subscription in place.subscriptions.values_mut() {
            subscription.asking = None;
        }
        let mut was_too_much = false;
        for wire in self.calls.of_slot(slot) {
            let Some(call) = self.calls.find(wire) else { continue };
            if call.stage == Stage::Held {
                continue;
            }
            if call.is_listen() && !matches!(next, Next::Never(_)) {
                self.calls.update(wire, |call| call.stage = Stage::Lost);
                continue;
            }
            let Some(call) = self.calls.take(wire) else { continue };
            match call.what {
                What::Initialize => {}
                // That was too much for a server which does not know it: say what it could not.
                What::Discover if !had_answered => {
                    self.slot_mut(slot).era = None;
                    self.ended_by_discover = true;
                    was_too_much = true;
                    self.refuse(call, Reason::NoMethod, detail);
                }
                _ => self.fail(slot, wire, call, Reason::ServerGone, detail),
            }
        }
        if was_too_much {
            self.refuse_modern(slot, detail);
        }
        match next {
            Next::Never(reason) => self.refuse_waiting(slot, reason, detail),
            Next::OnDemand if self.is_waited_for(slot) => self.start(slot),
            Next::OnDemand | Next::At(_) => {}
        }
        // Nothing of the process is left that a client of the other era could not use.
        if self.slot(slot).users.is_empty() && !self.is_waited_for(slot) {
            self.slot_mut(slot).era = None;
        }
        self.expire_held(slot);
    }

    /// A server is in order: what waited for it goes on.
    pub(super) fn on_ready(&mut self, slot: SlotId) {
        let place = self.slot_mut(slot);
        place.phase = Phase::Ready;
        place.starts += 1;
        let is_restart = place.starts > 1;
        let is_legacy = place.era == Some(Era::Legacy);
        self.outs.push_back(Out::Ready(slot));
        if is_legacy {
            self.resubscribe(slot);
            self.sync_level(slot);
            if is_restart {
                self.announce_changes(slot);
            }
            self.greet_all(slot);
        } else {
            self.listen_again(slot);
        }
        self.release(slot);
    }

    /// A server turned out not to be of the era that was tried on it.
    pub(super) fn undecide(&mut self, slot: SlotId) {
        let place = self.slot_mut(slot);
        place.era = None;
        if slot == SlotId::Second {
            place.phase = Phase::Ending;
            self.outs.push_back(Out::Unneeded(slot));
        }
    }

    /// Gives up what has waited too long for a server that is down.
    pub(super) fn expire_held(&mut self, slot: SlotId) {
        if !matches!(self.slot(slot).phase, Phase::Down { .. }) {
            return;
        }
        let (now, reason) = (self.now, self.down(slot));
        let detail = self.slot(slot).last_end.clone();
        let detail = detail.as_deref();
        while let Some(held) = self.slot_mut(slot).held.pop_due(now) {
            if let Some(wire) = held.wire {
                self.refuse_call(wire, reason, detail);
            }
        }
        while let Some((&wire, _)) =
            self.slot(slot).greeting.first_key_value().filter(|(_, until)| **until <= now)
        {
            self.slot_mut(slot).greeting.remove(&wire);
            self.refuse_call(wire, reason, detail);
        }
    }

    fn is_waited_for(&self, slot: SlotId) -> bool {
        let slot = self.slot(slot);
        !slot.held.is_empty() || !slot.greeting.is_empty()
    }

    fn refuse_waiting(&mut self, slot: SlotId, reason: Reason, detail: Option<&str>) {
        while let Some(held) = self.slot_mut(slot).held.pop() {
            if let Some(wire) = held.wire {
                self.refuse_call(wire, reason, detail);
            }
        }
        while let Some((wire, _)) = self.slot_mut(slot).greeting.pop_first() {
            self.refuse_call(wire, reason, detail);
        }
    }

    /// Refuses what modern clients want of a server that may not be one: the next client decides what it is.
    fn refuse_modern(&mut self, slot: SlotId, detail: Option<&str>) {
        for wire in self.calls.of_slot(slot) {
            let Some(call) = self.calls.find(wire) else { continue };
            let client = call.owner.as_ref().and_then(|owner| self.clients.get(owner.client));
            let is_meant = matches!(call.what, What::Request | What::Discover | What::Listen { .. });
            if !is_meant || client.is_none_or(|client| client.era != Some(Era::Modern)) {
                continue;
            }
            let reason = if call.stage == Stage::Held { self.down(slot) } else { Reason::ServerGone };
            self.slot_mut(slot).forget(wire);
            self.refuse_call(wire, reason, detail);
        }
    }

    /// Opens anew what clients listen to: the server was started again.
    fn listen_again(&mut self, slot: SlotId) {
        let again: Vec<(WireId, _, bool)> = self
            .calls
            .iter()
            .filter(|(_, call)| call.slot == slot && call.stage == Stage::Lost)
            .filter_map(|(wire, call)| match &call.what {
                What::Listen { packet, .. } => Some((wire, packet.clone(), call.token.is_some())),
                _ => None,
            })
            .collect();
        for (wire, packet, has_token) in again {
            self.calls.update(wire, |call| call.stage = Stage::Sent);
            self.tell_child(slot, packet, edits_up(wire, has_token));
        }
    }

    /// Sends what was held, in the order in which it came.
    fn release(&mut self, slot: SlotId) {
        while self.slot(slot).is_ready() {
            let Some(held) = self.slot_mut(slot).held.pop() else { break };
            match held.wire {
                Some(wire) => {
                    let class = mcp::from_client(&held.packet.method().unwrap_or_default(), true);
                    self.dispatch(wire, class, held.packet);
                }
                None => self.tell_child(slot, held.packet, crate::message::Edits::none()),
            }
        }
    }
}
