//! The memory that reads are filled into: a ring of buffers that the kernel picks from when there is something to read.
//!
//! So what waits for its peer holds no memory, and a thousand idle connections cost no more than one.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::rc::Rc;
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// Buffers for reads that completed and were not looked at yet; when they are used up, a read is started again. A power
/// of two, as the kernel wants.
pub(super) const BUFFERS: u16 = 64;

/// Bytes of one, and the most that one read brings. Worst case: this, for each of the [`BUFFERS`]; memory that was never
/// read into is never touched.
pub(super) const BUFFER: usize = 32 * 1024;

/// The only group of buffers there is.
pub(super) const GROUP: u16 = 0;

/// Where the buffers begin: behind the entries, for which the kernel wants a page of their own. This is the largest page
/// there is.
const PAGE: usize = 64 * 1024;

const LAYOUT: Layout = match Layout::from_size_align(PAGE + BUFFERS as usize * BUFFER, PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("the sizes above fit"),
};

const _: () = assert!(BUFFERS.is_power_of_two() && BUFFERS as usize * size_of::<BufRingEntry>() <= PAGE);

/// Counts the operations that the kernel has not completed.
///
/// It is in a place of its own, because the memory asks it last: what the kernel may still write to is not given back.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight(Rc<Cell<usize>>);

impl InFlight {
    pub(super) fn get(&self) -> usize {
        self.0.get()
    }

    pub(super) fn add(&self) {
        self.0.set(self.0.get() + 1);
    }

    pub(super) fn remove(&self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// The buffers. Each belongs either to the kernel or to one [`Filled`].
pub(super) struct Pool {
    memory: NonNull<u8>,
    /// What the kernel sees as the tail of its queue.
    tail: Cell<u16>,
    in_flight: InFlight,
}

impl Pool {
    /// Makes the buffers and hands them to the kernel.
    pub(super) fn new(ring: &IoUring, in_flight: InFlight) -> io::Result<Rc<Self>> {
        // SAFETY: the layout has a size.
        let memory =
            NonNull::new(unsafe { alloc_zeroed(LAYOUT) }).unwrap_or_else(|| handle_alloc_error(LAYOUT));
        let pool = Rc::new(Self { memory, tail: Cell::new(0), in_flight });
        let address = memory.as_ptr() as u64;
        // SAFETY: that address begins a page of `BUFFERS` entries, all zero. It stays valid until the ring is destroyed:
        // `Ring` keeps the pool, and drops it after the `IoUring`.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, BUFFERS, GROUP, 0) }?;
        for id in 0..BUFFERS {
            pool.give_back(id);
        }
        Ok(pool)
    }

    /// Takes over a buffer of which the kernel says that it has read so many bytes into it.
    ///
    /// # Safety
    /// The kernel has said so in a completion of the ring that this was made for, and for each completion this is called
    /// once.
    pub(super) unsafe fn take(self: &Rc<Self>, id: u16, len: usize) -> Filled {
        debug_assert!(id < BUFFERS && len <= BUFFER, "the kernel fills no more than there is");
        Filled { pool: Rc::clone(self), id, len }
    }

    /// Gives a buffer to the kernel. It must not be the kernel's already.
    fn give_back(&self, id: u16) {
        let tail = self.tail.get();
        // SAFETY: there are so many entries at the start of the memory, and it is aligned for them.
        let entry = unsafe { self.memory.cast::<BufRingEntry>().add(usize::from(tail % BUFFERS)) };
        // SAFETY: the entry is initialised; the kernel does not read it before the tail says so, and nobody here keeps a
        // reference to it.
        let entry = unsafe { &mut *entry.as_ptr() };
        entry.set_addr(self.buffer(id).as_ptr() as u64);
        #[expect(clippy::cast_possible_truncation, reason = "a small constant")]
        entry.set_len(BUFFER as u32);
        entry.set_bid(id);
        self.tail.set(tail.wrapping_add(1));
        // SAFETY: this points to the first entry.
        let shared = unsafe { BufRingEntry::tail(self.memory.cast().as_ptr()) };
        // SAFETY: the tail is in the memory, aligned, and from here on only the kernel reads it, as atomically.
        let shared = unsafe { AtomicU16::from_ptr(shared.cast_mut()) };
        shared.store(self.tail.get(), Ordering::Release);
    }

    fn buffer(&self, id: u16) -> NonNull<u8> {
        // SAFETY: ids are below `BUFFERS`, so this is inside the memory.
        unsafe { self.memory.add(PAGE + usize::from(id) * BUFFER) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Lost memory is a lesser evil than memory that changes under its next owner.
        if self.in_flight.get() == 0 {
            // SAFETY: it was allocated with this layout, no `Filled` is left (they keep the pool), and the kernel has
            // completed all that could write to it.
            unsafe { dealloc(self.memory.as_ptr(), LAYOUT) };
        }
    }
}

/// A buffer that the kernel has filled. Dropping it gives it back.
pub(crate) struct Filled {
    pool: Rc<Pool>,
    id: u16,
    len: usize,
}

impl Deref for Filled {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer is ours until this is dropped, initialised (zeroed at first), and `len` bytes are in it.
        unsafe { slice::from_raw_parts(self.pool.buffer(self.id).as_ptr(), self.len) }
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        self.pool.give_back(self.id);
    }
}

impl fmt::Debug for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filled").field("id", &self.id).field("len", &self.len).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}
