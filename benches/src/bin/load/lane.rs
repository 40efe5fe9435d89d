//! One connection, and the requests that are on it.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Instant;

use hdrhistogram::Histogram;
use memchr::memchr;

use crate::server::between;

/// Requests of one client that can be in flight.
const SLOTS: u64 = 1 << 10;

/// What all lanes count.
pub(crate) struct Counts {
    /// In nanoseconds.
    pub(crate) latency: Histogram<u64>,
    pub(crate) answered: u64,
    pub(crate) doubled: u64,
    pub(crate) misrouted: u64,
    pub(crate) is_measuring: bool,
}

/// What one client has in flight.
pub(crate) struct Asker {
    /// Its number among all clients, which its requests carry.
    number: u64,
    next: u64,
    /// By the id's last bits: the id, and when it was due.
    open: Vec<Option<(u64, Instant)>>,
    pub(crate) in_flight: u64,
}

/// A connection, which several clients share only where there is but one.
pub(crate) struct Lane {
    pub(crate) read: std::fs::File,
    write: std::fs::File,
    pub(crate) askers: Vec<Asker>,
    to_write: Vec<u8>,
    written: usize,
    unread: Vec<u8>,
    padding: String,
}

impl Lane {
    /// Takes a connection that has shaken hands; requests will have `size` bytes.
    pub(crate) fn new(read: OwnedFd, write: OwnedFd, numbers: std::ops::Range<u64>, size: usize) -> Self {
        for fd in [&read, &write] {
            rustix::io::ioctl_fionbio(fd, true).expect("it can");
        }
        let askers = numbers.map(|number| Asker { number, next: 1, open: vec![None; 1 << 10], in_flight: 0 });
        let mut lane = Self {
            read: read.into(),
            write: write.into(),
            askers: askers.collect(),
            to_write: Vec::new(),
            written: 0,
            unread: Vec::new(),
            padding: String::new(),
        };
        lane.push_request(0, 1);
        lane.padding = "x".repeat(size.saturating_sub(lane.to_write.len()));
        lane.to_write.clear();
        lane
    }

    /// Queues a request of a client that was due at `due`; `false` if it has too many in flight.
    pub(crate) fn ask(&mut self, asker: usize, due: Instant) -> bool {
        let which = &mut self.askers[asker];
        let id = which.next;
        let slot = &mut which.open[slot(id)];
        if slot.is_some() {
            return false;
        }
        *slot = Some((id, due));
        which.next += 1;
        which.in_flight += 1;
        self.push_request(asker, id);
        true
    }

    fn push_request(&mut self, asker: usize, id: u64) {
        let number = self.askers[asker].number;
        // Clients that share a connection must not share ids.
        let wire = if self.askers.len() > 1 { number * 1_000_000_000 + id } else { id };
        let padding = &self.padding;
        let _ = writeln!(
            self.to_write,
            r#"{{"jsonrpc":"2.0","id":{wire},"method":"tools/call","params":{{"name":"echo","arguments":{{"c":{number},"n":{id},"p":"{padding}"}}}}}}"#
        );
    }

    /// Writes what it can; returns whether something is left.
    pub(crate) fn flush(&mut self) -> bool {
        while self.written < self.to_write.len() {
            match self.write.write(&self.to_write[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) => panic!("it does not take requests: {error}"),
            }
        }
        self.to_write.clear();
        self.written = 0;
        false
    }

    /// Reads what is there, and calls `again` for each client that was answered.
    pub(crate) fn take(
        &mut self,
        block: &mut [u8],
        counts: &mut Counts,
        mut again: impl FnMut(&mut Self, usize, Instant),
    ) {
        let count = match self.read.read(block) {
            Ok(0) => panic!("it has hung up"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("it does not answer: {error}"),
        };
        let now = Instant::now();
        let mut rest = &block[..count];
        if !self.unread.is_empty() {
            let Some(end) = memchr(b'\n', rest) else { return self.unread.extend_from_slice(rest) };
            self.unread.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.unread);
            self.on_line(&line, now, counts, &mut again);
        }
        while let Some(end) = memchr(b'\n', rest) {
            self.on_line(&rest[..end], now, counts, &mut again);
            rest = &rest[end + 1..];
        }
        self.unread.extend_from_slice(rest);
    }

    fn on_line(
        &mut self,
        line: &[u8],
        now: Instant,
        counts: &mut Counts,
        again: &mut impl FnMut(&mut Self, usize, Instant),
    ) {
        let number = |before: &[u8]| -> Option<u64> {
            std::str::from_utf8(between(line, before, b",")?).ok()?.parse().ok()
        };
        let (Some(wire), Some(client), Some(id)) = (number(b"\"id\":"), number(b"\"c\":"), number(b"\"n\":"))
        else {
            // An error, or a notification, of which there is no cause.
            counts.misrouted += 1;
            return;
        };
        let first = self.askers[0].number;
        let is_shared = self.askers.len() > 1;
        let asker = usize::try_from(client.wrapping_sub(first)).unwrap_or(usize::MAX);
        let expected = if is_shared { client * 1_000_000_000 + id } else { id };
        let Some(which) = self.askers.get_mut(asker).filter(|_| wire == expected) else {
            counts.misrouted += 1;
            return;
        };
        let open = &mut which.open[slot(id)];
        match open.take() {
            Some((asked, due)) if asked == id => {
                which.in_flight -= 1;
                if counts.is_measuring {
                    counts.answered += 1;
                    let nanos = u64::try_from((now - due).as_nanos()).unwrap_or(u64::MAX);
                    counts.latency.saturating_record(nanos);
                }
                again(self, asker, now);
            }
            other => {
                *open = other;
                counts.doubled += 1;
            }
        }
    }
}

fn slot(id: u64) -> usize {
    usize::try_from(id % SLOTS).expect("small")
}
