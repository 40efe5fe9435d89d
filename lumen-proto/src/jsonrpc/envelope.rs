//! What a JSON-RPC text is, found in one pass over its bytes.

use core::fmt;

use super::cursor::Cursor;
use super::{IdKey, Span, id, text, utf8};
use crate::Reason;

pub(crate) const EMPTY_BATCH: Reason = Reason::NotJsonRpc("an empty batch");
pub(crate) const ODD_BATCH: Reason = Reason::NotJsonRpc("a batch holds something else than objects");
pub(crate) const NO_CONTAINER: Reason = Reason::NotJsonRpc("neither an object nor an array");

/// What kind of JSON-RPC text it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A method and an id: it is owed an answer.
    Request,
    /// No method, but an id, a result or an error.
    Response,
    /// A method and no id at all.
    Notification,
    /// A non-empty array of messages.
    Batch,
}

impl Kind {
    /// Returns the member whose `_meta` is noted.
    const fn subject(self) -> Name {
        match self {
            Self::Response => Name::Result,
            Self::Request | Self::Notification | Self::Batch => Name::Params,
        }
    }
}

/// The parts of a checked JSON-RPC text, as ranges of whole value tokens: strings with their quotes.
///
/// The member `jsonrpc` is not looked at. Whoever uses this forwards messages: whether a version is acceptable is
/// for the two ends to say, and both say it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What it is.
    pub kind: Kind,
    /// The id; of a response it may be `null`.
    pub id: Option<Span>,
    /// The method, a string.
    pub method: Option<Span>,
    /// The parameters.
    pub params: Option<Span>,
    /// The result.
    pub result: Option<Span>,
    /// The error.
    pub error: Option<Span>,
    /// The object or array without the white space around it.
    pub body: Span,
    /// Whether a raw CR or LF stands anywhere in the text, which then cannot be sent as a line as it is.
    pub has_newline: bool,
    /// Where the `_meta` of a request's or a notification's parameters, or of a result, is. It is asked for again and
    /// again, and stands behind everything that is long.
    meta: Option<Span>,
    /// Whether `meta` was looked for.
    has_looked: bool,
}

const META: &str = "_meta";

/// The member that nearly every message begins with, and that nobody asks for: passed at once.
const VERSION: &[u8] = br#""jsonrpc":"2.0""#;

/// Why a text was refused, and what is needed to answer it all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub reason: Reason,
    /// The top-level id if one was found, and is such that an answer can carry it.
    pub id: Option<Span>,
    /// Whether a top-level method was found: with it the sender awaits an answer, without it we would be
    /// answering an answer.
    pub has_method: bool,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl core::error::Error for Refused {}

impl Envelope {
    /// Checks the whole of `text`: UTF-8, grammar, depth, and that it is a JSON-RPC message or a batch of them.
    ///
    /// # Errors
    /// [`Refused`] with [`Reason::NotUtf8`], [`Reason::NotJson`], [`Reason::TooDeep`]; then
    /// [`Reason::Duplicate`] for a top-level member that occurs twice, [`Reason::NotJsonRpc`], and
    /// [`Reason::NullId`], [`Reason::BadId`], [`Reason::LongId`] for ids that cannot be answered.
    ///
    /// # Bounds
    /// Depth [`limits::MAX_DEPTH`](crate::limits::MAX_DEPTH); 4 GiB of text. Allocates nothing.
    pub fn parse(text: &[u8]) -> Result<Self, Refused> {
        if text.len() >= Span::LIMIT {
            let reason = Reason::TooLong { len: text.len() as u64, max: Span::LIMIT as u64 - 1 };
            return Err(Refused { reason, id: None, has_method: false });
        }
        let utf8 = utf8::check(text);
        let mut cursor = Cursor::new(text, 0);
        let outcome = match root(&mut cursor, text) {
            Err(refused) if matches!(refused.reason, Reason::NotJson { .. } | Reason::TooDeep { .. }) => {
                Err(refused)
            }
            // The value was whole, be it a message or not: nothing may follow.
            outcome => {
                cursor.blanks();
                match (cursor.is_at_end(), outcome) {
                    (true, outcome) => outcome,
                    (false, Ok(envelope)) => Err(envelope.refused(text, cursor.reason())),
                    (false, Err(refused)) => Err(Refused { reason: cursor.reason(), ..refused }),
                }
            }
        };
        match (utf8, outcome) {
            (Ok(()), Ok(envelope)) => Ok(Self { has_newline: cursor.newline, ..envelope }),
            (Ok(()), Err(refused)) => Err(refused),
            // The walk has still found whom to answer.
            (Err(at), Ok(envelope)) => Err(envelope.refused(text, Reason::NotUtf8 { at })),
            (Err(at), Err(refused)) => Err(Refused { reason: Reason::NotUtf8 { at }, ..refused }),
        }
    }

    /// Splits off the first key of a path if its value is one of the parts. Returns where to go on.
    pub(crate) fn begin<'p>(&self, path: &'p [&'p str]) -> Option<(Span, &'p [&'p str])> {
        let Some((first, rest)) = path.split_first() else { return Some((self.body, path)) };
        let Some(name) = Name::of_plain(first.as_bytes()) else { return Some((self.body, path)) };
        if let Some((&META, rest)) = rest.split_first()
            && name == self.kind.subject()
            && self.has_looked
        {
            return self.meta.map(|meta| (meta, rest));
        }
        let part = match name {
            Name::Id => self.id,
            Name::Method => self.method,
            Name::Params => self.params,
            Name::Result => self.result,
            Name::Error => self.error,
        };
        part.map(|part| (part, rest))
    }

    fn refused(&self, text: &[u8], reason: Reason) -> Refused {
        Refused { reason, id: answerable(text, self.id), has_method: self.method.is_some() }
    }
}

/// Reads one top-level value.
fn root(cursor: &mut Cursor<'_>, text: &[u8]) -> Result<Envelope, Refused> {
    cursor.blanks();
    match cursor.peek() {
        Some(b'{') => message(cursor, text),
        Some(b'[') => array(cursor, text),
        _ => {
            let reason = match cursor.value() {
                Some(()) => NO_CONTAINER,
                None => cursor.reason(),
            };
            Err(Refused { reason, id: None, has_method: false })
        }
    }
}

/// Reads a batch. A fault of the grammar anywhere comes before what is wrong with an element.
fn array(cursor: &mut Cursor<'_>, text: &[u8]) -> Result<Envelope, Refused> {
    let start = cursor.at;
    let mut first_refused = None;
    let mut walk = |cursor: &mut Cursor<'_>| -> Option<bool> {
        cursor.open(false)?;
        let mut empty = true;
        while cursor.next_element(empty)? {
            empty = false;
            if cursor.peek() == Some(b'{') {
                let mut members = Found::default();
                let start = cursor.at;
                if object(cursor, text, &mut members).is_none() {
                    first_refused = Some(members.refused(text, cursor.reason()));
                    return None;
                }
                let element = members.classify(text, Span::new(start, cursor.at));
                first_refused = first_refused.or(element.err());
            } else {
                cursor.value()?;
                let reason = ODD_BATCH;
                first_refused = first_refused.or(Some(Refused { reason, id: None, has_method: false }));
            }
        }
        Some(empty)
    };
    let walked = walk(cursor);
    let nobody = Refused { reason: cursor.reason(), id: None, has_method: false };
    match (walked, first_refused) {
        (None, Some(refused)) => Err(Refused { reason: cursor.reason(), ..refused }),
        (None, None) => Err(nobody),
        (Some(true), _) => Err(Refused { reason: EMPTY_BATCH, ..nobody }),
        (Some(false), Some(refused)) => Err(refused),
        (Some(false), None) => {
            let body = Span::new(start, cursor.at);
            Ok(Found::default().envelope(Kind::Batch, body))
        }
    }
}

/// Reads one message.
fn message(cursor: &mut Cursor<'_>, text: &[u8]) -> Result<Envelope, Refused> {
    let start = cursor.at;
    let mut found = Found::default();
    match object(cursor, text, &mut found) {
        Some(()) => found.classify(text, Span::new(start, cursor.at)),
        None => Err(found.refused(text, cursor.reason())),
    }
}

/// Passes an object and takes note of the members that count.
fn object(cursor: &mut Cursor<'_>, text: &[u8], found: &mut Found) -> Option<()> {
    cursor.open(true)?;
    found.has_looked = true;
    let mut first = !cursor.pass(VERSION);
    while let Some((key, escaped)) = cursor.next_key(first)? {
        first = false;
        let start = cursor.at;
        let name = Name::of(key.of(text), escaped);
        match name {
            Some(Name::Params) => found.params_meta = subject(cursor, text)?,
            Some(Name::Result) => found.result_meta = subject(cursor, text)?,
            _ => cursor.value()?,
        }
        // A number that ends with the text may have lost its last digits; it is not what the sender meant.
        cursor.peek()?;
        if let Some(name) = name {
            found.take(name, Span::new(start, cursor.at));
        }
    }
    Some(())
}

/// Passes a value; returns where its `_meta` is. Of several the last counts.
fn subject(cursor: &mut Cursor<'_>, text: &[u8]) -> Option<Option<Span>> {
    let mut meta = None;
    if cursor.peek()? != b'{' {
        return cursor.value().map(|()| meta);
    }
    cursor.open(true)?;
    let mut first = true;
    while let Some((key, _)) = cursor.next_key(first)? {
        first = false;
        let start = cursor.at;
        cursor.value()?;
        if text::is(key.of(text), META) {
            meta = Some(Span::new(start, cursor.at));
        }
    }
    Some(meta)
}

/// The top-level members that count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Name {
    const ALL: [Self; 5] = [Self::Id, Self::Method, Self::Params, Self::Result, Self::Error];

    /// Reads a key token; `escaped` tells that it has escapes.
    #[inline]
    pub(super) fn of(key: &[u8], escaped: bool) -> Option<Self> {
        match key {
            [b'"', plain @ .., b'"'] if !escaped => Self::of_plain(plain),
            _ => Self::ALL.into_iter().find(|name| text::is(key, name.as_str())),
        }
    }

    /// Reads a decoded key.
    #[inline]
    pub(crate) const fn of_plain(key: &[u8]) -> Option<Self> {
        match key {
            b"id" => Some(Self::Id),
            b"method" => Some(Self::Method),
            b"params" => Some(Self::Params),
            b"result" => Some(Self::Result),
            b"error" => Some(Self::Error),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

/// What a walk over an object has found so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Found {
    pub(crate) id: Option<Span>,
    pub(crate) method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
    params_meta: Option<Span>,
    result_meta: Option<Span>,
    has_looked: bool,
    duplicate: Option<&'static str>,
}

impl Found {
    pub(crate) fn take(&mut self, name: Name, value: Span) {
        let place = match name {
            Name::Id => &mut self.id,
            Name::Method => &mut self.method,
            Name::Params => &mut self.params,
            Name::Result => &mut self.result,
            Name::Error => &mut self.error,
        };
        if place.is_some() {
            self.duplicate = self.duplicate.or(Some(name.as_str()));
        } else {
            *place = Some(value);
        }
    }

    /// Tells what the text with these members is.
    pub(crate) fn classify(&self, text: &[u8], body: Span) -> Result<Envelope, Refused> {
        self.kind(text).map(|kind| self.envelope(kind, body)).map_err(|reason| self.refused(text, reason))
    }

    fn kind(&self, text: &[u8]) -> Result<Kind, Reason> {
        let is_string = self.method.is_some_and(|method| method.of(text).first() == Some(&b'"'));
        self.kind_with(is_string, || self.id.map(|id| id::check(id.of(text))))
    }

    /// Tells what it is, whatever the encoding: by whether the method is a string and what is wrong with the id.
    pub(crate) fn kind_with(
        &self,
        is_string: bool,
        id: impl FnOnce() -> Option<Result<(), Reason>>,
    ) -> Result<Kind, Reason> {
        if let Some(name) = self.duplicate {
            return Err(Reason::Duplicate(name));
        }
        match (self.method, id()) {
            (Some(_), _) if !is_string => Err(Reason::NotJsonRpc("the method is not a string")),
            (Some(_), Some(Ok(()))) => Ok(Kind::Request),
            (Some(_), None) => Ok(Kind::Notification),
            // An answer to a request whose id could not be read.
            (None, Some(Ok(()) | Err(Reason::NullId))) => Ok(Kind::Response),
            (None, None) if self.result.is_some() || self.error.is_some() => Ok(Kind::Response),
            (None, None) => Err(Reason::NotJsonRpc("no method, id, result or error")),
            (_, Some(Err(reason))) => Err(reason),
        }
    }

    pub(crate) const fn envelope(&self, kind: Kind, body: Span) -> Envelope {
        let Self { id, method, params, result, error, has_looked, .. } = *self;
        let meta = match kind.subject() {
            Name::Result => self.result_meta,
            _ => self.params_meta,
        };
        Envelope { kind, id, method, params, result, error, body, has_newline: false, meta, has_looked }
    }

    fn refused(&self, text: &[u8], reason: Reason) -> Refused {
        Refused { reason, id: answerable(text, self.id), has_method: self.method.is_some() }
    }
}

/// Returns `id` if an answer can carry it. It goes into our own text, so the token itself must be in order.
fn answerable(text: &[u8], id: Option<Span>) -> Option<Span> {
    id.filter(|id| IdKey::from_token(id.of(text)).is_ok())
}

/// Iterates over the messages of a batch; see [`batch`].
#[derive(Clone)]
pub struct Batch<'a> {
    text: &'a [u8],
    cursor: Cursor<'a>,
    first: bool,
}

/// Returns the messages of a text that was found to be a [`Kind::Batch`], with ranges in the whole text. Of any
/// other text there are none; `has_newline` is that of the element.
pub fn batch(text: &[u8]) -> Batch<'_> {
    let mut cursor = Cursor::new(text, 0);
    cursor.blanks();
    if cursor.peek() != Some(b'[') || cursor.open(false).is_none() {
        cursor.at = text.len();
    }
    Batch { text, cursor, first: true }
}

impl Iterator for Batch<'_> {
    type Item = Envelope;

    fn next(&mut self) -> Option<Envelope> {
        let more = self.cursor.next_element(self.first).unwrap_or(false) && self.cursor.peek() == Some(b'{');
        self.first = false;
        self.cursor.newline = false;
        let element = if more { message(&mut self.cursor, self.text).ok() } else { None };
        if element.is_none() {
            self.cursor.at = self.text.len();
        }
        element.map(|envelope| Envelope { has_newline: self.cursor.newline, ..envelope })
    }
}

#[cfg(test)]
mod tests;
