//! Values that other implementations wrote: to JSON text and back they are the same bytes, and the text is the
//! document that serde reads from them. Like all foreign vectors they lie beside the workspace; without them this
//! passes without a check.

use std::fs;
use std::path::Path;

use lumen_proto::value::from_slice;
use lumen_proto::value::tape::Tape;
use lumen_proto::value::transcode::Transcoder;
use serde_json::Value;

#[test]
fn golden_values_come_back_byte_for_byte() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/goldens");
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut transcoder = Transcoder::new();
    let mut tape = Tape::new();
    let mut seen = 0;
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "lumen") {
            continue;
        }
        let golden = fs::read(&path).unwrap();
        let mut text = Vec::new();
        let needs = transcoder.decode(&golden, None, &mut text);
        assert!(needs.is_ok(), "{path:?}: {needs:?}");
        assert_eq!(tape.parse(&golden, None), needs, "{path:?}");
        let mut bytes = Vec::new();
        assert_eq!(transcoder.encode(&text, &mut bytes).ok(), needs.ok(), "{path:?}");
        assert_eq!(bytes, golden, "{path:?}");
        assert_eq!(
            serde_json::from_slice::<Value>(&text).unwrap(),
            from_slice::<Value>(&golden).unwrap(),
            "{path:?}"
        );
        seen += 1;
    }
    assert!(seen > 20, "only {seen} values");
}
