//! One party's end of a stream: what it has still to send, what it got, and how it writes messages.

use std::collections::VecDeque;

use lumen_proto::value::transcode::Transcoder;
use lumen_tests::sim::wire::{self, NOTIFY, REQUEST, RESPONSE};

/// How a party writes its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    Line,
    /// Frames of text.
    Plain,
    /// Frames of values, where a message can be one.
    Value,
}

/// A whole piece of what a party got.
#[derive(Debug)]
pub enum Got {
    Message(String),
    Probe,
    Ack,
    /// A line that is no message.
    Noise,
}

/// The end of a stream. `E` is what becomes true when the other side has taken a message to its last byte.
pub struct Stream<E> {
    pub carrier: Carrier,
    out: VecDeque<u8>,
    effects: VecDeque<(usize, E)>,
    sent: usize,
    inbox: Vec<u8>,
}

impl<E> Stream<E> {
    pub fn new(carrier: Carrier) -> Self {
        Self { carrier, out: VecDeque::new(), effects: VecDeque::new(), sent: 0, inbox: Vec::new() }
    }

    pub fn send_raw(&mut self, bytes: &[u8], effect: E) {
        self.out.extend(bytes);
        self.effects.push_back((self.sent + self.out.len(), effect));
    }

    pub fn send(&mut self, text: &str, effect: E) {
        let bytes = encode(self.carrier, text);
        self.send_raw(&bytes, effect);
    }

    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes the next bytes, and what becomes true with them.
    pub fn take(&mut self, len: usize) -> (Vec<u8>, Vec<E>) {
        let bytes: Vec<u8> = self.out.drain(..len.min(self.out.len())).collect();
        self.sent += bytes.len();
        let mut effects = Vec::new();
        while self.effects.front().is_some_and(|(at, _)| *at <= self.sent) {
            effects.extend(self.effects.pop_front().map(|(_, effect)| effect));
        }
        (bytes, effects)
    }

    pub fn len(&self) -> usize {
        self.out.len()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// Returns the next whole piece of what came.
    pub fn next(&mut self) -> Option<Got> {
        let first = *self.inbox.first()?;
        if wire::starts_frame(first) && self.carrier != Carrier::Line {
            let frame = wire::parse(&self.inbox)?;
            let got = match (frame.kind, frame.flags) {
                (wire::PROBE, _) => Got::Probe,
                (wire::PROBE_ACK, _) => Got::Ack,
                (REQUEST | RESPONSE | NOTIFY, 0) => {
                    Got::Message(String::from_utf8(frame.payload.to_vec()).expect("UTF-8 in a frame"))
                }
                (REQUEST | RESPONSE | NOTIFY, 1) => Got::Message(decode(frame.payload)),
                other => panic!("a frame {other:?}"),
            };
            let total = frame.total;
            self.inbox.drain(..total);
            return Some(got);
        }
        let end = self.inbox.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.inbox.drain(..=end).collect();
        line.pop();
        if matches!(line.first(), Some(b'{' | b'[')) {
            return Some(Got::Message(String::from_utf8(line).expect("UTF-8 in a line")));
        }
        Some(Got::Noise)
    }
}

/// Writes a message as this carrier does.
pub fn encode(carrier: Carrier, text: &str) -> Vec<u8> {
    if carrier == Carrier::Line {
        return format!("{text}\n").into_bytes();
    }
    let has = |key: &str| text.contains(&format!("\"{key}\":"));
    let kind = match (has("method"), text.starts_with("{\"jsonrpc\":\"2.0\",\"id\":")) {
        (false, _) => RESPONSE,
        (true, true) => REQUEST,
        (true, false) => NOTIFY,
    };
    if carrier == Carrier::Value {
        let mut value = Vec::new();
        if Transcoder::new().encode(text.as_bytes(), &mut value).is_ok() {
            return wire::frame(kind, 1, &value);
        }
    }
    wire::frame(kind, 0, text.as_bytes())
}

/// Returns the text that a value stands for.
pub fn decode(value: &[u8]) -> String {
    let mut text = Vec::new();
    Transcoder::new().decode_within(value, None, usize::MAX, &mut text).expect("a value");
    String::from_utf8(text).expect("UTF-8 of a value")
}

/// Returns how a token is spelled when it has been through this carrier.
pub fn spelled(carrier: Carrier, token: &str) -> String {
    if carrier != Carrier::Value {
        return token.to_owned();
    }
    let mut value = Vec::new();
    match Transcoder::new().encode(token.as_bytes(), &mut value) {
        Ok(_) => decode(&value),
        Err(_) => token.to_owned(),
    }
}
