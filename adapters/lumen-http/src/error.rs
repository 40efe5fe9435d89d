//! What can be wrong before anything is sent. No text of these quotes what may be a secret.

use std::path::PathBuf;

/// Why a [`Config`](crate::Config) cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL of the server cannot be used.
    #[error("the URL cannot be used: {0}")]
    Url(&'static str),
    /// A header cannot be sent.
    #[error("the header {name:?} cannot be used: {why}")]
    Header {
        /// Its name, as far as it is one.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The proxy cannot be used.
    #[error("the proxy cannot be used: {0}")]
    Proxy(&'static str),
    /// A file of certificates cannot be used.
    #[error("cannot use the certificates in {}: {why}", .path.display())]
    Certificates {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Joins an error and all that caused it, each said once.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}
