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

#[test]
fn a_token_is_what_it_decodes_to() {
    let tokens = [
        r#""ab""#,
        r#""a""#,
        r#""""#,
        r#""\u0061b""#,
        r#""a\u0062""#,
        r#""a\\""#,
        r#""\\""#,
        r#""\n""#,
        r#""\ud83d\ude00""#,
    ];
    for token in tokens {
        for expected in ["ab", "a", "", "a\\", "\\", "\\\\", "\\n", "\n", "\u{1f600}", r"\ud83d\ude00"] {
            let decoded = decode(token.as_bytes()).unwrap();
            assert_eq!(is(token.as_bytes(), expected), decoded == expected, "{token} {expected}");
        }
    }
    assert!(!is(b"ab", "ab") && !is(b"\"", ""));
}
