//! Reading and writing hellos.
//!
//! The dialects of the two published packages were found by running them: npm `@gonzalomonzonc/mcp-transport`
//! 0.1.0 and PyPI `lumen-mcp` 0.1.0.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::BytesMut;

use crate::frame::{self, Flags, Header, Kind};
use crate::jsonrpc::{Span, elements, find, text_is};
use crate::negotiate::Caps;
use crate::value::tape::Tape;
use crate::value::{Profile, encode};

/// How a peer writes its probes, and wants its ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The protocol's own: plain JSON.
    #[default]
    Seed,
    /// The TypeScript package: the same object through the value codec.
    Ts,
    /// The Python package: an object of its own through the value codec, which lists no capabilities.
    Py,
}

/// What a probe, an ACK or an offer says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The capabilities that it lists and we know.
    pub caps: Caps,
    /// How it says so.
    pub dialect: Dialect,
}

impl Hello {
    /// What this build says of itself.
    pub const OURS: Self = Self { caps: Caps::OURS, dialect: Dialect::Seed };

    /// Reads the payload of a probe or an ACK. `None` if it is none in any dialect, or speaks of a version other
    /// than 1.
    pub fn from_frame(header: &Header, payload: &[u8]) -> Option<Self> {
        match header.flags {
            Flags::NONE => Self::from_text(payload),
            Flags::COMPRESSED => Self::from_value(payload),
            _ => None,
        }
    }

    /// Reads the JSON object of a hello.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii();
        if text.first() != Some(&b'{') {
            return None;
        }
        let object = Span::new(0, text.len());
        if let Some(version) = find(text, object, &["v"])
            && version.of(text) != b"1"
        {
            return None;
        }
        let mut caps = Caps::NONE;
        if let Some(list) = find(text, object, &["caps"]) {
            for item in elements(text, list) {
                caps = caps.union(Caps::named(|name| text_is(item.of(text), name)));
            }
        }
        Some(Self { caps, dialect: Dialect::Seed })
    }

    fn from_value(bytes: &[u8]) -> Option<Self> {
        let mut tape = Tape::new();
        tape.parse(bytes, None).ok()?;
        let root = tape.root(bytes, None)?;
        if root.member("protocol").is_some() {
            return Some(Self { caps: Caps::COMPRESSION, dialect: Dialect::Py });
        }
        if root.member("v")?.as_int() != Some(1) {
            return None;
        }
        let mut caps = Caps::NONE;
        for item in root.member("caps")?.elements() {
            caps = caps.union(Caps::named(|name| item.as_str() == Some(name)));
        }
        Some(Self { caps, dialect: Dialect::Ts })
    }

    /// Returns what this peer's decoder takes; `None` if it takes plain frames only.
    pub fn profile(self) -> Option<Profile> {
        if !self.caps.contains(Caps::COMPRESSION) {
            return None;
        }
        Some(match self.dialect {
            _ if self.caps.contains(Caps::EXACT) => Profile::EXACT,
            Dialect::Seed => Profile::RS,
            Dialect::Ts => Profile::TS,
            Dialect::Py => Profile::PY,
        })
    }

    /// Returns the JSON object, without any white space.
    pub fn to_text(self) -> String {
        let mut text = String::from("{\"v\":1,\"caps\":[");
        for (index, name) in self.caps.names().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push('"');
            text.push_str(name);
            text.push('"');
        }
        text.push_str("]}");
        text
    }

    /// Appends a probe that says this, in the protocol's own dialect.
    pub fn encode_probe(self, out: &mut BytesMut) {
        let mut text = self.to_text();
        text.push('\n');
        frame::encode(Kind::PROBE, Flags::NONE, text.as_bytes(), out);
    }

    /// Appends an ACK that says this to a peer of that dialect.
    ///
    /// Its payload ends in a line feed: a client that reads lines loses this line alone and not the answer behind
    /// it, and decoders of values tolerate one.
    pub fn encode_ack(self, dialect: Dialect, out: &mut BytesMut) {
        let mut payload = Vec::new();
        let flags = match dialect {
            Dialect::Seed => {
                payload.extend_from_slice(self.to_text().as_bytes());
                Flags::NONE
            }
            Dialect::Ts => {
                encode::object(2, &mut payload);
                encode::key("v", &mut payload);
                encode::int(1, &mut payload);
                encode::key("caps", &mut payload);
                encode::array(self.caps.names().count(), &mut payload);
                self.caps.names().for_each(|name| encode::str(name, &mut payload));
                Flags::COMPRESSED
            }
            Dialect::Py => {
                encode::object(3, &mut payload);
                for (key, value) in
                    [("protocol", "LUMEN"), ("server_name", "lumen"), ("accepted_version", "1.0")]
                {
                    encode::key(key, &mut payload);
                    encode::str(value, &mut payload);
                }
                Flags::COMPRESSED
            }
        };
        payload.push(b'\n');
        frame::encode(Kind::PROBE_ACK, flags, &payload, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiate::hello::OPENING_PROBE;

    fn read(frame: &[u8]) -> Option<Hello> {
        let (header, used) = Header::decode(frame).unwrap().unwrap();
        Hello::from_frame(&header, &frame[used..])
    }

    #[test]
    fn the_opening_probe_says_what_the_protocol_lists() {
        let caps = Caps::COMPRESSION.union(Caps::STREAMING);
        assert_eq!(read(OPENING_PROBE), Some(Hello { caps, dialect: Dialect::Seed }));
    }

    #[test]
    fn an_ack_ends_in_a_line_feed_inside_its_payload() {
        let mut out = BytesMut::new();
        Hello::OURS.encode_ack(Dialect::Seed, &mut out);
        assert_eq!(&out[..], b"\x27\x10\x00{\"v\":1,\"caps\":[\"compression\",\"exact\"]}\n");
        assert_eq!(read(&out), Some(Hello::OURS));
    }

    #[test]
    fn the_probes_of_the_published_packages_are_known_and_answered_in_kind() {
        // {v:1, caps:[compression, streaming]} as the TypeScript package sends it.
        let ts =
            b"\x27\x0f\x01\xe7\x02\xff\x01v\xe3\x02\xff\x04caps\xe6\x02\xe5\x0bcompression\xe5\x09streaming";
        assert_eq!(ts.len(), 42);
        let hello = read(ts).unwrap();
        assert_eq!((hello.dialect, hello.profile()), (Dialect::Ts, Some(Profile::TS)));
        let mut py = BytesMut::new();
        let mut payload = Vec::new();
        encode::object(2, &mut payload);
        for (key, value) in [("protocol", "LUMEN"), ("version", "1.0")] {
            encode::key(key, &mut payload);
            encode::str(value, &mut payload);
        }
        frame::encode(Kind::PROBE, Flags::COMPRESSED, &payload, &mut py);
        let hello = read(&py).unwrap();
        assert_eq!((hello.dialect, hello.profile()), (Dialect::Py, Some(Profile::PY)));
        for dialect in [Dialect::Ts, Dialect::Py] {
            let mut ack = BytesMut::new();
            Hello::OURS.encode_ack(dialect, &mut ack);
            assert!(ack.ends_with(b"\n"));
            assert_eq!(read(&ack).map(|hello| hello.dialect), Some(dialect));
        }
    }

    #[test]
    fn hellos_are_read_leniently_and_other_versions_not_at_all() {
        let none = Hello { caps: Caps::NONE, dialect: Dialect::Seed };
        assert_eq!(Hello::from_text(b" {} \n"), Some(none));
        assert_eq!(none.profile(), None);
        let odd = br#"{"caps":["str\u0065aming",7,null,"mmap"],"v":1,"x":{}}"#;
        assert_eq!(Hello::from_text(odd).map(|hello| hello.caps), Some(Caps::STREAMING));
        for refused in [&b"[]"[..], b"", b"\x00", br#"{"v":2}"#, br#"{"v":"1"}"#] {
            assert_eq!(Hello::from_text(refused), None);
            assert_eq!(Hello::from_value(refused), None);
        }
        assert_eq!(read(b"\x02\x0f\x02{}"), None, "encrypted");
    }
}
