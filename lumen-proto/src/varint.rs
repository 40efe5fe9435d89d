//! F1: Hyb128, the variable-length integer of LUMEN.
//!
//! The two top bits of the first byte pick one of four forms. All numbers are little-endian.
//!
//! | first byte | then | values it is emitted for |
//! |---|---|---|
//! | `00`..`3f` | nothing: the byte is the value | 0..=63 |
//! | `80` | 2 bytes | 64..=65,535 |
//! | `c0` | 4 bytes | 65,536..=2^32-1 |
//! | `40` | LEB128, low group first, at most 10 bytes | 2^32 and above |
//!
//! The encoder emits the smallest form. [`decode`] takes any of the four whatever the value, as other
//! implementations do; [`decode_strict`] refuses a form that is longer than it has to be. No encoder sets the
//! low bits of the last three first bytes, so both decoders refuse every other first byte: that tells a frame
//! from text.

use crate::Reason;

/// The most bytes one integer takes: the first byte and ten groups of seven bits.
pub const MAX_LEN: usize = 11;

const U16: u8 = 0x80;
const U32: u8 = 0xc0;
const LEB: u8 = 0x40;

/// Returns how many bytes [`encode`] emits for `value`.
#[inline]
pub const fn encoded_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 1 + (u64::BITS - value.leading_zeros()).div_ceil(7) as usize,
    }
}

/// Writes `value` in its smallest form to the front of `out` and returns how many bytes that took.
#[inline]
pub const fn encode(value: u64, out: &mut [u8; MAX_LEN]) -> usize {
    let [b0, b1, b2, b3, ..] = value.to_le_bytes();
    match value {
        0..=0x3f => {
            out[0] = b0;
            1
        }
        0x40..=0xffff => {
            out[0] = U16;
            out[1] = b0;
            out[2] = b1;
            3
        }
        0x1_0000..=0xffff_ffff => {
            out[0] = U32;
            out[1] = b0;
            out[2] = b1;
            out[3] = b2;
            out[4] = b3;
            5
        }
        _ => {
            out[0] = LEB;
            let mut rest = value;
            let mut at = 1;
            while rest > 0x7f {
                out[at] = (rest & 0x7f) as u8 | 0x80;
                rest >>= 7;
                at += 1;
            }
            out[at] = (rest & 0x7f) as u8;
            at + 1
        }
    }
}

/// Returns whether an integer, and so a frame, can start with `byte`.
#[inline]
pub const fn is_lead(byte: u8) -> bool {
    matches!(byte, 0..=0x3f | LEB | U16 | U32)
}

/// Reads one integer from the front of `bytes` and returns it with the number of bytes it took, or `None` if
/// more bytes are needed. What follows the integer is not looked at.
///
/// # Errors
/// [`Reason::BadLength`] for a first byte that starts no integer, for a value above [`u64::MAX`], and for an
/// eleventh group; each as soon as the byte that shows it is there.
///
/// # Bounds
/// Never asks for more than [`MAX_LEN`] bytes.
#[inline]
pub const fn decode(bytes: &[u8]) -> Result<Option<(u64, usize)>, Reason> {
    match *bytes {
        [] => Ok(None),
        [b0 @ 0..=0x3f, ..] => Ok(Some((b0 as u64, 1))),
        [U16, b0, b1, ..] => Ok(Some((u16::from_le_bytes([b0, b1]) as u64, 3))),
        [U32, b0, b1, b2, b3, ..] => Ok(Some((u32::from_le_bytes([b0, b1, b2, b3]) as u64, 5))),
        [U16 | U32, ..] => Ok(None),
        [LEB, ref groups @ ..] => decode_groups(groups),
        _ => Err(Reason::BadLength),
    }
}

/// Reads like [`decode`], but takes no value in a longer form than [`encode`] gives it.
///
/// # Errors
/// [`Reason::BadLength`] as [`decode`] does, and for a value that fits a shorter form.
pub const fn decode_strict(bytes: &[u8]) -> Result<Option<(u64, usize)>, Reason> {
    match decode(bytes) {
        Ok(Some((value, len))) if len != encoded_len(value) => Err(Reason::BadLength),
        other => other,
    }
}

const fn decode_groups(groups: &[u8]) -> Result<Option<(u64, usize)>, Reason> {
    let mut rest = groups;
    let mut value = 0u64;
    let mut shift = 0;
    while let [group, tail @ ..] = rest {
        // The tenth group has room for bit 63 alone, and none may follow it.
        if shift == 63 && *group > 1 {
            return Err(Reason::BadLength);
        }
        value |= ((*group & 0x7f) as u64) << shift;
        if *group < 0x80 {
            return Ok(Some((value, 1 + groups.len() - tail.len())));
        }
        shift += 7;
        rest = tail;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(value: u64) -> ([u8; MAX_LEN], usize) {
        let mut out = [0xee; MAX_LEN];
        let len = encode(value, &mut out);
        (out, len)
    }

    /// Values beside every border between forms and between group counts, and what they are on the wire.
    const EMITTED: &[(u64, &[u8])] = &[
        (0, &[0x00]),
        (1, &[0x01]),
        (63, &[0x3f]),
        (64, &[0x80, 0x40, 0x00]),
        (255, &[0x80, 0xff, 0x00]),
        (256, &[0x80, 0x00, 0x01]),
        (16_384, &[0x80, 0x00, 0x40]),
        (65_535, &[0x80, 0xff, 0xff]),
        (65_536, &[0xc0, 0x00, 0x00, 0x01, 0x00]),
        (0x0403_0201, &[0xc0, 0x01, 0x02, 0x03, 0x04]),
        (u32::MAX as u64, &[0xc0, 0xff, 0xff, 0xff, 0xff]),
        (1 << 32, &[0x40, 0x80, 0x80, 0x80, 0x80, 0x10]),
        ((1 << 35) - 1, &[0x40, 0xff, 0xff, 0xff, 0xff, 0x7f]),
        (1 << 35, &[0x40, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
        ((1 << 53) - 1, &[0x40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        ((1 << 63) - 1, &[0x40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
        (1 << 63, &[0x40, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
        (u64::MAX, &[0x40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
    ];

    #[test]
    fn emits_the_smallest_form() {
        for &(value, wire) in EMITTED {
            let (out, len) = encoded(value);
            assert_eq!(&out[..len], wire, "{value}");
            assert_eq!(encoded_len(value), wire.len(), "{value}");
            assert_eq!(decode(wire), Ok(Some((value, wire.len()))));
            assert_eq!(decode_strict(wire), Ok(Some((value, wire.len()))));
            for cut in 0..wire.len() {
                assert_eq!(decode(&wire[..cut]), Ok(None), "{value} cut at {cut}");
            }
        }
    }

    #[test]
    fn only_the_strict_decoder_refuses_a_longer_form() {
        let longer: &[(&[u8], u64)] = &[
            (&[0x80, 0x05, 0x00], 5),
            (&[0x80, 0x3f, 0x00], 63),
            (&[0xc0, 0x05, 0x00, 0x00, 0x00], 5),
            (&[0xc0, 0xff, 0xff, 0x00, 0x00], 65_535),
            (&[0x40, 0x05], 5),
            (&[0x40, 0x85, 0x80, 0x80, 0x00], 5),
            (&[0x40, 0xff, 0xff, 0xff, 0xff, 0x0f], u32::MAX as u64),
            // A tenth group of nothing: long, but the value fits.
            (&[0x40, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 0),
        ];
        for &(wire, value) in longer {
            assert_eq!(decode(wire), Ok(Some((value, wire.len()))), "{wire:02x?}");
            assert_eq!(decode_strict(wire), Err(Reason::BadLength), "{wire:02x?}");
        }
    }

    #[test]
    fn refuses_what_does_not_fit_at_the_byte_that_shows_it() {
        let mut wire = [0x80; 13];
        wire[0] = 0x40;
        assert_eq!(decode(&wire[..10]), Ok(None));
        // The tenth group may hold bit 63 and must be the last.
        for tenth in 2..=u8::MAX {
            wire[10] = tenth;
            assert_eq!(decode(&wire[..11]), Err(Reason::BadLength), "{tenth:02x}");
            assert_eq!(decode(&wire), Err(Reason::BadLength), "{tenth:02x}");
        }
    }

    #[test]
    fn refuses_first_bytes_that_no_encoder_sets() {
        for lead in 0..=u8::MAX {
            let legal = lead < 0x40 || [0x40, 0x80, 0xc0].contains(&lead);
            assert_eq!(is_lead(lead), legal, "{lead:02x}");
            assert_eq!(decode(&[lead]).is_ok(), legal, "{lead:02x}");
            assert_eq!(decode(&[lead, 5, 0, 0, 0, 0]).is_ok(), legal, "{lead:02x}");
        }
    }

    proptest! {
        #[test]
        fn round_trips_and_leaves_what_follows(bits in 0u32..=64, noise: u64, tail: [u8; 3]) {
            let value = noise.checked_shr(64 - bits).unwrap_or(0);
            let (out, len) = encoded(value);
            let mut wire = out[..len].to_vec();
            wire.extend(tail);
            prop_assert_eq!(decode(&wire), Ok(Some((value, len))));
            prop_assert_eq!(decode_strict(&wire), Ok(Some((value, len))));
        }

        #[test]
        fn an_answer_does_not_change_with_more_bytes(lead in 0usize..4, rest: [u8; 14], cut in 0usize..15) {
            let mut wire = std::vec![[0x21, 0x40, 0x80, 0xc0][lead]];
            wire.extend(rest);
            match decode(&wire[..cut]) {
                Ok(None) => prop_assert!(cut < MAX_LEN),
                answer => prop_assert_eq!(answer, decode(&wire)),
            }
        }
    }
}
