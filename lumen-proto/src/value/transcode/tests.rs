//! JSON text to values and back.

use std::string::{String, ToString};
use std::vec;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;
use crate::value::Problem;
use crate::value::model::{self, Tree};

fn encode(text: &[u8]) -> Result<(Vec<u8>, Needs), Unfit> {
    let mut out = vec![0xaa];
    let needs = Transcoder::new().encode(text, &mut out);
    assert_eq!(out.remove(0), 0xaa);
    needs.inspect_err(|_| assert!(out.is_empty())).map(|needs| (out, needs))
}

fn decode(bytes: &[u8]) -> Result<String, Invalid> {
    let mut out = b"before".to_vec();
    let needs = Transcoder::new().decode(bytes, None, &mut out);
    let text = out.split_off(6);
    assert_eq!(out, b"before");
    needs.inspect_err(|_| assert!(text.is_empty())).map(|_| String::from_utf8(text).unwrap())
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn known_documents() {
    for (text, bytes) in [
        ("null", "e0"),
        ("true", "e101"),
        ("false", "e100"),
        ("-65", "e38101"),
        ("300", "e3d804"),
        ("2147483648", "e38080808010"),
        ("-9223372036854775808", "e3ffffffffffffffffff01"),
        ("3.14", "e21f85eb51b81e0940"),
        ("1.0", "e2000000000000f03f"),
        ("-0.0", "e20000000000000080"),
        (r#""""#, "e500"),
        (r#""tool""#, "e400"),
        (r#""hello""#, "e50568656c6c6f"),
        ("\"\u{1f600}\"", "e504f09f9880"),
        ("[]", "e600"),
        ("{}", "e700"),
        (r#"["tool","x"]"#, "e602e400e50178"),
        (r#"{"tool":"tool","x":{"id":1}}"#, "e70200e400ff0178e70104e302"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "e7030ce503322e3004e3020ae50470696e67"),
        (r#"{"a":1,"a":[[],{}]}"#, "e702ff0161e302ff0161e602e600e700"),
    ] {
        assert_eq!(encode(text.as_bytes()).unwrap().0, hex(bytes), "{text}");
        assert_eq!(decode(&hex(bytes)).unwrap(), text);
    }
    // Texts that are written otherwise on the way back.
    for (text, bytes, back) in [
        (" [ 1 , 2 ]\r\n", "e602e302e304", "[1,2]"),
        ("\t{\"\\u0069d\" :\n\"\\u0074ool\"}", "e70104e400", r#"{"id":"tool"}"#),
        (r#""\ud83d\ude00\/\u002f""#, "e506f09f98802f2f", "\"\u{1f600}//\""),
        (r#""\u0000\b\f\n\r\t\"\\\u001F""#, "e50900080c0a0d09225c1f", r#""\u0000\b\f\n\r\t\"\\\u001f""#),
        ("-0", "e20000000000000080", "-0.0"),
        ("1e2", "e20000000000005940", "100.0"),
    ] {
        assert_eq!(encode(text.as_bytes()).unwrap().0, hex(bytes), "{text}");
        assert_eq!(decode(&hex(bytes)).unwrap(), back);
    }
}

#[test]
fn what_does_not_fit_is_left_alone() {
    for text in [
        "",
        " ",
        "nul",
        "nulll",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1,}",
        "{,}",
        "{1:2}",
        "{\"a\" 1}",
        "[}",
        "{]",
        "]",
        "1 2",
        "[]]",
        "01",
        "1.",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u123g\"",
        "\"\n\"",
        "\"\t\"",
        "\"\\n\n\"",
        "tru",
        "'a'",
        "\u{feff}1",
        // JSON, but not for the codec.
        "1e400",
        "9223372036854775808",
        "0.10000000000000001",
        "[1,2,1e-400]",
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\ud800""#,
        r#""\ud800\u0041""#,
        r#""\ud800\ue000""#,
        r#""\ud83d\uffff""#,
        r#"{"\ud800":1}"#,
    ] {
        assert_eq!(encode(text.as_bytes()), Err(Unfit), "{text}");
    }
    for text in [&b"\"\xff\""[..], b"\"\xc3\"", b"[\"\xed\xa0\x80\"]", b"\xc3\xa9"] {
        assert_eq!(encode(text), Err(Unfit), "{text:02x?}");
    }
}

#[test]
fn counts_of_every_width_nest() {
    for inner in [0, 1, 62, 63, 64, 65, 200] {
        for outer in [0, 1, 63, 64, 70_000] {
            let one = Tree::Array(vec![Tree::Null; inner]);
            let tree = Tree::Object(vec![
                ("x".to_string(), Tree::Array(vec![Tree::Bool(true); outer])),
                ("y".to_string(), Tree::Array(vec![one; outer.min(70)])),
            ]);
            let mut expected = Vec::new();
            tree.encode(&mut expected);
            let (bytes, needs) = encode(tree.plain().as_bytes()).unwrap();
            assert!(bytes == expected, "{inner} in {outer}");
            let members = outer.max(if outer > 0 { inner } else { 0 }).max(2);
            assert_eq!(needs.members as usize, members, "{inner} in {outer}");
        }
    }
}

#[test]
fn deep_wide_containers_are_moved_once() {
    let mut text = "1".to_string();
    for _ in 0..128 {
        text = "[".to_string() + &"0,".repeat(64) + &text + "]";
    }
    let (bytes, needs) = encode(text.as_bytes()).unwrap();
    assert_eq!((needs.depth, needs.members), (128, 65));
    assert_eq!(decode(&bytes).unwrap(), text);
}

#[test]
fn depth_ends_at_128() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let text = |depth| open.repeat(depth) + "1" + &close.repeat(depth);
        let (bytes, needs) = encode(text(128).as_bytes()).unwrap();
        assert_eq!(needs.depth, 128);
        assert_eq!(decode(&bytes).unwrap(), text(128));
        assert_eq!(encode(text(129).as_bytes()), Err(Unfit));
        assert_eq!(encode(text(100_000).as_bytes()), Err(Unfit));
    }
    let mut bytes = vec![0xe6; 129 * 2];
    bytes.iter_mut().skip(1).step_by(2).for_each(|count| *count = 1);
    bytes.push(0xe0);
    assert_eq!(decode(&bytes), Err(Invalid { offset: 256, problem: Problem::TooDeep }));
}

#[test]
fn needs_are_those_of_the_document() {
    let none = Needs::default();
    for (text, needs) in [
        ("1", none),
        ("1.5", none),
        ("[]", Needs { depth: 1, ..none }),
        ("[[1,2,3]]", Needs { members: 3, depth: 2, ..none }),
        ("2147483648", Needs { wide_ints: true, ..none }),
        ("1.0", Needs { whole_floats: true, ..none }),
        ("1e300", none),
        ("-0", Needs { negative_zero: true, ..none }),
        ("\"\u{feff}x\"", Needs { leading_bom: true, ..none }),
        (r#""\ufeff""#, Needs { leading_bom: true, ..none }),
        ("\"x\u{feff}\"", none),
        ("\"\u{fefe}\"", none),
        ("{\"\u{feff}\":1}", Needs { members: 1, depth: 1, leading_bom: true, ..none }),
        (r#"{"__proto__":1}"#, Needs { members: 1, depth: 1, proto_key: true, ..none }),
        (r#"{"_\u005fproto__":1}"#, Needs { members: 1, depth: 1, proto_key: true, ..none }),
        (r#"{"a":"__proto__"}"#, Needs { members: 1, depth: 1, ..none }),
    ] {
        let (bytes, found) = encode(text.as_bytes()).unwrap();
        assert_eq!(found, needs, "{text}");
        assert_eq!(Transcoder::new().decode(&bytes, None, &mut Vec::new()), Ok(needs), "{text}");
    }
}

#[test]
fn words_of_a_session() {
    let mut table = Table::new();
    table.register("foo", 0x81);
    let bytes = hex("e70181e481");
    let mut out = Vec::new();
    let needs = Transcoder::new().decode(&bytes, Some(&table), &mut out).unwrap();
    assert_eq!(out, br#"{"foo":"foo"}"#);
    assert!(needs.session_ids);
    assert_eq!(decode(&bytes), Err(Invalid { offset: 2, problem: Problem::UnknownId(0x81) }));
    assert_eq!(decode(&hex("e4ff")), Err(Invalid { offset: 1, problem: Problem::UnknownId(0xff) }));
}

/// Splits a text into numbers and everything else.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => {
                let mut escaped = false;
                let end = rest[1..].find(|char| {
                    let ends = char == '"' && !escaped;
                    escaped = char == '\\' && !escaped;
                    ends
                });
                end.unwrap() + 2
            }
            '-' | '0'..='9' => rest.find([',', ']', '}']).unwrap_or(rest.len()),
            _ => 1,
        };
        tokens.push(&rest[..len]);
        rest = &rest[len..];
    }
    tokens
}

fn same_text(one: &str, other: &str) -> bool {
    let (one, other) = (tokens(one), tokens(other));
    let is_number = |token: &str| token.starts_with(|char: char| char == '-' || char.is_ascii_digit());
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| match is_number(one) && is_number(other) {
            true => model::number(one) == model::number(other),
            false => *one == other,
        })
}

#[test]
fn the_comparison_of_texts_tells_them_apart() {
    assert!(same_text(r#"{"a\"b":[1.50,2]}"#, r#"{"a\"b":[15e-1,2]}"#));
    for other in [r#"{"a":[1.5,3]}"#, r#"{"b":[1.5,2]}"#, r#"{"a":[1.5,2.0]}"#, r#"{"a":[1.5]}"#] {
        assert!(!same_text(r#"{"a":[1.5,2]}"#, other), "{other}");
    }
}

proptest! {
    // Documents are large and take long to make.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn documents_come_back(tree in model::any_tree(), noise: Vec<u8>) {
        let mut text = String::new();
        tree.write(&mut noise.into_iter().cycle().take(100_000), &mut text);
        let (bytes, needs) = encode(text.as_bytes()).unwrap();
        let mut expected = Vec::new();
        tree.encode(&mut expected);
        prop_assert_eq!(&bytes, &expected);
        prop_assert!(model::same(&Tree::decode_all(&bytes).unwrap(), &tree));
        let mut back = Vec::new();
        prop_assert_eq!(Transcoder::new().decode(&bytes, None, &mut back), Ok(needs));
        let back = String::from_utf8(back).unwrap();
        prop_assert!(same_text(&back, &tree.plain()), "{} came back as {}", text, back);
        // What is written is as short as it can be, so it is stable.
        let again = encode(back.as_bytes()).unwrap();
        prop_assert_eq!(again, (bytes, needs));
    }

    #[test]
    fn numbers_that_do_not_fit_spoil_the_document(number in model::any_number(), before in model::any_tree()) {
        let tree = Tree::Array(vec![before, Tree::Number(number)]);
        prop_assert_eq!(encode(tree.plain().as_bytes()).is_ok(), tree.is_exact());
    }

    #[test]
    fn mutated_texts_are_json_or_refused(
        tree in model::any_tree(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..4),
    ) {
        let mut text = tree.plain().into_bytes();
        for (at, byte, how) in changes {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => text.truncate(at + 1),
            }
        }
        if let Ok((bytes, needs)) = encode(&text) {
            prop_assert!(serde_json::from_slice::<&RawValue>(&text).is_ok());
            let mut back = Vec::new();
            prop_assert_eq!(Transcoder::new().decode(&bytes, None, &mut back), Ok(needs));
        }
    }

    #[test]
    fn mutated_values_are_what_a_naive_reader_says(
        tree in model::any_tree(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 0..4),
    ) {
        let mut bytes = Vec::new();
        tree.encode(&mut bytes);
        for (at, byte, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at + 1),
            }
        }
        same_as_naive(&bytes)?;
    }
}

proptest! {
    #[test]
    fn any_bytes_are_what_a_naive_reader_says(
        bytes in proptest::collection::vec(prop_oneof![0xe0_u8..0xe8, 0_u8..4, any::<u8>()], 0..40),
    ) {
        same_as_naive(&bytes)?;
        prop_assert!(encode(&bytes).is_err() || serde_json::from_slice::<&RawValue>(&bytes).is_ok());
    }
}

fn same_as_naive(bytes: &[u8]) -> Result<(), TestCaseError> {
    match (decode(bytes), Tree::decode_all(bytes)) {
        (Ok(text), Some(tree)) => prop_assert!(same_text(&text, &tree.plain()), "{} and {:?}", text, tree),
        (Err(invalid), None) => prop_assert!(invalid.offset <= bytes.len()),
        (ours, naive) => prop_assert!(false, "{:?} and {:?} for {:02x?}", ours, naive, bytes),
    }
    Ok(())
}

#[test]
fn a_text_that_would_get_too_long_is_refused_in_bounded_memory() {
    let mut transcoder = Transcoder::new();
    // Words of the dictionary: 2 bytes stand for 19; control characters: 1 for 6.
    let mut words = std::vec![0xe6, 0x80, 0xff, 0xff];
    words.extend(core::iter::repeat_n([0xe4, 0x45], 65_535).flatten());
    let mut escapes = std::vec![0xe5, 0xc0, 0x00, 0x00, 0x10, 0x00];
    escapes.resize(escapes.len() + 0x10_0000, 1);
    for bytes in [words, escapes] {
        let mut whole = Vec::new();
        transcoder.decode(&bytes, None, &mut whole).unwrap();
        let mut out = Vec::new();
        transcoder.decode_within(&bytes, None, whole.len(), &mut out).unwrap();
        assert_eq!(out, whole);
        for max in [0, 1, 100_000, whole.len() - 1] {
            let mut out = Vec::new();
            let error = transcoder.decode_within(&bytes, None, max, &mut out).unwrap_err();
            assert_eq!(error.problem, crate::value::Problem::TooLong);
            assert!(out.is_empty() && out.capacity() <= 2 * (max + 512 * 1024), "{max}: {}", out.capacity());
        }
    }
}

#[test]
fn members_of_the_root_are_told_as_they_are_written() {
    let members = |text: &str| {
        let mut value = Vec::new();
        Transcoder::new().encode(text.as_bytes(), &mut value).unwrap();
        let (mut out, mut told) = (b"before ".to_vec(), Vec::new());
        let tell = |key: &[u8], at| told.push((key.to_vec(), at));
        Transcoder::new().decode_outlined(&value, usize::MAX, &mut out, tell).unwrap();
        assert_eq!(&out[7..], text.as_bytes());
        let told = told.into_iter().map(|(key, at)| [key, out[at].to_vec()]);
        told.map(|pair| pair.map(|bytes| String::from_utf8(bytes).unwrap())).collect::<Vec<_>>()
    };
    let text = r#"{"id":1,"x\"":{"id":2,"y":[{"id":3}]},"":[],"id":"\u0001","z":{}}"#;
    let expected = [
        ["id", "1"],
        [r#"x\""#, r#"{"id":2,"y":[{"id":3}]}"#],
        ["", "[]"],
        ["id", r#""\u0001""#],
        ["z", "{}"],
    ];
    assert_eq!(members(text), expected);
    for other in ["1", "[]", "{}", r#"[{"id":1}]"#] {
        assert_eq!(members(other), <[[&str; 2]; 0]>::default(), "{other}");
    }
}
