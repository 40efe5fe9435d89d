//! A server that speaks LUMEN, built from the description of the wire alone.

use std::time::Duration;

use lumen_proto::{Exit, Instant};

use super::{Cutter, Piece, Witness, answer, line};
use crate::sim::party::{Outbox, Party};
use crate::sim::wire::{self, PROBE, PROBE_ACK};

/// The server: it answers each probe with an ACK, and speaks JSON until the first frame with a message.
pub struct LumenServer {
    seen: Witness,
    cutter: Cutter,
    ack_after: Option<Duration>,
    answer_after: Duration,
    echo_offer: bool,
    deaf_for: Duration,
    switched: bool,
}

impl LumenServer {
    /// Makes one that tells `seen` what it sees and acknowledges at once.
    pub fn new(seen: &Witness) -> Self {
        Self {
            seen: Witness::clone(seen),
            cutter: Cutter::default(),
            ack_after: Some(Duration::ZERO),
            answer_after: Duration::ZERO,
            echo_offer: false,
            deaf_for: Duration::ZERO,
            switched: false,
        }
    }

    /// Acknowledges so much later, or never.
    #[must_use]
    pub fn ack_after(mut self, delay: Option<Duration>) -> Self {
        self.ack_after = delay;
        self
    }

    /// Answers so much later.
    #[must_use]
    pub fn answer_after(mut self, delay: Duration) -> Self {
        self.answer_after = delay;
        self
    }

    /// Echoes an offer.
    #[must_use]
    pub fn echo_offer(mut self) -> Self {
        self.echo_offer = true;
        self
    }

    /// Begins to read so much later, as a server does that starts slowly.
    #[must_use]
    pub fn slow_start(mut self, delay: Duration) -> Self {
        self.deaf_for = delay;
        self
    }

    fn on_message(&mut self, text: &[u8], out: &mut Outbox) {
        let Some(answer) = answer(text, self.echo_offer, 0) else { return };
        let bytes = if self.switched { wire::frame(wire::RESPONSE, 0, &answer) } else { line(answer) };
        out.send_after(self.answer_after, bytes);
    }
}

impl Party for LumenServer {
    fn on_open(&mut self, now: Instant, out: &mut Outbox) {
        self.seen.borrow_mut().starts.push(now);
        if self.deaf_for > Duration::ZERO {
            out.pause();
            out.resume_after(self.deaf_for);
        }
    }

    fn on_data(&mut self, now: Instant, data: &[u8], out: &mut Outbox) {
        self.cutter.push(data);
        while let Some(piece) = self.cutter.next() {
            match piece {
                Piece::Line(text) => {
                    self.seen.borrow_mut().lines.push((now, String::from_utf8_lossy(&text).into_owned()));
                    self.on_message(&text, out);
                }
                Piece::Noise(text) => self.seen.borrow_mut().foreign.push(text),
                Piece::Frame(PROBE, 0, _) => {
                    self.seen.borrow_mut().probes.push(now);
                    if let Some(delay) = self.ack_after {
                        out.send_after(delay, wire::frame(PROBE_ACK, 0, b"{\"v\":1,\"caps\":[]}\n"));
                    }
                }
                Piece::Frame(kind @ (wire::REQUEST | wire::RESPONSE | wire::NOTIFY), 0, text) => {
                    self.switched = true;
                    let message: serde_json::Value = serde_json::from_slice(&text).expect("JSON in a frame");
                    let right = match (message.get("method"), message.get("id")) {
                        // The wire has no type for a batch.
                        _ if message.is_array() => kind,
                        (Some(_), Some(_)) => wire::REQUEST,
                        (Some(_), None) => wire::NOTIFY,
                        (None, _) => wire::RESPONSE,
                    };
                    assert_eq!(kind, right, "a frame's TYPE and its message differ: {message}");
                    self.seen.borrow_mut().frames.push((now, String::from_utf8_lossy(&text).into_owned()));
                    self.on_message(&text, out);
                }
                Piece::Frame(kind, flags, _) => {
                    panic!("never negotiated: frame 0x{kind:02x}, flags 0x{flags:02x}")
                }
            }
        }
    }

    fn on_eof(&mut self, now: Instant, out: &mut Outbox) {
        self.seen.borrow_mut().eofs.push(now);
        out.exit_after(self.answer_after, Exit::Code(0), crate::sim::party::Hold::No);
    }

    fn name(&self) -> &str {
        "LUMEN server"
    }
}
