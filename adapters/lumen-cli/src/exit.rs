//! The fixed exit codes.

use std::process::ExitCode;

/// How the command ends. The numbers are documented in `--help` and in the README, and do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything that was asked for was done, or the other side closed the session in order.
    Ok = 0,
    /// The session failed: the server ended while it was needed, or answers were still owed at the end. Of `encode`
    /// and `decode`: the input is broken, or a file cannot be read or written. Of `doctor`: something is wrong.
    Failed = 1,
    /// The command line is wrong; nothing was started. Of `doctor` also: the server could not be started.
    Usage = 2,
    /// The server could not be started.
    NotStarted = 3,
    /// The server was started and never gave its first answer.
    NoAnswer = 4,
}

impl Exit {
    /// The table for help texts.
    pub(crate) const HELP: &str = "\
Exit codes:
  0  done, or the session was closed in order
  1  the session failed: the server ended while it was needed, or answers were still owed
  2  wrong command line
  3  the server could not be started
  4  the server never gave its first answer";

    /// The table for the help text of `mux`.
    pub(crate) const MUX_HELP: &str = "\
Exit codes:
  0  told to end, or nobody came for --idle-exit
  1  the system refused something while it was serving
  2  wrong command line
  3  the socket could not be served, or the server not be found or started the first time";

    /// The table for the help text of `bridge`.
    pub(crate) const BRIDGE_HELP: &str = "\
Exit codes:
  0  the session was closed in order; whatever could not be had from the server was an error for its request
  1  answers were still owed at the end, or stdout could not be written
  2  wrong command line, key, header or certificate file; nothing was read or sent";

    /// The table for the help text of `status`.
    pub(crate) const STATUS_HELP: &str = "\
Exit codes:
  0  done, or nobody reads the output any more
  1  the output cannot be written
  2  wrong command line
  3  nobody serves the socket, or it does not answer";

    /// The table for the help text of `doctor`.
    pub(crate) const DOCTOR_HELP: &str = "\
Exit codes:
  0  nothing wrong was found
  1  something is wrong, and the report says what; or it was told to end
  2  wrong command line, or the server could not be started";

    /// The table for the help texts of the commands that start nothing.
    pub(crate) const CODEC_HELP: &str = "\
Exit codes:
  0  done, or nobody reads the output any more
  1  the input is broken, or a file cannot be read or written; what came before was written
  2  wrong command line";
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
