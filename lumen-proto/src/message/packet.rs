//! The message.

use alloc::borrow::Cow;

use bytes::{Bytes, BytesMut};

use super::Edits;
use super::value::{Refused, Value, owned, range};
use crate::jsonrpc::{self, Envelope, IdKey, Kind, Message, Span, decode_str};
use crate::{Reason, limits};

/// One checked message in the encoding it came in. Cloning it copies no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// JSON text, from a line or a plain frame.
    Text(Message),
    /// The bytes of a value, from a compressed frame.
    Value(Value),
}

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON text.
    Text,
    /// The bytes of a value.
    Value,
}

impl From<Message> for Packet {
    fn from(message: Message) -> Self {
        Self::Text(message)
    }
}

impl Packet {
    /// Checks the bytes of a value and keeps them.
    ///
    /// # Errors
    /// As [`Value::parse`].
    pub fn from_value(bytes: Bytes) -> Result<Self, (Refused, Bytes)> {
        Value::parse(bytes).map(Self::Value)
    }

    /// Returns how it is written.
    pub const fn encoding(&self) -> Encoding {
        match self {
            Self::Text(_) => Encoding::Text,
            Self::Value(_) => Encoding::Value,
        }
    }

    /// Returns the bytes as they came.
    pub const fn bytes(&self) -> &Bytes {
        match self {
            Self::Text(message) => message.bytes(),
            Self::Value(value) => value.bytes(),
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Returns whether there are no bytes, which is never so.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Returns where the parts are in the bytes.
    pub const fn envelope(&self) -> &Envelope {
        match self {
            Self::Text(message) => message.envelope(),
            Self::Value(value) => value.envelope(),
        }
    }

    /// Returns what kind of message it is.
    pub const fn kind(&self) -> Kind {
        self.envelope().kind
    }

    /// Returns the id as JSON text: as it was spelled, if it came as text.
    pub fn id(&self) -> Option<Cow<'_, [u8]>> {
        self.token_at(self.envelope().id?)
    }

    /// Returns the id by its value; `None` for no id and for `null`.
    pub fn id_key(&self) -> Option<IdKey> {
        IdKey::from_token(&self.id()?).ok()
    }

    /// Returns whether it has an id other than `null`.
    pub fn has_id(&self) -> bool {
        let first = self.envelope().id.and_then(|id| id.of(self.bytes()).first().copied());
        let null = match self {
            Self::Text(_) => b'n',
            Self::Value(_) => crate::value::tag::NULL,
        };
        first.is_some_and(|first| first != null)
    }

    /// Returns whether it has this method, however that was spelled.
    pub fn method_is(&self, method: &str) -> bool {
        match self {
            Self::Text(message) => message.method_is(method),
            Self::Value(value) => {
                value.envelope().method.and_then(|name| value.str(name)).is_some_and(|name| name == method)
            }
        }
    }

    /// Returns the method; `None` also for one that holds half a surrogate pair, which no Rust string can.
    pub fn method(&self) -> Option<Cow<'_, str>> {
        let method = self.envelope().method?;
        match self {
            Self::Text(message) => decode_str(method.of(message.bytes())),
            Self::Value(value) => value.str(method).map(Cow::Borrowed),
        }
    }

    /// Returns the JSON text of the value at the end of `path`, a key for each level from the root, such as
    /// `["params", "_meta", "progressToken"]`. Of members with the same key the last counts.
    ///
    /// # Bounds
    /// [`limits::MAX_MESSAGE`] bytes if it has to be written; for a longer one `None`.
    pub fn token(&self, path: &[&str]) -> Option<Cow<'_, [u8]>> {
        self.token_at(self.find(path)?)
    }

    /// Returns whether there is a value at the end of `path`.
    pub fn has(&self, path: &[&str]) -> bool {
        self.find(path).is_some()
    }

    /// Returns the messages of a batch, in the same encoding; there are none in anything else.
    ///
    /// # Bounds
    /// Those of [`limits::COPY_BELOW`] bytes and more are slices of the whole, and keep it in memory.
    pub fn batch(&self) -> impl Iterator<Item = Self> {
        let (text, value) = match self {
            Self::Text(message) => (Some(message), None),
            Self::Value(value) => (None, Some(value)),
        };
        let texts = text.into_iter().flat_map(|message| {
            jsonrpc::batch(message.bytes())
                .filter_map(|element| Message::parse(owned(message.bytes(), range(element.body))).ok())
        });
        texts.map(Self::Text).chain(value.into_iter().flat_map(Value::batch).map(Self::Value))
    }

    /// Returns the message as text, which costs nothing if that is what it is.
    ///
    /// # Errors
    /// [`Reason::TooLong`].
    ///
    /// # Bounds
    /// [`limits::MAX_MESSAGE`].
    pub fn to_text(&self) -> Result<Message, Reason> {
        match self {
            Self::Text(message) => Ok(message.clone()),
            Self::Value(value) => {
                let text = value.token(value.envelope().body, limits::MAX_MESSAGE)?;
                Message::parse(text.into()).map_err(|(refused, _)| refused.reason)
            }
        }
    }

    /// Returns the message as text with these edits made in it.
    ///
    /// # Errors
    /// As [`to_text`](Self::to_text), and what [`Message::parse`] has against the outcome: tokens are not checked
    /// before.
    pub fn edited(&self, edits: &Edits) -> Result<Message, Reason> {
        let message = self.to_text()?;
        if edits.is_empty() {
            return Ok(message);
        }
        let mut text = BytesMut::new();
        message.write_text(&edits.in_text(&message), &mut text);
        Message::parse(text.freeze()).map_err(|(refused, _)| refused.reason)
    }

    fn find(&self, path: &[&str]) -> Option<Span> {
        match self {
            Self::Text(message) => message.find(path),
            Self::Value(value) => value.find(path),
        }
    }

    fn token_at(&self, at: Span) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Text(message) => Some(Cow::Borrowed(at.of(message.bytes()))),
            Self::Value(value) => value.token(at, limits::MAX_MESSAGE).ok().map(Cow::Owned),
        }
    }
}
