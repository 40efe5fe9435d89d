//! Messages that wait until a server is ready.

use alloc::collections::BTreeMap;

use crate::Instant;
use crate::idmap::WireId;
use crate::message::Packet;

/// A message that waits.
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

/// All that wait for one server, in the order in which they came. One that is taken out of their midst costs the
/// logarithm of how many there are: a client may leave with thousands.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: BTreeMap<u64, Held>,
    places: BTreeMap<WireId, u64>,
    last: u64,
    bytes: usize,
}

impl Waiting {
    pub(super) fn push(&mut self, held: Held) {
        self.last += 1;
        self.bytes += held.cost();
        if let Some(wire) = held.wire {
            self.places.insert(wire, self.last);
        }
        self.queue.insert(self.last, held);
    }

    pub(super) fn pop(&mut self) -> Option<Held> {
        let (_, held) = self.queue.pop_first()?;
        self.bytes -= held.cost();
        if let Some(wire) = held.wire {
            self.places.remove(&wire);
        }
        Some(held)
    }

    /// Takes the first out if it has waited long enough.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Held> {
        self.next_due().filter(|until| *until <= now)?;
        self.pop()
    }

    /// Forgets a request.
    pub(super) fn forget(&mut self, wire: WireId) {
        let place = self.places.remove(&wire);
        if let Some(held) = place.and_then(|place| self.queue.remove(&place)) {
            self.bytes -= held.cost();
        }
    }

    /// Returns until when the first may wait.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.first_key_value().map(|(_, held)| held.until)
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::Message;

    fn held(wire: Option<WireId>, until: u64) -> Held {
        let packet = Message::copy_from(br#"{"jsonrpc":"2.0","method":"x"}"#).unwrap().into();
        Held { wire, packet, until: Instant::from_millis(until) }
    }

    #[test]
    fn what_is_forgotten_leaves_nothing_and_the_rest_in_order() {
        let mut waiting = Waiting::default();
        let [one, two] = [1, 2].map(|n: u8| WireId::from_token(&[b'0' + n]).unwrap());
        waiting.push(held(Some(one), 1));
        let each = waiting.bytes();
        waiting.push(held(None, 2));
        waiting.push(held(Some(two), 3));
        assert_eq!(waiting.bytes(), 3 * each);
        waiting.forget(one);
        waiting.forget(one);
        assert_eq!(waiting.next_due(), Some(Instant::from_millis(2)));
        assert!(waiting.pop_due(Instant::from_millis(1)).is_none());
        assert!(waiting.pop_due(Instant::from_millis(2)).is_some_and(|held| held.wire.is_none()));
        assert_eq!(waiting.pop().unwrap().wire, Some(two));
        waiting.forget(two);
        assert!(waiting.is_empty() && waiting.places.is_empty());
        assert_eq!(waiting.bytes(), 0);
    }
}
