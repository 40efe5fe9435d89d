//! How many allocations each way of the value codec and of its neighbours takes for a message, once its buffers have
//! grown: a table on standard output. What is promised to take none is checked.
#![expect(
    unsafe_code,
    reason = "a global allocator is an unsafe trait; this one counts and hands on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use lumen_proto::value::tape::Tape;
use lumen_proto::value::transcode::Transcoder;
use lumen_proto::value::{from_slice, to_buf, to_vec};
use serde_json::Value;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system allocator with its arguments unchanged; the counter beside it
// neither allocates nor touches the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System` with this layout, as everything here does.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: `block` came from `System` with this layout, and the caller vouches for `size`.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts a second run: the first one grows what is used again.
fn count<T>(mut run: impl FnMut() -> T) -> usize {
    black_box(run());
    let before = ALLOCATIONS.load(Relaxed);
    black_box(run());
    ALLOCATIONS.load(Relaxed) - before
}

/// The ways in their order, with the allocations for each of `texts`.
fn table(texts: &[(&str, String)]) -> Vec<(&'static str, Vec<usize>)> {
    let mut table: Vec<(&str, Vec<usize>)> = Vec::new();
    for (_, text) in texts {
        for (at, (way, count)) in ways(text).into_iter().enumerate() {
            if table.len() == at {
                table.push((way, Vec::new()));
            }
            table[at].1.push(count);
        }
    }
    table
}

fn ways(text: &str) -> Vec<(&'static str, usize)> {
    let tree: Value = serde_json::from_str(text).unwrap();
    let bytes = to_vec(&tree).unwrap();
    let packed = rmp_serde::to_vec(&tree).unwrap();
    let mut cbor = Vec::new();
    ciborium::into_writer(&tree, &mut cbor).unwrap();
    let mut transcoder = Transcoder::new();
    let mut tape = Tape::new();
    let mut out = Vec::new();
    let encode = [
        ("encode: lumen", count(|| to_buf(&tree, cleared(&mut out)))),
        ("encode: serde_json", count(|| serde_json::to_writer(cleared(&mut out), &tree))),
        ("encode: simd-json", count(|| simd_json::to_writer(cleared(&mut out), &tree))),
        ("encode: sonic-rs", count(|| sonic_rs::to_writer(cleared(&mut out), &tree))),
        ("encode: rmp-serde", count(|| rmp_serde::encode::write(cleared(&mut out), &tree))),
        ("encode: ciborium", count(|| ciborium::into_writer(&tree, cleared(&mut out)))),
    ];
    let decode = [
        ("decode: lumen tape", count(|| tape.parse(&bytes, None))),
        ("decode: lumen", count(|| from_slice::<Value>(&bytes))),
        ("decode: serde_json", count(|| serde_json::from_str::<Value>(text))),
        (
            "decode: simd-json DOM",
            count(|| {
                cleared(&mut out).extend_from_slice(text.as_bytes());
                simd_json::to_borrowed_value(&mut out).map(drop)
            }),
        ),
        ("decode: sonic-rs DOM", count(|| sonic_rs::from_str::<sonic_rs::Value>(text))),
        ("decode: rmp-serde", count(|| rmp_serde::from_slice::<Value>(&packed))),
        ("decode: ciborium", count(|| ciborium::from_reader::<Value, _>(cbor.as_slice()))),
    ];
    let transcode = [
        ("JSON to lumen", count(|| transcoder.encode(text.as_bytes(), cleared(&mut out)))),
        (
            "JSON to lumen by Value",
            count(|| to_buf(&serde_json::from_str::<Value>(text).unwrap(), cleared(&mut out))),
        ),
        ("lumen to JSON", count(|| transcoder.decode(&bytes, None, cleared(&mut out)))),
        (
            "lumen to JSON by Value",
            count(|| serde_json::to_writer(cleared(&mut out), &from_slice::<Value>(&bytes).unwrap())),
        ),
    ];
    encode.into_iter().chain(decode).chain(transcode).collect()
}

fn cleared(out: &mut Vec<u8>) -> &mut Vec<u8> {
    out.clear();
    out
}

fn main() {
    let texts = lumen_benches::rows();
    let table = table(&texts);
    print!("{:<24}", "allocations");
    texts.iter().for_each(|(name, _)| print!(" {name:>12}"));
    println!();
    for (way, counts) in &table {
        print!("{way:<24}");
        counts.iter().for_each(|count| print!(" {count:>12}"));
        println!();
    }
    for way in ["encode: lumen", "decode: lumen tape", "JSON to lumen", "lumen to JSON"] {
        let (_, counts) = table.iter().find(|(name, _)| *name == way).unwrap();
        assert!(counts.iter().all(|count| *count == 0), "{way} allocates: {counts:?}");
    }
    let (_, counts) = table.iter().find(|(name, _)| *name == "decode: serde_json").unwrap();
    assert!(counts.iter().all(|count| *count > 0), "the counter counts: {counts:?}");
}
