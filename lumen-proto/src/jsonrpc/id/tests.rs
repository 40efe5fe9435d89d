//! Ids by value: explicit cases, and integers and strings in many spellings.

use std::format;
use std::string::String;

use proptest::prelude::*;

use super::*;
use crate::jsonrpc::oracle;

fn key(token: &str) -> IdKey {
    IdKey::from_token(token.as_bytes()).unwrap()
}

#[test]
fn equal_values_are_equal_ids() {
    for same in [
        &["1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1", "1.000", "100e-2"][..],
        &["0", "-0", "0.0", "-0e5", "0e99999999999999999999999"],
        &["1e400", "10e399", "0.1e401", "1.0e+400"],
        &["12345678901234567890", "12345678901234567890.0", "1234567890123456789e1"],
        &["9223372036854775807", "9223372036854775807.0"],
        &["-9223372036854775808", "-922337203685477580.8e1"],
        &["1e-5", "0.00001", "10e-6"],
        &["\"a\"", "\"\\u0061\""],
        &["\"\u{1f600}\"", "\"\\ud83d\\ude00\""],
        &["\"/\"", "\"\\/\"", "\"\\u002F\""],
        &["\"\\ud800\"", "\"\\uD800\""],
    ] {
        for token in same {
            assert_eq!(key(token), key(same[0]), "{token}");
        }
    }
}

#[test]
fn different_values_are_different_ids() {
    let all = [
        "0",
        "1",
        "-1",
        "10",
        "1e1000",
        "1e1001",
        "-1e1000",
        "1e-1000",
        "0.5",
        "0.05",
        "12345678901234567890",
        "12345678901234567891",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "9007199254740993",
        "9007199254740992",
        "1e999999999999999999",
        "1e9999999999999999999",
        "1e9999999999999999998",
        "\"1\"",
        "\"0\"",
        "\"\"",
        "\" \"",
        "\"a\"",
        "\"A\"",
        "\"a\\\"b\\\\\"",
        "\"\\ud800\"",
        "\"\\ud801\"",
        "\"\\udc00\"",
        "\"\\ufffd\"",
        "\"null\"",
        "\"\\u0000\"",
    ];
    for (at, a) in all.iter().enumerate() {
        for b in &all[at + 1..] {
            assert_ne!(key(a), key(b), "{a} {b}");
        }
    }
}

#[test]
fn what_is_no_id_is_refused() {
    assert_eq!(IdKey::from_token(b"null"), Err(Reason::NullId));
    for token in
        ["", "true", "{}", "[1]", "nul", "01", "1x", "1 ", " 1", "\"", "\"a", "\"a\"b", "\"\\x\"", "-", "1e"]
    {
        assert_eq!(IdKey::from_token(token.as_bytes()), Err(Reason::BadId), "{token}");
    }
    assert_eq!(IdKey::from_token(b"\"\xff\""), Err(Reason::BadId));
    assert_eq!(IdKey::from_token("9".repeat(limits::MAX_ID + 1).as_bytes()), Err(Reason::LongId));
    assert!(IdKey::from_token("9".repeat(limits::MAX_ID).as_bytes()).is_ok());
}

#[test]
fn integers_are_told_from_fractions() {
    for token in
        ["0", "1", "-1", "1.0", "1e3", "12.5e1", "123456789012345678901234567890", "1e99999999999999999999"]
    {
        assert!(key(token).is_integer(), "{token}");
    }
    for token in ["0.5", "1e-1", "123456789012345678901234567890.5", "1e-99999999999999999999", "\"1\""] {
        assert!(!key(token).is_integer(), "{token}");
    }
}

/// Spells an integer with `zeros` zeros too many, which the exponent takes back.
fn spellings(value: i128, zeros: usize) -> [String; 4] {
    let pad = "0".repeat(zeros);
    // A zero in front of others would be no number.
    let zeros = if value == 0 { 0 } else { zeros };
    let behind = "0".repeat(zeros);
    [
        format!("{value}"),
        format!("{value}.{pad}0"),
        format!("{value}{behind}e-{zeros}"),
        format!("{value}.{pad}0E+0{pad}"),
    ]
}

proptest! {
    #[test]
    fn integers_are_equal_as_integers(
        a in any::<i128>(), shift in 0..127_u32, near in -2..3_i128, zeros in 0..30_usize, how in (0..4_usize, 0..4_usize),
    ) {
        let a = a >> shift;
        let b = a.saturating_add(near);
        let (a_key, b_key) = (key(&spellings(a, zeros)[how.0]), key(&spellings(b, zeros)[how.1]));
        prop_assert_eq!(a_key == b_key, a == b);
        prop_assert!(a_key.is_integer());
    }

    #[test]
    fn strings_are_equal_as_strings(
        (text, one) in oracle::token_of(oracle::any_text()),
        (other_text, other) in oracle::token_of("[a-c]{0,2}"),
    ) {
        let plain = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(key(&one), key(&plain));
        prop_assert_eq!(key(&one) == key(&other), text == other_text);
    }

    #[test]
    fn any_token_is_judged_as_serde_json_does(token in oracle::spoiled(oracle::value(true))) {
        let is_scalar = token.first().is_some_and(|&byte| byte == b'"' || byte == b'-' || byte.is_ascii_digit());
        let is_id = is_scalar && oracle::takes(&token) && token.last().is_some_and(|byte| !byte.is_ascii_whitespace());
        prop_assume!(token.len() <= limits::MAX_ID);
        prop_assert_eq!(IdKey::from_token(&token).is_ok(), is_id);
    }
}
