//! Why data has no value on the wire.

use alloc::string::{String, ToString};
use core::fmt;

use crate::limits::MAX_VALUE_DEPTH;

/// Why something could not be serialized.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An integer that does not fit an `i64`, or a JSON text that the wire does not hold exactly.
    DoesNotFit,
    /// A float that is infinite or not a number.
    NotFinite,
    /// A key that is neither a string nor a boolean, a character, an integer or a unit variant.
    KeyNotText,
    /// Nested deeper than [`MAX_VALUE_DEPTH`].
    TooDeep,
    /// What the type's own `Serialize` said.
    Message(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotFit => f.write_str("number does not fit"),
            Self::NotFinite => f.write_str("float that is not finite"),
            Self::KeyNotText => f.write_str("key must be a string"),
            Self::TooDeep => write!(f, "nested deeper than {MAX_VALUE_DEPTH}"),
            Self::Message(message) => f.write_str(message),
        }
    }
}

impl core::error::Error for Error {}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Message(message.to_string())
    }
}
