//! Requests of servers that clients were asked.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::slot::SlotId;
use crate::idmap::{Growing, IdMap, WireId};
use crate::jsonrpc::{IdKey, Token};
use crate::{Instant, Port};

/// A request of a server that a client was asked.
#[derive(Debug)]
pub(super) struct Ask {
    pub slot: SlotId,
    pub client: Port,
    /// The server's id as spelled.
    pub id: Token,
    pub key: IdKey,
    pub due: Option<Instant>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Asks {
    map: IdMap<Growing<Ask>>,
    by_id: BTreeMap<(SlotId, IdKey), WireId>,
}

impl Asks {
    /// Adds one, unless there are too many.
    pub(super) fn add(&mut self, ask: Ask) -> Option<WireId> {
        let by_id = (ask.slot, ask.key.clone());
        let wire = self.map.try_insert(ask).ok()?;
        self.by_id.insert(by_id, wire);
        Some(wire)
    }

    pub(super) fn find(&self, wire: WireId) -> Option<&Ask> {
        self.map.get(wire)
    }

    /// Returns whether this server has a request with this id in flight.
    pub(super) fn is_known(&self, slot: SlotId, key: &IdKey) -> bool {
        self.by_id(slot, key.clone()).is_some()
    }

    pub(super) fn by_id(&self, slot: SlotId, key: IdKey) -> Option<WireId> {
        self.by_id.get(&(slot, key)).copied()
    }

    /// Returns those of one server.
    pub(super) fn of_slot(&self, slot: SlotId) -> Vec<WireId> {
        self.map.iter().filter(|(_, ask)| ask.slot == slot).map(|(wire, _)| wire).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn take(&mut self, wire: WireId) -> Option<Ask> {
        let ask = self.map.take(wire)?;
        self.by_id.remove(&(ask.slot, ask.key.clone()));
        Some(ask)
    }
}
