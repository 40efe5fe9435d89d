//! Errors for people to read, and their short form for machines.

use std::io;
use std::path::PathBuf;

use lumen_proto::{OpenError, OpenErrorKind};

use crate::socket::MAX_UNIX_PATH;

/// Why a command could not be started.
///
/// The system says ENOENT for three different things; they are told apart by looking afterwards, which is good
/// enough for a message and never changes what happens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program was not found, as a path or in `PATH`.
    #[error("program {program:?} not found")]
    ProgramNotFound {
        /// The program as given.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program is there, but the interpreter that it names is not.
    #[error("program {program:?} names an interpreter that was not found")]
    InterpreterNotFound {
        /// The program as given.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The working directory is not there, or is no directory.
    #[error("working directory {cwd:?} not found")]
    CwdNotFound {
        /// The directory as given.
        cwd: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused for another reason.
    #[error("cannot start {program:?}: {source}")]
    Refused {
        /// The program as given.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SpawnError {
    /// Returns the short form that a machine takes.
    pub fn open_error(&self) -> OpenError {
        match self {
            Self::ProgramNotFound { source, .. }
            | Self::InterpreterNotFound { source, .. }
            | Self::CwdNotFound { source, .. }
            | Self::Refused { source, .. } => open_error(source),
        }
    }
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The path does not fit a socket address.
    #[error("socket path of {len} bytes is longer than {MAX_UNIX_PATH}: {path:?}")]
    PathTooLong {
        /// The path as given.
        path: PathBuf,
        /// Its length in bytes.
        len: usize,
    },
    /// The system refused, or nobody answered in time.
    #[error("cannot connect to {target}: {source}")]
    Refused {
        /// The path or `host:port` as given.
        target: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a Unix socket could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The path does not fit a socket address.
    #[error("socket path of {len} bytes is longer than {MAX_UNIX_PATH}: {path:?}; use a shorter one")]
    PathTooLong {
        /// The path as given.
        path: PathBuf,
        /// Its length in bytes.
        len: usize,
    },
    /// Somebody serves it already.
    #[error("{path:?} is served by another process; connect to it, or use another path")]
    InUse {
        /// The path as given.
        path: PathBuf,
    },
    /// Something else is there, and is not removed.
    #[error("{path:?} is there and is no socket; remove it, or use another path")]
    NotASocket {
        /// The path as given.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {step} {path:?}: {source}")]
    Refused {
        /// The path as given.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl ConnectError {
    /// Returns the short form that a machine takes.
    pub fn open_error(&self) -> OpenError {
        match self {
            Self::PathTooLong { .. } => {
                OpenError { kind: OpenErrorKind::Other, errno: rustix::io::Errno::NAMETOOLONG.raw_os_error() }
            }
            Self::Refused { source, .. } => open_error(source),
        }
    }
}

fn open_error(error: &io::Error) -> OpenError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => OpenErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => OpenErrorKind::PermissionDenied,
        io::ErrorKind::ConnectionRefused => OpenErrorKind::Refused,
        _ => OpenErrorKind::Other,
    };
    OpenError { kind, errno: error.raw_os_error().unwrap_or(0) }
}
