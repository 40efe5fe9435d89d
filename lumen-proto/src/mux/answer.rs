//! Answers on their way to whoever asked.

use bytes::Bytes;

use super::call::{Call, Owner, Stage, What};
use super::{ID, Mux, Out, Side, SlotId, own};
use crate::idmap::WireId;
use crate::jsonrpc::{IdKey, reply};
use crate::mcp::{Era, paths};
use crate::message::{Edits, Packet, Path};
use crate::{Port, Reason};

impl Mux {
    /// Takes an answer of a server.
    pub(super) fn on_answer(&mut self, slot: SlotId, packet: Packet) {
        let id = packet.id();
        let wire = id.as_deref().and_then(WireId::from_token);
        let call = wire.and_then(|wire| self.take_sent(slot, wire));
        let (Some(wire), Some(call)) = (wire, call) else {
            let id = Bytes::copy_from_slice(id.as_deref().unwrap_or(b"null"));
            return self.outs.push_back(Out::Unasked { from: Side::Child(slot), id });
        };
        drop(id);
        self.slot_mut(slot).has_answered = true;
        match &call.what {
            What::Initialize => self.on_greeted(slot, &packet),
            What::Discover => {
                self.on_discovered(slot, &packet);
                self.answer(call, packet);
            }
            What::Subscribe { .. } => self.on_subscribed(slot, wire, call, &packet),
            What::Level { .. } => self.on_level_set(slot, wire, call, &packet),
            What::Request | What::Listen { .. } => self.answer(call, packet),
            What::Greeting | What::Waiter | What::Own | What::Nobody => {}
        }
    }

    /// Takes an answer that could not be read, of which only the id is known.
    pub fn handle_child_broken(&mut self, now: crate::Instant, slot: SlotId, id: &[u8], reason: Reason) {
        self.advance(now);
        let Some(wire) = WireId::from_token(id) else { return };
        if let Some(call) = self.take_sent(slot, wire) {
            self.fail(slot, wire, call, reason, Some("the server's answer"));
        }
    }

    /// Takes a request that the server cannot take, as it turned out.
    pub fn handle_child_unsent(&mut self, now: crate::Instant, slot: SlotId, edits: &Edits, reason: Reason) {
        self.advance(now);
        let Some(wire) = edits.token(ID).and_then(|token| WireId::from_token(token)) else { return };
        if let Some(call) = self.take_sent(slot, wire) {
            self.fail(slot, wire, call, reason, None);
        }
    }

    /// Gives an answer to the owner of a call that has been taken out.
    pub(super) fn answer(&mut self, call: Call, packet: Packet) {
        let Some(owner) = call.owner else { return };
        self.forget(&owner, &call.what);
        let places: &[Path] = match call.what {
            What::Listen { .. } => &[ID, paths::ENDED_SUBSCRIPTION],
            _ => &[ID],
        };
        let Some(batch) = call.batch else {
            return self.tell_client(owner.client, packet, Edits::put(places, owner.id));
        };
        match packet.edited(&Edits::put(places, owner.id.clone())) {
            Ok(message) => self.gather(batch, Some(message.bytes())),
            Err(reason) => self.gather(batch, Some(&reply::error(Some(&owner.id), &reason, None))),
        }
    }

    /// Ends a call with an error of ours, and with it all who wait for its answer.
    pub(super) fn fail(
        &mut self,
        slot: SlotId,
        wire: WireId,
        call: Call,
        reason: Reason,
        detail: Option<&str>,
    ) {
        match call.what {
            What::Initialize => self.on_refused(slot, None, reason),
            What::Subscribe { uri, waiters } => {
                self.on_subscribing_failed(slot, wire, &uri, &waiters);
                for waiter in waiters {
                    self.refuse_call(waiter, reason, detail);
                }
            }
            What::Level { waiters } => {
                self.on_level_failed(slot, wire);
                for waiter in waiters {
                    self.refuse_call(waiter, reason, detail);
                }
            }
            _ => self.refuse(call, reason, detail),
        }
    }

    /// Ends a call of a client with an error.
    pub(super) fn refuse_call(&mut self, wire: WireId, reason: Reason, detail: Option<&str>) {
        if let Some(call) = self.calls.take(wire) {
            self.refuse(call, reason, detail);
        }
    }

    pub(super) fn refuse(&mut self, call: Call, reason: Reason, detail: Option<&str>) {
        let Some(owner) = call.owner else { return };
        self.forget(&owner, &call.what);
        match call.batch {
            Some(batch) => self.gather(batch, Some(&reply::error(Some(&owner.id), &reason, detail))),
            None => {
                if let Some(packet) = own::error(Some(&owner.id), &reason, detail) {
                    self.tell_client(owner.client, packet, Edits::none());
                }
            }
        }
    }

    /// Refuses a request that was never taken.
    pub(super) fn refuse_request(&mut self, client: Port, id: &[u8], batch: Option<u64>, reason: Reason) {
        match batch {
            Some(batch) => self.gather(batch, Some(&reply::error(Some(id), &reason, None))),
            None => self.refuse_client(client, Some(id), reason),
        }
    }

    /// Gives all who wait for the answer to a request of ours that answer, each under its own id.
    pub(super) fn answer_waiters(&mut self, waiters: impl IntoIterator<Item = WireId>, packet: &Packet) {
        for waiter in waiters {
            if let Some(call) = self.calls.take(waiter) {
                self.answer(call, packet.clone());
            }
        }
    }

    /// Answers a request without asking anybody.
    pub(super) fn answer_empty(&mut self, wire: WireId) {
        let Some(call) = self.calls.take(wire) else { return };
        let id = call.owner.as_ref().map(|owner| owner.id.clone()).unwrap_or_default();
        if let Some(packet) = own::empty_result(&id) {
            self.answer(call, packet);
        }
    }

    /// Takes a call out that ends without an answer: it was cancelled, or its client is gone.
    pub(super) fn drop_call(&mut self, wire: WireId) -> Option<Call> {
        let call = self.calls.take(wire)?;
        if let Some(owner) = &call.owner {
            self.forget(owner, &call.what);
        }
        if let Some(batch) = call.batch {
            self.gather(batch, None);
        }
        if call.stage == Stage::Held {
            self.slot_mut(call.slot).forget(wire);
        }
        Some(call)
    }

    fn take_sent(&mut self, slot: SlotId, wire: WireId) -> Option<Call> {
        let call = self.calls.find(wire)?;
        if call.slot != slot || call.stage != Stage::Sent {
            return None;
        }
        self.calls.take(wire)
    }

    fn gather(&mut self, batch: u64, answer: Option<&[u8]>) {
        if let Some((client, message)) = self.batches.settle(batch, answer) {
            self.tell_client(client, Packet::from(message), Edits::none());
        }
    }

    fn forget(&mut self, owner: &Owner, what: &What) {
        let Some(client) = self.clients.get_mut(owner.client) else { return };
        client.calls.remove(&owner.key);
        if let What::Listen { packet, .. } = what {
            client.kept = client.kept.saturating_sub(packet.len());
        }
    }

    /// Learns from the answer to a `server/discover` whether the server is a modern one.
    fn on_discovered(&mut self, slot: SlotId, packet: &Packet) {
        let Some(code) = packet.token(&["error", "code"]) else { return };
        // These codes are the modern revision's own.
        let is_modern = core::str::from_utf8(&code)
            .ok()
            .and_then(|code| code.parse::<i32>().ok())
            .is_some_and(|code| (-32099..=-32020).contains(&code));
        let place = self.slot_mut(slot);
        if is_modern || place.era != Some(Era::Modern) {
            return;
        }
        self.not_modern = true;
        self.undecide(slot);
    }

    /// Returns the call that a client knows under this id.
    pub(super) fn call_of(&self, client: Port, id: &[u8]) -> Option<WireId> {
        let key = IdKey::from_token(id).ok()?;
        self.clients.get(client)?.calls.get(&key).copied()
    }
}
