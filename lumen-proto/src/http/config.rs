//! How a session is set up.

use alloc::string::String;
use core::time::Duration;

use super::Secrets;
use crate::limits;

/// How a session is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The server's URL as errors quote it: without user, password and query, which may be secret.
    pub url: String,
    /// What errors and events do not say although the server does.
    pub secrets: Secrets,
    /// How long a request may take, from its start to its answer; `None` is for ever. A
    /// `subscriptions/listen` may always take for ever.
    pub timeout: Option<Duration>,
    /// How long owed answers are waited for after the agent has closed its input.
    pub eof_grace: Duration,
}

impl Config {
    /// Makes the usual set-up.
    pub fn new(url: String) -> Self {
        Self { url, secrets: Secrets::default(), timeout: None, eof_grace: limits::EOF_GRACE }
    }

    /// Sets how long a request may take.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long owed answers are waited for after the agent has closed its input.
    #[must_use]
    pub const fn with_eof_grace(mut self, grace: Duration) -> Self {
        self.eof_grace = grace;
        self
    }
}
