//! The operations that the kernel has not completed, each under an id that is never used twice at a time.

/// Names an operation: its place, and how often that was used before, so that a late word about an earlier one finds
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpId {
    index: u32,
    generation: u32,
}

impl OpId {
    pub(super) const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// A place for each operation.
///
/// # Bounds
/// As many places as there ever were operations at once.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, item: T) -> OpId {
        if let Some(index) = self.free.pop()
            && let Some((generation, place)) = self.places.get_mut(index as usize)
        {
            *place = Some(item);
            return OpId { index, generation: *generation };
        }
        // There is no memory for so many, and an id that is not unique must not be.
        let index = u32::try_from(self.places.len()).unwrap_or_else(|_| std::process::abort());
        self.places.push((0, Some(item)));
        OpId { index, generation: 0 }
    }

    pub(super) fn get(&self, id: OpId) -> Option<&T> {
        let (generation, place) = self.places.get(id.index as usize)?;
        place.as_ref().filter(|_| *generation == id.generation)
    }

    pub(super) fn remove(&mut self, id: OpId) -> Option<T> {
        let (generation, place) = self.places.get_mut(id.index as usize)?;
        if *generation != id.generation {
            return None;
        }
        let item = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.index);
        Some(item)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = OpId> {
        (0..)
            .zip(&self.places)
            .filter(|(_, (_, place))| place.is_some())
            .map(|(index, (generation, _))| OpId { index, generation: *generation })
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.places.drain(..).filter_map(|(_, place)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_own_item_only() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((slab.remove(a), slab.remove(a)), (Some('a'), None));
        let c = slab.insert('c');
        assert_eq!((c.index, a == c), (a.index, false));
        assert_eq!((slab.remove(a), slab.get(c), slab.get(b)), (None, Some(&'c'), Some(&'b')));
        assert_eq!(OpId::from_bits(c.to_bits()), c);
        assert_eq!(slab.ids().collect::<Vec<_>>(), [c, b]);
        assert_eq!(slab.drain().collect::<String>(), "cb");
    }
}
