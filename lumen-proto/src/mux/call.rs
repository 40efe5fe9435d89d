//! Requests in flight: whose they are, what their answers mean, and when they are due.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::dues::{Due, Dues};
use super::slot::SlotId;
use crate::idmap::{Growing, IdMap, WireId};
use crate::jsonrpc::{IdKey, Token};
use crate::message::Packet;
use crate::{Instant, Port};

/// From so many on, waiters for one answer are looked at for those that wait no more.
const MANY_WAITERS: usize = 1024;

/// One request.
#[derive(Debug)]
pub(super) struct Call {
    pub slot: SlotId,
    /// Who gets the answer; `None` if it is ours.
    pub owner: Option<Owner>,
    pub what: What,
    pub stage: Stage,
    /// Its method, for those who want to know what is going on.
    pub method: Token,
    pub since: Instant,
    /// When it is given up.
    pub due: Option<Instant>,
    /// No progress extends it beyond this.
    pub latest: Option<Instant>,
    /// The owner's progress token as spelled.
    pub token: Option<Token>,
    /// It asked for log messages, which do not say what they belong to.
    pub wants_log: bool,
    /// Where its answer is gathered, if it came in a batch.
    pub batch: Option<u64>,
}

impl Call {
    /// Returns whether it is a subscription, which ends when its owner says so.
    pub(super) const fn is_listen(&self) -> bool {
        matches!(self.what, What::Listen { .. })
    }
}

/// Who asked, and by which id.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub client: Port,
    /// The id as spelled.
    pub id: Token,
    pub key: IdKey,
}

/// What the answer means to us.
#[derive(Debug)]
pub(super) enum What {
    /// Nothing: it goes to the owner.
    Request,
    /// Whether the server is a modern one.
    Discover,
    /// The end of a subscription. The request is kept: after a restart it is sent again.
    Listen { packet: Packet, acknowledged: bool },
    /// Our handshake.
    Initialize,
    /// The answer for all who wait for a subscription to this resource.
    Subscribe { uri: String, waiters: Vec<WireId> },
    /// The answer for all who wait for a log level.
    Level { waiters: Vec<WireId> },
    /// Waits for our handshake.
    Greeting,
    /// Waits for the answer to another request of ours.
    Waiter,
    /// It is put to the owner of the hub.
    Own,
    /// Nothing, and nobody gets it.
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Waits for the server, or for another answer.
    Held,
    /// The server has it.
    Sent,
    /// The server that had it is gone. The next one is sent it when it is ready, and knows nothing of it before.
    Lost,
}

/// All requests in flight.
#[derive(Debug, Default)]
pub(super) struct Calls {
    map: IdMap<Growing<Call>>,
    dues: Dues,
    /// Calls that a server works on and that asked for log messages.
    logging: BTreeSet<(SlotId, WireId)>,
}

impl Calls {
    /// Adds a call, unless there are too many.
    pub(super) fn add(&mut self, call: Call) -> Option<WireId> {
        let due = call.due;
        let wire = self.map.try_insert(call).ok()?;
        if let Some(call) = self.map.get(wire) {
            note(&mut self.logging, wire, call, true);
        }
        if let Some(due) = due {
            self.dues.insert(due, Due::Call(wire));
        }
        Some(wire)
    }

    /// Takes a call out: whatever else comes for it finds nothing.
    pub(super) fn take(&mut self, wire: WireId) -> Option<Call> {
        let call = self.map.take(wire)?;
        note(&mut self.logging, wire, &call, false);
        if let Some(due) = call.due {
            self.dues.remove(due, Due::Call(wire));
        }
        Some(call)
    }

    pub(super) fn find(&self, wire: WireId) -> Option<&Call> {
        self.map.get(wire)
    }

    /// Changes a call.
    pub(super) fn update(&mut self, wire: WireId, change: impl FnOnce(&mut Call)) {
        let Some(call) = self.map.get_mut(wire) else { return };
        if let Some(old) = call.due {
            self.dues.remove(old, Due::Call(wire));
        }
        note(&mut self.logging, wire, call, false);
        change(call);
        note(&mut self.logging, wire, call, true);
        if let Some(new) = call.due {
            self.dues.insert(new, Due::Call(wire));
        }
    }

    /// Gives a call more time, because it is known to go on.
    pub(super) fn extend(&mut self, wire: WireId, until: Instant) {
        self.update(wire, |call| {
            if let (Some(due), Some(latest)) = (call.due, call.latest) {
                call.due = Some(until.min(latest).max(due));
            }
        });
    }

    /// Adds a waiter for the answer to a request of ours.
    pub(super) fn add_waiter(&mut self, wire: WireId, waiter: WireId) {
        if let Some(What::Subscribe { waiters, .. } | What::Level { waiters, .. }) =
            self.map.get_mut(wire).map(|call| &mut call.what)
        {
            waiters.push(waiter);
            if waiters.len() < MANY_WAITERS || !waiters.len().is_power_of_two() {
                return;
            }
            // Who cancels does not look for itself here.
            let mut all = core::mem::take(waiters);
            all.retain(|waiter| self.map.get(*waiter).is_some());
            if let Some(What::Subscribe { waiters, .. } | What::Level { waiters }) =
                self.map.get_mut(wire).map(|call| &mut call.what)
            {
                *waiters = all;
            }
        }
    }

    /// Notes that a subscription was acknowledged; returns whether that is news.
    pub(super) fn acknowledge(&mut self, wire: WireId) -> bool {
        match self.map.get_mut(wire).map(|call| &mut call.what) {
            Some(What::Listen { acknowledged, .. }) => !core::mem::replace(acknowledged, true),
            _ => false,
        }
    }

    pub(super) fn set_due(&mut self, due: Due, at: Instant) {
        self.dues.insert(at, due);
    }

    pub(super) fn clear_due(&mut self, due: Due, at: Instant) {
        self.dues.remove(at, due);
    }

    /// Returns the next deadline.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.dues.first().map(|(at, _)| at)
    }

    /// Returns what is due, and forgets the deadline.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        let (at, due) = self.dues.first().filter(|(at, _)| *at <= now)?;
        self.dues.remove(at, due);
        if let Due::Call(wire) = due
            && let Some(call) = self.map.get_mut(wire)
        {
            call.due = None;
        }
        Some(due)
    }

    /// Returns the calls of one server, in the order in which they came.
    pub(super) fn of_slot(&self, slot: SlotId) -> Vec<WireId> {
        self.map.iter().filter(|(_, call)| call.slot == slot).map(|(wire, _)| wire).collect()
    }

    /// Returns the one client that this server works for, if there is exactly one: what the server asks meanwhile is most
    /// likely about that. Looked for when a server asks, which is seldom, instead of counted with every request.
    pub(super) fn sole_client(&self, slot: SlotId) -> Option<Port> {
        let at_work = |call: &&Call| {
            call.slot == slot
                && call.stage == Stage::Sent
                && matches!(call.what, What::Request | What::Discover)
        };
        let calls = self.map.iter().map(|(_, call)| call).filter(at_work);
        let mut clients = calls.filter_map(|call| Some(call.owner.as_ref()?.client));
        let first = clients.next()?;
        clients.all(|client| client == first).then_some(first)
    }

    /// Returns the owner of the one call that asked this server for log messages, if there is exactly one.
    pub(super) fn sole_logger(&self, slot: SlotId) -> Option<Port> {
        let mut calls = self.logging.range((slot, WireId::FIRST)..).take_while(|(of, _)| *of == slot);
        let (_, wire) = calls.next()?;
        if calls.next().is_some() {
            return None;
        }
        self.map.get(*wire)?.owner.as_ref().map(|owner| owner.client)
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (WireId, &Call)> {
        self.map.iter()
    }
}

/// Notes a call that comes or goes, while the server works on it.
fn note(logging: &mut BTreeSet<(SlotId, WireId)>, wire: WireId, call: &Call, comes: bool) {
    if call.stage == Stage::Sent && call.wants_log {
        if comes {
            logging.insert((call.slot, wire));
        } else {
            logging.remove(&(call.slot, wire));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(what: What) -> Call {
        Call {
            slot: SlotId::First,
            owner: None,
            what,
            stage: Stage::Held,
            method: "".into(),
            since: Instant::ZERO,
            due: None,
            latest: None,
            token: None,
            wants_log: false,
            batch: None,
        }
    }

    #[test]
    fn who_waits_and_cancels_again_and_again_leaves_little_behind() {
        let mut calls = Calls::default();
        let asking = calls.add(call(What::Level { waiters: Vec::new() })).unwrap();
        let first = calls.add(call(What::Waiter)).unwrap();
        calls.add_waiter(asking, first);
        for _ in 0..10 * MANY_WAITERS {
            let waiter = calls.add(call(What::Waiter)).unwrap();
            calls.add_waiter(asking, waiter);
            calls.take(waiter);
        }
        let Some(What::Level { waiters }) = calls.find(asking).map(|call| &call.what) else { panic!() };
        assert!(waiters.contains(&first) && waiters.len() <= MANY_WAITERS, "{}", waiters.len());
    }
}
