//! Any bytes as a message in a value: what its text says is what it says itself, and an edit changes nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lumen_proto::Reason;
use lumen_proto::jsonrpc::{Kind, Message};
use lumen_proto::message::{Edits, Packet, Path};
use lumen_proto::value::transcode::Transcoder;

static PATHS: [Path; 6] =
    [&["id"], &["params"], &["result"], &["params", "id"], &["params", "_meta", "progressToken"], &["x"]];

fuzz_target!(|bytes: &[u8]| {
    let mut text = Vec::new();
    let is_value = Transcoder::new().decode(bytes, None, &mut text).is_ok();
    match Packet::from_value(bytes.to_vec().into()) {
        Ok(value) => {
            assert!(is_value);
            let text = Packet::from(Message::parse(text.into()).unwrap());
            assert_eq!(text.bytes(), value.to_text().unwrap().bytes());
            same(&text, &value);
            let (texts, values): (Vec<_>, Vec<_>) = (text.batch().collect(), value.batch().collect());
            assert_eq!(texts.len(), values.len());
            assert_eq!(texts.is_empty(), text.kind() != Kind::Batch);
            texts.iter().zip(&values).for_each(|(text, value)| same(text, value));
        }
        Err((refused, back)) => {
            assert_eq!(&back[..], bytes);
            if matches!(refused.reason, Reason::NotValue { .. }) {
                assert!(!is_value);
                return;
            }
            let other = Message::parse(text.into()).unwrap_err();
            assert_eq!((refused.reason, refused.has_method), (other.0.reason, other.0.has_method));
            assert_eq!(refused.id.as_deref(), other.0.id.map(|id| id.of(&other.1)));
        }
    }
});

fn same(text: &Packet, value: &Packet) {
    assert_eq!(text.kind(), value.kind());
    assert_eq!(text.id(), value.id());
    assert_eq!(text.id_key(), value.id_key());
    assert_eq!(text.has_id(), value.has_id());
    assert_eq!(text.method(), value.method());
    for places in PATHS.chunks(1) {
        assert_eq!(text.token(places[0]), value.token(places[0]));
        let edits = Edits::put(places, "\"7\"");
        let edited = (text.edited(&edits), value.edited(&edits));
        assert_eq!(
            edited.0.map(|message| message.bytes().clone()),
            edited.1.map(|message| message.bytes().clone())
        );
    }
}
