//! The bytes of probes, ACKs and offers, in the dialects that are in use.

#[cfg(feature = "alloc")]
mod dialect;

#[cfg(feature = "alloc")]
pub use dialect::{Dialect, Hello};

/// The opening probe, byte for byte: a frame of type 0x0F whose JSON payload ends in a line feed.
///
/// The line feed keeps whatever line comes next whole for a server that reads this as text, and the text is
/// pure ASCII so that strict UTF-8 readers survive it. Its length byte is one that no JSON line starts with.
pub const OPENING_PROBE: &[u8] = b"\x2b\x0f\x00{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n";

#[cfg(test)]
mod tests {
    use super::OPENING_PROBE;
    use crate::frame::{Flags, Header, Kind};

    #[test]
    fn the_opening_probe_is_one_frame_and_harmless_text() {
        let (header, used) = Header::decode(OPENING_PROBE).unwrap().unwrap();
        assert_eq!((header.kind, header.flags), (Kind::PROBE, Flags::NONE));
        assert_eq!(used as u64 + header.len, OPENING_PROBE.len() as u64);
        assert!(OPENING_PROBE.is_ascii() && OPENING_PROBE.ends_with(b"\n"));
    }
}
