//! What can be wrong with the bytes of a value, and where.

use core::fmt;

use crate::limits::MAX_VALUE_DEPTH;

/// What is wrong with the bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// They end inside the value.
    Truncated,
    /// No value starts with this byte.
    UnknownTag(u8),
    /// A boolean is neither 00 nor 01.
    BadBool(u8),
    /// A float is infinite or not a number.
    NotFinite,
    /// An integer is longer than it has to be, or does not fit 64 bits.
    BadInt,
    /// A length or count starts with a byte that none starts with, or does not fit 64 bits.
    BadLength,
    /// More members are announced than the bytes that remain can hold.
    TooMany,
    /// No word has this id.
    UnknownId(u8),
    /// A string is not UTF-8.
    NotUtf8,
    /// Nested deeper than [`MAX_VALUE_DEPTH`].
    TooDeep,
    /// Bytes follow the value that are not one line feed.
    Trailing,
    /// As text it is longer than its reader takes.
    TooLong,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the value ends early"),
            Self::UnknownTag(tag) => write!(f, "unknown tag 0x{tag:02x}"),
            Self::BadBool(byte) => write!(f, "boolean of 0x{byte:02x}"),
            Self::NotFinite => f.write_str("float that is not finite"),
            Self::BadInt => f.write_str("over-long integer"),
            Self::BadLength => f.write_str("malformed length"),
            Self::TooMany => f.write_str("more members announced than bytes remain"),
            Self::UnknownId(id) => write!(f, "unknown dictionary id 0x{id:02x}"),
            Self::NotUtf8 => f.write_str("string that is not UTF-8"),
            Self::TooDeep => write!(f, "nested deeper than {MAX_VALUE_DEPTH}"),
            Self::Trailing => f.write_str("bytes after the value"),
            Self::TooLong => f.write_str("longer as text than is taken"),
        }
    }
}

/// Bytes that are no value: the first problem and where it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Bytes from the start of the value to the one that shows the problem.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.problem, self.offset)
    }
}

impl core::error::Error for Invalid {}
