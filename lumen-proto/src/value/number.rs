//! Numbers as JSON writes them: which ones the codec holds exactly, and how they are written again.
//!
//! An integer (no fraction, no exponent) is exact if it fits an `i64`; `-0` is a float, for an integer has no
//! negative zero. Any other number is exact if the shortest decimal that leads to its binary64 has the digits
//! and the exponent of the text, once zeros at both ends are dropped. Of two that are equally near the even one
//! counts, as in JavaScript and Python (core writes the upper one). Everything is computed here, so the
//! outcome does not hang on what some JSON library was built with.

use alloc::vec::Vec;

/// What a number text stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A float that is written again with the same digits. Never infinite.
    Float(f64),
    /// A number that neither type holds as it was written.
    Inexact,
}

/// The sign, the significant digits as an integer, and the power of ten that belongs to it.
struct Decimal {
    negative: bool,
    digits: u64,
    exponent: i64,
}

/// Decimals of this many digits survive binary64 (in its normal range), whatever they are.
const SAFE_DIGITS: u64 = 1_000_000_000_000_000;

/// More than any exponent that matters, and far from overflow.
const FAR: i64 = 1 << 40;

/// The powers of ten that binary64 holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Reads the number at the start of `text`; returns it with the bytes it took, or `None` if there is none.
///
/// What follows the number is not judged.
#[inline]
pub fn parse(text: &[u8]) -> Option<(Number, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let (digits, end) = match text.get(start)? {
        b'0' => (0, start + 1),
        _ => fold_digits(text, start, 0),
    };
    if end == start {
        return None;
    }
    if let Some(b'.' | b'e' | b'E') = text.get(end) {
        return parse_float(text, negative, start, end, digits);
    }
    let number = if end - start < 19 {
        #[expect(clippy::cast_possible_wrap, reason = "18 digits fit")]
        let value = digits as i64;
        match (negative, value) {
            (true, 0) => Number::Float(-0.0),
            (true, _) => Number::Int(-value),
            (false, _) => Number::Int(value),
        }
    } else {
        text.get(..end).and_then(read::<i64>).map_or(Number::Inexact, Number::Int)
    };
    Some((number, end))
}

/// Appends an integer.
#[inline]
pub fn write_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends the shortest decimal that leads to `value`, always with a fraction or an exponent: `1.0`, `-0.0`,
/// `1e+300`. What is not finite has no JSON; `null` stands in for it, as serde_json does.
#[inline]
pub fn write_float(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Reads on behind the integer digits (from `start` to `end`, of the value `digits`).
fn parse_float(
    text: &[u8],
    negative: bool,
    start: usize,
    end: usize,
    digits: u64,
) -> Option<(Number, usize)> {
    let mut at = end;
    let mut digits = digits;
    let mut count = end - start;
    let mut exponent = 0;
    if text.get(at) == Some(&b'.') {
        let after = at + 1;
        (digits, at) = fold_digits(text, after, digits);
        if at == after {
            return None;
        }
        count += at - after;
        exponent = -i64::try_from(at - after).ok()?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        let down = text.get(at) == Some(&b'-');
        at += usize::from(down || text.get(at) == Some(&b'+'));
        let first = at;
        let mut written = 0_i64;
        while let Some(digit @ b'0'..=b'9') = text.get(at) {
            written = (written * 10 + i64::from(digit - b'0')).min(FAR);
            at += 1;
        }
        if at == first {
            return None;
        }
        exponent += if down { -written } else { written };
    }
    let token = text.get(..at)?;
    // Up to 19 digits fit the integer; with more it has wrapped and the digits are counted one by one.
    let decimal =
        if count <= 19 { Some(Decimal { negative, digits, exponent }) } else { long_decimal(token) };
    Some((decimal.map_or(Number::Inexact, |decimal| judge(&decimal, token)), at))
}

/// Decides whether binary64 keeps the digits and the exponent.
fn judge(decimal: &Decimal, token: &[u8]) -> Number {
    let sign = if decimal.negative { -1.0 } else { 1.0 };
    if decimal.digits == 0 {
        return Number::Float(0.0 * sign);
    }
    let power =
        usize::try_from(decimal.exponent.unsigned_abs()).ok().and_then(|exponent| POWERS.get(exponent));
    if let Some(power) = power
        && decimal.digits < SAFE_DIGITS
    {
        // Both operands are exact, so the one operation rounds as the whole conversion has to.
        let digits = decimal.digits as f64 * sign;
        return Number::Float(if decimal.exponent < 0 { digits / power } else { digits * power });
    }
    let Some(value) = read::<f64>(token).filter(|value| value.is_finite()) else { return Number::Inexact };
    if decimal.digits < SAFE_DIGITS && value.is_normal() {
        return Number::Float(value);
    }
    let mut buffer = zmij::Buffer::new();
    let shortest = long_decimal(buffer.format_finite(value).as_bytes());
    match shortest {
        Some(shortest) if shortest.trimmed() == decimal.trimmed() => Number::Float(value),
        _ => Number::Inexact,
    }
}

impl Decimal {
    /// Moves zeros at the end of the digits into the exponent.
    const fn trimmed(&self) -> (bool, u64, i64) {
        let (mut digits, mut exponent) = (self.digits, self.exponent);
        while digits != 0 && digits % 10 == 0 {
            digits /= 10;
            exponent += 1;
        }
        (self.negative, digits, if digits == 0 { 0 } else { exponent })
    }
}

/// Reads a number of any length, or `None` if it has more digits between its first and last one that is not
/// zero than any shortest decimal has.
fn long_decimal(token: &[u8]) -> Option<Decimal> {
    let negative = token.first() == Some(&b'-');
    let mut decimal = Decimal { negative, digits: 0, exponent: 0 };
    // Zeros count only once another digit follows them.
    let mut zeros = 0_u64;
    let mut in_fraction = false;
    for (at, &byte) in token.iter().enumerate().skip(usize::from(negative)) {
        match byte {
            b'.' => in_fraction = true,
            b'e' | b'E' => {
                let written = token.get(at + 1..)?;
                let down = written.first() == Some(&b'-');
                let digits = written.iter().filter(|byte| byte.is_ascii_digit());
                let size = digits.fold(0, |size, digit| (size * 10 + i64::from(digit - b'0')).min(FAR));
                decimal.exponent += if down { -size } else { size };
                break;
            }
            _ => {
                decimal.exponent -= i64::from(in_fraction);
                if byte == b'0' {
                    zeros += u64::from(decimal.digits != 0);
                    continue;
                }
                let shift = 10_u64.checked_pow(u32::try_from(zeros + 1).ok()?)?;
                decimal.digits = decimal.digits.checked_mul(shift)?.checked_add(u64::from(byte - b'0'))?;
                zeros = 0;
            }
        }
    }
    // The zeros left over stand at the end.
    decimal.exponent += i64::try_from(zeros).ok()?;
    Some(decimal)
}

/// Appends the digits at `at` to `value`, wrapping; returns where they end.
#[inline(always)]
fn fold_digits(text: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    while let Some(digit @ b'0'..=b'9') = text.get(at) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    (value, at)
}

fn read<T: core::str::FromStr>(token: &[u8]) -> Option<T> {
    core::str::from_utf8(token).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
