//! A server that knows lines of JSON and nothing else.

use std::time::Duration;

use lumen_proto::{Exit, Instant};

use super::{Witness, answer, line};
use crate::sim::party::{Hold, Outbox, Party};

/// How a server behaves. The default is a good one.
#[derive(Clone, Debug)]
pub struct Manners {
    /// How long each answer takes.
    pub answer_after: Duration,
    /// Echoes the offer in its answer to `initialize`, if it was made.
    pub echo_offer: bool,
    /// Exits so at the first line that does not begin with `{`.
    pub exit_at_foreign: Option<Exit>,
    /// Reads on but hears nothing after the first line that does not begin with `{`.
    pub deaf_after_foreign: bool,
    /// Answers so many lines to the first line that does not begin with `{`.
    pub strays: usize,
    /// Writes this as soon as it runs.
    pub before: Vec<u8>,
    /// Writes this before each answer.
    pub between: Vec<u8>,
    /// Exits with code 1 in the middle of its answer to this request, counted from 0.
    pub die_at: Option<usize>,
    /// Answers nothing.
    pub silent: bool,
    /// Exits as soon as it runs.
    pub exit_at_start: Option<Exit>,
    /// How long it lives on after the end of its input.
    pub exit_after: Duration,
    /// Lives on for ever after the end of its input.
    pub ignore_eof: bool,
    /// Lives on after SIGTERM.
    pub ignore_term: bool,
    /// What becomes of its output when it exits by itself.
    pub hold: Hold,
    /// Writes one notification of so many bytes before it reads anything.
    pub chatter: usize,
    /// Adds so many bytes to each answer to `tools/call`.
    pub pad: usize,
    /// Closes its output, and lives on, instead of answering this request, counted from 0.
    pub hush_at: Option<usize>,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            answer_after: Duration::ZERO,
            echo_offer: false,
            exit_at_foreign: None,
            deaf_after_foreign: false,
            strays: 0,
            before: Vec::new(),
            between: Vec::new(),
            die_at: None,
            silent: false,
            exit_at_start: None,
            exit_after: Duration::ZERO,
            ignore_eof: false,
            ignore_term: false,
            hold: Hold::No,
            chatter: 0,
            pad: 0,
            hush_at: None,
        }
    }
}

/// The server.
pub struct JsonServer {
    manners: Manners,
    seen: Witness,
    partial: Vec<u8>,
    requests: usize,
    had_foreign: bool,
}

impl JsonServer {
    /// Makes one that tells `seen` what it sees.
    pub fn new(manners: Manners, seen: &Witness) -> Self {
        Self { manners, seen: Witness::clone(seen), partial: Vec::new(), requests: 0, had_foreign: false }
    }

    fn on_line(&mut self, now: Instant, text: &[u8], out: &mut Outbox) {
        if !text.starts_with(b"{") {
            self.on_foreign(text, out);
            return;
        }
        if self.manners.deaf_after_foreign && self.had_foreign {
            return;
        }
        self.seen.borrow_mut().lines.push((now, String::from_utf8_lossy(text).into_owned()));
        let Some(answer) = answer(text, self.manners.echo_offer, self.manners.pad) else { return };
        let nth = self.requests;
        self.requests += 1;
        if self.manners.die_at == Some(nth) {
            out.send(&answer[..answer.len() / 2]);
            out.exit_after(Duration::ZERO, Exit::Code(1), self.manners.hold);
        } else if self.manners.hush_at == Some(nth) {
            out.close();
        } else if !self.manners.silent {
            let bytes = [&self.manners.between[..], &line(answer)].concat();
            out.send_after(self.manners.answer_after, bytes);
        }
    }

    fn on_foreign(&mut self, text: &[u8], out: &mut Outbox) {
        self.seen.borrow_mut().foreign.push(text.to_vec());
        if std::mem::replace(&mut self.had_foreign, true) {
            return;
        }
        if let Some(exit) = self.manners.exit_at_foreign {
            out.die(exit);
        }
        for _ in 0..self.manners.strays {
            let stray = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
            out.send(line(stray.to_vec()));
        }
    }
}

impl Party for JsonServer {
    fn on_open(&mut self, now: Instant, out: &mut Outbox) {
        self.seen.borrow_mut().starts.push(now);
        if !self.manners.before.is_empty() {
            out.send(self.manners.before.clone());
        }
        if self.manners.chatter > 0 {
            let text = "c".repeat(self.manners.chatter);
            let note = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": text});
            out.pause();
            out.send(line(note.to_string().into_bytes()));
            out.resume();
        }
        if let Some(exit) = self.manners.exit_at_start {
            out.exit_after(Duration::ZERO, exit, self.manners.hold);
        }
    }

    fn on_data(&mut self, now: Instant, data: &[u8], out: &mut Outbox) {
        for &byte in data {
            if byte == b'\n' {
                let text = std::mem::take(&mut self.partial);
                self.on_line(now, &text, out);
            } else {
                self.partial.push(byte);
            }
        }
    }

    fn on_eof(&mut self, now: Instant, out: &mut Outbox) {
        self.seen.borrow_mut().eofs.push(now);
        if !self.manners.ignore_eof {
            out.exit_after(self.manners.exit_after, Exit::Code(0), self.manners.hold);
        }
    }

    fn on_terminate(&mut self, now: Instant, out: &mut Outbox) {
        self.seen.borrow_mut().terms.push(now);
        if !self.manners.ignore_term {
            out.die(Exit::Signal(15));
        }
    }

    fn name(&self) -> &str {
        "JSON server"
    }
}
