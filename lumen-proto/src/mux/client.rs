//! What is known of one client.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use super::slot::SlotId;
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
