//! The bytes of strings: UTF-8, and runs that JSON writes as they are.

use alloc::vec::Vec;

use crate::base::plain::{plain_bytes, plain_end};

/// Below this many bytes a call of the vectorised check costs more than it saves.
const SHORT: usize = 64;

/// Checks `text`; otherwise returns the offset of the first byte that is not UTF-8.
#[inline]
pub(super) fn utf8(text: &[u8]) -> Result<&str, usize> {
    #[cfg(feature = "simd")]
    if text.len() >= SHORT
        && let Ok(text) = simdutf8::basic::from_utf8(text)
    {
        return Ok(text);
    }
    // Also after the fast check has failed: only this one knows where.
    core::str::from_utf8(text).map_err(|error| error.valid_up_to())
}

/// Returns whether `text` is UTF-8. Short ones are most often ASCII, which is known sooner than [`utf8`] knows.
#[inline]
pub(super) fn is_utf8(text: &[u8]) -> bool {
    (text.len() < SHORT && text.is_ascii()) || utf8(text).is_ok()
}

/// Appends the plain bytes of `text` from `at` on, as far as `end`; returns where they stop.
#[inline(always)]
pub(super) fn copy_plain(text: &[u8], mut at: usize, end: usize, out: &mut Vec<u8>) -> usize {
    // Short runs: a whole word is copied before it is known how much of it belongs there. It may reach behind
    // `end`, and is cut again.
    for _ in 0..SHORT_WORDS {
        let Some(word) = word_at(text, at) else { break };
        let len = out.len();
        out.extend_from_slice(&word);
        let plain = plain_bytes(word);
        if plain < 8 || end - at <= 8 {
            let plain = plain.min(end - at);
            out.truncate(len + plain);
            return at + plain;
        }
        at += 8;
    }
    let rest = text.get(at..end).unwrap_or_default();
    let plain = long_plain(rest);
    out.extend_from_slice(rest.get(..plain).unwrap_or_default());
    at + plain
}

/// How many words [`copy_plain`] takes one by one.
const SHORT_WORDS: usize = 5;

/// Returns the eight bytes at `at`; behind the end of the text are zeros, which end every plain run. `None` if the text is
/// too short for that.
#[inline(always)]
fn word_at(text: &[u8], at: usize) -> Option<[u8; 8]> {
    if let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        return Some(*word);
    }
    let last = text.last_chunk::<8>()?;
    let missing = at.checked_sub(text.len() - 8)?;
    let bits = u32::try_from(missing).ok()?.checked_mul(8)?;
    Some(u64::from_le_bytes(*last).checked_shr(bits)?.to_le_bytes())
}

/// Counts the plain bytes at the start. Apart, so that [`copy_plain`] is small where it becomes part of others.
fn long_plain(bytes: &[u8]) -> usize {
    plain_end(bytes, 0)
}

/// Appends `text[start..end]`.
#[inline(always)]
pub(super) fn copy(text: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    const WORDS: usize = 16;
    let Some(rest) = text.get(start..) else { return };
    let count = end - start;
    match rest.first_chunk::<WORDS>() {
        // A copy of fixed size is two moves; one of any size is a call.
        Some(words) if count <= WORDS => {
            let len = out.len();
            out.extend_from_slice(words);
            out.truncate(len + count);
        }
        _ => out.extend_from_slice(rest.get(..count).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_special(byte: u8) -> bool {
        byte < 0x20 || byte == b'"' || byte == b'\\'
    }

    fn naive_end(text: &[u8], at: usize) -> usize {
        (at..text.len()).find(|&at| is_special(text[at])).unwrap_or(text.len())
    }

    #[test]
    fn every_byte_at_every_place_is_told_apart() {
        for byte in 0..=u8::MAX {
            for place in 0..80 {
                let mut text = [b'x'; 80];
                text[place] = byte;
                let expected = if is_special(byte) { place } else { 80 };
                let mut out = Vec::new();
                assert_eq!(copy_plain(&text, 0, 80, &mut out), expected, "{byte:02x} at {place}");
                assert_eq!(out, text[..expected]);
            }
        }
    }

    proptest! {
        #[test]
        fn runs_end_where_a_naive_search_says(
            text in proptest::collection::vec(
                prop_oneof![8 => any::<u8>(), 60 => 0x20_u8.., 1 => Just(b'"'), 1 => Just(b'\\')],
                0..200,
            ),
            at in 0_usize..200,
            end in 0_usize..200,
        ) {
            let at = at.min(text.len());
            let end = end.clamp(at, text.len());
            let mut out = std::vec![1, 2, 3];
            let stop = copy_plain(&text, at, end, &mut out);
            prop_assert_eq!(stop, naive_end(&text[..end], at));
            prop_assert_eq!(&out[3..], &text[at..stop]);
            out.clear();
            copy(&text, at, end, &mut out);
            prop_assert_eq!(&out[..], &text[at..end]);
        }

        #[test]
        fn utf8_is_what_core_says(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,90}", at: usize) {
            let core = |bytes| core::str::from_utf8(bytes).map_err(|error| error.valid_up_to());
            prop_assert_eq!(utf8(&bytes), core(&bytes));
            prop_assert_eq!(utf8(text.as_bytes()), Ok(&text[..]));
            let mut spoiled = text.clone().into_bytes();
            if let Some(byte) = at.checked_rem(text.len()).and_then(|at| spoiled.get_mut(at)) {
                *byte ^= 0xc0;
            }
            prop_assert_eq!(utf8(&spoiled), core(&spoiled));
            prop_assert_eq!(is_utf8(&spoiled), core(&spoiled).is_ok());
            prop_assert!(is_utf8(text.as_bytes()));
        }
    }
}
