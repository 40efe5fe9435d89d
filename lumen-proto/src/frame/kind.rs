//! Frame types and flags as open newtypes: a value that means nothing here survives as it came.

use core::fmt;
use core::ops::BitOr;

/// The type of a frame. Any byte is one; the known ones are constants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// A JSON-RPC request.
    pub const REQUEST: Self = Self(0x01);
    /// A JSON-RPC answer, result or error.
    pub const RESPONSE: Self = Self(0x02);
    /// A JSON-RPC notification.
    pub const NOTIFY: Self = Self(0x03);
    /// One piece of a token stream.
    pub const STREAM_DATA: Self = Self(0x04);
    /// A change of a schema.
    pub const SCHEMA_PATCH: Self = Self(0x05);
    /// The start of a token stream.
    pub const STREAM_INIT: Self = Self(0x06);
    /// Dictionary entries.
    pub const DICT_SYNC: Self = Self(0x07);
    /// A question for schemas, or its answer.
    pub const DISCOVER: Self = Self(0x08);
    /// An operation on a multiplexed channel.
    pub const MUX: Self = Self(0x09);
    /// A sign of life.
    pub const HEARTBEAT: Self = Self(0x0a);
    /// An offer of other transports.
    pub const TRANSPORT_INIT: Self = Self(0x0b);
    /// The choice of a transport.
    pub const TRANSPORT_ACK: Self = Self(0x0c);
    /// Several frames in one.
    pub const BATCH: Self = Self(0x0d);
    /// Flow control of a stream.
    pub const FLOW_CTL: Self = Self(0x0e);
    /// The question whether the other side speaks LUMEN.
    pub const PROBE: Self = Self(0x0f);
    /// The answer that it does.
    pub const PROBE_ACK: Self = Self(0x10);

    /// Returns the protocol's name of the type, if it has one.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::REQUEST => "REQUEST",
            Self::RESPONSE => "RESPONSE",
            Self::NOTIFY => "NOTIFY",
            Self::STREAM_DATA => "STREAM_DATA",
            Self::SCHEMA_PATCH => "SCHEMA_PATCH",
            Self::STREAM_INIT => "STREAM_INIT",
            Self::DICT_SYNC => "DICT_SYNC",
            Self::DISCOVER => "DISCOVER",
            Self::MUX => "MUX",
            Self::HEARTBEAT => "HEARTBEAT",
            Self::TRANSPORT_INIT => "TRANSPORT_INIT",
            Self::TRANSPORT_ACK => "TRANSPORT_ACK",
            Self::BATCH => "BATCH",
            Self::FLOW_CTL => "FLOW_CTL",
            Self::PROBE => "PROBE",
            Self::PROBE_ACK => "PROBE_ACK",
            _ => return None,
        })
    }

    /// Returns whether the frame carries a JSON-RPC message.
    pub const fn is_message(self) -> bool {
        matches!(self, Self::REQUEST | Self::RESPONSE | Self::NOTIFY)
    }

    /// Returns whether the protocol forbids the type, now and later.
    pub const fn is_reserved(self) -> bool {
        matches!(self.0, 0x00 | 0xff)
    }
}

impl fmt::Display for Kind {
    /// Writes the name, or the value in hex.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:02x}", self.0),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({self})")
    }
}

/// The flags of a frame. Any byte is a set of them; the known ones are constants.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag: the payload is plain.
    pub const NONE: Self = Self(0x00);
    /// The payload is in the value codec.
    pub const COMPRESSED: Self = Self(0x01);
    /// What [`COMPRESSED`](Self::COMPRESSED) means in a [`FLOW_CTL`](Kind::FLOW_CTL) frame: the stream pauses.
    pub const PAUSE: Self = Self(0x01);
    /// The payload is encrypted.
    pub const ENCRYPTED: Self = Self(0x02);
    /// The frame goes before others.
    pub const PRIORITY: Self = Self(0x04);
    /// The payload is a part of a longer one.
    pub const FRAGMENTED: Self = Self(0x08);

    /// Returns whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits that must be zero and are not.
    pub const fn reserved_bits(self) -> u8 {
        self.0 & 0xf0
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, rhs: Self) -> Self {
        Self(self.0 | rhs.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags(0x{:02x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn sixteen_types_have_names_and_the_rest_survive() {
        for value in 0..=u8::MAX {
            let kind = Kind(value);
            assert_eq!(kind.name().is_some(), (0x01..=0x10).contains(&value));
            assert_eq!(kind.is_message(), (0x01..=0x03).contains(&value));
            assert_eq!(kind.is_reserved(), value == 0x00 || value == 0xff);
            assert_eq!(kind.0, value);
        }
        assert_eq!(Kind::PROBE_ACK.to_string(), "PROBE_ACK");
        assert_eq!(Kind(0xfe).to_string(), "0xfe");
    }

    #[test]
    fn flags_combine_and_show_what_is_reserved() {
        let flags = Flags::COMPRESSED | Flags::PRIORITY;
        assert_eq!(flags, Flags(0x05));
        assert!(flags.contains(Flags::PRIORITY) && !flags.contains(Flags::ENCRYPTED));
        assert!(!flags.contains(Flags::PRIORITY | Flags::FRAGMENTED));
        assert_eq!(Flags(0x0f).reserved_bits(), 0);
        assert_eq!(Flags(0xa5).reserved_bits(), 0xa0);
    }
}
