//! Tags and integers of the value codec.

use crate::Reason;

/// `null`.
pub const NULL: u8 = 0xe0;
/// A boolean: one byte, 00 or 01.
pub const BOOL: u8 = 0xe1;
/// A binary64, little-endian.
pub const FLOAT: u8 = 0xe2;
/// An integer: zigzag of an `i64` as LEB128.
pub const INT: u8 = 0xe3;
/// A string of the dictionary: one byte of id.
pub const WORD: u8 = 0xe4;
/// A string: length and UTF-8.
pub const STR: u8 = 0xe5;
/// An array: count and values.
pub const ARRAY: u8 = 0xe6;
/// An object: count and pairs of key and value.
pub const OBJECT: u8 = 0xe7;

/// In the place of a key's id: the key follows as length and UTF-8.
pub const INLINE_KEY: u8 = 0xff;

/// The first id of a session's table; those below are static.
pub const FIRST_SESSION_ID: u8 = 0x80;

/// The most bytes of an integer after its tag.
pub const MAX_INT_LEN: usize = 10;

/// Maps numbers near zero, of either sign, to small ones.
#[inline]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Undoes [`zigzag`].
#[inline]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Writes the body of an integer to the front of `out` and returns how many bytes that took.
#[inline]
pub const fn encode_int(value: i64, out: &mut [u8; MAX_INT_LEN]) -> usize {
    let mut rest = zigzag(value);
    let mut at = 0;
    while rest > 0x7f && at < MAX_INT_LEN - 1 {
        out[at] = (rest & 0x7f) as u8 | 0x80;
        rest >>= 7;
        at += 1;
    }
    out[at] = (rest & 0x7f) as u8;
    at + 1
}

/// Reads the body of an integer from the front of `bytes` and returns it with the number of bytes it took, or
/// `None` if more bytes are needed.
///
/// # Errors
/// [`Reason::BadLength`] for an eleventh group, for bits above the 64th, and for a last group of nothing: a
/// number has one form only.
#[inline]
pub const fn decode_int(bytes: &[u8]) -> Result<Option<(i64, usize)>, Reason> {
    match *bytes {
        [one @ 0..=0x7f, ..] => Ok(Some((unzigzag(one as u64), 1))),
        [one, two @ 1..=0x7f, ..] => Ok(Some((unzigzag((one & 0x7f) as u64 | (two as u64) << 7), 2))),
        _ => decode_long_int(bytes),
    }
}

const fn decode_long_int(bytes: &[u8]) -> Result<Option<(i64, usize)>, Reason> {
    let mut rest = bytes;
    let mut value = 0u64;
    let mut shift = 0;
    while let [group, tail @ ..] = rest {
        // The tenth group has room for bit 63 alone, and none may follow it.
        if shift == 63 && *group > 1 || shift > 0 && *group == 0 {
            return Err(Reason::BadLength);
        }
        value |= ((*group & 0x7f) as u64) << shift;
        if *group < 0x80 {
            return Ok(Some((unzigzag(value), bytes.len() - tail.len())));
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

    #[test]
    fn integers_of_every_length() {
        let known: &[(i64, &[u8])] = &[
            (0, &[0x00]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (-65, &[0x81, 0x01]),
            (300, &[0xd8, 0x04]),
            (i32::MAX as i64, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (2_147_483_648, &[0x80, 0x80, 0x80, 0x80, 0x10]),
            (1_718_000_000_000, &[0x80, 0xf0, 0xbc, 0x8c, 0x80, 0x64]),
            ((1 << 53) + 1, &[0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20]),
            (i64::MAX, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ];
        for &(value, wire) in known {
            let mut out = [0xee; MAX_INT_LEN];
            let len = encode_int(value, &mut out);
            assert_eq!(&out[..len], wire, "{value}");
            assert_eq!(decode_int(wire), Ok(Some((value, len))), "{value}");
            for cut in 0..len {
                assert_eq!(decode_int(&wire[..cut]), Ok(None), "{value} cut at {cut}");
            }
        }
    }

    #[test]
    fn refuses_longer_forms_and_bits_that_do_not_fit() {
        let mut wire = [0x80; 12];
        assert_eq!(decode_int(&wire[..9]), Ok(None));
        for tenth in 2..=u8::MAX {
            wire[9] = tenth;
            assert_eq!(decode_int(&wire), Err(Reason::BadLength), "{tenth:02x}");
        }
        for wire in [&[0x80, 0x00][..], &[0xff, 0x80, 0x00], &[0xff; 11]] {
            assert_eq!(decode_int(wire), Err(Reason::BadLength), "{wire:02x?}");
        }
    }

    proptest! {
        #[test]
        fn round_trips_and_leaves_what_follows(bits in 0u32..=64, noise: u64, tail: [u8; 2]) {
            let value = unzigzag(noise.checked_shr(64 - bits).unwrap_or(0));
            let mut wire = [0; MAX_INT_LEN];
            let len = encode_int(value, &mut wire);
            let mut wire = wire[..len].to_vec();
            wire.extend(tail);
            prop_assert_eq!(decode_int(&wire), Ok(Some((value, len))));
        }
    }
}
