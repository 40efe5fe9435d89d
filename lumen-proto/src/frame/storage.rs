//! Where the payload of an unfinished frame is kept, and what a finished one is handed out as.

use core::ops::Deref;

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
#[cfg(feature = "alloc")]
use bytes::Bytes;

#[cfg(feature = "alloc")]
use crate::limits::COPY_BELOW;

/// Room for one partial payload. The assembler is the same over every implementation.
pub trait Storage {
    /// Returns the longest payload it can hold, in bytes. Never changes.
    fn max_len(&self) -> u64;

    /// Forgets what it holds and gets ready for a payload of `len` bytes, at most [`max_len`](Self::max_len).
    fn begin(&mut self, len: usize);

    /// Appends bytes of the payload; never more in all than `begin` announced.
    fn append(&mut self, bytes: &[u8]);

    /// Hands out the payload, of which every byte has been appended.
    fn finish(&mut self) -> Payload<'_>;
}

/// Payload bytes of a frame: borrowed from the input or the storage, or owned.
#[derive(Clone, Debug)]
pub struct Payload<'a>(Inner<'a>);

#[derive(Clone, Debug)]
enum Inner<'a> {
    Borrowed(&'a [u8]),
    #[cfg(feature = "alloc")]
    Owned(Bytes),
}

impl Payload<'_> {
    /// Returns the bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Inner::Borrowed(bytes) => bytes,
            #[cfg(feature = "alloc")]
            Inner::Owned(bytes) => bytes,
        }
    }

    /// Returns the bytes as something that can be kept: without a copy if they are owned, except for those
    /// shorter than [`COPY_BELOW`], which may be a small part of a large block and would keep it alive.
    #[cfg(feature = "alloc")]
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Inner::Owned(bytes) if bytes.len() >= COPY_BELOW => bytes,
            Inner::Owned(bytes) => Bytes::copy_from_slice(&bytes),
            Inner::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
        }
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(Inner::Borrowed(bytes))
    }
}

#[cfg(feature = "alloc")]
impl From<Bytes> for Payload<'_> {
    fn from(bytes: Bytes) -> Self {
        Self(Inner::Owned(bytes))
    }
}

impl Deref for Payload<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for Payload<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// Storage that grows with what has arrived, never with what was announced.
///
/// # Bounds
/// Holds at most twice the bytes that have arrived, plus 4 KiB, and never more than the announced length.
/// Between frames it keeps at most [`COPY_BELOW`] bytes: longer payloads leave with their buffer.
#[cfg(feature = "alloc")]
#[derive(Debug, Default)]
pub struct Growing {
    bytes: Vec<u8>,
    announced: usize,
}

/// The first step of growth.
#[cfg(feature = "alloc")]
const FIRST: usize = 4 * 1024;

#[cfg(feature = "alloc")]
impl Growing {
    /// Makes an empty one, which takes no memory.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), announced: 0 }
    }
}

#[cfg(feature = "alloc")]
impl Storage for Growing {
    fn max_len(&self) -> u64 {
        isize::MAX as u64
    }

    fn begin(&mut self, len: usize) {
        self.bytes.clear();
        self.announced = len;
    }

    fn append(&mut self, bytes: &[u8]) {
        let len = self.bytes.len();
        let needed = len.saturating_add(bytes.len());
        if needed > self.bytes.capacity() {
            let doubled = self.bytes.capacity().saturating_mul(2).max(FIRST);
            // Capped at the announced length, so that the finished buffer has no slack and moves without a copy.
            let target = doubled.min(self.announced).max(needed);
            self.bytes.reserve_exact(target - len);
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn finish(&mut self) -> Payload<'_> {
        if self.bytes.len() < COPY_BELOW {
            return self.bytes.as_slice().into();
        }
        Bytes::from(core::mem::take(&mut self.bytes)).into()
    }
}

#[cfg(feature = "heapless")]
impl<const N: usize> Storage for heapless::Vec<u8, N> {
    fn max_len(&self) -> u64 {
        N as u64
    }

    fn begin(&mut self, _len: usize) {
        self.clear();
    }

    fn append(&mut self, bytes: &[u8]) {
        let fits = self.extend_from_slice(bytes);
        debug_assert!(fits.is_ok(), "begin announces no more than max_len");
    }

    fn finish(&mut self) -> Payload<'_> {
        self.as_slice().into()
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;

    #[test]
    fn grows_with_what_arrived_and_ends_without_slack() {
        let announced = 1_000_000;
        for piece in [1usize, 1000, 4096, 100_000] {
            let mut growing = Growing::new();
            growing.begin(announced);
            assert_eq!(growing.bytes.capacity(), 0);
            let mut had = 0;
            while had < announced {
                let now = piece.min(announced - had);
                growing.append(&std::vec![1; now]);
                had += now;
                let capacity = growing.bytes.capacity();
                assert!(capacity <= (2 * had).max(FIRST) && capacity <= announced, "{capacity} at {had}");
            }
            assert_eq!(growing.bytes.capacity(), announced);
            assert_eq!(growing.finish().len(), announced);
            assert_eq!(growing.bytes.capacity(), 0);
        }
    }

    #[test]
    fn keeps_a_small_buffer_for_the_next_payload() {
        let mut growing = Growing::new();
        growing.begin(100);
        growing.append(&[1; 100]);
        assert_eq!(growing.bytes.capacity(), 100);
        assert_eq!(&*growing.finish(), [1; 100]);
        growing.begin(3);
        growing.append(&[2; 3]);
        assert_eq!(&*growing.finish(), [2; 3]);
        assert_eq!(growing.bytes.capacity(), 100);
    }
}
