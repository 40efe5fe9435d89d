//! Bytes into lines.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use super::cursor::is_json;
use super::{Scan, Scanned};
use crate::{Reason, limits};

/// Bytes of one line: lent by the input if they lay wholly in it, else put together.
#[derive(Clone, Debug)]
pub enum Text<'a> {
    /// A part of the input.
    Borrowed(&'a [u8]),
    /// Put together from several inputs.
    Owned(Bytes),
}

impl Text<'_> {
    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }

    /// Returns the bytes for keeps; copies them only if they were borrowed.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Self::Owned(bytes) => bytes,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Text<'_> {}

/// What [`Lines::feed`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A line that starts with `{` or `[`, without leading blanks, its LF, and one CR before that.
    Line(Text<'a>),
    /// A line that starts with anything else. It is not kept.
    Noise {
        /// Its first bytes, at most [`limits::MAX_EXCERPT`].
        excerpt: Text<'a>,
        /// Its length in bytes.
        len: u64,
    },
    /// A line that starts like a message and is longer than the limit. It is not kept.
    Skipped {
        /// Its length in bytes.
        len: u64,
        /// What is needed to answer it.
        scan: Scanned,
    },
    /// The stream cannot be followed any further, or has ended inside a line.
    Lost(Reason),
}

/// Cuts a byte stream into lines, whatever the pieces it comes in. Blank lines are passed over in silence.
///
/// A partial line is never searched again, and its buffer grows with what has arrived.
#[derive(Debug)]
pub struct Lines {
    max: usize,
    max_skip: u64,
    state: State,
    /// What has come of a line in [`State::Line`].
    partial: BytesMut,
}

#[derive(Debug)]
enum State {
    /// Nothing but so many blanks of the line has come.
    Blank(u64),
    /// A line that may be a message.
    Line,
    Noise {
        excerpt: Vec<u8>,
        seen: Seen,
    },
    /// A line that is too long.
    Skip {
        scan: Box<Scan>,
        seen: Seen,
    },
    /// More of a line came than will be skipped.
    Lost,
}

/// Counts the bytes of a line that is not kept.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    len: u64,
    ends_in_cr: bool,
}

impl Seen {
    fn add(&mut self, piece: &[u8]) {
        self.len += piece.len() as u64;
        if let Some(last) = piece.last() {
            self.ends_in_cr = *last == b'\r';
        }
    }

    /// Returns the length without a CR that may belong to the line's end.
    fn content(self) -> u64 {
        self.len - u64::from(self.ends_in_cr)
    }
}

impl Lines {
    /// Makes a cutter that keeps lines of up to `max` bytes and skips up to `max_skip` bytes of a longer one.
    ///
    /// # Bounds
    /// Twice `max` bytes while one partial line grows; nothing in between lines.
    pub fn with_limits(max: usize, max_skip: u64) -> Self {
        Self { max, max_skip, state: State::Blank(0), partial: BytesMut::new() }
    }

    /// Takes bytes from the front of `input`: up to the end of one line, or all of them.
    ///
    /// After [`Step::Lost`] it takes everything and returns nothing more.
    #[must_use]
    pub fn feed<'a>(&mut self, input: &mut &'a [u8]) -> Option<Step<'a>> {
        loop {
            match &mut self.state {
                State::Lost => *input = &[],
                State::Blank(blanks) => {
                    *input = pass_blanks(input, blanks, self.max_skip);
                    if *blanks > self.max_skip {
                        return Some(self.lose());
                    }
                    self.state = match input.first() {
                        Some(b'{' | b'[') => State::Line,
                        Some(_) => State::Noise { excerpt: Vec::new(), seen: Seen::default() },
                        None => return None,
                    };
                }
                _ => {}
            }
            if input.is_empty() {
                return None;
            }
            let (piece, rest, is_end) = match memchr::memchr(b'\n', input) {
                Some(at) => (input.get(..at)?, input.get(at + 1..)?, true),
                None => (*input, [].as_slice(), false),
            };
            *input = rest;
            if let Some(step) = self.on_piece(piece, is_end) {
                return Some(step);
            }
        }
    }

    /// Ends the stream. A last line without LF is a line if it is complete JSON, else it is lost.
    #[must_use]
    pub fn finish(&mut self) -> Option<Step<'static>> {
        let had = self.pending();
        let truncated = Step::Lost(Reason::Truncated { had });
        match core::mem::replace(&mut self.state, State::Lost) {
            State::Line => {
                let line = self.take_partial();
                Some(if is_json(&line) { Step::Line(Text::Owned(line)) } else { truncated })
            }
            State::Skip { scan, seen } if scan.is_complete() => {
                Some(Step::Skipped { len: seen.content(), scan: scan.finish() })
            }
            State::Skip { .. } => Some(truncated),
            State::Noise { excerpt, seen } => Some(noise(excerpt, seen)),
            State::Blank(_) | State::Lost => None,
        }
    }

    /// Returns whether a line has begun and not ended. Blanks do not begin a line.
    pub const fn is_mid_line(&self) -> bool {
        matches!(self.state, State::Line | State::Noise { .. } | State::Skip { .. })
    }

    /// Returns how many bytes of an unended line have come.
    pub fn pending(&self) -> u64 {
        match &self.state {
            State::Line => self.partial.len() as u64,
            State::Noise { seen, .. } | State::Skip { seen, .. } => seen.len,
            State::Blank(_) | State::Lost => 0,
        }
    }

    /// Takes bytes of one line; `is_end` tells that its LF followed.
    fn on_piece<'a>(&mut self, piece: &'a [u8], is_end: bool) -> Option<Step<'a>> {
        if matches!(self.state, State::Line) {
            let last = piece.last().or(self.partial.last());
            let content = self.partial.len() + piece.len() - usize::from(last == Some(&b'\r'));
            if content <= self.max {
                return self.on_line(piece, is_end);
            }
            let mut scan = Box::new(Scan::new());
            let mut seen = Seen::default();
            seen.add(&self.partial);
            scan.push(&self.partial);
            self.partial = BytesMut::new();
            self.state = State::Skip { scan, seen };
        }
        let (State::Noise { seen, .. } | State::Skip { seen, .. }) = &mut self.state else { return None };
        seen.add(piece);
        if seen.content() > self.max_skip {
            return Some(self.lose());
        }
        match &mut self.state {
            State::Skip { scan, .. } => scan.push(piece),
            State::Noise { excerpt, .. } => {
                let room = limits::MAX_EXCERPT.saturating_sub(excerpt.len());
                excerpt.extend_from_slice(piece.get(..room).unwrap_or(piece));
            }
            _ => {}
        }
        if !is_end {
            return None;
        }
        match core::mem::replace(&mut self.state, State::Blank(0)) {
            State::Skip { scan, seen } => Some(Step::Skipped { len: seen.content(), scan: scan.finish() }),
            State::Noise { excerpt, seen } => Some(noise(excerpt, seen)),
            _ => None,
        }
    }

    /// Takes bytes of a line that is within the limit.
    fn on_line<'a>(&mut self, piece: &'a [u8], is_end: bool) -> Option<Step<'a>> {
        if is_end && self.partial.is_empty() {
            self.state = State::Blank(0);
            return Some(Step::Line(Text::Borrowed(piece.strip_suffix(b"\r").unwrap_or(piece))));
        }
        self.partial.extend_from_slice(piece);
        if !is_end {
            return None;
        }
        self.state = State::Blank(0);
        Some(Step::Line(Text::Owned(self.take_partial())))
    }

    fn take_partial(&mut self) -> Bytes {
        let mut line = core::mem::take(&mut self.partial);
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        line.freeze()
    }

    fn lose<'a>(&mut self) -> Step<'a> {
        self.state = State::Lost;
        Step::Lost(Reason::TooLongToSkip { max: self.max_skip })
    }
}

/// Passes blanks and line ends, and counts the blanks since the last line end; stops where there are more than
/// `max`.
fn pass_blanks<'a>(input: &'a [u8], blanks: &mut u64, max: u64) -> &'a [u8] {
    let mut rest = input;
    while let Some((byte @ (b' ' | b'\t' | b'\r' | b'\n'), after)) = rest.split_first() {
        *blanks = if *byte == b'\n' { 0 } else { *blanks + 1 };
        rest = after;
        if *blanks > max {
            break;
        }
    }
    rest
}

fn noise<'a>(mut excerpt: Vec<u8>, seen: Seen) -> Step<'a> {
    let len = seen.content();
    // A CR that belonged to the line's end may have been kept as its last byte.
    excerpt.truncate(usize::try_from(len).unwrap_or(usize::MAX));
    Step::Noise { excerpt: Text::Owned(excerpt.into()), len }
}

#[cfg(test)]
mod tests;
