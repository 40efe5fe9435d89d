//! The word-wise search against the byte-wise one.

use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn runs_end_where_a_naive_search_says(
        text in prop::collection::vec(prop_oneof![40 => 0x20..0x7f_u8, 1 => any::<u8>()], 0..300), at in 0..310_usize,
    ) {
        let naive = |at: usize| {
            text.iter().enumerate().skip(at).find(|(_, byte)| ends_run(**byte)).map_or(text.len(), |(at, _)| at)
        };
        prop_assert_eq!(plain_end(&text, at), naive(at));
    }

    #[test]
    fn what_is_escaped_is_read_back(text in any::<String>()) {
        let mut out = BytesMut::from(&b"\""[..]);
        escape_into(&mut out, &text);
        out.extend_from_slice(b"\"");
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}

#[test]
fn every_byte_at_every_place() {
    for byte in 0..=u8::MAX {
        for place in 0..80 {
            let mut text: Vec<u8> = core::iter::repeat_n(b'a', 80).collect();
            text[place] = byte;
            assert_eq!(plain_end(&text, 0), if ends_run(byte) { place } else { 80 });
        }
    }
}
