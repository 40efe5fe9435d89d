//! Events out of any bytes: the first byte chooses how the rest is cut up, and every way of cutting it up must give
//! what the whole gives, within the limit and with no line end that was one.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use lumen_proto::limits::MAX_ID;
use lumen_proto::sse::{Reader, Step};

const MAX: usize = 256;

fn read(stream: &[u8], chunk: usize) -> (Vec<Step>, Option<Step>, Option<Duration>) {
    let mut reader = Reader::with_limit(MAX);
    let mut steps = Vec::new();
    for mut piece in stream.chunks(chunk) {
        while let Some(step) = reader.feed(&mut piece) {
            steps.push(step);
        }
        assert!(piece.is_empty() && reader.pending() <= MAX);
    }
    let last = reader.finish();
    for step in steps.iter().chain(&last) {
        let id = match step {
            Step::Event(event) => {
                assert!(event.data.len() <= MAX && !event.data.contains(&b'\r'));
                assert!(!event.data.is_empty() || event.id.is_some());
                &event.id
            }
            Step::Skipped { len, id, .. } => {
                assert!(*len > MAX as u64);
                id
            }
        };
        assert!(id.iter().all(|id| id.len() <= MAX_ID && !id.iter().any(|byte| b"\0\r\n".contains(byte))));
    }
    (steps, last, reader.retry())
}

fuzz_target!(|data: &[u8]| {
    let Some((&chunk, stream)) = data.split_first() else { return };
    assert_eq!(read(stream, usize::from(chunk) + 1), read(stream, stream.len().max(1)));
});
