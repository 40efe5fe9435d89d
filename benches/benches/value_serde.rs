//! The value codec by way of serde: trees to bytes in a reused buffer and back, and a validating walk, beside other JSON
//! libraries, MessagePack, CBOR and a memcpy of the text.
//!
//! Encoders get the same `serde_json::Value`. Decoders make one, except where a row says otherwise: `ignored` keeps nothing,
//! `tape` is the codec's own walk, `dom` is the tree that the library makes for itself.

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use lumen_proto::value::tape::Tape;
use lumen_proto::value::{dict, from_slice, to_buf, to_vec};
use serde::de::IgnoredAny;
use serde_json::Value;

fn encode(criterion: &mut Criterion) {
    for (row, text) in lumen_benches::rows() {
        let mut group = criterion.benchmark_group(format!("value/encode/{row}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let tree: Value = serde_json::from_str(&text).unwrap();
        let mut out = Vec::new();
        group.bench_function("lumen", |bencher| {
            bencher.iter(|| {
                out.clear();
                to_buf(black_box(&tree), &mut out)
            });
        });
        group.bench_function("serde_json", |bencher| {
            bencher.iter(|| serde_json::to_vec(black_box(&tree)).map(drop));
        });
        group.bench_function("serde_json_reused", |bencher| {
            bencher.iter(|| {
                out.clear();
                serde_json::to_writer(&mut out, black_box(&tree))
            });
        });
        group.bench_function("simd_json", |bencher| {
            bencher.iter(|| {
                out.clear();
                simd_json::to_writer(&mut out, black_box(&tree))
            });
        });
        group.bench_function("sonic_rs", |bencher| {
            bencher.iter(|| {
                out.clear();
                sonic_rs::to_writer(&mut out, black_box(&tree))
            });
        });
        group.bench_function("rmp_serde", |bencher| {
            bencher.iter(|| {
                out.clear();
                rmp_serde::encode::write(&mut out, black_box(&tree))
            });
        });
        group.bench_function("ciborium", |bencher| {
            bencher.iter(|| {
                out.clear();
                ciborium::into_writer(black_box(&tree), &mut out)
            });
        });
        memcpy(&mut group, &text);
        group.finish();
    }
}

fn decode(criterion: &mut Criterion) {
    for (row, text) in lumen_benches::rows() {
        let mut group = criterion.benchmark_group(format!("value/decode/{row}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let tree = serde_json::from_str::<Value>(&text).unwrap();
        let bytes = to_vec(&tree).unwrap();
        let mut tape = Tape::new();
        group.bench_function("lumen_tape", |bencher| bencher.iter(|| tape.parse(black_box(&bytes), None)));
        group.bench_function("lumen", |bencher| {
            bencher.iter(|| from_slice::<Value>(black_box(&bytes)).map(drop));
        });
        group.bench_function("lumen_ignored", |bencher| {
            bencher.iter(|| from_slice::<IgnoredAny>(black_box(&bytes)).map(drop));
        });
        group.bench_function("serde_json", |bencher| {
            bencher.iter(|| serde_json::from_str::<Value>(black_box(&text)).map(drop));
        });
        // It writes into its input, so it gets a copy each time.
        let mut copy = Vec::new();
        group.bench_function("simd_json_dom", |bencher| {
            bencher.iter(|| {
                copy.clear();
                copy.extend_from_slice(black_box(text.as_bytes()));
                simd_json::to_borrowed_value(&mut copy).map(drop)
            });
        });
        group.bench_function("sonic_rs", |bencher| {
            bencher.iter(|| sonic_rs::from_str::<Value>(black_box(&text)).map(drop));
        });
        group.bench_function("sonic_rs_dom", |bencher| {
            bencher.iter(|| sonic_rs::from_str::<sonic_rs::Value>(black_box(&text)).map(drop));
        });
        let packed = rmp_serde::to_vec(&tree).unwrap();
        group.bench_function("rmp_serde", |bencher| {
            bencher.iter(|| rmp_serde::from_slice::<Value>(black_box(&packed)).map(drop));
        });
        let mut cbor = Vec::new();
        ciborium::into_writer(&tree, &mut cbor).unwrap();
        group.bench_function("ciborium", |bencher| {
            bencher.iter(|| ciborium::from_reader::<Value, _>(black_box(cbor.as_slice())).map(drop));
        });
        memcpy(&mut group, &text);
        group.finish();
    }
}

fn memcpy(group: &mut BenchmarkGroup<'_, WallTime>, text: &str) {
    let mut out = Vec::new();
    group.bench_function("memcpy", |bencher| {
        bencher.iter(|| {
            out.clear();
            out.extend_from_slice(black_box(text.as_bytes()));
        });
    });
}

fn dictionary(criterion: &mut Criterion) {
    // Half of them are words.
    let words =
        ["tool", "path/to/something", "jsonrpc", "hello", "frequency_penalty", "tools/call", "id", "idle"];
    let mut group = criterion.benchmark_group("value/dictionary");
    group.throughput(Throughput::Elements(words.len() as u64));
    group.bench_function("static_id", |bencher| {
        bencher.iter(|| black_box(words).map(|word| dict::static_id(word.as_bytes())));
    });
    group.finish();
}

criterion_group!(benches, encode, decode, dictionary);
criterion_main!(benches);
