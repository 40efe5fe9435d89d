//! Why bytes did not become what was asked for.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;

use super::super::problem::{Invalid, Problem};

/// Why a value could not be deserialized, and where.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    /// `None` until someone who knows the position has seen the error.
    offset: Option<usize>,
    why: Why,
}

#[derive(Clone, PartialEq, Eq)]
enum Why {
    /// The bytes are no value.
    Problem(Problem),
    /// They are, but not of the type that was asked for.
    Message(String),
}

impl Error {
    /// Returns the byte that showed it, counted from the start of the value.
    pub fn offset(&self) -> usize {
        self.0.offset.unwrap_or(0)
    }

    /// Returns what is wrong with the bytes, or `None` if they are a value of another type than was asked for.
    pub fn problem(&self) -> Option<Problem> {
        match self.0.why {
            Why::Problem(problem) => Some(problem),
            Why::Message(_) => None,
        }
    }

    /// Adds the position, if none is known yet.
    #[cold]
    pub(super) fn at(mut self, offset: usize) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }
}

impl From<Invalid> for Error {
    #[cold]
    fn from(Invalid { offset, problem }: Invalid) -> Self {
        Self(Box::new(Inner { offset: Some(offset), why: Why::Problem(problem) }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.why {
            Why::Problem(problem) => problem.fmt(f)?,
            Why::Message(message) => f.write_str(message)?,
        }
        write!(f, " at byte {}", self.offset())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl core::error::Error for Error {}

impl serde::de::Error for Error {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Box::new(Inner { offset: None, why: Why::Message(message.to_string()) }))
    }
}
