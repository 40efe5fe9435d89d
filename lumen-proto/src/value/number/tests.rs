//! Numbers: exact or not.

use std::string::String;

use proptest::prelude::*;

use super::*;
use crate::value::model;

fn of(text: &str) -> Option<Number> {
    let (number, len) = parse(text.as_bytes())?;
    (len == text.len()).then_some(number)
}

fn written(number: Number) -> String {
    let mut out = Vec::new();
    match number {
        Number::Int(value) => write_int(value, &mut out),
        Number::Float(value) => write_float(value, &mut out),
        Number::Inexact => {}
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn integers_and_floats_by_their_spelling() {
    for (text, number) in [
        ("0", Number::Int(0)),
        ("-1", Number::Int(-1)),
        ("999999999999999999", Number::Int(999_999_999_999_999_999)),
        ("9223372036854775807", Number::Int(i64::MAX)),
        ("-9223372036854775808", Number::Int(i64::MIN)),
        ("9007199254740993", Number::Int((1 << 53) + 1)),
        ("1.0", Number::Float(1.0)),
        ("1e2", Number::Float(100.0)),
        ("1E+2", Number::Float(100.0)),
        ("120.00e-1", Number::Float(12.0)),
        ("3.25", Number::Float(3.25)),
        ("0.1", Number::Float(0.1)),
        ("1e23", Number::Float(1e23)),
        ("1e300", Number::Float(1e300)),
        ("5e-324", Number::Float(5e-324)),
        ("2.2250738585072014e-308", Number::Float(f64::MIN_POSITIVE)),
        ("1.7976931348623157e308", Number::Float(f64::MAX)),
        ("0.30000000000000004", Number::Float(0.1 + 0.2)),
        ("0e999999999999999999999", Number::Float(0.0)),
        ("0.000000000000000000000000000000", Number::Float(0.0)),
        ("10000000000000000000000000.0", Number::Float(1e25)),
        ("0.00000000000000000000000000000000000001", Number::Float(1e-38)),
        ("1000000000000000000000000e-24", Number::Float(1.0)),
    ] {
        assert_eq!(of(text), Some(number), "{text}");
    }
    for text in ["-0", "-0.0", "-0e5"] {
        let Some(Number::Float(zero)) = of(text) else { panic!("{text}") };
        assert!(zero == 0.0 && zero.is_sign_negative(), "{text}");
    }
}

#[test]
fn what_neither_type_keeps_is_inexact() {
    for text in [
        "9223372036854775808",
        "-9223372036854775809",
        "10000000000000000000",
        "123456789012345678901234567890",
        "1e400",
        "-1e99999999999999999999",
        "1e-400",
        "1e-99999999999999999999",
        "0.10000000000000001",
        "9007199254740993.0",
        "3.141592653589793238",
        "4.9e-324",
        "4.940656458412465e-324",
        "2.2250738585072011e-308",
        "0.1000000000000000055511151231257827",
        "1.00000000000000000000000000000001",
    ] {
        assert_eq!(of(text), Some(Number::Inexact), "{text}");
    }
}

#[test]
fn of_two_shortest_decimals_the_even_one_is_exact() {
    // This is a double, and its neighbours are a quarter away.
    let value = 1_955_732_591_933_148.0 + 0.25;
    assert_eq!(of("1955732591933148.2"), Some(Number::Float(value)));
    assert_eq!(of("1955732591933148.3"), Some(Number::Inexact));
    assert_eq!(written(Number::Float(value)), "1955732591933148.2");
}

#[test]
fn what_is_no_number_is_not_read() {
    for text in
        ["", "-", "+1", ".5", "-.5", "1.", "1.e5", "1e", "1e+", "-e5", "x", "- 1", "1._", "NaN", "-Infinity"]
    {
        assert_eq!(parse(text.as_bytes()), None, "{text}");
    }
    for (text, len) in [("01", 1), ("-00", 2), ("1,2", 1), ("1.5.5", 3), ("1e5e5", 3), ("1-", 1), ("2]", 1)] {
        assert_eq!(parse(text.as_bytes()).unwrap().1, len, "{text}");
    }
}

#[test]
fn floats_are_written_as_floats() {
    for (value, text) in
        [(1.0, "1.0"), (-0.0, "-0.0"), (0.0, "0.0"), (1e300, "1e+300"), (0.1, "0.1"), (5e-324, "5e-324")]
    {
        assert_eq!(written(Number::Float(value)), text);
    }
    assert_eq!(written(Number::Float(f64::NAN)), "null");
    assert_eq!(written(Number::Int(i64::MIN)), "-9223372036854775808");
}

/// Random bits as a double, every exponent alike.
fn doubles(count: u32) -> impl Iterator<Item = f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count).filter_map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(f64::from_bits(state.wrapping_mul(0x2545_f491_4f6c_dd1d))).filter(|value| value.is_finite())
    })
}

fn shortest_texts_come_back(count: u32) {
    for value in doubles(count) {
        let text = model::shortest(value);
        match of(&text) {
            Some(number @ Number::Float(_)) => {
                assert_eq!(model::number(&written(number)), model::number(&text), "{text}");
            }
            other => panic!("{text} was read as {other:?}"),
        }
    }
}

#[test]
fn shortest_texts_of_many_doubles_come_back() {
    shortest_texts_come_back(20_000);
}

#[test]
#[ignore = "takes half a minute without optimisation; run it with --release"]
fn shortest_texts_of_a_million_doubles_come_back() {
    shortest_texts_come_back(1_000_500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_model_agrees(text in model::any_number()) {
        match of(&text) {
            None => prop_assert!(false, "{} was not read", text),
            Some(Number::Inexact) => prop_assert!(!model::is_exact(&text)),
            Some(number) => {
                prop_assert!(model::is_exact(&text));
                prop_assert_eq!(model::number(&written(number)), model::number(&text));
            }
        }
    }

    #[test]
    fn digits_beyond_the_sixteenth(text in "-?[0-9]\\.[0-9]{13,18}(e-?[0-9]{1,3})?") {
        let exact = !matches!(of(&text), Some(Number::Inexact));
        prop_assert_eq!(exact, model::is_exact(&text));
    }

    #[test]
    fn any_bytes_are_harmless(text in "[-+.eE0-9]{0,30}") {
        let read = of(&text).is_some();
        prop_assert_eq!(read, serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok());
    }
}
