//! How much memory a frame takes while it arrives: it must follow what has arrived, never what was announced.
//!
//! Every allocation of the process is counted. A `realloc` counts as the change in size: where the allocator
//! moves the block, both copies exist for that moment, which is its doing and is not seen here.
#![expect(
    unsafe_code,
    reason = "a global allocator is an unsafe trait; this one counts and hands on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use lumen_proto::frame::{Assembler, Flags, Growing, Header, Kind, MAX_HEADER_LEN, Step};
use lumen_proto::limits::{MAX_MESSAGE, MAX_SKIP};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grew(by: usize) {
    let held = HELD.fetch_add(by, Relaxed) + by;
    PEAK.fetch_max(held, Relaxed);
}

// SAFETY: every call is handed on to the system allocator with its arguments unchanged; the counters beside it
// neither allocate nor touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `block` came from `System` with this layout, as everything here does.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= layout.size() {
            grew(size - layout.size());
        } else {
            HELD.fetch_sub(layout.size() - size, Relaxed);
        }
        // SAFETY: `block` came from `System` with this layout, and the caller vouches for `size`.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const SLACK: usize = 64 * KIB;

/// What arrives; not on the heap, so not counted.
static BLOCK: [u8; 64 * KIB] = [0x20; 64 * KIB];

/// Feeds the header of a frame that announces `announced` bytes and then `arriving` of them in pieces of
/// `chunk`, by one of the two ways in, and returns the most memory that took and whether the frame came out.
/// After every piece, the memory must fit what has arrived.
fn feed(announced: usize, arriving: usize, chunk: usize, as_bytes: bool) -> (usize, bool) {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let mut assembler = Assembler::with_limits(Growing::new(), MAX_MESSAGE as u64, MAX_SKIP);
    let mut head = [0; MAX_HEADER_LEN];
    let len = Header { len: announced as u64, kind: Kind::REQUEST, flags: Flags::NONE }.encode(&mut head);
    assert!(assembler.feed(&mut &head[..len]).is_none());
    let mut arrived = 0;
    let mut complete = false;
    while arrived < arriving {
        let piece = chunk.min(arriving - arrived);
        arrived += piece;
        let mut slice = &BLOCK[..piece];
        let mut bytes = Bytes::from_static(slice);
        let step = if as_bytes { assembler.feed_bytes(&mut bytes) } else { assembler.feed(&mut slice) };
        if let Some(Step::Frame { payload, .. }) = step {
            assert_eq!(payload.into_bytes().len(), announced);
            complete = true;
        }
        let taken = PEAK.load(Relaxed) - before;
        assert!(
            taken <= 2 * arrived + SLACK,
            "{taken} bytes held for {arrived} of {announced}, {chunk} a time"
        );
    }
    drop(assembler);
    // The harness's own thread may hold a little more or less by now.
    assert!(HELD.load(Relaxed) < before + SLACK, "memory left behind");
    (PEAK.load(Relaxed) - before, complete)
}

// One test, as the counters are the process's.
#[test]
fn memory_follows_what_has_arrived() {
    for as_bytes in [false, true] {
        for chunk in [1, 1460, 64 * KIB] {
            for arriving in [10 * KIB, MIB, 20 * MIB] {
                if as_bytes && chunk == 1 && arriving > MIB {
                    continue; // the same code as before, and seconds of it
                }
                let (peak, complete) = feed(60 * MIB, arriving, chunk, as_bytes);
                assert!(!complete);
                assert!(peak >= arriving, "the counter counts: {peak} for {arriving}");
            }
        }
        let (peak, complete) = feed(60 * MIB, 60 * MIB, 64 * KIB, as_bytes);
        assert!(complete);
        assert!(peak < 60 * MIB + SLACK, "{peak}: handed out with a copy");
        let (peak, _) = feed(MAX_MESSAGE + 1, 20 * MIB, 64 * KIB, as_bytes);
        assert!(peak < SLACK, "{peak} bytes held for a frame that is only skipped");
    }
}
