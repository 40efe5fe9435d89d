//! Values that a header can carry, and the escape for those that it cannot.

use alloc::borrow::Cow;
use alloc::string::String;

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// Returns whether `value` may stand in a header as it is: visible ASCII, blanks only inside.
pub(super) fn is_safe(value: &str) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    bytes.iter().all(|byte| matches!(byte, b'\t' | 0x20..=0x7e))
        && !is_blank(bytes.first())
        && !is_blank(bytes.last())
}

/// Returns `value` as a header carries it: as it is if it can be, else, and also if it looks like an escaped one,
/// the base64 of its UTF-8 between markers.
pub(super) fn escape(value: Cow<'_, str>) -> String {
    if is_safe(&value) && !(value.starts_with(OPEN) && value.ends_with(CLOSE)) {
        return value.into_owned();
    }
    let mut out = String::with_capacity(value.len() / 3 * 4 + 16);
    out.push_str(OPEN);
    for group in value.as_bytes().chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            out.push(if place <= group.len() { digit(bits >> (18 - 6 * place) & 63) } else { '=' });
        }
    }
    out.push_str(CLOSE);
    out
}

/// Returns the base64 digit of six bits.
fn digit(value: u32) -> char {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    DIGITS.get(value as usize).map_or('=', |&digit| char::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_can_carry_goes_as_it_is() {
        for plain in ["", "us-west1", "a b\tc", "=?base64", "?=", "=?base64?x", "~!\"{}"] {
            assert_eq!(escape(plain.into()), plain);
        }
    }

    #[test]
    fn what_it_cannot_goes_as_base64() {
        for (value, escaped) in [
            ("é", "=?base64?w6k=?="),
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("漢字x", "=?base64?5ryi5a2XeA==?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(escape(value.into()), escaped, "{value:?}");
        }
    }
}
