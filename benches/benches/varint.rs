//! Hyb128 in its four forms against plain LEB128 over the same values: 1,024 values an iteration.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lumen_proto::varint;

const COUNT: usize = 1024;

/// The forms, and the values each is emitted for.
const FORMS: [(&str, u64, u64); 4] = [
    ("1 byte", 0, 63),
    ("3 bytes", 64, 65_535),
    ("5 bytes", 65_536, u32::MAX as u64),
    ("6 to 11 bytes", 1 << 32, u64::MAX),
];

/// Values from all over a range, of every bit length in it, the same in every run.
fn values(low: u64, high: u64) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut values = Vec::with_capacity(COUNT);
    while values.len() < COUNT {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let value = (state >> 8 >> (state % 56)).wrapping_mul(0x101) & (u64::MAX >> high.leading_zeros());
        if (low..=high).contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The reference: LEB128 with nothing before it.
mod leb128 {
    pub fn encode(mut value: u64, out: &mut [u8; 11]) -> usize {
        let mut at = 0;
        while value > 0x7f {
            out[at] = value.to_le_bytes()[0] | 0x80;
            value >>= 7;
            at += 1;
        }
        out[at] = value.to_le_bytes()[0];
        at + 1
    }

    pub fn decode(bytes: &[u8]) -> Option<(u64, usize)> {
        let mut value = 0;
        for (at, byte) in bytes.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                return Some((value, at + 1));
            }
        }
        None
    }
}

fn encoded(values: &[u64], encode: impl Fn(u64, &mut [u8; 11]) -> usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for &value in values {
        let mut out = [0; 11];
        let len = encode(value, &mut out);
        wire.extend_from_slice(&out[..len]);
    }
    wire
}

fn bench_encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("varint/encode");
    group.throughput(Throughput::Elements(COUNT as u64));
    for (form, low, high) in FORMS {
        let values = values(low, high);
        let mut run = |name, encode: fn(u64, &mut [u8; 11]) -> usize| {
            group.bench_function(BenchmarkId::new(name, form), |b| {
                b.iter(|| {
                    let mut sum = 0;
                    for &value in black_box(&values) {
                        let mut out = [0; varint::MAX_LEN];
                        sum += encode(value, &mut out);
                        black_box(&out);
                    }
                    sum
                });
            });
        };
        run("hyb128", varint::encode);
        run("leb128 (reference)", leb128::encode);
    }
    group.finish();
}

fn bench_decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("varint/decode");
    group.throughput(Throughput::Elements(COUNT as u64));
    for (form, low, high) in FORMS {
        let values = values(low, high);
        let wire = encoded(&values, varint::encode);
        group.bench_function(BenchmarkId::new("hyb128", form), |b| {
            b.iter(|| {
                let (mut rest, mut sum) = (black_box(&wire[..]), 0u64);
                while let Ok(Some((value, len))) = varint::decode(rest) {
                    sum = sum.wrapping_add(value);
                    rest = &rest[len..];
                }
                sum
            });
        });
        let wire = encoded(&values, leb128::encode);
        group.bench_function(BenchmarkId::new("leb128 (reference)", form), |b| {
            b.iter(|| {
                let (mut rest, mut sum) = (black_box(&wire[..]), 0u64);
                while let Some((value, len)) = leb128::decode(rest) {
                    sum = sum.wrapping_add(value);
                    rest = &rest[len..];
                }
                sum
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().without_plots();
    targets = bench_encode, bench_decode
}
criterion_main!(benches);
