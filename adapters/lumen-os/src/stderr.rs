//! A child's standard error: always read, never waited for, and of it only a little kept.

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::Errno;

/// Bytes of standard error kept for messages about a child's end. Costs this much for each child.
pub const MAX_STDERR_TAIL: usize = 8 * 1024;

/// The longest line handed out, in bytes; a longer one is handed out in pieces of this length. Costs at most
/// this much for each child.
pub const MAX_STDERR_LINE: usize = 8 * 1024;

/// Bytes read in one go.
const READ: usize = 8 * 1024;

/// Bytes read in one [`StderrDrain::drain`], so that a child that never stops talking does not stop the rest.
const BUDGET: usize = 64 * 1024;

/// How [`StderrDrain::drain`] left off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everything that had arrived is read; wait until the descriptor is readable.
    WouldBlock,
    /// There may be more; call again after other work.
    More,
    /// The stream has ended (or broke) and the last line was handed out; do not call again.
    Ended,
}

/// Reads the standard error of one child.
#[derive(Debug)]
pub struct StderrDrain {
    fd: OwnedFd,
    lines: StderrLines,
}

impl StderrDrain {
    /// Takes the reading end, which must be non-blocking, as [`spawn`](crate::spawn) made it.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd, lines: StderrLines::default() }
    }

    /// Reads what has arrived, at most 64 KiB, and hands each line to `on_line`, without its line feed.
    pub fn drain(&mut self, on_line: impl FnMut(&[u8])) -> Drained {
        self.lines.drain(self.fd.as_fd(), on_line)
    }

    /// Reads what is left after the child's end, at most 64 KiB, hands out the last line even if it has no line
    /// feed, and returns the tail.
    pub fn finish(mut self, on_line: impl FnMut(&[u8])) -> StderrTail {
        self.lines.finish(self.fd.as_fd(), on_line);
        self.into_tail()
    }

    /// Returns the end of what was read so far, and reads no more.
    pub fn into_tail(self) -> StderrTail {
        self.lines.into_tail()
    }

    /// Returns the end of what was read so far.
    pub fn tail(&self) -> &StderrTail {
        self.lines.tail()
    }
}

/// [`StderrDrain`] for those whose runtime holds the descriptor.
#[derive(Debug, Default)]
pub(crate) struct StderrLines {
    lines: Lines,
    tail: StderrTail,
}

impl StderrLines {
    /// As [`StderrDrain::drain`].
    pub(crate) fn drain(&mut self, fd: BorrowedFd<'_>, mut on_line: impl FnMut(&[u8])) -> Drained {
        let mut buf = [0; READ];
        let mut left = BUDGET;
        while left > 0 {
            match rustix::io::read(fd, &mut buf) {
                Ok(len @ 1..) => {
                    let bytes = buf.get(..len).unwrap_or_default();
                    self.tail.push(bytes);
                    self.lines.push(bytes, &mut on_line);
                    left = left.saturating_sub(len);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Drained::WouldBlock,
                Ok(0) | Err(_) => {
                    self.lines.finish(&mut on_line);
                    return Drained::Ended;
                }
            }
        }
        Drained::More
    }

    /// As [`StderrDrain::finish`].
    pub(crate) fn finish(&mut self, fd: BorrowedFd<'_>, mut on_line: impl FnMut(&[u8])) {
        if self.drain(fd, &mut on_line) != Drained::Ended {
            self.lines.finish(&mut on_line);
        }
    }

    pub(crate) fn tail(&self) -> &StderrTail {
        &self.tail
    }

    pub(crate) fn into_tail(self) -> StderrTail {
        self.tail
    }
}

impl AsFd for StderrDrain {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for StderrDrain {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// The last [`MAX_STDERR_TAIL`] bytes of a child's standard error.
#[derive(Clone, Debug, Default)]
pub struct StderrTail {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl StderrTail {
    /// Adds bytes, and drops the oldest beyond the bound.
    pub fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.get(bytes.len().saturating_sub(MAX_STDERR_TAIL)..).unwrap_or_default();
        let excess = (self.bytes.len() + kept.len()).saturating_sub(MAX_STDERR_TAIL);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
        self.dropped += (excess + bytes.len() - kept.len()) as u64;
    }

    /// Returns the kept text, with replacement characters for what is not UTF-8. A first line that was cut is
    /// left out if another follows it.
    pub fn text(&self) -> String {
        let (a, b) = self.bytes.as_slices();
        let bytes = [a, b].concat();
        let start = match bytes.iter().position(|&byte| byte == b'\n') {
            Some(at) if self.dropped > 0 && at + 1 < bytes.len() => at + 1,
            _ => 0,
        };
        String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
    }

    /// Returns the last lines of [`text`](Self::text), at most so many.
    pub fn last_lines(&self, most: usize) -> Vec<String> {
        let text = self.text();
        let mut lines: Vec<String> = text.lines().rev().take(most).map(str::to_owned).collect();
        lines.reverse();
        lines
    }

    /// Returns how many bytes came before those kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns whether nothing was ever written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Cuts a byte stream into lines of bounded length.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    fn push(&mut self, mut bytes: &[u8], on_line: &mut impl FnMut(&[u8])) {
        while let Some(at) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(at);
            self.extend(line, on_line);
            self.hand_out(on_line);
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.extend(bytes, on_line);
    }

    fn finish(&mut self, on_line: &mut impl FnMut(&[u8])) {
        if !self.partial.is_empty() {
            self.hand_out(on_line);
        }
    }

    fn extend(&mut self, mut bytes: &[u8], on_line: &mut impl FnMut(&[u8])) {
        while self.partial.len() + bytes.len() > MAX_STDERR_LINE {
            let (piece, rest) = bytes.split_at(MAX_STDERR_LINE - self.partial.len());
            self.partial.extend_from_slice(piece);
            self.hand_out(on_line);
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
    }

    fn hand_out(&mut self, on_line: &mut impl FnMut(&[u8])) {
        let line = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
        on_line(line);
        self.partial.clear();
    }
}

#[cfg(test)]
mod tests;
