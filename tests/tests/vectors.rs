//! Integers and frames against vectors that other implementations made. They lie beside the workspace, not in
//! it; where they are missing these tests pass without a check, as the project's own vectors are unit tests.

use std::fs;
use std::path::{Path, PathBuf};

use lumen_proto::frame::{Assembler, Flags, Growing, Header, Kind, MAX_HEADER_LEN, Step, encode_to_slice};
use lumen_proto::varint;
use serde_json::Value;

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors");
    folder.is_dir().then_some(folder)
}

fn json(name: &str) -> Option<Value> {
    let text = fs::read_to_string(folder()?.join(name)).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn list<'v>(value: &'v Value, path: &str) -> &'v Vec<Value> {
    value.pointer(path).and_then(Value::as_array).unwrap_or_else(|| panic!("no list at {path}"))
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_else(|| panic!("no text {member} in {value}"))
}

fn byte(value: &Value, member: &str) -> u8 {
    u8::try_from(value[member].as_u64().unwrap()).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "half a byte in {hex}");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn integer(value: u64) -> Vec<u8> {
    let mut out = [0; varint::MAX_LEN];
    let len = varint::encode(value, &mut out);
    out[..len].to_vec()
}

fn frame(kind: Kind, flags: Flags, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; MAX_HEADER_LEN + payload.len()];
    let len = encode_to_slice(kind, flags, payload, &mut out).unwrap();
    out.truncate(len);
    out
}

/// Takes the one frame out of `wire`, byte by byte.
fn only_frame(wire: &[u8]) -> (Header, Vec<u8>) {
    let mut assembler = Assembler::with_limits(Growing::new(), 1 << 20, 1 << 20);
    let mut found = None;
    for at in 0..wire.len() {
        let mut input = &wire[at..=at];
        while let Some(step) = assembler.feed(&mut input) {
            let Step::Frame { header, payload } = step else { panic!("{step:?}") };
            assert!(found.is_none(), "two frames");
            found = Some((header, payload.to_vec()));
        }
    }
    assert!(!assembler.is_mid_frame(), "bytes left");
    found.expect("a frame")
}

#[test]
fn integers() {
    let Some(ours) = json("extra_vectors.json") else { return };
    for vector in list(&ours, "/hyb128") {
        let value = text(vector, "value").parse().unwrap();
        let wire = bytes(text(vector, "hex"));
        assert_eq!(integer(value), wire, "{value}");
        assert_eq!(varint::decode_strict(&wire), Ok(Some((value, wire.len()))));
    }
    for vector in list(&ours, "/hyb128_decode") {
        let wire = bytes(text(vector, "hex"));
        let lenient = vector["lenient"].as_str().map(|value| value.parse::<u64>().unwrap());
        let Some(value) = lenient else {
            assert!(!matches!(varint::decode(&wire), Ok(Some(_))), "{vector}");
            continue;
        };
        let len = usize::try_from(vector["consumed"].as_u64().unwrap()).unwrap();
        // Refused here, as documented: a first byte that no encoder emits, and bits above the sixty-fourth.
        let refused = !varint::is_lead(wire[0]) || (len == varint::MAX_LEN && wire[10] > 1);
        if refused {
            assert!(varint::decode(&wire).is_err(), "{vector}");
        } else {
            assert_eq!(varint::decode(&wire), Ok(Some((value, len))), "{vector}");
            assert_eq!(varint::decode_strict(&wire).is_ok(), vector["strict"].is_string(), "{vector}");
        }
    }
}

#[test]
fn conformance() {
    let Some(suite) = json("goldens/conformance.json") else { return };
    for case in list(&suite, "/categories/hyb128/tests") {
        if let (Some(value), Some(hex)) = (case["input"].as_u64(), case["expected_hex"].as_str()) {
            assert_eq!(integer(value), bytes(hex), "{case}");
        } else if let Some(hex) = case["input_hex"].as_str() {
            assert_eq!(varint::decode(&bytes(hex)), Ok(None), "{case}");
        } else {
            for value in list(case, "/values").iter().map(|value| value.as_u64().unwrap()) {
                let wire = integer(value);
                assert_eq!(varint::decode_strict(&wire), Ok(Some((value, wire.len()))));
            }
        }
    }
    let hex_byte = |key: &str| u8::from_str_radix(key.strip_prefix("0x").unwrap(), 16).unwrap();
    let mut types = 0;
    for case in list(&suite, "/categories/frame/tests") {
        for (key, name) in case["types"].as_object().into_iter().flatten() {
            assert_eq!(Kind(hex_byte(key)).name(), name.as_str(), "{key}");
            types += 1;
        }
        for (key, name) in case["flags"].as_object().into_iter().flatten() {
            let flag = match name.as_str().unwrap() {
                "COMPRESSED" => Flags::COMPRESSED,
                "ENCRYPTED" => Flags::ENCRYPTED,
                "PRIORITY" => Flags::PRIORITY,
                "FRAGMENTED" => Flags::FRAGMENTED,
                other => panic!("unknown flag {other}"),
            };
            assert_eq!(flag, Flags(hex_byte(key)));
        }
        for len in case["payload_lengths"].as_array().into_iter().flatten() {
            let payload = vec![0x61; usize::try_from(len.as_u64().unwrap()).unwrap()];
            let wire = frame(Kind::REQUEST, Flags::NONE, &payload);
            assert_eq!(wire.len(), integer(payload.len() as u64).len() + 2 + payload.len());
            assert_eq!(only_frame(&wire).1, payload);
        }
        for hex in case["inputs_hex"].as_array().into_iter().flatten() {
            assert_eq!(Header::decode(&bytes(hex.as_str().unwrap())[..]).map(|found| found.is_some()), {
                // Two bytes of length and type, or fewer, are no header; three are one without its payload.
                Ok(hex.as_str().unwrap().len() >= 6)
            });
        }
    }
    assert_eq!(types, 16);
}

#[test]
fn frames() {
    let Some(ours) = json("extra_vectors.json") else { return };
    for vector in list(&ours, "/frame") {
        let (kind, flags) = (Kind(byte(vector, "type")), Flags(byte(vector, "flags")));
        let payload = bytes(text(vector, "payload_hex"));
        let wire = bytes(text(vector, "hex"));
        assert_eq!(frame(kind, flags, &payload), wire, "{vector}");
        assert_eq!(only_frame(&wire), (Header { len: payload.len() as u64, kind, flags }, payload));
    }
    for (name, hex) in ours["negotiation"].as_object().unwrap() {
        let wire = bytes(hex.as_str().unwrap());
        let (header, payload) = only_frame(&wire);
        assert_eq!(frame(header.kind, header.flags, &payload), wire, "{name}");
    }
}

#[test]
fn golden_frames() {
    let Some(folder) = folder() else { return };
    let mut count = 0;
    for entry in fs::read_dir(folder.join("goldens")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "frame") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let wire = fs::read(&path).unwrap();
        let (header, payload) = only_frame(&wire);
        assert_eq!(frame(header.kind, header.flags, &payload), wire, "{name}");
        count += 1;
        // frame_<TYPE>_<flag>_<payload>
        let Some(rest) = name.strip_prefix("frame_") else { continue };
        let mut words = rest.splitn(3, '_');
        assert_eq!(header.kind.name(), words.next(), "{name}");
        let flags = match words.next() {
            Some("none") => Flags::NONE,
            Some("compressed") => Flags::COMPRESSED,
            Some("priority") => Flags::PRIORITY,
            other => panic!("unknown flag {other:?} in {name}"),
        };
        assert_eq!(header.flags, flags, "{name}");
        match words.next() {
            Some("empty") => assert_eq!(payload, b"", "{name}"),
            Some("hello") => assert_eq!(payload, b"hello", "{name}"),
            _ => assert!(serde_json::from_slice::<Value>(&payload).is_ok(), "{name}"),
        }
    }
    assert!(count > 0, "no golden frames in a folder that is there");
}
