//! Frames written, and taken out of a stream that comes whole, in pieces of a TCP segment, and byte by byte;
//! beside each a memcpy of the same bytes.

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use lumen_proto::frame::{Assembler, Flags, Growing, Kind, Step, encode};
use lumen_proto::limits::{MAX_MESSAGE, MAX_SKIP};

const SIZES: [(&str, usize); 3] = [("64 B", 64), ("4 KiB", 4096), ("1 MiB", 1 << 20)];

fn wire(size: usize) -> BytesMut {
    let mut out = BytesMut::new();
    encode(Kind::REQUEST, Flags::NONE, &vec![0x20; size], &mut out);
    out
}

fn assembler() -> Assembler<Growing> {
    Assembler::with_limits(Growing::new(), MAX_MESSAGE as u64, MAX_SKIP)
}

fn bench_encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame/encode");
    for (name, size) in SIZES {
        let payload = vec![0x20; size];
        group.throughput(Throughput::Bytes(size as u64));
        let mut out = BytesMut::with_capacity(size + 16);
        group.bench_function(BenchmarkId::new("encode", name), |b| {
            b.iter(|| {
                out.clear();
                encode(Kind::REQUEST, Flags::NONE, black_box(&payload), &mut out);
                black_box(&out).len()
            });
        });
        group.bench_function(BenchmarkId::new("memcpy (reference)", name), |b| {
            b.iter(|| {
                out.clear();
                out.extend_from_slice(black_box(&payload));
                black_box(&out).len()
            });
        });
    }
    group.finish();
}

fn bench_assemble(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame/assemble");
    group.sampling_mode(SamplingMode::Flat).sample_size(20);
    for (name, size) in SIZES {
        let wire = wire(size).freeze();
        group.throughput(Throughput::Bytes(wire.len() as u64));
        for (cut, chunk) in [("whole", usize::MAX), ("1460-byte pieces", 1460), ("1-byte pieces", 1)] {
            let mut assembler = assembler();
            group.bench_function(BenchmarkId::new(cut, name), |b| {
                b.iter(|| {
                    let mut seen = 0;
                    for mut piece in black_box(&wire[..]).chunks(chunk.min(wire.len())) {
                        while let Some(step) = assembler.feed(&mut piece) {
                            if let Step::Frame { payload, .. } = step {
                                seen += black_box(payload.as_slice()).len();
                            }
                        }
                    }
                    assert_eq!(seen, size);
                });
            });
        }
        let mut assembler = assembler();
        group.bench_function(BenchmarkId::new("whole, kept as Bytes", name), |b| {
            b.iter(|| {
                let mut input: Bytes = black_box(&wire).clone();
                let Some(Step::Frame { payload, .. }) = assembler.feed_bytes(&mut input) else {
                    return Bytes::new();
                };
                payload.into_bytes()
            });
        });
        let mut copy = Vec::with_capacity(wire.len());
        group.bench_function(BenchmarkId::new("memcpy (reference)", name), |b| {
            b.iter(|| {
                copy.clear();
                copy.extend_from_slice(black_box(&wire));
                black_box(&copy).len()
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().without_plots();
    targets = bench_encode, bench_assemble
}
criterion_main!(benches);
