//! Request ids, compared by value. What goes back to a peer is never this but the token as it was spelled.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::cursor::Cursor;
use super::text::{self, Piece};
use crate::{Reason, limits};

/// An id by its value: `1`, `1.0` and `1e0` are one id, so are `"a"` and `"\u0061"`; `1` and `"1"` are two.
///
/// Numbers are exact at any size: no binary64 is involved.
///
/// # Bounds
/// At most [`limits::MAX_ID`] bytes of token. `1e999999999` costs no more than its own length. Of two numbers
/// with exponents beyond 18 digits only equal spellings are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdKey(Repr);

/// Each value has exactly one representation, so equality can be derived.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repr {
    /// Every integer that fits.
    Integer(i64),
    /// Every other number: digits without zeros at either end, times ten to the power of `exponent`.
    Decimal { negative: bool, digits: Box<[u8]>, exponent: i64 },
    /// A number whose exponent has more than 18 digits, as spelled.
    Absurd(Box<[u8]>),
    /// Decoded; a lone surrogate as the three bytes UTF-8 would have for it, which no valid text contains.
    Text(Box<[u8]>),
}

impl IdKey {
    /// Reads an id token, quotes included.
    ///
    /// # Errors
    /// [`Reason::NullId`] for `null`, [`Reason::LongId`] beyond [`limits::MAX_ID`] bytes, [`Reason::BadId`] for
    /// everything else that is no string or number.
    pub fn from_token(token: &[u8]) -> Result<Self, Reason> {
        if let Some(integer) = short_integer(token) {
            return Ok(Self(Repr::Integer(integer)));
        }
        check(token)?;
        let mut cursor = Cursor::new(token, 0);
        let repr = if token.first() == Some(&b'"') {
            cursor.string().and_then(|_| text(token))
        } else {
            cursor.number().and_then(|()| number(token))
        };
        match repr {
            Some(repr) if cursor.is_at_end() => Ok(Self(repr)),
            _ => Err(Reason::BadId),
        }
    }

    /// Returns whether it is a number without a fractional part, however it was spelled.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Repr::Integer(_) => true,
            Repr::Decimal { exponent, .. } => *exponent >= 0,
            Repr::Absurd(token) => !token.windows(2).any(|pair| matches!(pair, b"e-" | b"E-")),
            Repr::Text(_) => false,
        }
    }
}

/// Reads what most ids are: a few digits, the first of them no zero.
fn short_integer(token: &[u8]) -> Option<i64> {
    if token.len() > 18 || !matches!(token.first(), Some(b'1'..=b'9')) {
        return None;
    }
    token
        .iter()
        .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

/// Tells by the first byte and the length whether a valid JSON value may be an id.
///
/// # Errors
/// As [`IdKey::from_token`].
pub(super) fn check(token: &[u8]) -> Result<(), Reason> {
    match token.first() {
        Some(b'"' | b'-' | b'0'..=b'9') if token.len() > limits::MAX_ID => Err(Reason::LongId),
        Some(b'"' | b'-' | b'0'..=b'9') => Ok(()),
        _ if token == b"null" => Err(Reason::NullId),
        _ => Err(Reason::BadId),
    }
}

fn text(token: &[u8]) -> Option<Repr> {
    core::str::from_utf8(token).ok()?;
    let mut decoded = Vec::with_capacity(token.len());
    for piece in text::pieces(token)? {
        match piece {
            Piece::Plain(plain) => decoded.extend_from_slice(plain),
            Piece::Point(point) => match char::from_u32(point) {
                Some(char) => decoded.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
                None => {
                    let [_, _, high, low] = point.to_be_bytes();
                    decoded.extend_from_slice(&[
                        0xed,
                        0x80 | (high & 0x0f) << 2 | low >> 6,
                        0x80 | low & 0x3f,
                    ]);
                }
            },
            Piece::Malformed => return None,
        }
    }
    Some(Repr::Text(decoded.into()))
}

/// Reads a number token that is known to follow the grammar.
fn number(token: &[u8]) -> Option<Repr> {
    let (negative, rest) = match token.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, token),
    };
    let (mantissa, power) = split(rest, |byte| matches!(byte, b'e' | b'E'));
    let (whole, fraction) = split(mantissa, |byte| byte == b'.');
    let mut digits: Vec<u8> =
        whole.iter().chain(fraction).copied().skip_while(|&digit| digit == b'0').collect();
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
    if significant == 0 {
        return Some(Repr::Integer(0));
    }
    let Some(power) = exponent(power) else { return Some(Repr::Absurd(token.into())) };
    let zeros = digits.len() - significant;
    digits.truncate(significant);
    // Both lengths are at most MAX_ID and the power has at most 18 digits: no overflow.
    let exponent = power - i64::try_from(fraction.len()).ok()? + i64::try_from(zeros).ok()?;
    match integer(negative, &digits, exponent) {
        Some(integer) => Some(Repr::Integer(integer)),
        None => Some(Repr::Decimal { negative, digits: digits.into(), exponent }),
    }
}

/// Splits around the first byte that `is_split`; the second part is empty if there is none.
fn split(bytes: &[u8], is_split: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    match bytes.iter().position(|&byte| is_split(byte)) {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default()),
        None => (bytes, &[]),
    }
}

/// Reads the exponent of a number, 0 if there is none, unless it has more than 18 digits that count.
fn exponent(spelled: &[u8]) -> Option<i64> {
    let (negative, digits) = match spelled.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some((b'+', digits)) => (false, digits),
        _ => (false, spelled),
    };
    let mut value = 0_i64;
    for digit in digits {
        if value >= 100_000_000_000_000_000 {
            return None;
        }
        value = value * 10 + i64::from(digit.wrapping_sub(b'0'));
    }
    Some(if negative { -value } else { value })
}

/// Returns the value when it is an integer of 64 bits.
fn integer(negative: bool, digits: &[u8], exponent: i64) -> Option<i64> {
    let zeros = usize::try_from(exponent).ok().filter(|&zeros| zeros < 19)?;
    // Summed up below zero, where i64::MIN has room.
    let mut value = 0_i64;
    for digit in digits.iter().copied().chain(core::iter::repeat_n(b'0', zeros)) {
        value = value.checked_mul(10)?.checked_sub(i64::from(digit.wrapping_sub(b'0')))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

#[cfg(test)]
mod tests;
