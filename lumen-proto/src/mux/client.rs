//! What is known of one client.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::slot::SlotId;
use crate::Port;
use crate::idmap::WireId;
use crate::jsonrpc::IdKey;
use crate::mcp::{Capability, Era, Level, Revision};
use crate::message::Packet;

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    /// How it uses MCP; a client that never said so has none.
    pub era: Option<Era>,
    /// The server it uses.
    pub slot: Option<SlotId>,
    /// It has been greeted: it may be told things.
    pub is_live: bool,
    /// It may still be asked something.
    pub can_reply: bool,
    /// There was no room for it: it may only ask how things stand.
    pub is_visitor: bool,
    /// Its `initialize`, if its session is its own.
    pub hello: Option<Packet>,
    /// It has said that it took note of the answer to that.
    pub is_initialized: bool,
    /// The revision it was greeted with.
    pub revision: Option<Revision>,
    pub capabilities: [bool; 3],
    pub level: Option<Level>,
    /// Its requests in flight.
    pub calls: BTreeMap<IdKey, WireId>,
    /// Requests of servers that it was asked.
    pub asks: BTreeSet<WireId>,
    /// Resources it is subscribed to.
    pub subscriptions: BTreeSet<String>,
    /// Bytes kept for it across restarts.
    pub kept: usize,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            era: None,
            slot: None,
            is_live: false,
            can_reply: true,
            is_visitor: false,
            hello: None,
            is_initialized: false,
            revision: None,
            capabilities: [false; 3],
            level: None,
            calls: BTreeMap::new(),
            asks: BTreeSet::new(),
            subscriptions: BTreeSet::new(),
            kept: 0,
        }
    }
}

/// All clients, each at the place that its port names.
///
/// # Bounds
/// A place for each client that was ever there at the same time, as ports are given out.
#[derive(Debug, Default)]
pub(super) struct Clients(Vec<Option<(Port, Client)>>);

impl Clients {
    /// Adds one, in place of who was there before.
    pub(super) fn insert(&mut self, port: Port, client: Client) {
        let at = place(port);
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        if let Some(place) = self.0.get_mut(at) {
            *place = Some((port, client));
        }
    }

    pub(super) fn remove(&mut self, port: Port) -> Option<Client> {
        let place = self.0.get_mut(place(port))?;
        place.take_if(|(there, _)| *there == port).map(|(_, client)| client)
    }

    pub(super) fn get(&self, port: Port) -> Option<&Client> {
        self.0.get(place(port))?.as_ref().filter(|(there, _)| *there == port).map(|(_, client)| client)
    }

    pub(super) fn get_mut(&mut self, port: Port) -> Option<&mut Client> {
        self.0.get_mut(place(port))?.as_mut().filter(|(there, _)| *there == port).map(|(_, client)| client)
    }
}

/// Places are 32 bits, and so is the smallest address space that this is made for.
const fn place(port: Port) -> usize {
    port.index() as usize
}

impl Client {
    /// Reads what its `initialize` declares.
    pub(super) fn declare(&mut self, packet: &Packet) {
        self.capabilities = Capability::ALL.map(|one| packet.has(&["params", "capabilities", one.as_str()]));
    }

    pub(super) fn can(&self, capability: Capability) -> bool {
        let declared = Capability::ALL.into_iter().zip(self.capabilities);
        declared.into_iter().any(|(known, declared)| known == capability && declared)
    }
}
