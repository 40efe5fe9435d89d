//! Where the entries are kept.

#[cfg(feature = "alloc")]
use alloc::collections::BTreeMap;

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

/// Room that grows and shrinks with what is in it. An access costs the logarithm of how many there are.
///
/// # Bounds
/// As many entries as it was made for, else [`MAX_IN_FLIGHT`].
#[cfg(feature = "alloc")]
#[derive(Debug)]
pub struct Growing<E> {
    entries: BTreeMap<WireId, E>,
    max_len: usize,
}

#[cfg(feature = "alloc")]
impl<E> Growing<E> {
    /// Makes room for `max_len` entries; takes no memory yet.
    pub const fn with_max_len(max_len: usize) -> Self {
        Self { entries: BTreeMap::new(), max_len }
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
        if self.entries.len() >= self.max_len {
            return Err(entry);
        }
        self.entries.insert(id, entry);
        Ok(())
    }

    fn remove(&mut self, id: WireId) -> Option<E> {
        self.entries.remove(&id)
    }

    fn find(&self, id: WireId) -> Option<&E> {
        self.entries.get(&id)
    }

    fn find_mut(&mut self, id: WireId) -> Option<&mut E> {
        self.entries.get_mut(&id)
    }

    fn iter_from(&self, first: WireId) -> impl Iterator<Item = (WireId, &E)> {
        self.entries.range(first..).map(|(id, entry)| (*id, entry))
    }

    fn len(&self) -> usize {
        self.entries.len()
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
