//! The one trait between a machine and its driver.

use core::fmt;

use bytes::BytesMut;

use super::{Instant, Port};

/// What the world tells a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// The port is open in both directions. Sent once, before anything else of that port.
    Opened(Port),
    /// Bytes that arrived, in order; never more than `wants_input` said, never empty.
    Data(Port, &'a [u8]),
    /// The peer will send nothing more on this port (end of stream, or a read error). Sent at most once.
    Eof(Port),
    /// Nothing more can be delivered on this port (a write failed). Sent at most once; reading may go on.
    Lost(Port),
    /// All output of this port is written and its writing half is closed, after [`Transmit::Finish`].
    Finished(Port),
    /// What became of the process or connection behind a port the machine had asked to `Spawn`.
    Child(Port, ChildEvent),
}

impl Input<'_> {
    /// Returns the port this input belongs to.
    pub const fn port(&self) -> Port {
        match *self {
            Self::Opened(port)
            | Self::Data(port, _)
            | Self::Eof(port)
            | Self::Lost(port)
            | Self::Finished(port)
            | Self::Child(port, _) => port,
        }
    }

    /// Returns the same input of another port.
    #[must_use]
    pub const fn with_port(self, port: Port) -> Self {
        match self {
            Self::Opened(_) => Self::Opened(port),
            Self::Data(_, data) => Self::Data(port, data),
            Self::Eof(_) => Self::Eof(port),
            Self::Lost(_) => Self::Lost(port),
            Self::Finished(_) => Self::Finished(port),
            Self::Child(_, event) => Self::Child(port, event),
        }
    }
}

/// What became of a child process, or of a connection that was to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// It could not be started or reached; the port was never opened and needs no `Abort`.
    Failed(OpenError),
    /// The process ended. Its output may still hold unread bytes; `Eof` is a separate fact.
    Exited(Exit),
}

/// Why a process could not be started or a connection not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenError {
    /// The kind, as far as callers treat it differently.
    pub kind: OpenErrorKind,
    /// The operating system's error number, 0 if there is none.
    pub errno: i32,
}

/// The kinds of [`OpenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenErrorKind {
    /// No such program, directory or socket (ENOENT).
    NotFound,
    /// It is there but must not be run or reached (EACCES, EPERM).
    PermissionDenied,
    /// Nobody listens there (ECONNREFUSED).
    Refused,
    /// Anything else; the error number tells.
    Other,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            OpenErrorKind::NotFound => f.write_str("not found"),
            OpenErrorKind::PermissionDenied => f.write_str("permission denied"),
            OpenErrorKind::Refused => f.write_str("connection refused"),
            OpenErrorKind::Other => write!(f, "operating system error {}", self.errno),
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What a machine asks of the world besides bytes and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start the configured process, or make the configured connection, and call it `port`. Answered by
    /// [`Input::Opened`] or by [`ChildEvent::Failed`].
    Spawn(Port),
    /// Send this signal to the process behind `port` and to everything it started.
    Signal(Port, Signal),
    /// Drop the port with all that belongs to it: close both directions, throw away unsent bytes, and if a
    /// process is behind it end its whole tree and reap it. No input follows from this port.
    Abort(Port),
}

/// The signals a machine sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Asks it to end (SIGTERM).
    Terminate,
    /// Ends it (SIGKILL).
    Kill,
}

/// What [`Machine::poll_transmit`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Transmit {
    /// Nothing was appended, and nothing will be until `poll_ready` names the port again.
    Idle,
    /// One line or frame was appended; ask again for the next.
    More,
    /// Nothing was appended and nothing ever will be: close the writing half once what came before is written.
    Finish,
}

/// A machine that consumes and emits bytes, for drivers that are generic over it.
///
/// # Contract
/// Each rule has a test in the simulated world, where a `Checked` wrapper asserts it on every call.
/// 1. `now` never goes back; a machine clamps it.
/// 2. `handle_*` does all the work its input implies; nothing waits for the next timeout.
/// 3. An early `handle_timeout` does nothing. After `handle_timeout(t)`, `poll_timeout()` is `None` or later
///    than `t`.
/// 4. `poll_timeout` is valid once every port that is not blocked is `Idle` and no action or event is left.
/// 5. `poll_transmit` appends at most one frame or line and never looks at the bytes before it.
/// 6. A machine takes all the bytes that it asked for.
/// 7. Peer bytes never panic and never return an error: what spoils one message is an event, and the port goes
///    on; what loses the message boundary closes the port.
/// 8. Ended states are inert and idempotent.
/// 9. Every queue is bounded in bytes; a full one lowers `wants_input`. One message always fits.
/// 10. Any re-chunking of the same input gives the same events and the same output bytes, for the same order
///     of inputs and drains.
pub trait Machine {
    /// What the machine tells its owner.
    type Event;

    /// Takes what the world tells.
    fn handle_input(&mut self, now: Instant, input: Input<'_>);

    /// Takes the passing of time.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns how many bytes the machine takes from `port` right now; 0 stops reading, and is the only
    /// backpressure there is.
    fn wants_input(&self, port: Port) -> usize;

    /// Returns a port that gained output, or whose `wants_input` rose from 0, since it was last returned.
    #[must_use]
    fn poll_ready(&mut self) -> Option<Port>;

    /// Appends the next frame or line for `port` to `out`.
    fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit;

    /// Returns the next thing to do in the world.
    #[must_use]
    fn poll_action(&mut self) -> Option<Action>;

    /// Returns the next event for the owner.
    #[must_use]
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// Returns when `handle_timeout` is next due.
    #[must_use]
    fn poll_timeout(&self) -> Option<Instant>;
}
