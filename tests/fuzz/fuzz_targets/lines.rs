//! Lines out of any bytes: the first byte chooses how the rest is cut up, and every way of cutting it up must give
//! what the whole gives.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use lumen_proto::Reason;
use lumen_proto::jsonrpc::{Lines, Scanned, Step};
use lumen_proto::limits::MAX_EXCERPT;

const MAX: usize = 512;
const MAX_SKIP: u64 = 2048;

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Line(Bytes),
    Noise(Bytes, u64),
    Skipped(u64, Scanned),
    Lost(Reason),
}

fn seen(step: Step<'_>) -> Seen {
    match step {
        Step::Line(text) => {
            let line = text.into_bytes();
            assert!(line.len() <= MAX && matches!(line.first(), Some(b'{' | b'[')) && !line.contains(&b'\n'));
            Seen::Line(line)
        }
        Step::Noise { excerpt, len } => {
            let excerpt = excerpt.into_bytes();
            assert_eq!(excerpt.len() as u64, len.min(MAX_EXCERPT as u64));
            Seen::Noise(excerpt, len)
        }
        Step::Skipped { len, scan } => {
            assert!(len > MAX as u64 && len <= MAX_SKIP);
            Seen::Skipped(len, scan)
        }
        Step::Lost(reason) => Seen::Lost(reason),
    }
}

fn read(stream: &[u8], chunk: usize) -> Vec<Seen> {
    let mut lines = Lines::with_limits(MAX, MAX_SKIP);
    let mut all = Vec::new();
    for mut piece in stream.chunks(chunk) {
        while let Some(step) = lines.feed(&mut piece) {
            all.push(seen(step));
        }
        assert!(piece.is_empty());
    }
    assert_eq!(lines.pending() > 0, lines.is_mid_line());
    all.extend(lines.finish().map(seen));
    all
}

fuzz_target!(|data: &[u8]| {
    let Some((&chunk, stream)) = data.split_first() else { return };
    assert_eq!(read(stream, usize::from(chunk) + 1), read(stream, stream.len().max(1)));
});
