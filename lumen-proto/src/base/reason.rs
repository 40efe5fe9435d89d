//! Why a message was refused or a port closed, and by whose fault.

use core::fmt;

/// Whose fault it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer sent what the protocol does not allow.
    Peer,
    /// One of our bounds was reached.
    Limit,
    /// Time ran out.
    Timeout,
    /// Our side cannot do it (not built, not started, going down).
    Local,
}

/// Why one message was refused, or why a port was closed.
///
/// Comparable, copyable, and without foreign text: what the peer said belongs in an event's excerpt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not JSON at this byte.
    NotJson {
        /// Bytes from the start of the message.
        at: usize,
    },
    /// The text is not UTF-8 at this byte.
    NotUtf8 {
        /// Bytes from the start of the message.
        at: usize,
    },
    /// The payload of a compressed frame is no value at this byte.
    NotValue {
        /// Bytes from the start of the payload.
        at: usize,
    },
    /// The JSON nests deeper than [`limits::MAX_DEPTH`](super::limits::MAX_DEPTH).
    TooDeep {
        /// Bytes from the start of the message.
        at: usize,
    },
    /// JSON, but no JSON-RPC message; says what is missing or wrong.
    NotJsonRpc(&'static str),
    /// This top-level member occurs twice, so readers may disagree about it.
    Duplicate(&'static str),
    /// A request whose id is `null`.
    NullId,
    /// A request whose id is neither a string nor a number.
    BadId,
    /// The id token is longer than [`limits::MAX_ID`](super::limits::MAX_ID).
    LongId,
    /// The message is longer than the limit of this port.
    TooLong {
        /// Its length in bytes, or what had been seen of it.
        len: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// More of an oversize message than will be skipped.
    TooLongToSkip {
        /// The bound in bytes.
        max: u64,
    },
    /// A frame of a reserved type.
    ReservedType(u8),
    /// A frame with reserved flag bits.
    ReservedFlags(u8),
    /// Something legal that is not built here; says what.
    Unsupported(&'static str),
    /// A length whose value does not fit 64 bits.
    BadLength,
    /// The stream ended inside a message.
    Truncated {
        /// Bytes of it that had arrived.
        had: u64,
    },
    /// Too many requests are in flight.
    Busy,
    /// As many clients are connected as may be.
    Full,
    /// The server is gone.
    ServerGone,
    /// The server could not be started.
    NotStarted,
    /// No answer came in time.
    NoAnswer,
    /// The client closed its input, so it cannot answer any more.
    ClientGone,
    /// A request with this id is still in flight from the same client.
    IdInUse,
    /// The server is down and will be started again.
    Down {
        /// When to try again, in milliseconds from now.
        retry_after_ms: u64,
    },
    /// We are about to end.
    ShuttingDown,
    /// A request of a shared server that cannot be put to one client.
    NoOwner,
    /// A method that is not answered here.
    NoMethod,
    /// The server is used in the other of MCP's two ways (with and without a handshake), and only in that.
    WrongEra,
}

impl Reason {
    /// Returns whose fault it was.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::NotJson { .. }
            | Self::NotUtf8 { .. }
            | Self::NotValue { .. }
            | Self::NotJsonRpc(_)
            | Self::Duplicate(_)
            | Self::NullId
            | Self::BadId
            | Self::ReservedType(_)
            | Self::ReservedFlags(_)
            | Self::BadLength
            | Self::Truncated { .. }
            | Self::ServerGone
            | Self::ClientGone
            | Self::IdInUse
            | Self::NoMethod
            | Self::WrongEra => Fault::Peer,
            Self::TooDeep { .. }
            | Self::LongId
            | Self::TooLong { .. }
            | Self::TooLongToSkip { .. }
            | Self::Busy
            | Self::Full => Fault::Limit,
            Self::NoAnswer => Fault::Timeout,
            Self::Unsupported(_)
            | Self::NotStarted
            | Self::Down { .. }
            | Self::ShuttingDown
            | Self::NoOwner => Fault::Local,
        }
    }

    /// Returns the JSON-RPC error code for an answer that tells of it: -32700 for what cannot be read, -32600 for
    /// what is no request, -32601 for what nobody answers, -32011 for requests in flight when the server went away,
    /// else -32603.
    pub const fn code(&self) -> i32 {
        match self {
            Self::NotJson { .. } | Self::NotUtf8 { .. } | Self::NotValue { .. } => -32700,
            Self::NotJsonRpc(_)
            | Self::Duplicate(_)
            | Self::NullId
            | Self::BadId
            | Self::LongId
            | Self::IdInUse
            | Self::WrongEra => -32600,
            Self::NoMethod => -32601,
            Self::ServerGone => -32011,
            _ => -32603,
        }
    }

    /// Returns a stable machine-readable name, used in the `data` of error answers.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => "not_json",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::NotValue { .. } => "not_value",
            Self::TooDeep { .. } => "too_deep",
            Self::NotJsonRpc(_) => "not_json_rpc",
            Self::Duplicate(_) => "duplicate_member",
            Self::NullId => "null_id",
            Self::BadId => "bad_id",
            Self::LongId => "long_id",
            Self::TooLong { .. } => "too_long",
            Self::TooLongToSkip { .. } => "too_long_to_skip",
            Self::ReservedType(_) => "reserved_type",
            Self::ReservedFlags(_) => "reserved_flags",
            Self::Unsupported(_) => "unsupported",
            Self::BadLength => "bad_length",
            Self::Truncated { .. } => "truncated",
            Self::Busy => "busy",
            Self::Full => "full",
            Self::ServerGone => "server_gone",
            Self::NotStarted => "not_started",
            Self::NoAnswer => "no_answer",
            Self::ClientGone => "client_gone",
            Self::IdInUse => "id_in_use",
            Self::Down { .. } => "down",
            Self::ShuttingDown => "shutting_down",
            Self::NoOwner => "no_owner",
            Self::NoMethod => "no_method",
            Self::WrongEra => "wrong_era",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson { at } => write!(f, "not JSON at byte {at}"),
            Self::NotUtf8 { at } => write!(f, "not UTF-8 at byte {at}"),
            Self::NotValue { at } => write!(f, "not a value at byte {at} of a compressed frame"),
            Self::TooDeep { at } => {
                write!(f, "nested deeper than {} at byte {at}", super::limits::MAX_DEPTH)
            }
            Self::NotJsonRpc(what) => write!(f, "not a JSON-RPC message: {what}"),
            Self::Duplicate(name) => write!(f, "member \"{name}\" occurs twice"),
            Self::NullId => f.write_str("a request must not have the id null"),
            Self::BadId => f.write_str("an id must be a string or a number"),
            Self::LongId => write!(f, "an id must not be longer than {} bytes", super::limits::MAX_ID),
            Self::TooLong { len, max } => write!(f, "message of {len} bytes is longer than {max}"),
            Self::TooLongToSkip { max } => {
                write!(f, "message is longer than the {max} bytes that are skipped")
            }
            Self::ReservedType(kind) => write!(f, "frame of reserved type 0x{kind:02x}"),
            Self::ReservedFlags(flags) => write!(f, "frame with reserved flags 0x{flags:02x}"),
            Self::Unsupported(what) => write!(f, "{what} is not supported"),
            Self::BadLength => f.write_str("a length that does not fit 64 bits"),
            Self::Truncated { had } => write!(f, "stream ended inside a message, after {had} bytes of it"),
            Self::Busy => f.write_str("too many requests in flight"),
            Self::Full => f.write_str(
                "as many clients are connected as may be; connect again when one has gone, or let more in \
                 (lumen mux --max-clients)",
            ),
            Self::ServerGone => f.write_str("the server is gone"),
            Self::NotStarted => f.write_str("the server could not be started"),
            Self::NoAnswer => f.write_str("the server did not answer in time"),
            Self::ClientGone => f.write_str("the client has closed its input"),
            Self::IdInUse => f.write_str("a request with this id is still in flight"),
            Self::Down { retry_after_ms } => {
                write!(f, "the server is down; try again in {retry_after_ms} ms")
            }
            Self::ShuttingDown => f.write_str("going down"),
            Self::NoOwner => f.write_str("the server is shared, and this cannot be put to one client"),
            Self::NoMethod => f.write_str("method not found"),
            Self::WrongEra => {
                f.write_str("the server is shared by clients of another protocol era, and serves only them")
            }
        }
    }
}

impl core::error::Error for Reason {}
