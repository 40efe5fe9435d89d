//! What is kept for each port, found by the place that the port names.

use std::collections::BTreeMap;

use lumen_proto::Port;

/// Places that are kept side by side. Machines number their ports from 0, so nearly every port has one of these.
const NEAR: usize = 4096;

/// A map by port in which finding costs the same however many there are.
///
/// # Bounds
/// A place for each of the first 4,096 indices up to the highest that was used; whatever has no place of its own, as
/// two generations of one index have not, is in a tree.
#[derive(Debug)]
pub struct PortMap<T> {
    near: Vec<Option<(Port, T)>>,
    far: BTreeMap<Port, T>,
    len: usize,
}

impl<T> Default for PortMap<T> {
    fn default() -> Self {
        Self { near: Vec::new(), far: BTreeMap::new(), len: 0 }
    }
}

impl<T> PortMap<T> {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps `value` for `port`; returns what was kept before.
    pub fn insert(&mut self, port: Port, value: T) -> Option<T> {
        let before = self.remove(port);
        self.len += 1;
        if let Some(index) = near(port) {
            if self.near.len() <= index {
                self.near.resize_with(index + 1, || None);
            }
            if let Some(place @ None) = self.near.get_mut(index) {
                *place = Some((port, value));
                return before;
            }
        }
        self.far.insert(port, value);
        before
    }

    /// Takes out what is kept for `port`.
    pub fn remove(&mut self, port: Port) -> Option<T> {
        let place = near(port).and_then(|index| self.near.get_mut(index));
        let taken = place.and_then(|place| place.take_if(|(there, _)| *there == port));
        let taken = taken.map(|(_, value)| value).or_else(|| self.far.remove(&port));
        self.len -= usize::from(taken.is_some());
        taken
    }

    /// Returns what is kept for `port`.
    pub fn get(&self, port: Port) -> Option<&T> {
        match near(port).and_then(|index| self.near.get(index)) {
            Some(Some((there, value))) if *there == port => Some(value),
            _ => self.far.get(&port),
        }
    }

    /// Returns what is kept for `port`, to change it.
    pub fn get_mut(&mut self, port: Port) -> Option<&mut T> {
        match near(port).and_then(|index| self.near.get_mut(index)) {
            Some(Some((there, value))) if *there == port => Some(value),
            _ => self.far.get_mut(&port),
        }
    }

    /// Returns whether something is kept for `port`.
    pub fn contains(&self, port: Port) -> bool {
        self.get(port).is_some()
    }

    /// Returns everything, those of the first indices in their order before all others in theirs.
    pub fn iter(&self) -> impl Iterator<Item = (Port, &T)> {
        let near = self.near.iter().flatten().map(|(port, value)| (*port, value));
        near.chain(self.far.iter().map(|(port, value)| (*port, value)))
    }

    /// Returns for how many ports something is kept.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing is kept.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

fn near(port: Port) -> Option<usize> {
    usize::try_from(port.index()).ok().filter(|index| *index < NEAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_a_tree_keeps() {
        let far = u32::try_from(NEAR).unwrap();
        let mut ports = Vec::new();
        for index in [0, 1, 7, far - 1, far, u32::MAX] {
            let first = Port::new(index);
            ports.extend([first, first.successor(), first.successor().successor()]);
        }
        let (mut map, mut tree) = (PortMap::new(), BTreeMap::new());
        let mut seed = 1_u64;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let port = ports[(seed >> 33) as usize % ports.len()];
            match (seed >> 20) % 3 {
                0 => assert_eq!(map.insert(port, step), tree.insert(port, step)),
                1 => assert_eq!(map.remove(port), tree.remove(&port)),
                _ => {
                    assert_eq!(map.get_mut(port), tree.get_mut(&port));
                    assert_eq!(map.contains(port), tree.contains_key(&port));
                }
            }
            assert_eq!((map.len(), map.is_empty()), (tree.len(), tree.is_empty()));
            let mut all: Vec<_> = map.iter().collect();
            all.sort();
            assert!(all.into_iter().eq(tree.iter().map(|(port, value)| (*port, value))));
        }
        assert!(map.near.len() <= NEAR);
    }
}
