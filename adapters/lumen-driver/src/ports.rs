//! What is kept for each port. It is looked up many times for each message, which is why it is no tree.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use lumen_proto::Port;

/// A value for each port, in no order.
pub(crate) type Ports<T> = HashMap<Port, T, BuildHasherDefault<PortHasher>>;

/// Hashes the two numbers of a port. Nobody outside chooses them: no attack has to be withstood.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortHasher(u64);

/// An odd number of many ones, so that each bit of what is hashed changes many above it.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for PortHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(number)).wrapping_mul(SPREAD);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher as _, BuildHasherDefault};

    use super::*;

    #[test]
    fn ports_that_differ_in_one_number_are_spread() {
        let build = BuildHasherDefault::<PortHasher>::default();
        let places = (0..1024).map(Port::new);
        let generations = std::iter::successors(Some(Port::new(7)), |port| Some(port.successor())).take(1024);
        for ports in [places.collect::<Vec<_>>(), generations.collect()] {
            // The table of the standard library takes the lowest bits, and the highest seven.
            let low: BTreeSet<_> = ports.iter().map(|port| build.hash_one(port) & 1023).collect();
            let high: BTreeSet<_> = ports.iter().map(|port| build.hash_one(port) >> 57).collect();
            assert!(low.len() > 512 && high.len() > 100, "{} {}", low.len(), high.len());
        }
    }
}
