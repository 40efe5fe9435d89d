//! What clients ask the hub itself, and how things stand.

use super::call::{Call, Owner, Stage, What};
use super::{Mux, Out, SlotId, own};
use crate::idmap::WireId;
use crate::jsonrpc::{IdKey, Token};
use crate::message::Packet;
use crate::{Instant, Port, Reason, limits};

/// The method that asks how things stand.
pub const STATUS: &str = "lumen/status";

/// One request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight<'a> {
    /// Its id on the way to the server.
    pub wire: WireId,
    /// Who asked; `None` if it is a request of ours.
    pub client: Option<Port>,
    /// Whom.
    pub slot: SlotId,
    /// What; the first characters of it, empty for some of ours.
    pub method: &'a str,
    /// When.
    pub since: Instant,
}

impl Mux {
    /// Takes a request to the hub itself. It needs no handshake and decides no era.
    pub(super) fn on_own(
        &mut self,
        client: Port,
        id: Token,
        key: IdKey,
        packet: &Packet,
        batch: Option<u64>,
    ) {
        let Some(known) = self.clients.get(client) else { return };
        let refused = if !packet.method_is(STATUS) {
            Some(Reason::NoMethod)
        } else if known.calls.contains_key(&key) {
            Some(Reason::IdInUse)
        } else if known.calls.len() >= limits::MAX_CLIENT_CALLS {
            Some(Reason::Busy)
        } else {
            None
        };
        if let Some(reason) = refused {
            return self.refuse_request(client, &id, batch, reason);
        }
        let due = self.now + limits::OWN_TIMEOUT;
        let call = Call {
            slot: SlotId::First,
            owner: Some(Owner { client, id: id.clone(), key: key.clone() }),
            what: What::Own,
            stage: Stage::Held,
            method: STATUS.into(),
            since: self.now,
            due: Some(due),
            latest: Some(due),
            token: None,
            wants_log: false,
            batch,
        };
        let Some(wire) = self.calls.add(call) else {
            return self.refuse_request(client, &id, batch, Reason::Busy);
        };
        if let Some(client) = self.clients.get_mut(client) {
            client.calls.insert(key, wire);
        }
        self.outs.push_back(Out::Asked { wire, client });
    }

    /// Answers such a request with a JSON text; does nothing if nobody waits for it any more. A text that is no JSON is
    /// refused as if it could not be had.
    pub fn answer_own(&mut self, now: Instant, wire: WireId, result: &str) {
        self.advance(now);
        if self.calls.find(wire).is_none_or(|call| !matches!(call.what, What::Own)) {
            return;
        }
        let Some(call) = self.calls.take(wire) else { return };
        let id = call.owner.as_ref().map(|owner| owner.id.clone()).unwrap_or_default();
        match own::result(&id, result) {
            Some(packet) => self.answer(call, packet),
            None => self.refuse(call, Reason::NoAnswer, None),
        }
    }

    /// Returns all requests in flight, the oldest first.
    pub fn calls(&self) -> impl Iterator<Item = InFlight<'_>> {
        self.calls.iter().map(|(wire, call)| InFlight {
            wire,
            client: call.owner.as_ref().map(|owner| owner.client),
            slot: call.slot,
            method: core::str::from_utf8(&call.method).unwrap_or_default(),
            since: call.since,
        })
    }
}
