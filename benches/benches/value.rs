//! The value codec: JSON text to LUMEN and back with no tree in between, beside the same by way of a serde_json
//! `Value`; the validating walk beside serde_json reading the same document; and a memcpy of the text.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lumen_proto::value::tape::Tape;
use lumen_proto::value::transcode::Transcoder;
use lumen_proto::value::{Invalid, Reader, Text, encode, tag};
use serde_json::{Map, Number, Value};

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
                write(&serde_json::from_slice(black_box(text)).unwrap(), &mut out);
                out.len()
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
                let value = read(&mut Reader::new(black_box(&bytes))).unwrap();
                serde_json::to_writer(&mut out, &value).unwrap();
                out.len()
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
        group.bench_function("to_value", |bencher| {
            bencher.iter(|| read(&mut Reader::new(black_box(&bytes))).map(drop));
        });
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

/// The second half of the way to LUMEN through a tree.
fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => encode::null(out),
        Value::Bool(value) => encode::bool(*value, out),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => encode::int(int, out),
            (None, float) => encode::float(float.unwrap_or_default(), out),
        },
        Value::String(text) => encode::str(text, out),
        Value::Array(elements) => {
            encode::array(elements.len(), out);
            elements.iter().for_each(|element| write(element, out));
        }
        Value::Object(members) => {
            encode::object(members.len(), out);
            for (key, value) in members {
                encode::key(key, out);
                write(value, out);
            }
        }
    }
}

/// The first half of the way from LUMEN through a tree.
fn read(reader: &mut Reader<'_>) -> Result<Value, Invalid> {
    Ok(match reader.byte()? {
        tag::BOOL => Value::Bool(reader.bool()?),
        tag::INT => Value::from(reader.int()?),
        tag::FLOAT => Number::from_f64(reader.float()?).map_or(Value::Null, Value::Number),
        tag::WORD => Value::String(owned(reader.word()?)),
        tag::STR => Value::String(reader.str()?.to_owned()),
        tag::ARRAY => {
            let count = reader.array()?;
            Value::Array((0..count).map(|_| read(reader)).collect::<Result<_, _>>()?)
        }
        tag::OBJECT => {
            let count = reader.object()?;
            let mut members = Map::new();
            for _ in 0..count {
                members.insert(owned(reader.key()?), read(reader)?);
            }
            Value::Object(members)
        }
        _ => Value::Null,
    })
}

fn owned(text: Text<'_>) -> String {
    match text {
        Text::Static(word) => word.to_owned(),
        Text::Inline(text) => text.to_owned(),
        Text::Session(id) => id.to_string(),
    }
}

criterion_group!(benches, from_json, to_json, tape);
criterion_main!(benches);
