//! Reading the envelope of a message, beside what serde_json needs for the same text: all of it as a `Value`, and
//! only the top level as raw slices (which checks grammar and UTF-8 too, and is the nearest match).

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lumen_proto::jsonrpc::Envelope;
use serde_json::Value;
use serde_json::value::RawValue;

fn envelope(criterion: &mut Criterion) {
    for (row, text) in lumen_benches::rows() {
        let mut group = criterion.benchmark_group(format!("envelope/{row}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let text = text.as_bytes();
        group.bench_function("lumen", |bencher| bencher.iter(|| Envelope::parse(black_box(text))));
        group.bench_function("serde_json_raw", |bencher| {
            bencher.iter(|| serde_json::from_slice::<BTreeMap<&str, &RawValue>>(black_box(text)).map(drop));
        });
        group.bench_function("serde_json_value", |bencher| {
            bencher.iter(|| serde_json::from_slice::<Value>(black_box(text)).map(drop));
        });
        group.finish();
    }
}

criterion_group!(benches, envelope);
criterion_main!(benches);
