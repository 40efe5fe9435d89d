//! Where the entries are kept.

#[cfg(feature = "alloc")]
use alloc::collections::VecDeque;

use super::WireId;
#[cfg(feature = "alloc")]
use crate::limits::MAX_IN_FLIGHT;

/// Room for entries in the order of their ids. The id map is the same over every implementation.
pub trait Slots {
    /// What is kept for an id.
    type Entry;

    /// Adds an entry behind all others: `id` is greater than any before it.
    ///
    /// # Errors
    /// Gives the entry back if there is no room.
    fn push(&mut self, id: WireId, entry: Self::Entry) -> Result<(), Self::Entry>;

    /// Takes an entry out.
    fn remove(&mut self, id: WireId) -> Option<Self::Entry>;

    /// Returns an entry.
    fn find(&self, id: WireId) -> Option<&Self::Entry>;

    /// Returns an entry to be changed in place.
    fn find_mut(&mut self, id: WireId) -> Option<&mut Self::Entry>;

    /// Returns the entries with this id and greater ones, in the order of their ids.
    fn iter_from(&self, first: WireId) -> impl Iterator<Item = (WireId, &Self::Entry)>;

    /// Returns how many entries there are.
    fn len(&self) -> usize;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Room that grows and shrinks with what is in it. An access costs nothing as long as most entries are taken in about
/// the order in which they came, else the logarithm of how many there are.
///
/// # Bounds
/// As many entries as it was made for, else [`MAX_IN_FLIGHT`]; at most twice as many places as entries, and 1,024.
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct Growing<E> {
    /// In the order of their ids. A place stays empty until those before it are, or until too many are.
    places: VecDeque<(WireId, Option<E>)>,
    len: usize,
    max_len: usize,
}

/// Places that are kept although nothing is in them.
#[cfg(feature = "alloc")]
const SPARE: usize = 1024;

#[cfg(feature = "alloc")]
impl<E> Growing<E> {
    /// Makes room for `max_len` entries; takes no memory yet.
    pub const fn with_max_len(max_len: usize) -> Self {
        Self { places: VecDeque::new(), len: 0, max_len }
    }

    /// Returns where an id is, or would be.
    fn place(&self, id: WireId) -> Option<usize> {
        let (first, _) = self.places.front()?;
        // Ids follow each other, unless places were given up.
        let guess = usize::try_from(id.since(*first)?).ok()?;
        if self.places.get(guess).is_some_and(|(there, _)| *there == id) {
            return Some(guess);
        }
        self.places.binary_search_by_key(&id, |(there, _)| *there).ok()
    }

    fn tidy(&mut self) {
        while self.places.front().is_some_and(|(_, entry)| entry.is_none()) {
            self.places.pop_front();
        }
        if self.places.len() > 2 * self.len + SPARE {
            self.places.retain(|(_, entry)| entry.is_some());
        }
        if self.places.capacity() > 4 * (self.len + SPARE) {
            self.places.shrink_to(2 * (self.len + SPARE));
        }
    }
}

#[cfg(feature = "alloc")]
impl<E> Default for Growing<E> {
    fn default() -> Self {
        Self::with_max_len(MAX_IN_FLIGHT)
    }
}

#[cfg(feature = "alloc")]
impl<E> Slots for Growing<E> {
    type Entry = E;

    fn push(&mut self, id: WireId, entry: E) -> Result<(), E> {
        if self.len >= self.max_len {
            return Err(entry);
        }
        debug_assert!(self.places.back().is_none_or(|(last, _)| *last < id), "ids are pushed in order");
        self.places.push_back((id, Some(entry)));
        self.len += 1;
        Ok(())
    }

    fn remove(&mut self, id: WireId) -> Option<E> {
        let at = self.place(id)?;
        let entry = self.places.get_mut(at)?.1.take()?;
        self.len -= 1;
        self.tidy();
        Some(entry)
    }

    fn find(&self, id: WireId) -> Option<&E> {
        self.places.get(self.place(id)?)?.1.as_ref()
    }

    fn find_mut(&mut self, id: WireId) -> Option<&mut E> {
        let at = self.place(id)?;
        self.places.get_mut(at)?.1.as_mut()
    }

    fn iter_from(&self, first: WireId) -> impl Iterator<Item = (WireId, &E)> {
        let at = self.places.partition_point(|(id, _)| *id < first);
        self.places.range(at..).filter_map(|(id, entry)| Some((*id, entry.as_ref()?)))
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Ids only grow, so a vector to which entries are added at its end is sorted. Taking one out moves those behind it.
#[cfg(feature = "heapless")]
impl<E, const N: usize> Slots for heapless::Vec<(WireId, E), N> {
    type Entry = E;

    fn push(&mut self, id: WireId, entry: E) -> Result<(), E> {
        debug_assert!(self.last().is_none_or(|(last, _)| *last < id), "ids are pushed in order");
        // By its path: the method of the same name is this one.
        heapless::Vec::push(self, (id, entry)).map_err(|(_, entry)| entry)
    }

    fn remove(&mut self, id: WireId) -> Option<E> {
        let at = self.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(heapless::Vec::remove(self, at).1)
    }

    fn find(&self, id: WireId) -> Option<&E> {
        let at = self.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.get(at).map(|(_, entry)| entry)
    }

    fn find_mut(&mut self, id: WireId) -> Option<&mut E> {
        let at = self.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.get_mut(at).map(|(_, entry)| entry)
    }

    fn iter_from(&self, first: WireId) -> impl Iterator<Item = (WireId, &E)> {
        let at = self.partition_point(|(id, _)| *id < first);
        self.iter().skip(at).map(|(id, entry)| (*id, entry))
    }

    fn len(&self) -> usize {
        self.as_slice().len()
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::super::IdMap;
    use super::*;

    #[test]
    fn who_stays_keeps_no_places_for_those_who_came_and_went() {
        let mut map = IdMap::new(Growing::default());
        let first = map.try_insert(0).unwrap();
        let mut last = first;
        let mut most = 0;
        for n in 1..10 * SPARE {
            last = map.try_insert(n).unwrap();
            assert_eq!(map.get(last), Some(&n));
            if n % 5 != 0 {
                assert_eq!(map.take(last), Some(n));
            }
            most = most.max(map.slots().places.len());
        }
        assert!(most <= 2 * map.len() + SPARE, "{most}");
        assert_eq!(map.take(last), None);
        assert_eq!(map.get(first), Some(&0));
        let ids = map.iter().map(|(id, _)| id).collect::<alloc::vec::Vec<_>>();
        assert_eq!(ids.len(), map.len());
        for id in ids {
            assert!(map.take(id).is_some());
        }
        assert!(map.is_empty() && map.slots().places.capacity() <= 4 * SPARE);
    }
}
