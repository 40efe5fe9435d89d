//! A ring, and the operations in it, each of which owns what the kernel reads and writes until it has completed.
//!
//! Everything outside this folder is safe code, and nothing it does can break what is promised to the kernel: it hands
//! over descriptors and bytes, and gets the bytes back with the completion.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;

mod pool;
mod slab;
#[cfg(test)]
mod tests;

pub(crate) use pool::Filled;
use pool::{BUFFER, GROUP, InFlight, Pool};
pub(crate) use slab::OpId;
use slab::Slab;

/// Entries submitted in one go. The queue of completions has twice as many; the kernel keeps what does not fit.
const ENTRIES: u32 = 256;

/// How long is waited for what was cancelled.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a request to cancel is called. That it has completed is of no interest: its target completes too.
const CANCEL: u64 = u64::MAX;

/// What became of an operation.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Without a buffer at the end of the stream; an empty one is the same.
    Read(Result<Option<Filled>, Errno>),
    /// With the bytes that were to be written.
    Wrote(BytesMut, Result<usize, Errno>),
    /// What it waited for is so, or can never be: trying tells.
    Ready,
}

/// An operation that has completed.
#[derive(Debug)]
pub(crate) struct Completion<K> {
    pub(crate) id: OpId,
    pub(crate) key: K,
    pub(crate) outcome: Outcome,
}

/// An operation that the kernel may be at. It keeps its descriptor, so that the number means nothing else.
#[derive(Debug)]
struct Op<K> {
    key: K,
    _fd: Rc<OwnedFd>,
    what: What,
}

#[derive(Debug)]
enum What {
    Read,
    Write(BytesMut),
    Poll,
}

/// Operations, told apart by a key of the caller.
///
/// # Bounds
/// The memory for reads, see [`pool`]; besides that only what the operations own.
pub(crate) struct Ring<K> {
    // In this order: closing it comes before everything that its operations might touch.
    uring: IoUring,
    ops: Slab<Op<K>>,
    pool: Rc<Pool>,
    in_flight: InFlight,
    /// What found no room in the queue.
    backlog: VecDeque<squeue::Entry>,
}

impl<K> Ring<K> {
    /// Sets up a ring: one that does its work when it is waited for, or else any.
    ///
    /// # Errors
    /// The kernel has none, or not what is needed, or does not let this process have it.
    pub(crate) fn new() -> io::Result<Self> {
        let deferred = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(ENTRIES);
        match deferred {
            // Before Linux 6.1.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                Self::over(IoUring::new(ENTRIES)?)
            }
            other => Self::over(other?),
        }
    }

    fn over(uring: IoUring) -> io::Result<Self> {
        let in_flight = InFlight::default();
        let pool = Pool::new(&uring, in_flight.clone())?;
        Ok(Self { uring, ops: Slab::new(), pool, in_flight, backlog: VecDeque::new() })
    }

    /// Reads at most so many bytes, and no more than a buffer holds.
    pub(crate) fn read(&mut self, key: K, fd: Rc<OwnedFd>, most: usize) -> OpId {
        let most = clamp(most.min(BUFFER));
        let entry =
            opcode::Read::new(Fd(fd.as_raw_fd()), std::ptr::null_mut(), most).buf_group(GROUP).build();
        self.start(key, fd, What::Read, entry.flags(squeue::Flags::BUFFER_SELECT))
    }

    /// Reads from a socket, otherwise as [`read`](Self::read).
    pub(crate) fn recv(&mut self, key: K, fd: Rc<OwnedFd>, most: usize) -> OpId {
        let most = clamp(most.min(BUFFER));
        let entry =
            opcode::Recv::new(Fd(fd.as_raw_fd()), std::ptr::null_mut(), most).buf_group(GROUP).build();
        self.start(key, fd, What::Read, entry.flags(squeue::Flags::BUFFER_SELECT))
    }

    /// Writes a prefix of what is in `bytes` after `from`.
    pub(crate) fn write(&mut self, key: K, fd: Rc<OwnedFd>, bytes: BytesMut, from: usize) -> OpId {
        let left = bytes.get(from..).unwrap_or_default();
        let entry = opcode::Write::new(Fd(fd.as_raw_fd()), left.as_ptr(), clamp(left.len())).build();
        self.start(key, fd, What::Write(bytes), entry)
    }

    /// Writes to a socket, otherwise as [`write`](Self::write).
    pub(crate) fn send(&mut self, key: K, fd: Rc<OwnedFd>, bytes: BytesMut, from: usize) -> OpId {
        let left = bytes.get(from..).unwrap_or_default();
        let flags = rustix::net::SendFlags::NOSIGNAL.bits().cast_signed();
        let entry =
            opcode::Send::new(Fd(fd.as_raw_fd()), left.as_ptr(), clamp(left.len())).flags(flags).build();
        self.start(key, fd, What::Write(bytes), entry)
    }

    /// Waits until one of these is so, or the descriptor is broken or hung up.
    pub(crate) fn poll(&mut self, key: K, fd: Rc<OwnedFd>, flags: PollFlags) -> OpId {
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), u32::from(flags.bits())).build();
        self.start(key, fd, What::Poll, entry)
    }

    /// Takes an operation back, if that can still be done; it completes in any case.
    pub(crate) fn cancel(&mut self, id: OpId) {
        if self.ops.get(id).is_some() {
            self.backlog.push_back(opcode::AsyncCancel::new(id.to_bits()).build().user_data(CANCEL));
        }
    }

    /// Starts what was asked for, and waits until something has completed or the time is over; without a limit if there is
    /// none.
    ///
    /// # Errors
    /// What the kernel said, which is out of memory.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let is_all = self.fill();
            let left = match timeout {
                _ if !is_all || self.has_completed() => Some(Duration::ZERO),
                None => None,
                Some(Duration::ZERO) => timeout,
                Some(_) => deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            };
            match self.enter(left) {
                // A signal must not prolong the wait.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(()) if !is_all && !self.has_completed() => {}
                other => return other,
            }
        }
    }

    /// Returns whether something has completed that was not taken yet, as far as can be seen without asking the kernel.
    pub(crate) fn has_completed(&mut self) -> bool {
        !self.uring.completion().is_empty() || self.uring.submission().taskrun()
    }

    /// Returns whether something was asked for that the kernel does not know of yet.
    pub(crate) fn has_unsubmitted(&mut self) -> bool {
        !self.backlog.is_empty() || !self.uring.submission().is_empty()
    }

    /// Returns the next operation that has completed.
    pub(crate) fn next(&mut self) -> Option<Completion<K>> {
        loop {
            let entry = self.uring.completion().next()?;
            if entry.user_data() == CANCEL {
                continue;
            }
            let result =
                usize::try_from(entry.result()).map_err(|_| Errno::from_raw_os_error(-entry.result()));
            // SAFETY: this is a completion of the pool's ring, and it is taken once.
            let filled = cqueue::buffer_select(entry.flags())
                .map(|id| unsafe { self.pool.take(id, result.unwrap_or(0)) });
            let id = OpId::from_bits(entry.user_data());
            let Some(op) = self.ops.remove(id) else { continue };
            self.in_flight.remove();
            let outcome = match op.what {
                What::Read => Outcome::Read(result.map(|_| filled)),
                What::Write(bytes) => Outcome::Wrote(bytes, result),
                What::Poll => Outcome::Ready,
            };
            return Some(Completion { id, key: op.key, outcome });
        }
    }

    /// Returns how many operations have not been taken by [`next`](Self::next).
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    fn start(&mut self, key: K, fd: Rc<OwnedFd>, what: What, entry: squeue::Entry) -> OpId {
        let id = self.ops.insert(Op { key, _fd: fd, what });
        self.in_flight.add();
        self.backlog.push_back(entry.user_data(id.to_bits()));
        id
    }

    /// Moves what waits into the queue; returns whether that was all.
    fn fill(&mut self) -> bool {
        let mut queue = self.uring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: what the entry points to is owned by its `Op`, on the heap, where it stays when the `Op` moves; it is
            // not freed or touched before `next` has seen the completion or, if that never comes, at all.
            if unsafe { queue.push(entry) }.is_err() {
                return false;
            }
            self.backlog.pop_front();
        }
        true
    }

    /// Submits what is in the queue, and waits as long as is said for something to complete.
    fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if timeout == Some(Duration::ZERO) {
            let queue = self.uring.submission();
            if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                return Ok(());
            }
        }
        let submitter = self.uring.submitter();
        let entered = match timeout {
            Some(Duration::ZERO) => submitter.submit(),
            None => submitter.submit_and_wait(1),
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
            }
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::TIME) => Ok(()),
                // Completions have to be taken before more can be submitted.
                Some(Errno::BUSY | Errno::AGAIN) if self.has_completed() => Ok(()),
                _ => Err(error),
            },
        }
    }
}

impl<K> Drop for Ring<K> {
    fn drop(&mut self) {
        let ids: Vec<OpId> = self.ops.ids().collect();
        for id in ids {
            self.cancel(id);
        }
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        while self.in_flight() > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(Some(left)).is_err() {
                break;
            }
            while self.next().is_some() {}
        }
        // What the kernel has not given back is its own for ever; so is the pool then.
        self.ops.drain().for_each(std::mem::forget);
    }
}

impl<K: fmt::Debug> fmt::Debug for Ring<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("ops", &self.ops).finish_non_exhaustive()
    }
}

fn clamp(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
