//! A message as the bytes of a value.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use bytes::Bytes;

use crate::jsonrpc::{EMPTY_BATCH, Envelope, Found, Kind, NO_CONTAINER, Name, ODD_BATCH, Span};
use crate::value::transcode::Transcoder;
use crate::value::{Needs, outline, path, tag};
use crate::{Reason, limits};

/// A checked JSON-RPC message as the bytes of a value. Cloning it copies no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    bytes: Bytes,
    envelope: Envelope,
    needs: Needs,
}

/// Why the bytes of a value were refused, and what is needed to answer them all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub reason: Reason,
    /// The top-level id as JSON text, if one was found that an answer can carry.
    pub id: Option<Bytes>,
    /// Whether a top-level method was found: without it nobody awaits an answer.
    pub has_method: bool,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl core::error::Error for Refused {}

impl Value {
    /// Checks `bytes` and keeps them. One line feed may follow the value.
    ///
    /// # Errors
    /// [`Reason::NotValue`], of which nothing else is told: a [`Scan`](crate::value::Scan) finds whom to answer. Then
    /// what [`Envelope::parse`] refuses in text. Gives the bytes back.
    ///
    /// # Bounds
    /// Depth [`limits::MAX_VALUE_DEPTH`]; 4 GiB.
    pub fn parse(bytes: Bytes) -> Result<Self, (Refused, Bytes)> {
        match check(&bytes) {
            Ok((envelope, needs)) => Ok(Self { bytes, envelope, needs }),
            Err(refused) => Err((refused, bytes)),
        }
    }

    /// Returns the bytes as they came.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns where the parts are, as ranges of whole values.
    pub const fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Returns what a receiver must be able to take.
    pub const fn needs(&self) -> &Needs {
        &self.needs
    }

    /// Returns the place of the value at the end of `path`; the last of duplicate keys counts.
    pub(super) fn find(&self, path: &[&str]) -> Option<Span> {
        let (within, path) = self.envelope.begin(path)?;
        path::find(&self.bytes, range(within), path).map(span)
    }

    /// Returns the string at `span`, if it is one.
    pub(super) fn str(&self, span: Span) -> Option<&str> {
        path::str(&self.bytes, range(span))
    }

    /// Returns the JSON text of the value at `span`, if it is not longer than `max`.
    pub(super) fn token(&self, span: Span, max: usize) -> Result<Vec<u8>, Reason> {
        text_of(span.of(&self.bytes), max)
    }

    /// Returns the messages of a batch; there are none in anything else.
    pub(super) fn batch(&self) -> impl Iterator<Item = Self> {
        path::elements(&self.bytes, range(self.envelope.body)).filter_map(|element| {
            // It was checked already, as a part of the whole; what it needs was not told apart.
            Self::parse(owned(&self.bytes, element)).ok()
        })
    }
}

/// Returns a part as bytes of its own: a short one copied, as it would keep all of `bytes` in memory.
pub(super) fn owned(bytes: &Bytes, part: Range<usize>) -> Bytes {
    let slice = bytes.get(part.clone()).unwrap_or_default();
    if slice.len() < limits::COPY_BELOW { Bytes::copy_from_slice(slice) } else { bytes.slice(part) }
}

pub(super) const fn range(span: Span) -> Range<usize> {
    span.start()..span.end()
}

fn span(range: Range<usize>) -> Span {
    Span::new(range.start, range.end)
}

/// Returns the JSON text of a checked value.
///
/// # Errors
/// [`Reason::TooLong`] beyond `max`; how long it would have been is not known.
fn text_of(value: &[u8], max: usize) -> Result<Vec<u8>, Reason> {
    let mut text = Vec::new();
    match Transcoder::new().decode_within(value, None, max, &mut text) {
        Ok(_) => Ok(text),
        Err(_) => Err(Reason::TooLong { len: max as u64 + 1, max: max as u64 }),
    }
}

fn check(bytes: &[u8]) -> Result<(Envelope, Needs), Refused> {
    let unread = |reason| Refused { reason, id: None, has_method: false };
    if bytes.len() >= Span::LIMIT {
        return Err(unread(Reason::TooLong { len: bytes.len() as u64, max: Span::LIMIT as u64 - 1 }));
    }
    let mut found = Found::default();
    let (needs, end) = outline(bytes, |key, value| take(&mut found, key, value))
        .map_err(|invalid| unread(Reason::NotValue { at: invalid.offset }))?;
    let body = Span::new(0, end);
    let envelope = match bytes.first() {
        Some(&tag::OBJECT) => found.envelope(classify(bytes, &found)?, body),
        Some(&tag::ARRAY) => {
            let mut elements = path::elements(bytes, 0..end).peekable();
            if elements.peek().is_none() {
                return Err(unread(EMPTY_BATCH));
            }
            for element in elements {
                if bytes.get(element.start) != Some(&tag::OBJECT) {
                    return Err(unread(ODD_BATCH));
                }
                let mut found = Found::default();
                path::members(bytes, element).for_each(|(key, value)| take(&mut found, key, value));
                classify(bytes, &found)?;
            }
            Found::default().envelope(Kind::Batch, body)
        }
        _ => return Err(unread(NO_CONTAINER)),
    };
    Ok((envelope, needs))
}

fn take(found: &mut Found, key: &str, value: Range<usize>) {
    if let Some(name) = Name::of_plain(key.as_bytes()) {
        found.take(name, span(value));
    }
}

fn classify(bytes: &[u8], found: &Found) -> Result<Kind, Refused> {
    let tag_at = |span: Span| span.of(bytes).first().copied();
    let is_string = found.method.and_then(tag_at).is_some_and(|tag| matches!(tag, tag::STR | tag::WORD));
    let id = found.id.map(|id| id.of(bytes));
    found.kind_with(is_string, || id.map(check_id)).map_err(|reason| Refused {
        reason,
        id: id
            .filter(|id| check_id(id).is_ok())
            .and_then(|id| text_of(id, limits::MAX_ID).ok().map(Bytes::from)),
        has_method: found.method.is_some(),
    })
}

/// Tells whether a value may be an id.
///
/// # Errors
/// As [`IdKey::from_token`](crate::jsonrpc::IdKey::from_token) of its text.
fn check_id(id: &[u8]) -> Result<(), Reason> {
    /// What a byte of a string takes at most as text.
    const MAX_ESCAPE: usize = 6;
    match id.first() {
        Some(&(tag::INT | tag::FLOAT | tag::WORD)) => Ok(()),
        Some(&tag::STR) if id.len() * MAX_ESCAPE <= limits::MAX_ID => Ok(()),
        Some(&tag::STR) => text_of(id, limits::MAX_ID).map(|_| ()).map_err(|_| Reason::LongId),
        Some(&tag::NULL) => Err(Reason::NullId),
        _ => Err(Reason::BadId),
    }
}
