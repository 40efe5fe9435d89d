//! What is written is read back.

use std::string::String;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn what_is_escaped_is_read_back(text in any::<String>()) {
        let mut out = BytesMut::from(&b"\""[..]);
        escape_into(&mut out, &text);
        out.extend_from_slice(b"\"");
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
