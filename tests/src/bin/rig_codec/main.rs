//! Our side of the rig that compares the value codec with published implementations.
//!
//! - `rig_codec write exact|rs|py|ts COUNT`: makes up COUNT JSON-RPC messages, the same ones every time, and prints one
//!   line each: JSON text, the value in hex or `plain` if it is not for a receiver of this profile, the whole frame in
//!   hex. The parts are separated by tabs, of which the text has none.
//! - `rig_codec read`: reads a frame in hex from each line and prints the JSON text of its message.
//!
//! Any trouble ends it with a message and status 1.

mod messages;

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use bytes::BytesMut;
use lumen_proto::frame::{self, Assembler, Flags, Growing, Kind, Step};
use lumen_proto::jsonrpc::{self, Envelope};
use lumen_proto::limits::{MAX_MESSAGE, MAX_SKIP};
use lumen_proto::value::Profile;
use lumen_proto::value::transcode::Transcoder;

use self::messages::Messages;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut out = BufWriter::new(io::stdout().lock());
    let result = match args[..] {
        ["write", profile, count] => write(profile, count, &mut out),
        ["read"] => read(&mut out),
        _ => Err("usage: rig_codec write exact|rs|py|ts COUNT, or rig_codec read".into()),
    };
    match result.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rig_codec: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(profile: &str, count: &str, out: &mut impl Write) -> Outcome {
    let profile = match profile {
        "exact" => Profile::EXACT,
        "rs" => Profile::RS,
        "py" => Profile::PY,
        "ts" => Profile::TS,
        other => return Err(format!("no profile {other}").into()),
    };
    let mut transcoder = Transcoder::new();
    for text in Messages::new().take(count.parse()?) {
        let mut value = Vec::new();
        let fits = transcoder.encode(text.as_bytes(), &mut value).is_ok_and(|needs| profile.takes(&needs));
        let mut frame = BytesMut::new();
        if fits {
            frame::encode(kind(&text)?, Flags::COMPRESSED, &value, &mut frame);
        } else {
            frame::encode(kind(&text)?, Flags::NONE, text.as_bytes(), &mut frame);
        }
        let value = if fits { hex(&value) } else { "plain".into() };
        writeln!(out, "{text}\t{value}\t{}", hex(&frame))?;
    }
    Ok(())
}

fn kind(text: &str) -> Outcome<Kind> {
    let envelope =
        Envelope::parse(text.as_bytes()).map_err(|refused| format!("{:?}: {text}", refused.reason))?;
    match envelope.kind {
        jsonrpc::Kind::Request => Ok(Kind::REQUEST),
        jsonrpc::Kind::Response => Ok(Kind::RESPONSE),
        jsonrpc::Kind::Notification => Ok(Kind::NOTIFY),
        jsonrpc::Kind::Batch => Err("a batch was made up".into()),
    }
}

fn read(out: &mut impl Write) -> Outcome {
    let mut assembler = Assembler::with_limits(Growing::new(), MAX_MESSAGE as u64, MAX_SKIP);
    let mut transcoder = Transcoder::new();
    for (at, line) in io::stdin().lines().enumerate() {
        let text = message(&bytes(&line?)?, &mut assembler, &mut transcoder)
            .map_err(|error| format!("line {}: {error}", at + 1))?;
        out.write_all(&text)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn message(
    bytes: &[u8],
    assembler: &mut Assembler<Growing>,
    transcoder: &mut Transcoder,
) -> Outcome<Vec<u8>> {
    let mut rest = bytes;
    let Some(Step::Frame { header, payload }) = assembler.feed(&mut rest) else {
        return Err("no whole frame".into());
    };
    if !rest.is_empty() {
        return Err(format!("{} bytes after the frame", rest.len()).into());
    }
    match header.flags {
        Flags::NONE => Ok(payload.as_slice().to_vec()),
        Flags::COMPRESSED => {
            let mut text = Vec::new();
            transcoder
                .decode(payload.as_slice(), None, &mut text)
                .map_err(|invalid| format!("{invalid:?}"))?;
            Ok(text)
        }
        other => Err(format!("flags {other:?}").into()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Outcome<Vec<u8>> {
    let pairs = (0..hex.len()).step_by(2).map(|at| hex.get(at..at + 2).ok_or("half a byte"));
    pairs.map(|pair| Ok(u8::from_str_radix(pair?, 16)?)).collect()
}
