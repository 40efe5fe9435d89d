//! What an adapter is asked to do.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;

/// One HTTP request and its response. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub(super) u64);

impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The methods that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Delivers a message.
    Post,
    /// Opens a stream, or goes on with one.
    Get,
    /// Ends the session.
    Delete,
}

impl Method {
    /// Returns the method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Get => "GET",
            Self::Delete => "DELETE",
        }
    }
}

/// A request to make. The adapter adds the URL, `Authorization` and what its user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// How this exchange is called from now on.
    pub id: ExchangeId,
    /// Its method.
    pub method: Method,
    /// Names in lower case, and values of visible ASCII, blanks inside: valid in every version of HTTP.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// Its body; empty unless it is a POST.
    pub body: Bytes,
}
