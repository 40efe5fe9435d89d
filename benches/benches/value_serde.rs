//! The value codec by way of serde: trees to bytes in a reused buffer and back, beside serde_json; reading without
//! keeping anything, which is what the codec itself costs; and a memcpy of the text.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
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
        group.bench_function("memcpy", |bencher| {
            bencher.iter(|| {
                out.clear();
                out.extend_from_slice(black_box(text.as_bytes()));
            });
        });
        group.finish();
    }
}

fn decode(criterion: &mut Criterion) {
    for (row, text) in lumen_benches::rows() {
        let mut group = criterion.benchmark_group(format!("value/decode/{row}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let bytes = to_vec(&serde_json::from_str::<Value>(&text).unwrap()).unwrap();
        group.bench_function("lumen", |bencher| {
            bencher.iter(|| from_slice::<Value>(black_box(&bytes)).map(drop));
        });
        group.bench_function("lumen_ignored", |bencher| {
            bencher.iter(|| from_slice::<IgnoredAny>(black_box(&bytes)).map(drop));
        });
        group.bench_function("serde_json", |bencher| {
            bencher.iter(|| serde_json::from_str::<Value>(black_box(&text)).map(drop));
        });
        group.finish();
    }
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
