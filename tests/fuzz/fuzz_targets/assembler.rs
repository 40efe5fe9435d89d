//! Frames out of any bytes: the first byte chooses how the rest is cut up, and every way of cutting it up must
//! give what the whole gives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lumen_proto::frame::{Assembler, Growing, Header, Step};
use lumen_proto::{Reason, limits::COPY_BELOW};

const MAX_MESSAGE: u64 = 2 * COPY_BELOW as u64;
const MAX_SKIP: u64 = 4 * COPY_BELOW as u64;

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Frame(Header, Vec<u8>),
    Skipped(Header, Vec<u8>, bool),
    Lost(Reason),
}

fn read(stream: &[u8], chunk: usize) -> (Vec<Seen>, u64) {
    let mut assembler = Assembler::with_limits(Growing::new(), MAX_MESSAGE, MAX_SKIP);
    let mut seen = Vec::new();
    for mut piece in stream.chunks(chunk) {
        while let Some(step) = assembler.feed(&mut piece) {
            match step {
                Step::Frame { header, payload } => {
                    assert_eq!(header.len, payload.len() as u64);
                    seen.push(Seen::Frame(header, payload.to_vec()));
                }
                Step::Skipped { header, chunk, end } => match seen.last_mut() {
                    Some(Seen::Skipped(_, bytes, last @ false)) => {
                        bytes.extend_from_slice(&chunk);
                        *last = end;
                    }
                    _ => seen.push(Seen::Skipped(header, chunk.to_vec(), end)),
                },
                Step::Lost(reason) => seen.push(Seen::Lost(reason)),
            }
        }
        assert!(piece.is_empty());
    }
    (seen, assembler.pending())
}

fuzz_target!(|data: &[u8]| {
    let Some((&chunk, stream)) = data.split_first() else { return };
    assert_eq!(read(stream, usize::from(chunk) + 1), read(stream, stream.len().max(1)));
});
