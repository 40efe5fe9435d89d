//! Clients with a script: one speaks lines, the other LUMEN.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lumen_proto::Instant;
use serde_json::Value;

use super::{Cutter, Piece, line};
use crate::sim::party::{Outbox, Party};
use crate::sim::wire::{self, PROBE_ACK};

/// What a client got.
#[derive(Debug, Default)]
pub struct Got {
    /// Messages in order, without their line feeds, and whether each came in a frame.
    pub messages: Vec<(Instant, String, bool)>,
    /// When the ACK came.
    pub ack: Option<Instant>,
    /// When the end came.
    pub eof: Option<Instant>,
    /// Bytes behind the last whole message.
    pub rest: usize,
}

impl Got {
    /// Returns the texts.
    pub fn texts(&self) -> Vec<&str> {
        self.messages.iter().map(|(_, text, _)| text.as_str()).collect()
    }

    /// Returns the messages parsed.
    ///
    /// # Panics
    /// If one is no JSON.
    pub fn values(&self) -> Vec<Value> {
        self.texts().iter().map(|text| serde_json::from_str(text).expect("JSON")).collect()
    }

    /// Returns the answers to this id (written as JSON), in order.
    pub fn answers(&self, id: &str) -> Vec<Value> {
        let id: Value = serde_json::from_str(id).expect("JSON");
        let own = |value: &Value| value.get("method").is_none() && value.get("id") == Some(&id);
        self.values().into_iter().filter(own).collect()
    }
}

/// Messages and when they go out, and when the client closes its output.
#[derive(Debug, Default)]
struct Script {
    messages: Vec<(Duration, Vec<u8>)>,
    close: Option<Duration>,
    read: Duration,
    vanish: Option<Duration>,
}

/// A client that speaks lines of JSON.
#[derive(Debug, Default)]
pub struct JsonClient {
    script: Script,
    got: Rc<RefCell<Got>>,
    cutter: Cutter,
}

impl JsonClient {
    /// Makes one that says nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a message so many milliseconds after the start; the line feed is added.
    #[must_use]
    pub fn at(mut self, millis: u64, text: impl AsRef<[u8]>) -> Self {
        self.script.messages.push((Duration::from_millis(millis), text.as_ref().to_vec()));
        self
    }

    /// Closes its output so many milliseconds after the start.
    #[must_use]
    pub fn close_at(mut self, millis: u64) -> Self {
        self.script.close = Some(Duration::from_millis(millis));
        self
    }

    /// Reads nothing for so many milliseconds.
    #[must_use]
    pub fn read_at(mut self, millis: u64) -> Self {
        self.script.read = Duration::from_millis(millis);
        self
    }

    /// Closes its input as well, so that writing to it fails, so many milliseconds after the start.
    #[must_use]
    pub fn vanish_at(mut self, millis: u64) -> Self {
        self.script.vanish = Some(Duration::from_millis(millis));
        self
    }

    /// Returns where it will put what it gets.
    pub fn got(&self) -> Rc<RefCell<Got>> {
        Rc::clone(&self.got)
    }
}

impl Party for JsonClient {
    fn on_open(&mut self, _now: Instant, out: &mut Outbox) {
        for (delay, text) in self.script.messages.drain(..) {
            out.send_after(delay, line(text));
        }
        if let Some(delay) = self.script.close {
            out.close_after(delay);
        }
        if self.script.read > Duration::ZERO {
            out.pause();
            out.wake_after(self.script.read);
        }
        if let Some(delay) = self.script.vanish {
            out.wake_after(delay);
        }
    }

    fn on_tick(&mut self, _now: Instant, out: &mut Outbox) {
        if self.script.vanish.is_some() {
            out.stop_reading();
            out.close();
        } else {
            out.unpause();
        }
    }

    fn on_data(&mut self, now: Instant, data: &[u8], _out: &mut Outbox) {
        let mut got = self.got.borrow_mut();
        self.cutter.push(data);
        while let Some(piece) = self.cutter.next() {
            match piece {
                Piece::Line(text) => {
                    let text = String::from_utf8(text).expect("a JSON client gets UTF-8");
                    got.messages.push((now, text, false));
                }
                other => panic!("a JSON client got {other:?}"),
            }
        }
        got.rest = self.cutter.rest();
    }

    fn on_eof(&mut self, now: Instant, _out: &mut Outbox) {
        self.got.borrow_mut().eof = Some(now);
    }

    fn name(&self) -> &str {
        "JSON client"
    }
}

/// A client that sends a probe without capabilities, waits for the ACK, and then speaks plain frames.
#[derive(Debug, Default)]
pub struct LumenClient {
    script: Script,
    got: Rc<RefCell<Got>>,
    cutter: Cutter,
}

impl LumenClient {
    /// Makes one that only probes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a message so many milliseconds after the ACK.
    #[must_use]
    pub fn at(mut self, millis: u64, text: impl AsRef<[u8]>) -> Self {
        self.script.messages.push((Duration::from_millis(millis), text.as_ref().to_vec()));
        self
    }

    /// Closes its output so many milliseconds after the ACK.
    #[must_use]
    pub fn close_at(mut self, millis: u64) -> Self {
        self.script.close = Some(Duration::from_millis(millis));
        self
    }

    /// Returns where it will put what it gets.
    pub fn got(&self) -> Rc<RefCell<Got>> {
        Rc::clone(&self.got)
    }

    fn on_ack(&mut self, out: &mut Outbox) {
        for (delay, text) in self.script.messages.drain(..) {
            let message: Value = serde_json::from_slice(&text).unwrap_or_default();
            let kind = match (message.get("method"), message.get("id")) {
                (None, _) => wire::RESPONSE,
                (Some(_), None) => wire::NOTIFY,
                (Some(_), Some(_)) => wire::REQUEST,
            };
            out.send_after(delay, wire::frame(kind, 0, &text));
        }
        if let Some(delay) = self.script.close {
            out.close_after(delay);
        }
    }
}

impl Party for LumenClient {
    fn on_open(&mut self, _now: Instant, out: &mut Outbox) {
        // It takes plain frames only, so that it needs no codec of its own.
        out.send(wire::frame(wire::PROBE, 0, b"{\"v\":1,\"caps\":[]}\n"));
    }

    fn on_data(&mut self, now: Instant, data: &[u8], out: &mut Outbox) {
        self.cutter.push(data);
        while let Some(piece) = self.cutter.next() {
            match piece {
                Piece::Line(text) => {
                    let text = String::from_utf8(text).expect("UTF-8");
                    self.got.borrow_mut().messages.push((now, text, false));
                }
                Piece::Frame(PROBE_ACK, 0, payload) => {
                    assert!(payload.ends_with(b"\n"), "an ACK ends in a line feed");
                    let hello: Value = serde_json::from_slice(&payload).expect("JSON in an ACK");
                    assert!(hello["v"] == 1 && hello["caps"].is_array(), "{hello}");
                    assert!(self.got.borrow_mut().ack.replace(now).is_none(), "a second ACK");
                    self.on_ack(out);
                }
                Piece::Frame(wire::REQUEST | wire::RESPONSE | wire::NOTIFY, 0, text) => {
                    let text = String::from_utf8(text).expect("UTF-8");
                    self.got.borrow_mut().messages.push((now, text, true));
                }
                other => panic!("a LUMEN client got {other:?}"),
            }
        }
        self.got.borrow_mut().rest = self.cutter.rest();
    }

    fn on_eof(&mut self, now: Instant, _out: &mut Outbox) {
        self.got.borrow_mut().eof = Some(now);
    }

    fn name(&self) -> &str {
        "LUMEN client"
    }
}
