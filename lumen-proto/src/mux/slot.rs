//! What is known of one server, across its restarts.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;

use bytes::Bytes;

use crate::idmap::WireId;
use crate::jsonrpc::Message;
use crate::mcp::{Era, Level, Revision};
use crate::message::Packet;
use crate::{Instant, Port, Reason};

/// The place of one server. There are two, because one process serves one era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlotId {
    /// Whatever the first client uses.
    First,
    /// The other era.
    Second,
}

impl SlotId {
    /// Both.
    pub const ALL: [Self; 2] = [Self::First, Self::Second];

    /// Returns 0 or 1.
    pub const fn index(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }
}

/// How far the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nobody has needed it yet.
    Idle,
    /// It is being started.
    Starting,
    /// Our handshake, with this id, is not answered yet.
    Greeting(WireId),
    /// Requests go to it.
    Ready,
    /// It is being ended, to be started again when somebody needs it.
    Ending,
    /// It will be started again then.
    Down { until: Instant },
    /// It will not be started again.
    Gone(Reason),
}

/// A message that waits until the server is ready.
#[derive(Debug)]
pub(super) struct Held {
    /// The request; a notification has none.
    pub wire: Option<WireId>,
    pub packet: Packet,
    pub until: Instant,
}

impl Held {
    /// Returns the bytes it takes, those around the message included: there may be many small ones.
    fn cost(&self) -> usize {
        self.packet.len() + size_of::<Self>()
    }
}

/// What the server said when it was greeted.
#[derive(Debug)]
pub(super) struct Hello {
    /// Its whole answer.
    pub answer: Message,
    pub revision: Option<Revision>,
}

/// A resource that somebody is subscribed to.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Its URI as a JSON token.
    pub token: Bytes,
    pub clients: BTreeSet<Port>,
    /// Our request for it, while it is not answered.
    pub asking: Option<WireId>,
}

/// One server.
#[derive(Debug)]
pub(super) struct Slot {
    pub phase: Phase,
    /// What it serves; undecided until a client opens in one way or the other.
    pub era: Option<Era>,
    /// How often it became ready.
    pub starts: u64,
    /// It has answered something since it was started.
    pub has_answered: bool,
    pub hello: Option<Hello>,
    /// Clients that wait for the handshake, in the order in which they came.
    pub greeting: VecDeque<(WireId, Instant)>,
    pub held: VecDeque<Held>,
    pub held_bytes: usize,
    /// The level that it was told.
    pub level: Option<Level>,
    /// Our request for that, while it is not answered.
    pub level_asking: Option<WireId>,
    pub subscriptions: BTreeMap<String, Subscription>,
    pub users: BTreeSet<Port>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            era: None,
            starts: 0,
            has_answered: false,
            hello: None,
            greeting: VecDeque::new(),
            held: VecDeque::new(),
            held_bytes: 0,
            level: None,
            level_asking: None,
            subscriptions: BTreeMap::new(),
            users: BTreeSet::new(),
        }
    }
}

impl Slot {
    pub(super) fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    pub(super) fn push_held(&mut self, held: Held) {
        self.held_bytes += held.cost();
        self.held.push_back(held);
    }

    pub(super) fn pop_held(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.held_bytes -= held.cost();
        Some(held)
    }

    /// Forgets a held request.
    pub(super) fn drop_held(&mut self, wire: WireId) {
        let bytes = &mut self.held_bytes;
        self.held.retain(|held| {
            let stays = held.wire != Some(wire);
            *bytes -= if stays { 0 } else { held.cost() };
            stays
        });
    }

    /// Returns when the first of those that wait for a server that is down is given up.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let Phase::Down { .. } = self.phase else { return None };
        let held = self.held.front().map(|held| held.until);
        let greeting = self.greeting.front().map(|(_, until)| *until);
        [held, greeting].into_iter().flatten().min()
    }
}
