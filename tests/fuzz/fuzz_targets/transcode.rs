//! Any bytes as a JSON text: what the codec takes is JSON and comes back as a text that it takes the same way. And
//! any bytes as a value: the text they are written as is JSON, and leads to the same text again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lumen_proto::value::transcode::Transcoder;
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let mut transcoder = Transcoder::new();
    let mut bytes = b"x".to_vec();
    match transcoder.encode(data, &mut bytes) {
        Err(_) => assert_eq!(bytes, b"x"),
        Ok(needs) => {
            assert!(serde_json::from_slice::<&RawValue>(data).is_ok());
            bytes.remove(0);
            let mut text = Vec::new();
            assert_eq!(transcoder.decode(&bytes, None, &mut text), Ok(needs));
            let mut again = Vec::new();
            assert_eq!(transcoder.encode(&text, &mut again), Ok(needs));
            assert_eq!(again, bytes);
            // Numbers apart (serde_json's default reader is not exact), both texts are the same document.
            if let (Ok(before), Ok(after)) = (serde_json::from_slice(data), serde_json::from_slice(&text)) {
                assert!(same(&before, &after));
            }
        }
    }
    let mut text = Vec::new();
    if let Ok(needs) = transcoder.decode(data, None, &mut text) {
        let mut bytes = Vec::new();
        assert_eq!(transcoder.encode(&text, &mut bytes), Ok(needs));
        // Not always shorter: 64 to 127 takes two bytes as a LEB128 length, which is legal to receive, and three in the
        // form we write. Whatever has such a length or count has at least that many bytes behind it.
        assert!(bytes.len() <= data.len() + data.len() / 64);
        let mut again = Vec::new();
        assert_eq!(transcoder.decode(&bytes, None, &mut again), Ok(needs));
        assert_eq!(again, text);
    }
});

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => true,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| one.0 == other.0 && same(one.1, other.1))
        }
        _ => one == other,
    }
}
