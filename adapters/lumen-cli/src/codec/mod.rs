//! `encode` and `decode`: JSON text to LUMEN and back, from stdin or a file to stdout or a file.
//!
//! Both go through their input once and hold one message at a time.

mod decode;
mod encode;
mod files;

use lumen_proto::limits::{MAX_MESSAGE, READ_CHUNK};
use lumen_proto::value::Profile;

use crate::args::{Decode, Encode};
use crate::exit::Exit;
use crate::report::say;
use files::{Sink, Source};

/// Memory for one message that is kept for the next; more is given back.
const KEPT: usize = 1024 * 1024;

/// Why a conversion ends before the end of its input.
#[derive(Debug)]
enum Stop {
    /// Nobody reads the output any more, which is a normal end.
    NoReader,
    /// The command line cannot be meant like this; says why, and what to try.
    Usage(String),
    /// It cannot go on; says why, and what to try.
    Failed(String),
}

pub(crate) fn encode(args: &Encode) -> Exit {
    finish(try_encode(args))
}

pub(crate) fn decode(args: &Decode) -> Exit {
    finish(try_decode(args))
}

fn try_encode(args: &Encode) -> Result<(), Stop> {
    let (mut source, mut sink) = files::open(&args.files)?;
    if args.files.output.is_none() && sink.is_terminal() {
        return Err(Stop::Usage(
            "frames are not written to a terminal; pipe them on, or -o FILE; -o - writes them all the same"
                .to_owned(),
        ));
    }
    let profile = if args.exact { Profile::EXACT } else { Profile::RS };
    if args.value {
        let text = source.whole(MAX_MESSAGE)?;
        sink.put(&encode::value(&text, &profile).map_err(|fault| source.failed(&fault))?)?;
        return sink.flush();
    }
    let mut encoder = encode::Encoder::new((!args.plain).then_some(profile));
    convert(&mut source, &mut sink, |source, piece, sink| match piece {
        Some(piece) => encoder.take(source, piece, sink),
        None => encoder.finish(source, sink),
    })
}

fn try_decode(args: &Decode) -> Result<(), Stop> {
    let (mut source, mut sink) = files::open(&args.files)?;
    if args.files.input.is_none() && source.is_terminal() {
        return Err(Stop::Usage(
            "frames are not read from a terminal; pipe them in, or name a file; - reads them all the same"
                .to_owned(),
        ));
    }
    if args.value {
        let bytes = source.whole(MAX_MESSAGE)?;
        sink.put(&decode::value(&bytes).map_err(|fault| source.failed(&fault))?)?;
        return sink.flush();
    }
    let mut decoder = decode::Decoder::new(args.frames);
    convert(&mut source, &mut sink, |source, piece, sink| match piece {
        Some(piece) => decoder.take(source, piece, sink),
        None => decoder.finish(source),
    })
}

/// Gives `take` the input piece by piece, then `None`; writes what came of each piece before it reads on.
fn convert(
    source: &mut Source,
    sink: &mut Sink,
    mut take: impl FnMut(&Source, Option<&[u8]>, &mut Sink) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut block = vec![0; READ_CHUNK];
    loop {
        let count = source.read(&mut block)?;
        let piece = block.get(..count).filter(|piece| !piece.is_empty());
        let taken = take(source, piece, sink);
        // What came before a fault is written too.
        let flushed = sink.flush();
        taken.and(flushed)?;
        if piece.is_none() {
            return Ok(());
        }
    }
}

fn finish(result: Result<(), Stop>) -> Exit {
    match result {
        Ok(()) | Err(Stop::NoReader) => Exit::Ok,
        Err(Stop::Usage(why)) => {
            say(&why);
            Exit::Usage
        }
        Err(Stop::Failed(why)) => {
            say(&why);
            Exit::Failed
        }
    }
}

/// Empties memory for one message, and gives back what the next is unlikely to need.
fn reuse(memory: &mut Vec<u8>) {
    memory.clear();
    memory.shrink_to(KEPT);
}
