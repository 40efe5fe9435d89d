//! Taking frames out of a byte stream, however it is cut up.

#[cfg(feature = "alloc")]
use bytes::{Buf, Bytes};

use super::{Header, MAX_HEADER_LEN, Payload, Storage};
use crate::{Reason, varint};

/// Takes frames out of a byte stream.
///
/// Feed it what arrived until it returns `None`; any way of cutting the stream up gives the same frames. No
/// byte is looked at twice: header bytes are at most [`MAX_HEADER_LEN`], payload bytes are appended once.
///
/// # Bounds
/// Its storage holds one partial payload of at most `max_message` bytes; a length above that is noticed
/// before any of the payload is stored.
#[derive(Debug)]
pub struct Assembler<S> {
    storage: S,
    max_message: u64,
    max_skip: u64,
    state: State,
}

/// What one call of [`Assembler::feed`] found.
#[derive(Clone, Debug)]
#[must_use]
pub enum Step<'a> {
    /// A whole frame.
    Frame {
        /// Its header.
        header: Header,
        /// All its payload, `header.len` bytes.
        payload: Payload<'a>,
    },
    /// Part of the payload of a frame above the size limit, which is not kept. The parts of one frame come in
    /// order, none is empty, and nothing else comes in between.
    Skipped {
        /// The frame's header.
        header: Header,
        /// The bytes that come next in its payload.
        chunk: Payload<'a>,
        /// Whether this was the last part.
        end: bool,
    },
    /// The boundary between frames is lost. Everything that follows is swallowed.
    Lost(Reason),
}

#[derive(Debug)]
enum State {
    /// Between frames, or within a header of which `len` bytes have come.
    Header { buf: [u8; MAX_HEADER_LEN], len: usize },
    /// Within a payload: `head` bytes of header and `had` of payload have come.
    Payload { header: Header, head: usize, had: usize, len: usize },
    /// Within a payload above the limit: `head` bytes of header and `had` of payload have come.
    Skip { header: Header, head: usize, had: u64 },
    /// The boundary is lost.
    Lost,
}

const START: State = State::Header { buf: [0; MAX_HEADER_LEN], len: 0 };

/// What a piece of input led to; positions are relative to its start.
enum Found {
    /// Nothing yet; all of it was taken.
    More,
    /// A frame whose payload is the last bytes taken, from `at`.
    Whole { header: Header, at: usize },
    /// A frame whose payload is in the storage.
    Stored { header: Header },
    /// Part of a skipped payload: the last bytes taken, from `at`.
    Skipped { header: Header, at: usize, end: bool },
    /// The boundary is lost.
    Lost(Reason),
}

impl<S: Storage> Assembler<S> {
    /// Makes one that stands before the first frame.
    ///
    /// # Bounds
    /// A frame whose payload is longer than `max_message`, or than the storage can hold, is skipped; if it is
    /// longer than `max_skip` too, the boundary counts as lost. Both are in bytes.
    pub fn with_limits(storage: S, max_message: u64, max_skip: u64) -> Self {
        let max_message = max_message.min(storage.max_len()).min(isize::MAX as u64);
        Self { storage, max_message, max_skip, state: START }
    }

    /// Takes bytes from the front of `input` and returns what they led to, at most one thing.
    ///
    /// `None` means that all of `input` has been taken and more is needed; so call it until then. The payload
    /// is borrowed from `input` if it lies in it as a whole, else it comes out of the storage.
    pub fn feed<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Step<'a>> {
        let (taken, found) = self.advance(input);
        let (front, rest) = input.split_at_checked(taken).unwrap_or((input, &[]));
        *input = rest;
        let part = |at| Payload::from(front.get(at..).unwrap_or_default());
        Some(match found {
            Found::More => return None,
            Found::Whole { header, at } => Step::Frame { header, payload: part(at) },
            Found::Stored { header } => Step::Frame { header, payload: self.storage.finish() },
            Found::Skipped { header, at, end } => Step::Skipped { header, chunk: part(at), end },
            Found::Lost(reason) => Step::Lost(reason),
        })
    }

    /// Does what [`feed`](Self::feed) does, but payloads that lie in `input` as a whole are slices of it that
    /// [`Payload::into_bytes`] hands over without a copy.
    #[cfg(feature = "alloc")]
    pub fn feed_bytes(&mut self, input: &mut Bytes) -> Option<Step<'_>> {
        let (taken, found) = self.advance(input);
        let mut part = |at| {
            let mut bytes = input.split_to(taken);
            bytes.advance(at);
            Payload::from(bytes)
        };
        Some(match found {
            Found::Whole { header, at } => Step::Frame { header, payload: part(at) },
            Found::Skipped { header, at, end } => Step::Skipped { header, chunk: part(at), end },
            Found::More => {
                input.advance(taken);
                return None;
            }
            Found::Stored { header } => {
                input.advance(taken);
                Step::Frame { header, payload: self.storage.finish() }
            }
            Found::Lost(reason) => {
                input.advance(taken);
                Step::Lost(reason)
            }
        })
    }

    /// Returns how many bytes of an unfinished frame have been taken, header included; 0 between frames and
    /// after the boundary was lost.
    pub fn pending(&self) -> u64 {
        match self.state {
            State::Header { len, .. } => len as u64,
            State::Payload { head, had, .. } => (head + had) as u64,
            State::Skip { head, had, .. } => had.saturating_add(head as u64),
            State::Lost => 0,
        }
    }

    /// Returns whether the bytes taken so far end within a frame.
    pub fn is_mid_frame(&self) -> bool {
        self.pending() > 0
    }

    /// Takes bytes from the front of `input`; returns how many and what they led to.
    fn advance(&mut self, input: &[u8]) -> (usize, Found) {
        // The usual case, a whole frame in the input, leaves the state as it is.
        if let State::Header { len: 0, .. } = self.state
            && let Ok(Some((header, at))) = Header::decode(input)
            && header.len <= self.max_message
            && header.len <= (input.len() - at) as u64
            && let Ok(len) = usize::try_from(header.len)
        {
            return (at + len, Found::Whole { header, at });
        }
        let at = match self.state {
            State::Header { buf, len } => match self.on_header(input, buf, len) {
                Ok(Some(at)) => at,
                Ok(None) => return (input.len(), Found::More),
                Err(reason) => {
                    self.state = State::Lost;
                    return (input.len(), Found::Lost(reason));
                }
            },
            _ => 0,
        };
        let rest = input.get(at..).unwrap_or_default();
        match self.state {
            State::Payload { header, head, had, len } => {
                let taken = rest.len().min(len - had);
                let found =
                    self.on_payload(rest.get(..taken).unwrap_or_default(), at, header, head, had, len);
                (at + taken, found)
            }
            State::Skip { header, head, had } if !rest.is_empty() => {
                let left = header.len - had;
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                let end = taken as u64 == left;
                self.state = if end { START } else { State::Skip { header, head, had: had + taken as u64 } };
                (at + taken, Found::Skipped { header, at, end })
            }
            State::Skip { .. } | State::Header { .. } | State::Lost => (input.len(), Found::More),
        }
    }

    /// Takes the next bytes of a header of which `had` are in `buf`. Returns how many it took if that completes
    /// it, and then stands within the payload; otherwise has taken all.
    fn on_header(
        &mut self,
        input: &[u8],
        mut buf: [u8; MAX_HEADER_LEN],
        had: usize,
    ) -> Result<Option<usize>, Reason> {
        let mut seen = input;
        if had > 0 {
            let (_, room) = buf.split_at_mut(had);
            let more = room.len().min(input.len());
            room[..more].copy_from_slice(&input[..more]);
            seen = &buf[..had + more];
        }
        let Some((header, head)) = Header::decode(seen)? else {
            // The limit does not wait for the type and flags.
            if let Some((len, _)) = varint::decode(seen)? {
                self.check_skip(len)?;
            }
            // Shorter than a header, or it would have been one.
            let len = seen.len();
            let mut kept = [0; MAX_HEADER_LEN];
            kept[..len].copy_from_slice(seen);
            self.state = State::Header { buf: kept, len };
            return Ok(None);
        };
        self.check_skip(header.len)?;
        self.state = match usize::try_from(header.len) {
            Ok(len) if header.len <= self.max_message => State::Payload { header, head, had: 0, len },
            _ => State::Skip { header, head, had: 0 },
        };
        Ok(Some(head - had))
    }

    fn check_skip(&self, len: u64) -> Result<(), Reason> {
        if len > self.max_message && len > self.max_skip {
            return Err(Reason::TooLongToSkip { max: self.max_skip });
        }
        Ok(())
    }

    /// Takes `part`, which is what the payload goes on with and lies at `at` of the input.
    fn on_payload(
        &mut self,
        part: &[u8],
        at: usize,
        header: Header,
        head: usize,
        had: usize,
        len: usize,
    ) -> Found {
        if part.len() == len {
            self.state = START;
            return Found::Whole { header, at };
        }
        if part.is_empty() {
            return Found::More;
        }
        if had == 0 {
            self.storage.begin(len);
        }
        self.storage.append(part);
        let had = had + part.len();
        if had < len {
            self.state = State::Payload { header, head, had, len };
            return Found::More;
        }
        self.state = START;
        Found::Stored { header }
    }
}
