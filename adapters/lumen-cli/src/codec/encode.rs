//! JSON text to frames, or to one value.

use lumen_proto::Reason;
use lumen_proto::connection::frame_kind;
use lumen_proto::frame::{Flags, Header, Kind, MAX_HEADER_LEN};
use lumen_proto::jsonrpc::{Envelope, Lines, Step};
use lumen_proto::limits::{MAX_MESSAGE, MAX_VALUE_DEPTH};
use lumen_proto::value::transcode::Transcoder;
use lumen_proto::value::{Needs, Profile};

use super::files::{Sink, Source};
use super::{Stop, reuse};

/// Turns lines into frames.
#[derive(Debug)]
pub(super) struct Encoder {
    lines: Lines,
    /// Who is to get compressed frames.
    profile: Option<Profile>,
    transcoder: Transcoder,
    payload: Vec<u8>,
    /// Line feeds so far.
    line_feeds: usize,
}

impl Encoder {
    /// Makes one that compresses for this receiver, or not at all.
    pub(super) fn new(profile: Option<Profile>) -> Self {
        Self {
            // A line that is too long ends it all, so no more of it is read than shows that.
            lines: Lines::with_limits(MAX_MESSAGE, MAX_MESSAGE as u64),
            profile,
            transcoder: Transcoder::new(),
            payload: Vec::new(),
            line_feeds: 0,
        }
    }

    pub(super) fn take(&mut self, source: &Source, mut piece: &[u8], sink: &mut Sink) -> Result<(), Stop> {
        loop {
            let before = piece;
            let step = self.lines.feed(&mut piece);
            let taken = before.get(..before.len() - piece.len()).unwrap_or_default();
            self.line_feeds += taken.iter().filter(|byte| **byte == b'\n').count();
            let fault = match step {
                None => return Ok(()),
                Some(Step::Line(text)) => match Envelope::parse(text.as_slice()) {
                    Ok(envelope) => {
                        self.put(text.as_slice(), frame_kind(text.as_slice(), envelope.kind), sink)?;
                        continue;
                    }
                    Err(refused) => refused.reason.to_string(),
                },
                Some(Step::Noise { excerpt, .. }) => {
                    format!("no JSON object or array: {:?}", String::from_utf8_lossy(excerpt.as_slice()))
                }
                Some(Step::Skipped { len, .. }) => {
                    Reason::TooLong { len, max: MAX_MESSAGE as u64 }.to_string()
                }
                Some(Step::Lost(_)) => format!("longer than {MAX_MESSAGE} bytes, the most of one message"),
            };
            let line = self.line_feeds + usize::from(taken.last() != Some(&b'\n'));
            return Err(source.failed(&format!(
                "line {line}: {fault}; each line must be one JSON-RPC message, --value takes any JSON"
            )));
        }
    }

    /// Ends the input. Its last line needs no line feed.
    pub(super) fn finish(&mut self, source: &Source, sink: &mut Sink) -> Result<(), Stop> {
        self.take(source, b"\n", sink)
    }

    fn put(&mut self, text: &[u8], kind: Kind, sink: &mut Sink) -> Result<(), Stop> {
        let is_value = self.profile.is_some_and(|profile| {
            let needs = self.transcoder.encode(text, &mut self.payload);
            needs.is_ok_and(|needs| profile.takes(&needs)) && self.payload.len() <= MAX_MESSAGE
        });
        let (flags, payload) =
            if is_value { (Flags::COMPRESSED, self.payload.as_slice()) } else { (Flags::NONE, text) };
        let mut head = [0; MAX_HEADER_LEN];
        let len = Header { len: payload.len() as u64, kind, flags }.encode(&mut head);
        sink.put(head.get(..len).unwrap_or_default())?;
        sink.put(payload)?;
        reuse(&mut self.payload);
        Ok(())
    }
}

/// Returns the bytes of the one JSON document in `text`.
///
/// # Errors
/// What is wrong with it, or what this receiver would not get out of it as it is; and what to try.
pub(super) fn value(text: &[u8], profile: &Profile) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let Ok(needs) = Transcoder::new().encode(text, &mut bytes) else {
        return Err(match Envelope::parse(text).map_err(|refused| refused.reason) {
            Err(reason @ (Reason::NotJson { .. } | Reason::NotUtf8 { .. } | Reason::TooDeep { .. })) => {
                format!("{reason}; --value takes one JSON document")
            }
            _ => format!(
                "the codec cannot hold this document exactly: it has an integer of more than 64 bits, a number of \
                 more digits than a float keeps, a lone surrogate, or nests deeper than {MAX_VALUE_DEPTH}; without \
                 --value such a message goes as text"
            ),
        });
    };
    match beyond(profile, &needs) {
        Some(what) => Err(format!(
            "not every receiver keeps {what}; --exact writes it for those that do, without --value such a message \
             goes as text"
        )),
        None => Ok(bytes),
    }
}

/// Returns what a receiver would not keep.
fn beyond(profile: &Profile, needs: &Needs) -> Option<String> {
    if profile.takes(needs) {
        return None;
    }
    let Profile { members, depth, .. } = profile;
    let tests = [
        (needs.members > *members, format!("more than {members} members in one array or object")),
        (needs.depth > *depth, format!("arrays and objects nested deeper than {depth}")),
        (needs.negative_zero && !profile.negative_zero, "negative zero".to_owned()),
    ];
    let found = tests.into_iter().find_map(|(is_it, what)| is_it.then_some(what));
    Some(found.unwrap_or_else(|| "a whole number that is written with a fraction, such as 1.0".to_owned()))
}
