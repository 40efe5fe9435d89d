//! Any bytes as a message: taken for JSON exactly when serde_json takes them, and all that is found lies where it is
//! said to lie. What comes after the first reading (paths, splices, the scan of oversize texts) must bear it too.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use lumen_proto::Reason;
use lumen_proto::jsonrpc::{
    Envelope, IdKey, Kind, Message, Patches, Refused, Scan, Span, batch, decode_str, insert_member, members,
    remove_member,
};
use serde_json::value::RawValue;

fuzz_target!(|text: &[u8]| {
    // A RawValue is checked for grammar and UTF-8 and nothing else, so it also takes lone surrogates and 1e400.
    let oracle = serde_json::from_slice::<&RawValue>(text).is_ok();
    let parsed = Envelope::parse(text);
    match &parsed {
        Err(Refused { reason: Reason::NotJson { at } | Reason::NotUtf8 { at }, .. }) => {
            assert!(!oracle && *at <= text.len());
        }
        // The one known difference: serde_json has no limit of depth for a RawValue.
        Err(Refused { reason: Reason::TooDeep { .. }, .. }) => {}
        _ => assert!(oracle),
    }
    match parsed {
        Ok(envelope) if envelope.kind == Kind::Batch => assert!(batch(text).count() > 0),
        Ok(envelope) => check(text, &envelope),
        Err(refused) => {
            if let Some(id) = refused.id {
                assert!(IdKey::from_token(id.of(text)).is_ok());
            }
        }
    }
    // These must bear any bytes.
    let whole = Span::new(0, text.len());
    assert!(members(text, whole).count() <= text.len());
    let _ = decode_str(text);
    let _ = IdKey::from_token(text);
});

fn check(text: &[u8], envelope: &Envelope) {
    for part in [envelope.id, envelope.method, envelope.params, envelope.result, envelope.error] {
        let Some(part) = part else { continue };
        assert!(serde_json::from_slice::<&RawValue>(part.of(text)).is_ok());
    }
    let id = envelope.id.map(|id| id.of(text)).filter(|id| *id != b"null");
    if envelope.kind == Kind::Request {
        assert!(IdKey::from_token(id.unwrap_or_default()).is_ok());
    }
    let mut scan = Scan::new();
    text.chunks(3).for_each(|piece| scan.push(piece));
    assert!(scan.is_complete());
    let scanned = scan.finish();
    assert_eq!((scanned.id.as_deref(), scanned.has_method), (id, envelope.method.is_some()));

    let message = Message::copy_from(text).unwrap();
    let mut line = BytesMut::new();
    message.write_line(&Patches::new(), &mut line);
    assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
    assert!(!line.contains(&b'\r') && line.len() == text.len() + 1);

    let before = members(text, envelope.body).count();
    let mut changes = vec![(insert_member(text, envelope.body, "a\"\n", b"[1]"), before + 1)];
    for member in members(text, envelope.body) {
        changes.push((remove_member(text, envelope.body, &member), before - 1));
    }
    for (patch, count) in changes {
        let mut patches = Patches::new();
        patches.try_add(patch).unwrap();
        let mut out = BytesMut::new();
        message.write_text(&patches, &mut out);
        let start = envelope.body.start();
        assert_eq!(members(&out, Span::new(start, out.len())).count(), count);
        assert!(serde_json::from_slice::<&RawValue>(&out).is_ok());
    }
}
