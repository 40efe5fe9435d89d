//! The value codec: JSON text to LUMEN and back with no tree in between, beside the same by way of a serde_json
//! `Value`; the validating walk beside serde_json reading the same document; and a memcpy of the text.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lumen_proto::value::tape::Tape;
use lumen_proto::value::transcode::Transcoder;
use lumen_proto::value::{from_slice, to_buf};
use serde_json::Value;

fn from_json(criterion: &mut Criterion) {
    for (row, text) in lumen_benches::rows() {
        let mut group = criterion.benchmark_group(format!("value/from_json/{row}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let text = text.as_bytes();
        let mut out = Vec::new();
        let mut transcoder = Transcoder::new();
        group.bench_function("transcode", |bencher| {
            bencher.iter(|| {
                out.clear();
                transcoder.encode(black_box(text), &mut out)
            });
        });
        group.bench_function("by_value", |bencher| {
            bencher.iter(|| {
                out.clear();
                let value: Value = serde_json::from_slice(black_box(text)).unwrap();
                to_buf(&value, &mut out)
            });
        });
        group.finish();
    }
}

fn to_json(criterion: &mut Criterion) {
    for (row, text) in lumen_benches::rows() {
        let mut group = criterion.benchmark_group(format!("value/to_json/{row}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let mut transcoder = Transcoder::new();
        let mut bytes = Vec::new();
        transcoder.encode(text.as_bytes(), &mut bytes).unwrap();
        let mut out = Vec::new();
        group.bench_function("transcode", |bencher| {
            bencher.iter(|| {
                out.clear();
                transcoder.decode(black_box(&bytes), None, &mut out)
            });
        });
        group.bench_function("by_value", |bencher| {
            bencher.iter(|| {
                out.clear();
                let value: Value = from_slice(black_box(&bytes)).unwrap();
                serde_json::to_writer(&mut out, &value)
            });
        });
        group.finish();
    }
}

fn tape(criterion: &mut Criterion) {
    for (row, text) in lumen_benches::rows() {
        let mut group = criterion.benchmark_group(format!("value/tape/{row}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let mut bytes = Vec::new();
        Transcoder::new().encode(text.as_bytes(), &mut bytes).unwrap();
        let mut tape = Tape::new();
        group.bench_function("tape", |bencher| bencher.iter(|| tape.parse(black_box(&bytes), None)));
        group.bench_function("serde_json_value", |bencher| {
            bencher.iter(|| serde_json::from_str::<Value>(black_box(&text)).map(drop));
        });
        let mut out = Vec::new();
        group.bench_function("memcpy (reference)", |bencher| {
            bencher.iter(|| {
                out.clear();
                out.extend_from_slice(black_box(text.as_bytes()));
                black_box(&out).len()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, from_json, to_json, tape);
criterion_main!(benches);
