//! When what is in flight is given up.

use alloc::collections::{BTreeSet, VecDeque};

use crate::Instant;
use crate::idmap::WireId;

/// Entries that are kept although they are void.
const SPARE: usize = 1024;

/// Whose deadline it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Call(WireId),
    /// A request of a server to a client.
    Ask(WireId),
}

/// Deadlines in their order.
///
/// Nearly every request gets the same time, so its deadline is the last of all, and nearly every one is answered in its
/// turn: a queue serves these, and a tree the rest.
///
/// # Bounds
/// At most twice as many entries as deadlines, and [`SPARE`].
#[derive(Debug, Default)]
pub(super) struct Dues {
    /// Sorted; the first is not void.
    queue: VecDeque<Entry>,
    /// How many of these are not void.
    live: usize,
    others: BTreeSet<(Instant, Due)>,
}

#[derive(Debug)]
struct Entry {
    at: (Instant, Due),
    is_void: bool,
}

impl Dues {
    pub(super) fn insert(&mut self, at: Instant, due: Due) {
        let at = (at, due);
        if self.queue.back().is_none_or(|last| last.at < at) {
            self.queue.push_back(Entry { at, is_void: false });
            self.live += 1;
        } else {
            self.others.insert(at);
        }
    }

    pub(super) fn remove(&mut self, at: Instant, due: Due) {
        let at = (at, due);
        if self.others.remove(&at) {
            return;
        }
        let is_first = self.queue.front().is_some_and(|first| first.at == at);
        let place = if is_first { Ok(0) } else { self.queue.binary_search_by_key(&at, |entry| entry.at) };
        let entry = place.ok().and_then(|place| self.queue.get_mut(place));
        if let Some(entry) = entry.filter(|entry| !entry.is_void) {
            entry.is_void = true;
            self.live -= 1;
            self.tidy();
        }
    }

    /// Returns the first.
    pub(super) fn first(&self) -> Option<(Instant, Due)> {
        let queued = self.queue.front().map(|entry| entry.at);
        [queued, self.others.first().copied()].into_iter().flatten().min()
    }

    fn tidy(&mut self) {
        while self.queue.front().is_some_and(|first| first.is_void) {
            self.queue.pop_front();
        }
        if self.queue.len() > 2 * self.live + SPARE {
            self.queue.retain(|entry| !entry.is_void);
        }
        if self.queue.capacity() > 4 * (self.live + SPARE) {
            self.queue.shrink_to(2 * (self.live + SPARE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idmap::{Growing, IdMap};

    #[test]
    fn they_come_in_their_order_and_leave_little_behind() {
        let mut ids = IdMap::new(Growing::with_max_len(usize::MAX));
        let (mut dues, mut tree) = (Dues::default(), BTreeSet::new());
        let mut seed = 1_u64;
        for step in 0..50_000_u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = seed >> 33;
            if random.is_multiple_of(2) {
                // Now and then one is due before others that came before it.
                let early = if random.is_multiple_of(32) { random % 500 } else { 0 };
                let at = Instant::from_millis((1_000 + step / 3).saturating_sub(early));
                let wire = ids.try_insert(()).unwrap();
                let due = if random.is_multiple_of(7) { Due::Ask(wire) } else { Due::Call(wire) };
                dues.insert(at, due);
                tree.insert((at, due));
            } else {
                // Mostly the first, or one further back; the very first of all stays for long.
                let skipped = if random.is_multiple_of(8) { random % 64 } else { 1 };
                let taken = tree.iter().nth(usize::try_from(skipped).unwrap()).copied();
                if let Some((at, due)) = taken {
                    dues.remove(at, due);
                    dues.remove(at, due);
                    tree.remove(&(at, due));
                }
            }
            assert_eq!(dues.first(), tree.first().copied());
            assert!(dues.queue.len() <= 2 * tree.len() + SPARE);
        }
        while let Some((at, due)) = dues.first() {
            assert_eq!(tree.pop_first(), Some((at, due)));
            dues.remove(at, due);
        }
        assert!(tree.is_empty() && dues.queue.is_empty() && dues.others.is_empty() && dues.live == 0);
    }
}
