//! The value codec against vectors that other implementations made. They lie beside the workspace, not in it;
//! where they are missing these tests pass without a check, as the project's own vectors are unit tests.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use lumen_proto::value::{dict, from_slice, ser, to_vec};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// A document whose members keep their order.
#[derive(Clone, Debug, PartialEq)]
enum Document {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Array(Vec<Document>),
    Object(Vec<(String, Document)>),
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => value.serialize(serializer),
            Self::Int(value) => value.serialize(serializer),
            Self::Float(value) => value.serialize(serializer),
            Self::Text(value) => value.serialize(serializer),
            Self::Array(values) => values.serialize(serializer),
            Self::Object(members) => serializer.collect_map(members.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Document;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a document")
            }
            fn visit_unit<E>(self) -> Result<Document, E> {
                Ok(Document::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
                Ok(Document::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
                Ok(Document::Int(value))
            }
            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Document, E> {
                i64::try_from(value).map(Document::Int).map_err(E::custom)
            }
            fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
                Ok(Document::Float(value))
            }
            fn visit_str<E>(self, text: &str) -> Result<Document, E> {
                Ok(Document::Text(text.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Document, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Document::Array(values))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Document::Object(members))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors");
    folder.is_dir().then_some(folder)
}

/// Reads a file of vectors, with each member named `value` in the order it is written in.
fn json<T: for<'de> Deserialize<'de>>(name: &str) -> Option<T> {
    let text = fs::read_to_string(folder()?.join(name)).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn member<'d>(document: &'d Document, name: &str) -> Option<&'d Document> {
    let Document::Object(members) = document else { panic!("{document:?} is no object") };
    members.iter().find_map(|(key, value)| (key == name).then_some(value))
}

fn text<'d>(document: &'d Document, name: &str) -> Option<&'d str> {
    match member(document, name)? {
        Document::Text(text) => Some(text),
        other => panic!("{name} is {other:?}"),
    }
}

fn list<'d>(document: &'d Document, name: &str) -> &'d [Document] {
    match member(document, name) {
        Some(Document::Array(values)) => values,
        other => panic!("{name} is {other:?}"),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "half a byte in {hex}");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn canonical<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    ser::Options::new().with_canonical_numbers().to_buf(value, &mut out).unwrap();
    out
}

/// Checks what peers write for `document`: we write the same, and read it as the same.
fn check(document: &Document, wire: &[u8]) {
    assert_eq!(canonical(document), wire, "{document:?}");
    let back: Document = from_slice(wire).unwrap();
    // Peers write whole floats as integers, so only what is written again is certain to be the same.
    assert_eq!(canonical(&back), wire, "{document:?}");
    let exact = to_vec(document).unwrap();
    assert_eq!(from_slice::<Document>(&exact).unwrap(), *document);
    // The same by way of a tree that sorts members.
    let tree: Value = from_slice(wire).unwrap();
    assert_eq!(from_slice::<Value>(&to_vec(&tree).unwrap()).unwrap(), tree);
    assert_eq!(canonical(&tree).len(), wire.len());
}

#[test]
fn values_of_a_peer() {
    let Some(ours) = json::<Document>("extra_vectors.json") else { return };
    let vectors = list(&ours, "value_python010");
    assert!(vectors.len() >= 40);
    for vector in vectors {
        let source = text(vector, "json").unwrap();
        let document: Document = serde_json::from_str(source).unwrap();
        let wire = bytes(text(vector, "hex").unwrap());
        if source == "-0.0" {
            // Peers lose the sign; we do not.
            assert_eq!(wire, bytes("e300"));
            assert_eq!(canonical(&document), bytes("e20000000000000080"));
        } else {
            check(&document, &wire);
        }
    }
}

#[test]
fn golden_values() {
    let Some(shared) = json::<Document>("goldens/shared_vectors.json") else { return };
    let vectors = list(&shared, "vectors");
    let mut count = 0;
    for vector in vectors {
        let name = text(vector, "name").unwrap();
        let golden = folder().unwrap().join(format!("goldens/{name}.lumen"));
        check(member(vector, "value").unwrap(), &fs::read(golden).unwrap());
        count += 1;
    }
    let files = fs::read_dir(folder().unwrap().join("goldens")).unwrap();
    let goldens =
        files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "lumen"));
    assert_eq!(goldens.count(), count);
}

#[test]
fn conformance() {
    let Some(suite) = json::<Document>("goldens/conformance.json") else { return };
    let categories = member(&suite, "categories").unwrap();
    let mut checks = 0;
    for case in list(member(categories, "compress").unwrap(), "tests") {
        if let Some(value) = member(case, "value") {
            let wire = canonical(value);
            check(value, &wire);
            if let Some(hex) = text(case, "expected_hex") {
                assert_eq!(wire, bytes(hex), "{case:?}");
            }
            if let Some(prefix) = text(case, "expected_hex_prefix") {
                assert!(wire.starts_with(&bytes(prefix)), "{case:?}");
            }
            checks += 1;
        } else if member(case, "inputs_hex").is_some() {
            for hex in list(case, "inputs_hex") {
                let Document::Text(hex) = hex else { panic!("{hex:?}") };
                assert!(from_slice::<Document>(&bytes(hex)).is_err(), "{hex}");
                checks += 1;
            }
        }
    }
    for case in list(member(categories, "dict").unwrap(), "tests") {
        if member(case, "pairs").is_none() {
            continue;
        }
        for pair in list(case, "pairs") {
            let id = text(pair, "id").unwrap().strip_prefix("0x").unwrap();
            let id = u8::from_str_radix(id, 16).unwrap();
            assert_eq!(dict::static_id(text(pair, "key").unwrap().as_bytes()), Some(id));
            assert_eq!(dict::static_word(id), text(pair, "key"));
            checks += 1;
        }
    }
    assert!(checks > 20, "{checks}");
}
