//! Runs of bytes that stand inside a JSON string as they are.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = ONES << 7;

/// Marks, by its high bit, the first byte of a little-endian word that ends a plain run. Bytes after the first
/// may be marked wrongly (a borrow runs upwards), which is why only the lowest mark counts.
const fn run_ends(word: u64) -> u64 {
    // With bit 1 flipped the quote lands on 0x20, next to the control characters, and only the quote does: one
    // comparison finds both.
    let flipped = word ^ (ONES * 0x02);
    let backslash = word ^ (ONES * b'\\' as u64);
    let found = (flipped.wrapping_sub(ONES * 0x21) & !flipped) | (backslash.wrapping_sub(ONES) & !backslash);
    found & HIGHS
}

const fn ends_run(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns how many bytes of `word` stand before its first quote, backslash or control character: 8 if there is
/// none.
#[inline(always)]
pub(crate) const fn plain_bytes(word: [u8; 8]) -> usize {
    (run_ends(u64::from_le_bytes(word)).trailing_zeros() / 8) as usize
}

/// Returns the offset of the first quote, backslash or control character at or after `at`, or the length.
#[inline(always)]
pub(crate) fn plain_end(text: &[u8], mut at: usize) -> usize {
    let Some(mut rest) = text.get(at..) else { return text.len() };
    // Keys and most values end within a few words; only longer runs are worth the wide loop.
    let mut words = 0;
    while let Some((word, after)) = rest.split_first_chunk::<8>() {
        let plain = plain_bytes(*word);
        if plain < 8 {
            return at + plain;
        }
        at += 8;
        rest = after;
        words += 1;
        if words == 4 {
            // Written without an early exit inside the block, so that it compiles to vector compares.
            while let Some((block, after)) = rest.split_first_chunk::<32>() {
                if block.iter().fold(false, |any, &byte| any | ends_run(byte)) {
                    break;
                }
                at += 32;
                rest = after;
            }
        }
    }
    at + rest.iter().position(|&byte| ends_run(byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive_end(text: &[u8], at: usize) -> usize {
        (at..text.len()).find(|&at| ends_run(text[at])).unwrap_or(text.len())
    }

    #[test]
    fn every_byte_at_every_place_is_told_apart() {
        for byte in 0..=u8::MAX {
            for place in 0..80 {
                let mut text = [b'a'; 80];
                text[place] = byte;
                let is_special = byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(plain_end(&text, 0), if is_special { place } else { 80 }, "{byte:02x} at {place}");
            }
        }
    }

    proptest! {
        #[test]
        fn runs_end_where_a_naive_search_says(
            mostly in prop::collection::vec(prop_oneof![40 => 0x20..0x7f_u8, 1 => any::<u8>()], 0..300),
            often in prop::collection::vec(prop_oneof![9 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\')], 0..40),
            at in 0..310_usize,
        ) {
            for text in [mostly, often] {
                prop_assert_eq!(plain_end(&text, at), naive_end(&text, at.min(text.len())));
            }
        }
    }
}
