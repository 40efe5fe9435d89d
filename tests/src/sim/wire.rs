//! Frames by hand, for fakes and checks: written from the description of the wire, sharing nothing with the
//! code under test.

/// Frame types the fakes use.
pub const REQUEST: u8 = 0x01;
/// A response.
pub const RESPONSE: u8 = 0x02;
/// A notification.
pub const NOTIFY: u8 = 0x03;
/// The question whether the other side speaks LUMEN.
pub const PROBE: u8 = 0x0f;
/// Its answer.
pub const PROBE_ACK: u8 = 0x10;

/// One frame at the front of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// TYPE.
    pub kind: u8,
    /// FLAGS.
    pub flags: u8,
    /// The payload.
    pub payload: &'a [u8],
    /// Bytes of the whole frame, header included.
    pub total: usize,
}

/// Builds a frame.
pub fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len();
    let mut out = Vec::with_capacity(len + 7);
    if len < 0x40 {
        out.push(len as u8);
    } else if len < 0x1_0000 {
        out.push(0x80);
        out.extend_from_slice(&(len as u16).to_le_bytes());
    } else {
        out.push(0xc0);
        out.extend_from_slice(&(len as u32).to_le_bytes());
    }
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(payload);
    out
}

/// Reads the frame at the front of `bytes`; `None` while it is incomplete.
///
/// # Panics
/// If the bytes are no frame that a test needs (LEB128 lengths included).
pub fn parse(bytes: &[u8]) -> Option<Frame<'_>> {
    let (len, used) = match *bytes.first()? {
        short @ 0..=0x3f => (usize::from(short), 1),
        0x80 => (usize::from(u16::from_le_bytes(bytes.get(1..3)?.try_into().ok()?)), 3),
        0xc0 => (u32::from_le_bytes(bytes.get(1..5)?.try_into().ok()?) as usize, 5),
        other => panic!("0x{other:02x} does not start a frame"),
    };
    let [kind, flags] = *bytes.get(used..used + 2)? else { return None };
    let payload = bytes.get(used + 2..used + 2 + len)?;
    Some(Frame { kind, flags, payload, total: used + 2 + len })
}

/// Returns whether `byte` starts a frame rather than a line.
pub fn starts_frame(byte: u8) -> bool {
    matches!(byte, 0..=0x3f | 0x80 | 0xc0)
}

/// Returns whether `bytes` are exactly one line (one LF, at the end) or exactly one frame.
pub fn is_one_unit(bytes: &[u8]) -> bool {
    let line = bytes.iter().position(|&byte| byte == b'\n') == Some(bytes.len().wrapping_sub(1));
    let frame = || {
        bytes.first().is_some_and(|&byte| starts_frame(byte))
            && parse(bytes).is_some_and(|frame| frame.total == bytes.len())
    };
    line || frame()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_published_bytes() {
        assert_eq!(frame(NOTIFY, 0, b"hi"), [0x02, 0x03, 0x00, 0x68, 0x69]);
        assert_eq!(frame(REQUEST, 0, &[0; 64])[..5], [0x80, 0x40, 0x00, 0x01, 0x00]);
        assert_eq!(frame(REQUEST, 0, &vec![0; 65536])[..7], [0xc0, 0, 0, 1, 0, 1, 0]);
        for len in [0, 63, 64, 65535, 65536] {
            let bytes = frame(RESPONSE, 1, &vec![7; len]);
            assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
            let read = parse(&bytes).unwrap();
            assert_eq!((read.kind, read.flags, read.payload.len(), read.total), (2, 1, len, bytes.len()));
        }
    }

    #[test]
    fn a_unit_is_one_line_or_one_frame() {
        assert!(is_one_unit(b"{}\n"));
        assert!(!is_one_unit(b"{}\n{}\n"));
        assert!(!is_one_unit(b"{}"));
        assert!(is_one_unit(&frame(NOTIFY, 0, b"hi")));
        assert!(!is_one_unit(&[frame(NOTIFY, 0, b"hi"), frame(NOTIFY, 0, b"hi")].concat()));
        assert!(!is_one_unit(b""));
    }
}
