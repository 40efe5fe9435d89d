//! Rust types into values.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::from_slice;
use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| std::format!("{byte:02x}")).collect()
}

fn wire<T: ?Sized + Serialize>(value: &T) -> String {
    hex(&to_vec(value).unwrap())
}

fn canonical<T: ?Sized + Serialize>(value: &T) -> String {
    let mut out = Vec::new();
    Options::new().with_canonical_numbers().to_buf(value, &mut out).unwrap();
    hex(&out)
}

#[test]
#[expect(clippy::approx_constant, reason = "the example is 3.14, not pi")]
fn values_as_the_protocol_shows_them() {
    let shown = [
        (json!(null), "e0"),
        (json!(false), "e100"),
        (json!(true), "e101"),
        (json!(3.14), "e21f85eb51b81e0940"),
        (json!(5e-324), "e20100000000000000"),
        (json!(0), "e300"),
        (json!(1), "e302"),
        (json!(-1), "e301"),
        (json!(64), "e38001"),
        (json!(2_147_483_648_i64), "e38080808010"),
        (json!(1_718_000_000_000_i64), "e380f0bc8c8064"),
        (json!((1_i64 << 53) + 1), "e38280808080808020"),
        (json!(i64::MAX), "e3feffffffffffffffff01"),
        (json!(i64::MIN), "e3ffffffffffffffffff01"),
        (json!(""), "e500"),
        (json!("tool"), "e400"),
        (json!("hello"), "e50568656c6c6f"),
        (json!("\0"), "e50100"),
        (json!("\u{1f600}"), "e504f09f9880"),
        (json!([]), "e600"),
        (json!({}), "e700"),
        (json!(["tool", "x"]), "e602e400e50178"),
        (json!({"tool": "tool", "x": {"id": 1}}), "e70200e400ff0178e70104e302"),
        (json!({"id": 1}), "e70104e302"),
    ];
    for (value, expected) in shown {
        assert_eq!(wire(&value), expected, "{value}");
        assert_eq!(canonical(&value), expected, "{value}");
        assert_eq!(from_slice::<Value>(&to_vec(&value).unwrap()).unwrap(), value);
    }
    #[derive(Serialize)]
    struct Request<'a> {
        jsonrpc: &'a str,
        id: u8,
        method: &'a str,
    }
    let ping = Request { jsonrpc: "2.0", id: 1, method: "ping" };
    assert_eq!(wire(&ping), "e7030ce503322e3004e3020ae50470696e67");
}

#[test]
fn every_static_word_is_sent_as_its_id() {
    for id in 0..128_u8 {
        let word = super::super::dict::static_word(id).unwrap();
        assert_eq!(wire(word), hex(&[tag::WORD, id]));
        assert_eq!(wire(&BTreeMap::from([(word, ())])), hex(&[tag::OBJECT, 1, id, tag::NULL]));
    }
}

#[test]
fn whole_floats_stay_floats_unless_canonical() {
    assert_eq!(wire(&1.0), "e2000000000000f03f");
    assert_eq!(canonical(&1.0), "e302");
    assert_eq!(canonical(&0.0), "e300");
    assert_eq!(canonical(&-0.0), "e20000000000000080");
    assert_eq!(canonical(&0.5), "e2000000000000e03f");
    assert_eq!(canonical(&1e18), "e38080a0f6f4acdbe01b");
    assert_eq!(canonical(&9.3e18), "e240643f970722e043");
    assert_eq!(canonical(&-9_223_372_036_854_775_808.0), wire(&i64::MIN));
    assert_eq!(canonical(&9_223_372_036_854_775_808.0), "e2000000000000e043");
    assert_eq!(wire(&1.5_f32), wire(&1.5));
}

#[test]
fn what_no_number_on_the_wire_equals_is_refused() {
    let mut out = vec![7];
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(to_buf(&[1.0, float], &mut out), Err(Error::NotFinite));
        assert_eq!(Options::new().with_canonical_numbers().to_buf(&float, &mut out), Err(Error::NotFinite));
    }
    assert_eq!(to_buf(&f32::NAN, &mut out), Err(Error::NotFinite));
    assert_eq!(to_buf(&(1_u64 << 63), &mut out), Err(Error::DoesNotFit));
    assert_eq!(to_buf(&(i128::from(i64::MIN) - 1), &mut out), Err(Error::DoesNotFit));
    assert_eq!(to_buf(&u128::MAX, &mut out), Err(Error::DoesNotFit));
    assert_eq!(to_buf(&json!([{"a": u64::MAX}]), &mut out), Err(Error::DoesNotFit));
    assert_eq!(out, [7]);
    assert_eq!(wire(&i64::MAX.cast_unsigned()), wire(&i64::MAX));
    assert_eq!(wire(&i128::from(i64::MIN)), wire(&i64::MIN));
}

/// What a `serde_json::Number` looks like to a serializer in a build with `arbitrary_precision`.
struct Arbitrary(&'static str);

impl Serialize for Arbitrary {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut number = serializer.serialize_struct(NUMBER, 1)?;
        number.serialize_field(NUMBER, self.0)?;
        number.end()
    }
}

#[test]
fn numbers_in_the_disguise_of_arbitrary_precision() {
    for (text, plain) in [("1", "e302"), ("-0", "e20000000000000080"), ("1.0", "e2000000000000f03f")] {
        assert_eq!(wire(&[Arbitrary(text)]), std::format!("e601{plain}"));
    }
    assert_eq!(canonical(&Arbitrary("1.0")), "e302");
    assert_eq!(wire(&Arbitrary("-9223372036854775808")), wire(&i64::MIN));
    for text in ["9223372036854775808", "1e400", "0.10000000000000000000001", "1x", "", "true"] {
        assert_eq!(to_vec(&Arbitrary(text)), Err(Error::DoesNotFit), "{text}");
    }
}

#[test]
fn raw_text_is_written_as_what_it_says() {
    let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_string()).unwrap();
    let text = r#"{"id": 1, "own": [1.0, "\u0061", {}], "id": null}"#;
    assert_eq!(wire(&[raw(text)]), "e601e70304e302ff036f776ee603e2000000000000f03fe50161e70004e0");
    let mut table = Table::new();
    let mut out = Vec::new();
    Options::new().with_table(&mut table).to_buf(&(raw("-0"), raw("\"tool\"")), &mut out).unwrap();
    assert_eq!(hex(&out), "e602e20000000000000080e400");
    let deep = raw(&("[".repeat(MAX_VALUE_DEPTH) + &"]".repeat(MAX_VALUE_DEPTH)));
    to_vec(&deep).unwrap();
    let canonical = || Options::new().with_canonical_numbers();
    assert_eq!(to_buf(&[deep], &mut out), Err(Error::TooDeep));
    assert_eq!(to_buf(&raw("1e400"), &mut out), Err(Error::DoesNotFit));
    assert_eq!(canonical().to_buf(&[raw("1.0")], &mut out), Err(Error::DoesNotFit));
    assert_eq!(canonical().to_buf(&raw("1.5"), &mut out), Ok(()));
    assert_eq!(hex(&out), "e602e20000000000000080e400e2000000000000f83f");
}

/// A sequence, or a map from its elements to nothing, that announces what it likes.
struct Announced<'v, T> {
    len: Option<usize>,
    members: &'v [T],
    map: bool,
}

impl<T: Serialize> Serialize for Announced<'_, T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{SerializeMap, SerializeSeq};
        if self.map {
            let mut map = serializer.serialize_map(self.len)?;
            for (at, member) in self.members.iter().enumerate() {
                map.serialize_entry(&at, member)?;
            }
            map.end()
        } else {
            let mut seq = serializer.serialize_seq(self.len)?;
            self.members.iter().try_for_each(|member| seq.serialize_element(member))?;
            seq.end()
        }
    }
}

#[test]
fn counts_that_were_unknown_or_wrong_are_put_right() {
    const COUNTS: [usize; 8] = [0, 1, 63, 64, 65, 300, 65_535, 65_536];
    for count in COUNTS {
        let members: Vec<u16> = (0..=u16::MAX).cycle().take(count).collect();
        // Texts of many keys take long; a count is the same for both.
        for map in [false, true].into_iter().filter(|map| !map || count < 1000) {
            let exact = wire(&Announced { len: Some(count), members: &members, map });
            let announced = [None, Some(0), Some(64), Some(count / 2), Some(1 << 17), Some(usize::MAX)];
            for len in announced {
                assert!(wire(&Announced { len, members: &members, map }) == exact, "{count} {map} {len:?}");
            }
        }
    }
}

#[test]
fn counts_inside_and_beside_each_other_are_put_right() {
    // Three levels, each with some members before, between and behind that need no new count.
    fn level<T: Serialize>(len: impl Fn(usize) -> Option<usize>, inner: T) -> Vec<u8> {
        let filler = [0_u8; 100];
        let a = Announced { len: len(100), members: &filler, map: false };
        let b = Announced { len: len(70), members: &filler[..70], map: true };
        to_vec(&("before", &a, &inner, &b, [&a, &a], "behind")).unwrap()
    }
    let members: Vec<u32> = (0..70_000).collect();
    let build = |len: &dyn Fn(usize) -> Option<usize>| {
        let deepest = Announced { len: len(70_000), members: &members, map: false };
        let seq = [&deepest, &deepest];
        let around = Announced { len: len(2), members: &seq, map: false };
        // Here all three levels have counts of another length than one byte.
        let small: Vec<_> = members.chunks(70).take(300).collect();
        let small: Vec<_> =
            small.iter().map(|members| Announced { len: len(70), members, map: false }).collect();
        let middle: Vec<_> =
            small.chunks(100).map(|members| Announced { len: len(100), members, map: true }).collect();
        let middle: Vec<_> = (0..30).flat_map(|_| &middle).collect();
        let outer = Announced { len: len(90), members: &middle, map: false };
        let mut out = vec![1, 2, 3];
        to_buf(&(&around, &outer, &around), &mut out).unwrap();
        assert_eq!(out[..3], [1, 2, 3]);
        let mut all = level(len, &around);
        all.extend(out);
        all
    };
    let exact = build(&|len| Some(len));
    assert!(build(&|_| None) == exact);
    assert!(build(&|len| Some(len * 1000)) == exact);
    assert!(build(&|len| (len % 7 == 0).then_some(1)) == exact);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Newtype(i32);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Name {
    #[serde(rename = "tool")]
    Tool,
    Other,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    Newtype(String),
    Nested(std::boxed::Box<Shape>),
    Tuple(i64, f64),
    Struct { id: u32, rest: Vec<Shape> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Inside {
    Text { text: String },
    Blob { data: Vec<u8>, mime_type: Option<String> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    id: Id,
    unit: Unit,
    newtype: Newtype,
    letter: char,
    single: f32,
    tuple: (bool, u64, i8),
    #[serde(skip_serializing_if = "Option::is_none", default)]
    skipped: Option<u8>,
    shapes: Vec<Shape>,
    inside: Inside,
    by_number: BTreeMap<i16, String>,
    by_bool: BTreeMap<bool, ()>,
    by_letter: BTreeMap<char, u8>,
    by_name: BTreeMap<Name, Option<Newtype>>,
    #[serde(flatten)]
    flat: BTreeMap<String, i64>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        Just(Shape::Unit),
        any::<String>().prop_map(Shape::Newtype),
        (any::<i64>(), -1e300..1e300).prop_map(|(a, b)| Shape::Tuple(a, b)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|shape| Shape::Nested(shape.into())),
            (any::<u32>(), prop::collection::vec(inner, 0..4))
                .prop_map(|(id, rest)| Shape::Struct { id, rest }),
        ]
    })
}

prop_compose! {
    fn everything()(
        id in prop_oneof![any::<i64>().prop_map(Id::Number), any::<String>().prop_map(Id::Text)],
        number: i32, letter: char, single in -1e30_f32..1e30, tuple in (any::<bool>(), 0..=1_u64 << 62, any::<i8>()),
        skipped: Option<u8>, shapes in prop::collection::vec(shapes(), 0..4), text: String,
        blob: Option<(Vec<u8>, Option<String>)>, by_number: BTreeMap<i16, String>, by_bool: BTreeMap<bool, ()>,
        by_letter: BTreeMap<char, u8>, other: Option<i32>, tool: bool, flat: BTreeMap<u32, i64>,
    ) -> Everything {
        Everything {
            id, unit: Unit, newtype: Newtype(number), letter, single, tuple, skipped, shapes,
            inside: match blob {
                Some((data, mime_type)) => Inside::Blob { data, mime_type },
                None => Inside::Text { text },
            },
            by_number, by_bool, by_letter,
            by_name: [(Name::Tool, None), (Name::Other, other.map(Newtype))].into_iter().skip(tool.into()).collect(),
            flat: flat.into_iter().map(|(key, value)| (std::format!("x{key}"), value)).collect(),
        }
    }
}

/// Any value within the codec's numbers.
pub(crate) fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        (0..128_u8).prop_map(|id| { super::super::dict::static_word(id).unwrap().to_string() })
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-70..70_i64).prop_map(Value::from),
        prop::num::f64::ANY.prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 120, 70, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..70).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..70)
                .prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_value_comes_back(value in values()) {
        let wire = to_vec(&value).unwrap();
        let back = from_slice::<Value>(&wire).unwrap();
        prop_assert_eq!(&back, &value);
        // Negative zero equals zero but is not the same on the wire.
        prop_assert!(to_vec(&back).unwrap() == wire);
    }

    #[test]
    fn any_data_has_the_shape_that_serde_json_gives_it(data in everything()) {
        let wire = to_vec(&data).unwrap();
        prop_assert_eq!(&from_slice::<Everything>(&wire).unwrap(), &data);
        let tree = serde_json::to_value(&data).unwrap();
        prop_assert_eq!(&from_slice::<Value>(&wire).unwrap(), &tree);
        prop_assert_eq!(from_slice::<Everything>(&to_vec(&tree).unwrap()).unwrap(), data);
    }
}

#[test]
fn keys_that_are_no_text_are_refused() {
    let mut out = Vec::new();
    assert_eq!(to_buf(&BTreeMap::from([((), 1)]), &mut out), Err(Error::KeyNotText));
    assert_eq!(to_buf(&BTreeMap::from([([1], 1)]), &mut out), Err(Error::KeyNotText));
    assert_eq!(to_buf(&BTreeMap::from([(None::<u8>, 1)]), &mut out), Err(Error::KeyNotText));
    assert!(out.is_empty());
}

#[test]
fn nesting_ends_at_the_limit() {
    fn nested(depth: usize) -> Value {
        (0..depth).fold(
            Value::Null,
            |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) },
        )
    }
    let mut out = Vec::new();
    to_buf(&nested(MAX_VALUE_DEPTH), &mut out).unwrap();
    from_slice::<Value>(&out).unwrap();
    out.clear();
    assert_eq!(to_buf(&nested(MAX_VALUE_DEPTH + 1), &mut out), Err(Error::TooDeep));
    assert!(out.is_empty());
    // Each variant with content is an object around it, and leaves the depth as it was.
    let shape = |depth| (0..depth).fold(Shape::Unit, |inner, _| Shape::Nested(inner.into()));
    to_vec(&[shape(MAX_VALUE_DEPTH - 1), shape(MAX_VALUE_DEPTH - 1)]).unwrap();
    assert_eq!(to_vec(&[shape(MAX_VALUE_DEPTH)]), Err(Error::TooDeep));
    let beside: Vec<Shape> = (0..200)
        .map(|id| if id % 2 == 0 { Shape::Struct { id, rest: vec![] } } else { Shape::Tuple(1, 2.0) })
        .collect();
    to_vec(&beside).unwrap();
}

#[test]
fn words_of_a_session_are_ids_but_static_ones_win() {
    let mut table = Table::new();
    assert!(table.register("foo", 0x81) && table.register("tool", 0x82));
    let mut out = Vec::new();
    let document = json!({"foo": "foo", "tool": "tool", "x": "foox"});
    Options::new().with_table(&mut table).to_buf(&document, &mut out).unwrap();
    assert_eq!(hex(&out), "e70381e48100e400ff0178e504666f6f78");
    assert_eq!(super::super::from_slice_in_session::<Value>(&out, &table).unwrap(), document);
}

#[test]
fn errors_say_what() {
    let texts = [Error::DoesNotFit, Error::KeyNotText, Error::TooDeep, Error::Message("own".into())];
    assert_eq!(
        texts.map(|error| error.to_string()),
        ["number does not fit", "key must be a string", "nested deeper than 128", "own"]
    );
}
