//! The map from ids on the shared wire to whoever they belong to.

use core::iter;

use super::{Slots, WireId};

/// Entries by the id that was made for each of them; in every listing in the order in which they came.
///
/// # Bounds
/// As many entries as its storage has room for.
#[derive(Debug, Default)]
pub struct IdMap<S> {
    slots: S,
    last: Option<WireId>,
}

/// There is no room: the entry that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<E>(pub E);

impl<S: Slots> IdMap<S> {
    /// Makes an empty map, whose first id is [`WireId::FIRST`], over empty storage.
    pub const fn new(slots: S) -> Self {
        Self { slots, last: None }
    }

    /// Adds an entry under an id of its own, greater than all before it.
    ///
    /// # Errors
    /// [`Full`] gives the entry back when there is no room, or when all ids have been used. No id is lost by it.
    pub fn try_insert(&mut self, entry: S::Entry) -> Result<WireId, Full<S::Entry>> {
        let next = match self.last {
            None => Some(WireId::FIRST),
            Some(last) => last.successor(),
        };
        let Some(id) = next else {
            return Err(Full(entry));
        };
        self.slots.push(id, entry).map_err(Full)?;
        self.last = Some(id);
        Ok(id)
    }

    /// Takes an entry out. The next one who asks for the same id finds nothing.
    pub fn take(&mut self, id: WireId) -> Option<S::Entry> {
        self.slots.remove(id)
    }

    /// Takes out all entries for which `matches` holds, each when it is asked for, in the order of their ids. What
    /// the iterator was not asked for stays.
    ///
    /// Without an allocation, and in one pass: costs as much as there are entries, plus a removal for each taken.
    #[must_use = "entries are taken out only as the iterator is driven"]
    pub fn drain_where(
        &mut self,
        mut matches: impl FnMut(WireId, &S::Entry) -> bool,
    ) -> impl Iterator<Item = (WireId, S::Entry)> {
        let mut next = Some(WireId::FIRST);
        iter::from_fn(move || {
            let (id, _) = self.slots.iter_from(next?).find(|(id, entry)| matches(*id, entry))?;
            next = id.successor();
            Some((id, self.slots.remove(id)?))
        })
    }

    /// Returns an entry to be changed in place.
    pub fn get_mut(&mut self, id: WireId) -> Option<&mut S::Entry> {
        self.slots.find_mut(id)
    }

    /// Returns an entry.
    pub fn get(&self, id: WireId) -> Option<&S::Entry> {
        self.slots.find(id)
    }

    /// Returns all entries in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (WireId, &S::Entry)> {
        self.slots.iter_from(WireId::FIRST)
    }

    #[cfg(all(test, feature = "alloc"))]
    pub(super) const fn slots(&self) -> &S {
        &self.slots
    }

    /// Returns how many entries there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::super::Growing;
    use super::*;

    #[test]
    fn ids_end_rather_than_begin_anew() {
        let mut map = IdMap { slots: Growing::default(), last: Some(WireId::LAST) };
        assert_eq!(map.try_insert('a'), Err(Full('a')));
        assert!(map.is_empty());
    }
}
