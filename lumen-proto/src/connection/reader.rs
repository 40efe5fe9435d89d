//! Lines and frames out of one byte stream, told apart at each boundary.

use bytes::Bytes;

use super::codec::Codec;
use crate::frame::{Assembler, Flags, Growing, Header, Kind, MAX_HEADER_LEN, Payload, Step as FrameStep};
use crate::jsonrpc::{Lines, Message, Refused, Scan, Scanned, Step as LineStep, Text};
use crate::message::Packet;
use crate::negotiate::Hello;
use crate::{Reason, limits, value, varint};

/// One thing read, owned.
#[derive(Debug)]
pub(super) enum Read {
    /// A message, and whether it came in a frame.
    Message {
        message: Packet,
        framed: bool,
    },
    Rejected {
        reason: Reason,
        id: Option<Bytes>,
        has_method: bool,
    },
    Noise {
        excerpt: Bytes,
        bytes: u64,
    },
    Probe(Hello),
    Ack(Hello),
    Heartbeat(Bytes),
    /// A frame of a type that means nothing here.
    Skipped(Kind),
    Lost(Reason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Boundary,
    Line,
    Frame,
    Lost,
}

/// What stands at a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// One byte of white space. What follows it is looked at afresh, so that blanks hide no frame.
    Blank,
    Line,
    Frame,
}

/// Tells lines from frames and cuts both.
///
/// # Telling them apart
/// `{` and `[` start a line, a byte that a frame's length may start with starts a frame, anything else is noise
/// up to its line feed. Log lines often start with a digit, a blank or an escape sequence, which are lengths
/// too. So until a probe or an ACK has been seen, only those two types start a frame; afterwards, a header that
/// reads like text is taken for text: as a frame it would have reserved flags and be refused anyway.
#[derive(Debug)]
pub(super) struct Reader {
    lines: Lines,
    frames: Assembler<Growing>,
    at: At,
    /// The beginning of a frame header, or of what looked like one.
    head: Head,
    /// Follows the payload of a frame that is too long to keep.
    scan: Option<PayloadScan>,
    max: u64,
    takes_frames: bool,
    /// Whether compressed messages stay as they are.
    keeps_values: bool,
    /// A probe or an ACK has been seen.
    met: bool,
}

#[derive(Debug, Default)]
struct Head {
    bytes: [u8; MAX_HEADER_LEN],
    len: usize,
}

impl Head {
    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
            self.len += 1;
        }
    }

    fn drop_front(&mut self, count: usize) {
        self.bytes.copy_within(count.min(self.len)..self.len, 0);
        self.len -= count.min(self.len);
    }
}

/// Finds the id in a payload of either encoding.
#[derive(Debug)]
enum PayloadScan {
    Text(Scan),
    Value(value::Scan),
}

impl PayloadScan {
    fn new(header: &Header) -> Self {
        if is_compressed(header) { Self::Value(value::Scan::new()) } else { Self::Text(Scan::new()) }
    }

    fn push(&mut self, piece: &[u8]) {
        match self {
            Self::Text(scan) => scan.push(piece),
            Self::Value(scan) => scan.push(piece),
        }
    }

    fn finish(self, header: &Header) -> Scanned {
        match self {
            Self::Text(scan) => scan.finish(),
            Self::Value(scan) => {
                // Where a value could not be followed to its end, only the type tells what it was to be.
                let by_type = header.kind == Kind::REQUEST && !scan.is_complete();
                let value::Scanned { id, has_method } = scan.finish();
                Scanned { id, has_method: has_method || by_type }
            }
        }
    }
}

impl Reader {
    /// # Bounds
    /// One partial message of at most `max` bytes, doubled while it grows.
    pub(super) fn new(max: usize, takes_frames: bool, keeps_values: bool) -> Self {
        Self {
            lines: Lines::with_limits(max, limits::MAX_SKIP),
            frames: Assembler::with_limits(Growing::new(), max as u64, limits::MAX_SKIP),
            at: At::Boundary,
            head: Head::default(),
            scan: None,
            max: max as u64,
            takes_frames,
            keeps_values,
            met: false,
        }
    }

    /// Takes bytes from the front of `input` and returns what they led to, at most one thing; `None` when all
    /// of it is taken.
    pub(super) fn next(&mut self, input: &mut &[u8], codec: &mut Codec) -> Option<Read> {
        loop {
            if self.at == At::Boundary {
                self.decide(input)?;
            }
            if self.at == At::Lost {
                *input = &[];
                return None;
            }
            let read = if self.head.len == 0 {
                self.advance(input, codec)
            } else {
                let head = core::mem::take(&mut self.head);
                let mut rest = head.as_slice();
                let read = self.advance(&mut rest, codec);
                let taken = head.len - rest.len();
                self.head = head;
                self.head.drop_front(taken);
                read
            };
            if read.is_some() || (input.is_empty() && self.head.len == 0) {
                return read;
            }
        }
    }

    /// Takes the end of the stream.
    pub(super) fn finish(&mut self) -> Option<Read> {
        let at = core::mem::replace(&mut self.at, At::Lost);
        match at {
            At::Frame => Some(Read::Lost(Reason::Truncated { had: self.frames.pending() })),
            At::Line => self.lines.finish().map(|step| from_line(step, self.max)),
            At::Boundary if !self.head.as_slice().trim_ascii().is_empty() => Some(Read::Noise {
                excerpt: Bytes::copy_from_slice(self.head.as_slice()),
                bytes: self.head.len as u64,
            }),
            At::Boundary | At::Lost => None,
        }
    }

    /// Finds out what starts here. `None`: there is no more input to tell by.
    fn decide(&mut self, input: &mut &[u8]) -> Option<()> {
        loop {
            let known = if self.head.len == 0 { *input } else { self.head.as_slice() };
            match self.judge(known) {
                Some(Start::Blank) if self.head.len == 0 => *input = input.get(1..).unwrap_or_default(),
                Some(Start::Blank) => self.head.drop_front(1),
                Some(start) => {
                    self.at = if start == Start::Line { At::Line } else { At::Frame };
                    return Some(());
                }
                None => {
                    // Fewer bytes than a header has: collect them one by one.
                    let (byte, rest) = input.split_first()?;
                    self.head.push(*byte);
                    *input = rest;
                }
            }
        }
    }

    fn judge(&self, bytes: &[u8]) -> Option<Start> {
        let first = *bytes.first()?;
        if !self.takes_frames || !varint::is_lead(first) {
            return Some(Start::Line);
        }
        let text = if is_blank(first) { Start::Blank } else { Start::Line };
        if self.met {
            return match Header::decode(bytes) {
                Ok(None) => None,
                Ok(Some((header, _))) if is_text(first, &header) => Some(text),
                Ok(Some(_)) | Err(_) => Some(Start::Frame),
            };
        }
        // No probe or ACK is longer than 65,535 bytes.
        let at = match first {
            0x40 | 0xc0 => return Some(Start::Line),
            0x80 => 3,
            _ => 1,
        };
        if !matches!(Kind(*bytes.get(at)?), Kind::PROBE | Kind::PROBE_ACK) {
            return Some(text);
        }
        // Or is it a blank, and then a probe as long as its own type says? The flags tell.
        let is_hello = !is_blank(first) || *bytes.get(2)? & !Flags::COMPRESSED.0 == 0;
        Some(if is_hello { Start::Frame } else { text })
    }

    /// Goes on with the line or frame that has begun. `None`: all of `input` is taken.
    fn advance(&mut self, input: &mut &[u8], codec: &mut Codec) -> Option<Read> {
        if self.at == At::Line {
            let step = self.lines.feed(input);
            if !self.lines.is_mid_line() {
                // Also behind blank lines, which pass in silence.
                self.at = if matches!(step, Some(LineStep::Lost(_))) { At::Lost } else { At::Boundary };
            }
            return step.map(|step| from_line(step, self.max));
        }
        let (at, read) = match self.frames.feed(input)? {
            FrameStep::Frame { header, payload } => {
                (At::Boundary, from_frame(header, payload, self.max, self.keeps_values, codec))
            }
            FrameStep::Skipped { header, chunk, end } => {
                let mut scan = self.scan.take().unwrap_or_else(|| PayloadScan::new(&header));
                scan.push(chunk.as_slice());
                if !end {
                    self.scan = Some(scan);
                    return None;
                }
                (At::Boundary, oversize_frame(header, self.max, scan))
            }
            FrameStep::Lost(reason) => (At::Lost, Read::Lost(reason)),
        };
        self.at = at;
        self.met |= matches!(read, Read::Probe(_) | Read::Ack(_));
        Some(read)
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' ')
}

/// Whether a frame header is rather the beginning of text. No legal frame is: printable flags have reserved bits.
fn is_text(first: u8, header: &Header) -> bool {
    let printable = |byte: u8| (0x20..0x7f).contains(&byte);
    // ESC starts the colours of a log line.
    let is_typed = |byte: u8| printable(byte) || is_blank(byte) || byte == 0x1b;
    is_typed(first) && is_typed(header.kind.0) && printable(header.flags.0)
}

fn from_line(step: LineStep<'_>, max: u64) -> Read {
    match step {
        LineStep::Line(Text::Borrowed(text)) => match Message::copy_from(text) {
            Ok(message) => Read::Message { message: message.into(), framed: false },
            Err(refused) => rejected(refused, text),
        },
        LineStep::Line(Text::Owned(text)) => from_owned(text, false),
        LineStep::Noise { excerpt, len } => Read::Noise { excerpt: excerpt.into_bytes(), bytes: len },
        LineStep::Skipped { len, scan } => oversize(len, max, scan),
        LineStep::Lost(reason) => Read::Lost(reason),
    }
}

fn from_owned(text: Bytes, framed: bool) -> Read {
    match Message::parse(text) {
        Ok(message) => Read::Message { message: message.into(), framed },
        Err((refused, text)) => rejected(refused, &text),
    }
}

fn from_frame(header: Header, payload: Payload<'_>, max: u64, keeps_values: bool, codec: &mut Codec) -> Read {
    if let Some(reason) = objection(&header) {
        return refused(&header, reason);
    }
    match header.kind {
        Kind::PROBE | Kind::PROBE_ACK => {
            match (Hello::from_frame(&header, payload.as_slice()), header.kind) {
                (Some(hello), Kind::PROBE) => Read::Probe(hello),
                (Some(hello), _) => Read::Ack(hello),
                (None, kind) => Read::Skipped(kind),
            }
        }
        Kind::HEARTBEAT => Read::Heartbeat(payload.into_bytes()),
        kind if !kind.is_message() => Read::Skipped(kind),
        _ if !is_compressed(&header) => from_owned(payload.into_bytes(), true),
        _ if keeps_values => from_value(&header, payload.into_bytes()),
        _ => match codec.decode(payload.as_slice(), max) {
            Ok((text, Some(envelope))) => {
                Read::Message { message: Message::checked(text, envelope).into(), framed: true }
            }
            Ok((text, None)) => from_owned(text, true),
            Err(reason) => unread_value(&header, reason, payload.as_slice()),
        },
    }
}

fn from_value(header: &Header, bytes: Bytes) -> Read {
    match Packet::from_value(bytes) {
        Ok(message) => Read::Message { message, framed: true },
        Err((refused, bytes)) => match refused.reason {
            reason @ Reason::NotValue { .. } => unread_value(header, reason, &bytes),
            reason => Read::Rejected { reason, id: refused.id, has_method: refused.has_method },
        },
    }
}

/// A value that is none, or too long as text.
fn unread_value(header: &Header, reason: Reason, value: &[u8]) -> Read {
    let mut scan = PayloadScan::new(header);
    scan.push(value);
    unread(reason, scan.finish(header))
}

fn is_compressed(header: &Header) -> bool {
    header.flags.contains(Flags::COMPRESSED)
}

/// Returns why a frame is refused whatever its payload is.
fn objection(header: &Header) -> Option<Reason> {
    let Header { kind, flags, .. } = *header;
    if kind.is_reserved() {
        return Some(Reason::ReservedType(kind.0));
    }
    if flags.reserved_bits() != 0 {
        return Some(Reason::ReservedFlags(flags.0));
    }
    let unsupported = if flags.contains(Flags::ENCRYPTED) {
        "an encrypted frame"
    } else if flags.contains(Flags::FRAGMENTED) {
        "a fragmented frame"
    } else if matches!(kind, Kind::STREAM_INIT | Kind::STREAM_DATA) {
        "a stream frame"
    } else {
        return None;
    };
    Some(Reason::Unsupported(unsupported))
}

/// A frame whose payload cannot be asked for the id.
fn refused(header: &Header, reason: Reason) -> Read {
    Read::Rejected { reason, id: None, has_method: header.kind == Kind::REQUEST }
}

fn rejected(refused: Refused, text: &[u8]) -> Read {
    let id = refused.id.map(|id| Bytes::copy_from_slice(id.of(text)));
    Read::Rejected { reason: refused.reason, id, has_method: refused.has_method }
}

fn oversize_frame(header: Header, max: u64, scan: PayloadScan) -> Read {
    if let Some(reason) = objection(&header) {
        return refused(&header, reason);
    }
    if header.kind.is_message() {
        oversize(header.len, max, scan.finish(&header))
    } else {
        Read::Skipped(header.kind)
    }
}

fn oversize(len: u64, max: u64, scanned: Scanned) -> Read {
    unread(Reason::TooLong { len, max }, scanned)
}

/// A message of which nothing is left but what a scan has found.
fn unread(reason: Reason, scanned: Scanned) -> Read {
    Read::Rejected { reason, id: scanned.id, has_method: scanned.has_method }
}
