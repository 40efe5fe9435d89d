//! Messages written as lines and frames, and payloads of compressed frames read, in memory that is used again.

use alloc::vec::Vec;
use core::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use super::kind::packet_kind;
use super::tally::Converted;
use crate::frame::{self, Flags, Header, Kind};
use crate::jsonrpc::{Envelope, Found, Name, Patches, Span, apply};
use crate::message::{Edits, Packet};
use crate::value::transcode::Transcoder;
use crate::value::{Invalid, Problem, Profile};
use crate::{Reason, limits};

/// The most memory kept between messages. More, for a larger message, is given back.
const MAX_KEPT: usize = 256 * 1024;

/// Both directions of one stream.
///
/// # Bounds
/// Twice [`MAX_KEPT`] between messages; while one is encoded, six and a half times its length as text.
#[derive(Debug, Default)]
pub(super) struct Codec {
    transcoder: Transcoder,
    scratch: Vec<u8>,
    /// A text in which something was exchanged.
    edited: BytesMut,
    pub(super) converted: Converted,
}

impl Codec {
    /// Appends `packet` as a line of at most `max` bytes before its line feed.
    ///
    /// # Errors
    /// [`Reason::TooLong`]; `out` is then as it was.
    pub(super) fn write_line(
        &mut self,
        packet: &Packet,
        edits: &Edits,
        max: usize,
        out: &mut BytesMut,
    ) -> Result<(), Reason> {
        let check = |len: usize| {
            let too_long = Reason::TooLong { len: len as u64, max: max as u64 };
            if len > max { Err(too_long) } else { Ok(()) }
        };
        match packet {
            Packet::Text(message) => {
                let patches = edits.in_text(message);
                check(patches.patched_len(message.len()))?;
                message.write_line(&patches, out);
                Ok(())
            }
            Packet::Value(value) => {
                self.with_text(value.bytes(), limits::MAX_MESSAGE as u64, |_, text| {
                    let patches = edits.in_bare_text(text);
                    check(patches.patched_len(text.len()))?;
                    apply(text, &patches, out);
                    out.put_u8(b'\n');
                    Ok(())
                })?
            }
        }
    }

    /// Appends `packet` as a frame. It is compressed if the receiver, which takes no compressed frames without a
    /// `profile`, gets the same document out of that: a value goes as it is, a text of [`limits::MIN_COMPRESSED`] bytes or
    /// more if that makes it shorter.
    ///
    /// # Errors
    /// [`Reason::TooLong`] for a value that has to become text and would be longer than [`limits::MAX_MESSAGE`].
    pub(super) fn write_frame(
        &mut self,
        packet: &Packet,
        edits: &Edits,
        profile: Option<&Profile>,
        out: &mut BytesMut,
    ) -> Result<(), Reason> {
        let kind = packet_kind(packet);
        match packet {
            Packet::Text(message) => {
                self.write_text(kind, message.bytes(), &edits.in_text(message), profile, out);
                Ok(())
            }
            Packet::Value(value) => {
                let patches = profile
                    .filter(|profile| profile.takes(value.needs()))
                    .and_then(|profile| edits.in_value(value, profile, &mut self.transcoder));
                if let Some(patches) = patches {
                    let len = patches.patched_len(value.bytes().len()) as u64;
                    frame::encode_header(Header { len, kind, flags: Flags::COMPRESSED }, out);
                    apply(value.bytes(), &patches, out);
                    return Ok(());
                }
                self.with_text(value.bytes(), limits::MAX_MESSAGE as u64, |codec, text| {
                    codec.write_text(kind, text, &edits.in_bare_text(text), profile, out);
                })
            }
        }
    }

    /// Appends a text with the patches in place as a frame.
    fn write_text(
        &mut self,
        kind: Kind,
        text: &[u8],
        patches: &Patches,
        profile: Option<&Profile>,
        out: &mut BytesMut,
    ) {
        let mut edited = core::mem::take(&mut self.edited);
        let text = if patches.is_empty() {
            text
        } else {
            edited.clear();
            apply(text, patches, &mut edited);
            &edited
        };
        let compressed = profile.and_then(|profile| {
            self.encode(text, profile, |value| frame::encode(kind, Flags::COMPRESSED, value, out))
        });
        if compressed.is_none() {
            frame::encode(kind, Flags::NONE, text, out);
        }
        if edited.capacity() <= MAX_KEPT {
            self.edited = edited;
        }
    }

    /// Gives the value that `text` stands for to `then`. `None` if this receiver would not get the same document
    /// out of it, or if it is no shorter than the text or the text is short: then the message goes plain.
    fn encode<T>(&mut self, text: &[u8], profile: &Profile, then: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if text.len() < limits::MIN_COMPRESSED {
            return None;
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        let needs = self.transcoder.encode(text, &mut scratch);
        let pays = needs.is_ok_and(|needs| profile.takes(&needs)) && scratch.len() < text.len();
        if pays {
            self.converted.add(text.len(), scratch.len());
        }
        let result = pays.then(|| then(&scratch));
        self.keep(scratch);
        result
    }

    /// Returns the text that a value stands for, and where its parts are if it is one message. Everything else is for
    /// [`Message::parse`] to judge.
    ///
    /// # Errors
    /// The bytes are no value, or the text is longer than `max`.
    pub(super) fn decode(&mut self, value: &[u8], max: u64) -> Result<(Bytes, Option<Envelope>), Reason> {
        let mut found = Found::default();
        let text = self.text(value, max, |key, value| {
            if let Some(name) = Name::of_plain(key) {
                found.take(name, Span::new(value.start, value.end));
            }
        })?;
        let envelope = (text.first() == Some(&b'{') && text.len() < Span::LIMIT)
            .then(|| found.classify(&text, Span::new(0, text.len())).ok())
            .flatten();
        // What would be given back anyway is handed over instead.
        if text.len() > MAX_KEPT {
            return Ok((text.into(), envelope));
        }
        let bytes = Bytes::copy_from_slice(&text);
        self.keep(text);
        Ok((bytes, envelope))
    }

    /// Gives the text that a value stands for to `then`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn with_text<T>(
        &mut self,
        value: &[u8],
        max: u64,
        then: impl FnOnce(&mut Self, &[u8]) -> T,
    ) -> Result<T, Reason> {
        let text = self.text(value, max, |_, _| ())?;
        let result = then(self, &text);
        self.keep(text);
        Ok(result)
    }

    fn text(
        &mut self,
        value: &[u8],
        max: u64,
        on_member: impl FnMut(&[u8], Range<usize>),
    ) -> Result<Vec<u8>, Reason> {
        let mut text = core::mem::take(&mut self.scratch);
        text.clear();
        let most = usize::try_from(max).unwrap_or(usize::MAX);
        match self.transcoder.decode_outlined(value, most, &mut text, on_member) {
            Ok(_) => {
                self.converted.add(text.len(), value.len());
                Ok(text)
            }
            Err(Invalid { offset, problem }) => {
                self.keep(text);
                // How long the text would have been is not known, only that it is longer.
                Err(if problem == Problem::TooLong {
                    Reason::TooLong { len: max + 1, max }
                } else {
                    Reason::NotValue { at: offset }
                })
            }
        }
    }

    fn keep(&mut self, scratch: Vec<u8>) {
        // While a text is being compressed there are two; the larger one has proved to be of use.
        if scratch.capacity() <= MAX_KEPT && scratch.capacity() >= self.scratch.capacity() {
            self.scratch = scratch;
        }
    }
}
