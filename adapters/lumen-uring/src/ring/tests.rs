//! The ring against real pipes and sockets, and what is left of its memory when it is dropped.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::*;

/// Memory given back while a test watches is not given to anybody else: it is filled with this and kept.
const PATTERN: u8 = 0xA5;

/// Blocks from here on are of interest: the pool, and the buffers of writes in these tests.
const WATCHED: usize = 32 * 1024;

/// The arena: an allocator that keeps what a test's thread gives back.
struct Arena;

#[derive(Default)]
struct Watch {
    in_flight: InFlight,
    /// Where each block is, how long it is, and how many operations were in flight when it was given back.
    kept: Vec<(usize, usize, usize)>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

#[global_allocator]
static ARENA: Arena = Arena;

// SAFETY: all memory is the system's, and what is not given back to it is only lost.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let is_kept = layout.size() >= WATCHED
            && WATCH.try_with(|watch| {
                let Ok(mut watch) = watch.try_borrow_mut() else { return false };
                let Some(watch) = &mut *watch else { return false };
                watch.kept.push((memory as usize, layout.size(), watch.in_flight.get()));
                true
            }) == Ok(true);
        if is_kept {
            // SAFETY: the caller gives up this block, of this size.
            unsafe { memory.write_bytes(PATTERN, layout.size()) };
        } else {
            // SAFETY: as the caller promised.
            unsafe { System.dealloc(memory, layout) }
        }
    }
}

fn ring() -> Option<Ring<u8>> {
    match Ring::new() {
        Ok(ring) => Some(ring),
        Err(error) => {
            writeln!(io::stderr(), "skipped on io_uring: {error}").unwrap();
            None
        }
    }
}

/// Of each kind.
fn rings() -> Vec<Ring<u8>> {
    ring().into_iter().flat_map(|ring| [ring, Ring::over(IoUring::new(ENTRIES).unwrap()).unwrap()]).collect()
}

fn socket() -> (Rc<OwnedFd>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Rc::new(ours.into()), theirs)
}

fn pipe() -> (Rc<OwnedFd>, Rc<OwnedFd>) {
    let (read, write) = io::pipe().unwrap();
    (Rc::new(read.into()), Rc::new(write.into()))
}

/// Waits for the next completion.
fn completion(ring: &mut Ring<u8>) -> Completion<u8> {
    loop {
        if let Some(completion) = ring.next() {
            return completion;
        }
        ring.wait(None).unwrap();
    }
}

fn read_bytes(outcome: &Outcome) -> &[u8] {
    match outcome {
        Outcome::Read(Ok(filled)) => filled.as_deref().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_dropped_in_flight_leaves_its_memory_alone() {
    rings().into_iter().for_each(drop_in_flight);
}

fn drop_in_flight(mut ring: Ring<u8>) {
    let (ours, mut theirs) = socket();
    let (reading, mut written) = io::pipe().unwrap();
    let (mut full_read, mut full_write) = io::pipe().unwrap();
    let capacity = rustix::pipe::fcntl_getpipe_size(&full_write).unwrap();
    full_write.write_all(&vec![1; capacity]).unwrap();
    ring.recv(0, Rc::clone(&ours), 1000);
    ring.read(1, Rc::new(reading.try_clone().unwrap().into()), 1000);
    // The kernel reads this as soon as there is room.
    let bytes = BytesMut::from(&vec![2; 1 << 20][..]);
    ring.write(2, Rc::new(full_write.try_clone().unwrap().into()), bytes, 0);
    ring.wait(Some(Duration::ZERO)).unwrap();
    assert_eq!((ring.in_flight(), ring.next().is_none()), (3, true));

    let watch = Watch { in_flight: ring.in_flight.clone(), kept: Vec::with_capacity(64) };
    WATCH.set(Some(watch));
    drop(ring);
    theirs.write_all(&[2; 1000]).unwrap();
    written.write_all(&[2; 1000]).unwrap();
    let mut taken = vec![0; capacity];
    full_read.read_exact(&mut taken).unwrap();
    let kept = WATCH.take().unwrap().kept;

    for (address, len, in_flight) in &kept {
        assert_eq!(*in_flight, 0, "{len} bytes were given back too early");
        // SAFETY: the arena keeps this block, and nobody else has it.
        let block = unsafe { std::slice::from_raw_parts(*address as *const u8, *len) };
        assert!(block.iter().all(|byte| *byte == PATTERN), "{len} bytes have changed");
    }
    let pool = pool::BUFFER * usize::from(pool::BUFFERS);
    assert!(kept.iter().any(|(_, len, _)| *len > pool), "the pool is still there");
    assert!(kept.iter().any(|(_, len, _)| *len == 1 << 20), "the bytes to be written are still there");
    assert!(
        taken == vec![1; capacity] && rustix::io::ioctl_fionread(&full_read) == Ok(0),
        "the write went on"
    );
    drop((ours, theirs, reading, written, full_write));
}

#[test]
fn memory_that_the_kernel_may_still_write_to_is_lost_rather_than_given_back() {
    let Some(ring) = ring() else { return };
    WATCH.set(Some(Watch { kept: Vec::with_capacity(64), ..Watch::default() }));
    let (pool, in_flight) = (Rc::clone(&ring.pool), ring.in_flight.clone());
    drop(ring);
    in_flight.add();
    drop(pool);
    assert_eq!(WATCH.take().unwrap().kept, []);
}

#[test]
fn a_read_brings_what_is_there_and_no_more_than_was_asked_for() {
    for mut ring in rings() {
        let (ours, mut theirs) = socket();
        let id = ring.recv(7, Rc::clone(&ours), 4);
        ring.wait(Some(Duration::ZERO)).unwrap();
        assert!(!ring.has_completed());
        theirs.write_all(b"0123456789").unwrap();
        let done = completion(&mut ring);
        assert_eq!((done.id, done.key, read_bytes(&done.outcome)), (id, 7, &b"0123"[..]));
        ring.recv(7, Rc::clone(&ours), 100);
        assert_eq!(read_bytes(&completion(&mut ring).outcome), b"456789");
        drop(theirs);
        ring.recv(7, ours, 100);
        assert_eq!(read_bytes(&completion(&mut ring).outcome), b"");
        assert_eq!(ring.in_flight(), 0);
    }
}

#[test]
fn a_write_gives_its_bytes_back_and_says_what_went_out() {
    let Some(mut ring) = ring() else { return };
    let (read, write) = pipe();
    ring.write(0, Rc::clone(&write), BytesMut::from(&b"xxhello"[..]), 2);
    let Outcome::Wrote(bytes, Ok(5)) = completion(&mut ring).outcome else { panic!("not written") };
    assert_eq!(bytes, b"xxhello"[..]);
    ring.read(0, read, 100);
    assert_eq!(read_bytes(&completion(&mut ring).outcome), b"hello");
    // The reading end went with its operation.
    ring.write(0, write, bytes, 0);
    let Outcome::Wrote(_, Err(Errno::PIPE)) = completion(&mut ring).outcome else { panic!("written") };
}

#[test]
fn a_cancelled_operation_completes_by_itself_and_once() {
    let Some(mut ring) = ring() else { return };
    let (ours, _theirs) = socket();
    let id = ring.recv(3, ours, 100);
    ring.wait(Some(Duration::ZERO)).unwrap();
    ring.cancel(id);
    let done = completion(&mut ring);
    assert_eq!((done.id, done.key), (id, 3));
    assert!(matches!(done.outcome, Outcome::Read(Err(Errno::CANCELED))), "{done:?}");
    ring.cancel(id);
    ring.wait(Some(Duration::from_millis(1))).unwrap();
    assert!(ring.next().is_none() && ring.in_flight() == 0);
}

#[test]
fn buffers_that_are_used_up_come_back() {
    let Some(mut ring) = ring() else { return };
    let (ours, mut theirs) = socket();
    let mut held = Vec::new();
    for _ in 0..pool::BUFFERS {
        theirs.write_all(b"x").unwrap();
        ring.recv(0, Rc::clone(&ours), 1);
        held.push(completion(&mut ring));
    }
    theirs.write_all(b"y").unwrap();
    ring.recv(0, Rc::clone(&ours), 1);
    let done = completion(&mut ring);
    assert!(matches!(done.outcome, Outcome::Read(Err(Errno::NOBUFS))), "{done:?}");
    held.truncate(usize::from(pool::BUFFERS) - 1);
    ring.recv(0, ours, 1);
    assert_eq!(read_bytes(&completion(&mut ring).outcome), b"y");
    // And one that outlives its ring is still there.
    drop(ring);
    assert!(held.iter().all(|done| read_bytes(&done.outcome) == b"x"));
}

#[test]
fn more_operations_than_the_queue_holds_are_all_started() {
    let Some(mut ring) = ring() else { return };
    let (read, write) = pipe();
    let count = 5 * ENTRIES;
    for _ in 0..count {
        ring.poll(0, Rc::clone(&read), PollFlags::IN);
    }
    ring.wait(Some(Duration::ZERO)).unwrap();
    ring.write(1, write, BytesMut::from(&b"!"[..]), 0);
    let written = (0..=count).filter(|_| completion(&mut ring).key == 1).count();
    assert_eq!((written, ring.in_flight()), (1, 0));
}
