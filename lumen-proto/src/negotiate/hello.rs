//! The bytes of probes, ACKs and offers.

use crate::frame::{Flags, Header, Kind};

#[cfg(feature = "alloc")]
use super::Caps;

/// The opening probe, byte for byte: a frame of type 0x0F whose JSON payload ends in a line feed.
///
/// The line feed keeps whatever line comes next whole for a server that reads this as text, and the text is
/// pure ASCII so that strict UTF-8 readers survive it. Its length byte is one that no JSON line starts with.
pub const OPENING_PROBE: &[u8] = b"\x2b\x0f\x00{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n";

/// What a probe, an ACK or an offer says.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The capabilities that it lists and we know.
    pub caps: Caps,
}

/// Returns whether a frame with this header is a probe or an ACK in the one dialect spoken here: plain JSON.
pub const fn is_plain_hello(header: &Header) -> bool {
    matches!(header.kind, Kind::PROBE | Kind::PROBE_ACK) && header.flags.0 == Flags::NONE.0
}

#[cfg(feature = "alloc")]
mod text {
    use alloc::string::String;

    use bytes::BytesMut;

    use super::{Caps, Hello};
    use crate::frame::{self, Flags, Kind};
    use crate::jsonrpc::{Span, elements, find, text_is};

    impl Hello {
        /// What this build says of itself.
        pub const OURS: Self = Self { caps: Caps::OURS };

        /// Reads the JSON object of a hello. `None` if it is none, or speaks of a version other than 1.
        pub fn parse(text: &[u8]) -> Option<Self> {
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
            Some(Self { caps })
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

        /// Appends an ACK that says this. Its payload ends in a line feed: a client that reads lines loses this
        /// line alone and not the answer behind it.
        pub fn encode_ack(self, out: &mut BytesMut) {
            let mut text = self.to_text();
            text.push('\n');
            frame::encode(Kind::PROBE_ACK, Flags::NONE, text.as_bytes(), out);
        }
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use bytes::BytesMut;

    use super::*;

    #[test]
    fn the_opening_probe_is_one_frame_and_harmless_text() {
        let (header, used) = Header::decode(OPENING_PROBE).unwrap().unwrap();
        assert!(is_plain_hello(&header) && header.kind == Kind::PROBE);
        assert_eq!(used as u64 + header.len, OPENING_PROBE.len() as u64);
        assert!(OPENING_PROBE.is_ascii() && OPENING_PROBE.ends_with(b"\n"));
        let hello = Hello::parse(&OPENING_PROBE[used..]).unwrap();
        assert_eq!(hello.caps, Caps::COMPRESSION.union(Caps::STREAMING));
    }

    #[test]
    fn an_ack_ends_in_a_line_feed_inside_its_payload() {
        let mut out = BytesMut::new();
        Hello { caps: Caps::COMPRESSION.union(Caps::EXACT) }.encode_ack(&mut out);
        assert_eq!(&out[..], b"\x27\x10\x00{\"v\":1,\"caps\":[\"compression\",\"exact\"]}\n");
    }

    #[test]
    fn hellos_are_read_leniently_and_other_versions_not_at_all() {
        assert_eq!(Hello::parse(b" {} \n"), Some(Hello { caps: Caps::NONE }));
        let odd = br#"{"caps":["str\u0065aming",7,null,"mmap"],"v":1,"x":{}}"#;
        assert_eq!(Hello::parse(odd), Some(Hello { caps: Caps::STREAMING }));
        for refused in [&b"[]"[..], b"", b"\x00", br#"{"v":2}"#, br#"{"v":"1"}"#] {
            assert_eq!(Hello::parse(refused), None);
        }
    }
}
