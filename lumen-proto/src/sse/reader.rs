//! Events out of a byte stream.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::jsonrpc::{Scan, Scanned};
use crate::limits;

/// An event: what stood before an empty line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether its type is `message`, which it also is if it has none.
    pub is_message: bool,
    /// Its data lines with an LF between them. Empty for an event that is only there for its id.
    pub data: Bytes,
    /// Its id, if it has one; an empty one means that there is nothing to go on from.
    pub id: Option<Bytes>,
}

/// What [`Reader::feed`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An event that has data or an id.
    Event(Event),
    /// An event whose data was longer than the limit. It is not kept.
    Skipped {
        /// The length of its data in bytes.
        len: u64,
        /// What is needed to answer it.
        scan: Scanned,
        /// Its id, if it has one.
        id: Option<Bytes>,
    },
}

/// Cuts a byte stream into events. Lines end with LF, CR or CRLF; a byte order mark at the start, comments and
/// unknown fields are passed over.
///
/// It works on bytes, never on characters: a code point may be cut anywhere.
#[derive(Debug)]
pub struct Reader {
    max: usize,
    /// How many bytes of a byte order mark have come; `None` after the start of the stream.
    mark: Option<usize>,
    /// The last byte was a CR: an LF now belongs to it.
    after_cr: bool,
    place: Place,
    /// The beginning of a field's name, or of the value of one that is not data.
    short: Vec<u8>,
    event: Pending,
    retry: Option<Duration>,
}

/// Where in a line the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Name,
    /// Behind the colon, where one space is not part of the value.
    Colon(Field),
    Value(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
    Other,
}

/// What has come of an event.
#[derive(Debug)]
struct Pending {
    data: BytesMut,
    /// Whether there was a data line before.
    has_data: bool,
    /// Takes the data instead once there is too much of it.
    skip: Option<(Box<Scan>, u64)>,
    is_message: bool,
    id: Option<Bytes>,
}

impl Pending {
    fn new() -> Self {
        Self { data: BytesMut::new(), has_data: false, skip: None, is_message: true, id: None }
    }

    fn push(&mut self, bytes: &[u8], max: usize) {
        if self.skip.is_none() && self.data.len() + bytes.len() > max {
            let mut scan = Box::new(Scan::new());
            scan.push(&self.data);
            self.skip = Some((scan, self.data.len() as u64));
            self.data = BytesMut::new();
        }
        match &mut self.skip {
            Some((scan, len)) => {
                scan.push(bytes);
                *len += bytes.len() as u64;
            }
            None => self.data.extend_from_slice(bytes),
        }
    }

    fn into_step(self) -> Option<Step> {
        let Self { data, skip, is_message, id, .. } = self;
        match skip {
            Some((scan, len)) => Some(Step::Skipped { len, scan: scan.finish(), id }),
            None if data.is_empty() && id.is_none() => None,
            None => Some(Step::Event(Event { is_message, data: data.freeze(), id })),
        }
    }
}

const MARK: &[u8] = b"\xef\xbb\xbf";

/// More than any field's name that counts, and than a number of milliseconds that does.
const SHORT: usize = 20;

impl Reader {
    /// Makes a reader that keeps events of up to `max` bytes of data.
    ///
    /// # Bounds
    /// Twice `max` bytes while an event grows, and an id of [`limits::MAX_ID`].
    pub fn with_limit(max: usize) -> Self {
        Self {
            max,
            mark: Some(0),
            after_cr: false,
            place: Place::Name,
            short: Vec::new(),
            event: Pending::new(),
            retry: None,
        }
    }

    /// Takes bytes from the front of `input`: up to the end of one event, or all of them.
    #[must_use]
    pub fn feed(&mut self, input: &mut &[u8]) -> Option<Step> {
        self.pass_mark(input);
        while let Some((&first, rest)) = input.split_first() {
            if core::mem::take(&mut self.after_cr) && first == b'\n' {
                *input = rest;
                continue;
            }
            let (piece, end) = match memchr::memchr2(b'\r', b'\n', input) {
                Some(at) => (input.get(..at).unwrap_or_default(), input.get(at).copied()),
                None => (*input, None),
            };
            *input = input.get(piece.len() + usize::from(end.is_some())..).unwrap_or_default();
            self.on_piece(piece);
            let Some(end) = end else { continue };
            self.after_cr = end == b'\r';
            if let Some(step) = self.on_line_end() {
                return Some(step);
            }
        }
        None
    }

    /// Ends the stream. Returns the event that no empty line has ended: the grammar drops it, since it may have
    /// been cut short, but whoever can tell that its data are whole, as a JSON object is, should not lose them.
    /// Of an id only what is certain to be whole is in it.
    #[must_use]
    pub fn finish(&mut self) -> Option<Step> {
        if let Some((scan, _)) = &self.event.skip
            && !scan.is_complete()
        {
            self.event = Pending::new();
        }
        self.place = Place::Name;
        self.short.clear();
        core::mem::replace(&mut self.event, Pending::new()).into_step()
    }

    /// Returns how long to wait before the stream is opened again, as far as it said so.
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns how many bytes of an unended event are kept.
    pub fn pending(&self) -> usize {
        self.event.data.len()
    }

    /// Passes a byte order mark. What only began like one is the beginning of some unknown field's name.
    fn pass_mark(&mut self, input: &mut &[u8]) {
        while let (Some(seen), Some((first, rest))) = (self.mark, input.split_first()) {
            if MARK.get(seen) == Some(first) {
                *input = rest;
                self.mark = (seen + 1 < MARK.len()).then_some(seen + 1);
            } else {
                self.short.extend_from_slice(MARK.get(..seen).unwrap_or_default());
                self.mark = None;
            }
        }
    }

    /// Takes bytes of one line, without its end.
    fn on_piece(&mut self, mut piece: &[u8]) {
        if self.place == Place::Name {
            let colon = memchr::memchr(b':', piece);
            self.keep(piece.get(..colon.unwrap_or(piece.len())).unwrap_or_default(), SHORT);
            let Some(colon) = colon else { return };
            piece = piece.get(colon + 1..).unwrap_or_default();
            self.place = Place::Colon(self.take_name());
        }
        if let Place::Colon(field) = self.place {
            let Some(first) = piece.first() else { return };
            if *first == b' ' {
                piece = piece.get(1..).unwrap_or_default();
            }
            self.begin_value(field);
        }
        match self.place {
            Place::Value(Field::Data) => self.event.push(piece, self.max),
            // One byte more tells that it is too long.
            Place::Value(Field::Id) => self.keep(piece, limits::MAX_ID + 1),
            Place::Value(Field::Event | Field::Retry) => self.keep(piece, SHORT),
            _ => {}
        }
    }

    /// Takes the end of a line; returns what that ended.
    fn on_line_end(&mut self) -> Option<Step> {
        if self.place == Place::Name {
            if self.short.is_empty() {
                return core::mem::replace(&mut self.event, Pending::new()).into_step();
            }
            // A line without a colon is a field without a value.
            let field = self.take_name();
            self.begin_value(field);
        }
        if let Place::Colon(field) = self.place {
            self.begin_value(field);
        }
        if let Place::Value(field) = self.place {
            self.on_value(field);
        }
        self.short.clear();
        self.place = Place::Name;
        None
    }

    fn begin_value(&mut self, field: Field) {
        self.place = Place::Value(field);
        if field == Field::Data && core::mem::replace(&mut self.event.has_data, true) {
            self.event.push(b"\n", self.max);
        }
    }

    /// Takes a whole value other than data.
    fn on_value(&mut self, field: Field) {
        match field {
            Field::Event => self.event.is_message = matches!(self.short.as_slice(), b"" | b"message"),
            Field::Id if self.short.contains(&0) => {}
            Field::Id => {
                let is_kept = self.short.len() <= limits::MAX_ID;
                let id = if is_kept { Bytes::copy_from_slice(&self.short) } else { Bytes::new() };
                self.event.id = Some(id);
            }
            Field::Retry => {
                let number = core::str::from_utf8(&self.short).ok();
                let number = number.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                let millis = number.and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            Field::Data | Field::Other => {}
        }
    }

    fn take_name(&mut self) -> Field {
        let field = match self.short.as_slice() {
            b"data" => Field::Data,
            b"event" => Field::Event,
            b"id" => Field::Id,
            b"retry" => Field::Retry,
            _ => Field::Other,
        };
        self.short.clear();
        field
    }

    fn keep(&mut self, bytes: &[u8], max: usize) {
        let room = max.saturating_sub(self.short.len());
        self.short.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }
}

#[cfg(test)]
mod tests;
