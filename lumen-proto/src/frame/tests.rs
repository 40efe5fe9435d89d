//! Tests of the floor as a whole: vectors, and the assembler against a naive reader.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::{Reason, varint};

/// Storage that shows what it was asked for.
#[derive(Debug, Default)]
struct Plain {
    bytes: Vec<u8>,
    announced: usize,
}

impl Storage for Plain {
    fn max_len(&self) -> u64 {
        u64::MAX
    }

    fn begin(&mut self, len: usize) {
        self.bytes.clear();
        self.announced = len;
    }

    fn append(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "an append that appends nothing");
        self.bytes.extend_from_slice(bytes);
        assert!(self.bytes.len() <= self.announced, "more than was announced");
    }

    fn finish(&mut self) -> Payload<'_> {
        assert_eq!(self.bytes.len(), self.announced);
        self.bytes.as_slice().into()
    }
}

/// What comes out of a stream, with the parts of a skipped payload put together.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Frame(Header, Vec<u8>),
    Skipped(Header, Vec<u8>, bool),
    Lost(Reason),
}

fn note(step: Step<'_>, seen: &mut Vec<Seen>) {
    match step {
        Step::Frame { header, payload } => seen.push(Seen::Frame(header, payload.to_vec())),
        Step::Skipped { header, chunk, end } => {
            assert!(!chunk.is_empty(), "a part of nothing");
            if let Some(Seen::Skipped(before, bytes, last @ false)) = seen.last_mut() {
                assert_eq!(*before, header);
                bytes.extend_from_slice(&chunk);
                *last = end;
            } else {
                seen.push(Seen::Skipped(header, chunk.to_vec(), end));
            }
        }
        Step::Lost(reason) => seen.push(Seen::Lost(reason)),
    }
}

/// Feeds `stream` in pieces of the lengths in `cuts`, taken in turn for ever.
fn feed<S: Storage>(assembler: &mut Assembler<S>, stream: &[u8], cuts: &[usize]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for mut piece in pieces(stream, cuts) {
        while let Some(step) = assembler.feed(&mut piece) {
            note(step, &mut seen);
        }
        assert!(piece.is_empty(), "None with input left");
    }
    seen
}

fn pieces<'i>(stream: &'i [u8], cuts: &[usize]) -> Vec<&'i [u8]> {
    let mut rest = stream;
    let mut all = Vec::new();
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (front, back) = rest.split_at((*cut).clamp(1, rest.len()));
        all.push(front);
        rest = back;
    }
    all
}

/// The obvious reader of a stream that is there as a whole; also returns what an unfinished frame has taken.
fn read_naively(stream: &[u8], max_message: u64, max_skip: u64) -> (Vec<Seen>, u64) {
    let mut seen = Vec::new();
    let mut rest = stream;
    loop {
        let len = match varint::decode(rest) {
            Err(reason) => {
                seen.push(Seen::Lost(reason));
                return (seen, 0);
            }
            Ok(None) => return (seen, rest.len() as u64),
            Ok(Some((len, _))) => len,
        };
        let skip = len > max_message;
        if skip && len > max_skip {
            seen.push(Seen::Lost(Reason::TooLongToSkip { max: max_skip }));
            return (seen, 0);
        }
        let Some((header, head)) = Header::decode(rest).unwrap() else { return (seen, rest.len() as u64) };
        let body = &rest[head..];
        let whole = body.len() as u64 >= len;
        let body = &body[..body.len().min(usize::try_from(len).unwrap_or(usize::MAX))];
        if skip && !body.is_empty() {
            seen.push(Seen::Skipped(header, body.to_vec(), whole));
        } else if whole {
            seen.push(Seen::Frame(header, body.to_vec()));
        }
        if !whole {
            return (seen, rest.len() as u64);
        }
        rest = &rest[head + body.len()..];
    }
}

fn frame(kind: Kind, flags: Flags, payload: &[u8]) -> Vec<u8> {
    let mut out = std::vec![0; MAX_HEADER_LEN + payload.len()];
    let len = encode_to_slice(kind, flags, payload, &mut out).unwrap();
    out.truncate(len);
    out
}

/// Whole frames: type, flags, payload, and what they are on the wire.
const VECTORS: &[(Kind, Flags, &[u8], &[u8])] = &[
    (Kind::HEARTBEAT, Flags::NONE, &[1, 0, 0, 0], &[0x04, 0x0a, 0x00, 1, 0, 0, 0]),
    (Kind::NOTIFY, Flags::NONE, b"hi", b"\x02\x03\x00hi"),
    (
        Kind::RESPONSE,
        Flags::COMPRESSED,
        &[0xe7, 0x01, 0x04, 0xe3, 0x02],
        &[0x05, 0x02, 0x01, 0xe7, 0x01, 0x04, 0xe3, 0x02],
    ),
    (Kind::REQUEST, Flags::NONE, b"", &[0x00, 0x01, 0x00]),
    (
        Kind::PROBE,
        Flags::NONE,
        b"{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n",
        b"\x2b\x0f\x00{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n",
    ),
    (Kind::FLOW_CTL, Flags::PAUSE, &[0x2a, 0, 0, 0, 0, 0], &[0x06, 0x0e, 0x01, 0x2a, 0, 0, 0, 0, 0]),
    (
        Kind::BATCH,
        Flags::NONE,
        b"\x02\x00\x04\x0a\x00\x01\x00\x00\x00\x02\x03\x00hi",
        b"\x0e\x0d\x00\x02\x00\x04\x0a\x00\x01\x00\x00\x00\x02\x03\x00hi",
    ),
    (Kind(0xfe), Flags(0xf0), b"x", b"\x01\xfe\xf0x"),
];

#[test]
fn writes_and_reads_the_vectors() {
    for &(kind, flags, payload, wire) in VECTORS {
        assert_eq!(frame(kind, flags, payload), wire);
        let header = Header { len: payload.len() as u64, kind, flags };
        let expected = [Seen::Frame(header, payload.to_vec())];
        for cut in 1..=wire.len() {
            let mut assembler = Assembler::with_limits(Plain::default(), 1 << 20, 1 << 20);
            assert_eq!(feed(&mut assembler, wire, &[cut]), expected, "{wire:02x?} cut by {cut}");
        }
    }
}

#[test]
fn overhead_is_three_five_or_seven_bytes() {
    for (len, head) in [(0, 3), (63, 3), (64, 5), (65_535, 5), (65_536, 7), (u32::MAX.into(), 7)] {
        let header = Header { len, kind: Kind::REQUEST, flags: Flags::NONE };
        let mut out = [0; MAX_HEADER_LEN];
        assert_eq!(header.encode(&mut out), head);
        assert_eq!(header.encoded_len(), head);
        assert_eq!(Header::decode(&out), Ok(Some((header, head))));
        assert_eq!(Header::decode(&out[..head - 1]), Ok(None));
        assert_eq!(Header::decode(&out[..head - 2]), Ok(None));
    }
    let longest = Header { len: u64::MAX, kind: Kind(0xff), flags: Flags(0xff) };
    let mut out = [0; MAX_HEADER_LEN];
    assert_eq!(longest.encode(&mut out), MAX_HEADER_LEN);
    assert_eq!(Header::decode(&out), Ok(Some((longest, MAX_HEADER_LEN))));
}

#[test]
fn a_frame_that_does_not_fit_a_slice_leaves_it_alone() {
    let mut out = [0xee; 4];
    assert_eq!(encode_to_slice(Kind::NOTIFY, Flags::NONE, b"hi", &mut out), None);
    assert_eq!(out, [0xee; 4]);
}

#[test]
fn a_payload_that_lies_in_the_input_is_borrowed() {
    let wire = frame(Kind::REQUEST, Flags::NONE, &[7; 100]);
    let (head, body) = wire.split_at(5);
    let mut assembler = Assembler::with_limits(Plain::default(), 1000, 1000);
    let mut input = head;
    assert!(assembler.feed(&mut input).is_none());
    assert_eq!((assembler.pending(), assembler.is_mid_frame()), (5, true));
    let mut input = body;
    let Some(Step::Frame { payload, .. }) = assembler.feed(&mut input) else { panic!("no frame") };
    assert_eq!(payload.as_ptr(), body.as_ptr());
    assert_eq!((assembler.pending(), assembler.is_mid_frame()), (0, false));
}

#[test]
fn pending_counts_header_and_payload() {
    let wire = frame(Kind::REQUEST, Flags::NONE, &[7; 100]);
    for max in [1000, 10] {
        let mut assembler = Assembler::with_limits(Plain::default(), max, 1000);
        for at in 1..wire.len() {
            let mut input = &wire[at - 1..at];
            while assembler.feed(&mut input).is_some() {}
            assert_eq!(assembler.pending(), at as u64, "max {max}");
        }
    }
}

#[test]
fn a_length_above_the_limit_is_skipped_without_storing() {
    let mut stream = frame(Kind::RESPONSE, Flags::NONE, &[9; 101]);
    stream.extend(frame(Kind::NOTIFY, Flags::NONE, &[8; 100]));
    let skipped = Header { len: 101, kind: Kind::RESPONSE, flags: Flags::NONE };
    let kept = Header { len: 100, kind: Kind::NOTIFY, flags: Flags::NONE };
    for cut in [1, 3, 50, 1000] {
        let mut assembler = Assembler::with_limits(Plain::default(), 100, 101);
        let seen = feed(&mut assembler, &stream, &[cut]);
        let expected =
            [Seen::Skipped(skipped, [9; 101].to_vec(), true), Seen::Frame(kept, [8; 100].to_vec())];
        assert_eq!(seen, expected, "cut by {cut}");
    }
}

#[test]
fn a_length_above_the_skip_limit_ends_it_before_type_and_flags() {
    let mut assembler = Assembler::with_limits(Plain::default(), 100, 200);
    let mut input: &[u8] = &[0x80, 201, 0];
    let Some(Step::Lost(reason)) = assembler.feed(&mut input) else { panic!("not lost") };
    assert_eq!(reason, Reason::TooLongToSkip { max: 200 });
    assert!(!assembler.is_mid_frame());
    // Inert: swallows what follows, also what would be a frame.
    assert_eq!(feed(&mut assembler, b"\x02\x03\x00hi\xff", &[2]), []);
}

#[test]
fn a_length_that_is_none_ends_it() {
    for lead in 0x41..=0x7f_u8 {
        let mut assembler = Assembler::with_limits(Plain::default(), 100, 200);
        let stream = [0x00, 0x01, 0x00, lead, 0x01, 0x00];
        let empty = Header { len: 0, kind: Kind::REQUEST, flags: Flags::NONE };
        let expected = [Seen::Frame(empty, Vec::new()), Seen::Lost(Reason::BadLength)];
        assert_eq!(feed(&mut assembler, &stream, &[1]), expected);
    }
    let mut wire = [0xff; 20];
    wire[0] = 0x40;
    let mut assembler = Assembler::with_limits(Plain::default(), u64::MAX, u64::MAX);
    assert_eq!(feed(&mut assembler, &wire, &[1]), [Seen::Lost(Reason::BadLength)]);
}

#[test]
fn the_largest_length_is_skipped_without_overflow() {
    let mut wire = [0; MAX_HEADER_LEN];
    Header { len: u64::MAX, kind: Kind::NOTIFY, flags: Flags::NONE }.encode(&mut wire);
    let mut assembler = Assembler::with_limits(Plain::default(), u64::MAX, u64::MAX);
    assert_eq!(feed(&mut assembler, &wire, &[4]), []);
    assert!(matches!(&feed(&mut assembler, &[1; 300], &[7])[..], [Seen::Skipped(_, _, false)]));
    assert_eq!(assembler.pending(), 313);
}

#[cfg(feature = "heapless")]
#[test]
fn fixed_storage_skips_what_it_cannot_hold() {
    let mut assembler = Assembler::with_limits(heapless::Vec::<u8, 4>::new(), 1000, 1000);
    let mut stream = frame(Kind::NOTIFY, Flags::NONE, b"12345");
    stream.extend(frame(Kind::NOTIFY, Flags::NONE, b"1234"));
    for cut in [1, 1000] {
        let seen = feed(&mut assembler, &stream, &[cut]);
        assert!(matches!(&seen[..], [Seen::Skipped(_, _, true), Seen::Frame(_, _)]), "{seen:?}");
    }
}

#[cfg(feature = "alloc")]
mod growing {
    use bytes::{Bytes, BytesMut};

    use super::*;
    use crate::limits::COPY_BELOW;

    #[test]
    fn appends_whole_frames() {
        let mut out = BytesMut::new();
        let mut expected = Vec::new();
        for &(kind, flags, payload, wire) in VECTORS {
            encode(kind, flags, payload, &mut out);
            expected.extend_from_slice(wire);
        }
        encode_header(Header { len: 70_000, kind: Kind::REQUEST, flags: Flags::PRIORITY }, &mut out);
        expected.extend([0xc0, 0x70, 0x11, 0x01, 0x00, 0x01, 0x04]);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_stored_payload_moves_out_without_a_copy() {
        let wire = frame(Kind::REQUEST, Flags::NONE, &[7; COPY_BELOW]);
        let mut assembler = Assembler::with_limits(Growing::new(), 1 << 20, 1 << 20);
        for mut piece in pieces(&wire, &[1000]) {
            if let Some(Step::Frame { payload, .. }) = assembler.feed(&mut piece) {
                let at = payload.as_ptr();
                let bytes = payload.into_bytes();
                assert_eq!(bytes.as_ptr(), at);
                assert_eq!(bytes, [7; COPY_BELOW][..]);
                return;
            }
        }
        panic!("no frame");
    }

    #[test]
    fn a_large_payload_is_a_slice_of_the_block_and_a_small_one_is_not() {
        let large = frame(Kind::REQUEST, Flags::NONE, &[7; COPY_BELOW]);
        let small = frame(Kind::REQUEST, Flags::NONE, &[8; COPY_BELOW - 1]);
        let block = Bytes::from([large, small].concat());
        let range = block.as_ptr_range();
        let mut assembler = Assembler::with_limits(Growing::new(), 1 << 20, 1 << 20);
        let mut input = block.clone();
        let mut within = Vec::new();
        while let Some(step) = assembler.feed_bytes(&mut input) {
            let Step::Frame { payload, .. } = step else { panic!("no frame") };
            assert!(range.contains(&payload.as_ptr()));
            within.push(range.contains(&payload.into_bytes().as_ptr()));
        }
        assert_eq!(within, [true, false]);
        assert!(input.is_empty());
    }

    fn feed_blocks(assembler: &mut Assembler<Growing>, stream: &[u8], cuts: &[usize]) -> Vec<Seen> {
        let mut seen = Vec::new();
        for piece in pieces(stream, cuts) {
            let mut block = Bytes::copy_from_slice(piece);
            while let Some(step) = assembler.feed_bytes(&mut block) {
                note(step, &mut seen);
            }
            assert!(block.is_empty(), "None with input left");
        }
        seen
    }

    proptest! {
        #[test]
        fn blocks_and_slices_agree(stream in streams(), cuts in cuts()) {
            let (expected, pending) = read_naively(&stream, MAX, SKIP);
            let mut blocks = Assembler::with_limits(Growing::new(), MAX, SKIP);
            prop_assert_eq!(&feed_blocks(&mut blocks, &stream, &cuts), &expected);
            prop_assert_eq!(blocks.pending(), pending);
            let mut slices = Assembler::with_limits(Growing::new(), MAX, SKIP);
            prop_assert_eq!(&feed(&mut slices, &stream, &cuts), &expected);
        }
    }
}

/// The limits in the property tests: above and below them lies something of every kind.
const MAX: u64 = 300;
const SKIP: u64 = 900;

/// One frame, sometimes with a length in a longer form, sometimes nonsense.
fn parts() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..70),
        2 => prop::collection::vec(any::<u8>(), 280..320),
        1 => prop::collection::vec(any::<u8>(), 880..920),
    ];
    let framed = (any::<u8>(), any::<u8>(), payload, 0..8u8).prop_map(|(kind, flags, payload, form)| {
        let mut out = Vec::new();
        let len = u32::try_from(payload.len()).unwrap();
        match form {
            0 => {
                out.push(0xc0);
                out.extend(len.to_le_bytes());
            }
            1 => out.extend([0x40, (len & 0x7f) as u8 | 0x80, (len >> 7 & 0x7f) as u8 | 0x80, 0x80, 0x00]),
            _ => return frame(Kind(kind), Flags(flags), &payload),
        }
        out.extend([kind, flags]);
        out.extend(payload);
        out
    });
    prop_oneof![
        30 => framed,
        1 => prop::collection::vec(any::<u8>(), 1..20),
    ]
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(parts(), 0..12), any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(parts, at, cut_off)| {
            let mut stream = parts.concat();
            if cut_off && !stream.is_empty() {
                stream.truncate(at.index(stream.len()));
            }
            stream
        },
    )
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        1 => Just([1].to_vec()),
        1 => Just([usize::MAX].to_vec()),
        6 => prop::collection::vec(1usize..400, 1..20),
        3 => prop::collection::vec(1usize..6, 1..20),
    ]
}

proptest! {
    #[test]
    fn any_chunking_reads_what_the_naive_reader_reads(stream in streams(), cuts in cuts()) {
        let (expected, pending) = read_naively(&stream, MAX, SKIP);
        let mut plain = Assembler::with_limits(Plain::default(), MAX, SKIP);
        prop_assert_eq!(&feed(&mut plain, &stream, &cuts), &expected);
        prop_assert_eq!(plain.pending(), pending);
        #[cfg(feature = "heapless")]
        {
            let storage = heapless::Vec::<u8, 300>::new();
            prop_assert_eq!(storage.max_len(), MAX);
            let mut fixed = Assembler::with_limits(storage, u64::MAX, SKIP);
            prop_assert_eq!(&feed(&mut fixed, &stream, &cuts), &expected);
            prop_assert_eq!(fixed.pending(), pending);
        }
    }

    #[test]
    fn random_bytes_do_not_panic(stream: Vec<u8>, cuts in cuts(), max: u64, skip: u64) {
        let (expected, _) = read_naively(&stream, max.min(i64::MAX as u64), skip);
        let mut assembler = Assembler::with_limits(Plain::default(), max, skip);
        prop_assert_eq!(feed(&mut assembler, &stream, &cuts), expected);
    }
}
