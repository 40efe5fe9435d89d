//! Frames, or one value, to JSON text.

use std::io::Write as _;

use lumen_proto::Reason;
use lumen_proto::frame::{Assembler, Flags, Growing, Header, Kind, Step};
use lumen_proto::jsonrpc::Envelope;
use lumen_proto::limits::{MAX_DEPTH, MAX_MESSAGE};
use lumen_proto::value::transcode::Transcoder;
use lumen_proto::varint::is_lead;

use super::files::{Sink, Source};
use super::{Stop, reuse};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Turns frames into lines.
#[derive(Debug)]
pub(super) struct Decoder {
    assembler: Assembler<Growing>,
    printer: Printer,
    /// Bytes before the frame that comes next or has begun.
    start: u64,
    /// Bytes taken.
    taken: u64,
}

impl Decoder {
    /// Makes one that prints the messages, or everything there is to say of each frame.
    pub(super) fn new(frames: bool) -> Self {
        Self {
            assembler: Assembler::with_limits(Growing::new(), MAX_MESSAGE as u64, u64::MAX),
            printer: Printer { frames, ..Printer::default() },
            start: 0,
            taken: 0,
        }
    }

    pub(super) fn take(&mut self, source: &Source, mut piece: &[u8], sink: &mut Sink) -> Result<(), Stop> {
        loop {
            if let Some(first) = piece.first()
                && !self.assembler.is_mid_frame()
                && !is_lead(*first)
            {
                let advice = if matches!(first, b'{' | b'[') {
                    "this looks like JSON text, which `lumen encode` takes"
                } else {
                    "the input must begin with a frame, and frames follow each other with nothing in between"
                };
                return Err(fault(
                    source,
                    self.start,
                    &format!("no frame starts with 0x{first:02x}; {advice}"),
                ));
            }
            let before = piece.len();
            let step = self.assembler.feed(&mut piece);
            self.taken += (before - piece.len()) as u64;
            let reason = match step {
                None => return Ok(()),
                Some(Step::Frame { header, payload }) => {
                    let head = self.taken - self.start - header.len;
                    let frame = Frame { offset: self.start, head, header, payload: &payload };
                    self.printer.put(&frame, source, sink)?;
                    self.start = self.taken;
                    continue;
                }
                Some(Step::Skipped { header, .. }) => {
                    Reason::TooLong { len: header.len, max: MAX_MESSAGE as u64 }
                }
                Some(Step::Lost(reason)) => reason,
            };
            return Err(fault(
                source,
                self.start,
                &format!("{reason}; is it a capture of one direction, from its start?"),
            ));
        }
    }

    /// Ends the input.
    pub(super) fn finish(&mut self, source: &Source) -> Result<(), Stop> {
        match (self.assembler.pending(), self.printer.broken.take()) {
            (0, None) => Ok(()),
            (0, Some(broken)) => Err(broken.told(source, "its line has the payload in hex")),
            (had, _) => {
                let why = format!(
                    "the input ends inside this frame, after {had} bytes of it; was it cut off on its way?"
                );
                Err(fault(source, self.start, &why))
            }
        }
    }
}

fn fault(source: &Source, offset: u64, why: &str) -> Stop {
    source.failed(&format!("byte {offset}: {why}"))
}

/// One frame and where it was.
struct Frame<'a> {
    offset: u64,
    /// Bytes of header.
    head: u64,
    header: Header,
    payload: &'a [u8],
}

impl Frame<'_> {
    /// Tells what is wrong with the frame as a whole.
    fn refused(&self, reason: Reason) -> Broken {
        Broken { offset: self.offset, what: reason.to_string() }
    }

    /// Tells what is wrong at one byte of the payload.
    fn wrong(&self, at: usize, what: &str) -> Broken {
        let what = format!("{what}, in the {} frame at byte {}", self.header.kind, self.offset);
        Broken { offset: self.offset + self.head + at as u64, what }
    }
}

/// What is wrong with a frame whose end is known all the same.
#[derive(Debug)]
struct Broken {
    offset: u64,
    what: String,
}

impl Broken {
    fn told(&self, source: &Source, advice: &str) -> Stop {
        fault(source, self.offset, &format!("{}; {advice}", self.what))
    }
}

/// Prints frames, in memory that is used again.
#[derive(Debug, Default)]
struct Printer {
    frames: bool,
    /// The first broken frame that was printed.
    broken: Option<Broken>,
    transcoder: Transcoder,
    text: Vec<u8>,
    line: Vec<u8>,
}

impl Printer {
    fn put(&mut self, frame: &Frame<'_>, source: &Source, sink: &mut Sink) -> Result<(), Stop> {
        let is_document = self.read_if_any(frame);
        if self.frames {
            self.describe(frame, &is_document);
            sink.put(&self.line)?;
            self.broken = self.broken.take().or(is_document.err());
        } else if is_document.map_err(|broken| broken.told(source, "--frames shows it, and goes on"))? {
            self.text.push(b'\n');
            sink.put(&self.text)?;
        }
        reuse(&mut self.text);
        reuse(&mut self.line);
        Ok(())
    }

    /// Returns whether the frame holds a document that is to be shown, which is then in `text`.
    fn read_if_any(&mut self, frame: &Frame<'_>) -> Result<bool, Broken> {
        let Header { kind, flags, .. } = frame.header;
        if kind.is_reserved() {
            return Err(frame.refused(Reason::ReservedType(kind.0)));
        }
        if flags.reserved_bits() != 0 {
            return Err(frame.refused(Reason::ReservedFlags(flags.0)));
        }
        for (flag, name) in [(Flags::ENCRYPTED, "ENCRYPTED"), (Flags::FRAGMENTED, "FRAGMENTED")] {
            if flags.contains(flag) {
                let is_wanted = kind.is_message() && !self.frames;
                return if is_wanted { Err(frame.refused(Reason::Unsupported(name))) } else { Ok(false) };
            }
        }
        if !kind.is_message() {
            return Ok(self.frames && may_be_document(frame) && self.read(frame).is_ok());
        }
        match self.read(frame) {
            // Plain payloads may be anything, but what is compressed must be a value.
            Err(_) if self.frames && !flags.contains(Flags::COMPRESSED) => Ok(false),
            read => read.map(|()| true),
        }
    }

    /// Reads the payload as one JSON document, which is then in `text` on one line.
    fn read(&mut self, frame: &Frame<'_>) -> Result<(), Broken> {
        self.text.clear();
        if frame.header.flags.contains(Flags::COMPRESSED) {
            return match self.transcoder.decode_within(frame.payload, None, MAX_MESSAGE, &mut self.text) {
                Ok(_) => Ok(()),
                Err(invalid) => Err(frame.wrong(invalid.offset, &invalid.problem.to_string())),
            };
        }
        // What is JSON and no JSON-RPC is shown as it is: this judges the carrier, not the messages.
        match Envelope::parse(frame.payload).map_err(|refused| refused.reason) {
            Err(Reason::NotJson { at }) => Err(frame.wrong(at, "not JSON")),
            Err(Reason::NotUtf8 { at }) => Err(frame.wrong(at, "not UTF-8")),
            Err(Reason::TooDeep { at }) => {
                Err(frame.wrong(at, &format!("JSON nested deeper than {MAX_DEPTH}")))
            }
            _ => {
                // Valid JSON has line ends between its tokens only.
                let bytes = frame.payload.trim_ascii().iter();
                self.text.extend(bytes.map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
                Ok(())
            }
        }
    }

    /// Makes the line of a frame. Writing to memory cannot fail.
    fn describe(&mut self, frame: &Frame<'_>, is_document: &Result<bool, Broken>) {
        let Header { kind, flags, len } = frame.header;
        let line = &mut self.line;
        let _ = write!(line, "{{\"offset\":{},\"type\":\"{kind}\",\"flags\":[", frame.offset);
        for (index, name) in names(kind, flags).enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(line, "{comma}\"{name}\"");
        }
        let _ = write!(line, "],\"header\":{},\"payload\":{len},\"message\":", frame.head);
        let key: &[u8] = if kind.is_message() { b"" } else { b"null,\"json\":" };
        if matches!(is_document, Ok(true)) {
            line.extend_from_slice(key);
            line.extend_from_slice(&self.text);
        } else {
            line.extend_from_slice(b"null,\"hex\":\"");
            for byte in frame.payload {
                line.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
            }
            line.push(b'"');
        }
        if let Err(broken) = is_document {
            line.extend_from_slice(b",\"problem\":");
            let _ = serde_json::to_writer(&mut *line, &format!("byte {}: {}", broken.offset, broken.what));
        }
        line.extend_from_slice(b"}\n");
    }
}

/// Returns whether the payload of a frame that carries no message looks like a document.
fn may_be_document(frame: &Frame<'_>) -> bool {
    let Header { kind, flags, .. } = frame.header;
    kind != Kind::FLOW_CTL
        && (flags.contains(Flags::COMPRESSED) || matches!(frame.payload.first(), Some(b'{' | b'[')))
}

/// Returns the names of the flags that are set.
fn names(kind: Kind, flags: Flags) -> impl Iterator<Item = &'static str> {
    let first = if kind == Kind::FLOW_CTL { "PAUSE" } else { "COMPRESSED" };
    [
        (Flags::COMPRESSED, first),
        (Flags::ENCRYPTED, "ENCRYPTED"),
        (Flags::PRIORITY, "PRIORITY"),
        (Flags::FRAGMENTED, "FRAGMENTED"),
    ]
    .into_iter()
    .filter_map(move |(flag, name)| flags.contains(flag).then_some(name))
}

/// Returns the JSON text of the one value in `bytes`, and a line feed.
///
/// # Errors
/// The first byte that is wrong, and why.
pub(super) fn value(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    match Transcoder::new().decode_within(bytes, None, MAX_MESSAGE, &mut text) {
        Ok(_) => {
            text.push(b'\n');
            Ok(text)
        }
        Err(invalid) => Err(format!(
            "byte {}: {}; --value takes the bytes of one value, frames are decoded without it",
            invalid.offset, invalid.problem
        )),
    }
}
