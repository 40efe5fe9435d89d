//! What is known of one server, across its restarts.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use bytes::Bytes;

use super::waiting::Waiting;
use crate::idmap::WireId;
use crate::jsonrpc::Message;
use crate::mcp::{Era, Level, Revision};
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
    /// How it ended the last time, for those who wait for it in vain.
    pub last_end: Option<String>,
    /// Clients' handshakes that wait for ours, in the order in which they came, and until when.
    pub greeting: BTreeMap<WireId, Instant>,
    pub held: Waiting,
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
            last_end: None,
            greeting: BTreeMap::new(),
            held: Waiting::default(),
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

    /// Forgets a request that waits.
    pub(super) fn forget(&mut self, wire: WireId) {
        self.held.forget(wire);
        self.greeting.remove(&wire);
    }

    /// Returns when the first of those that wait for a server that is down is given up.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        let Phase::Down { .. } = self.phase else { return None };
        let held = self.held.next_due();
        let greeting = self.greeting.first_key_value().map(|(_, until)| *until);
        [held, greeting].into_iter().flatten().min()
    }
}
