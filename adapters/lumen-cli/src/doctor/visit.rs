//! One start with its conversation: requests with deadlines, and all that comes meanwhile judged.

use std::time::Duration;

use lumen_proto::Instant;
use lumen_proto::jsonrpc::Message;
use lumen_proto::limits::STOP_STEP;
use lumen_proto::mcp::{Era, Revision};
use lumen_proto::negotiate::offer;
use serde_json::{Value, json};

use super::Stop;
use super::cut::Piece;
use super::slips::Slips;
use super::start::{Heard, Start};
use super::talk::Talk;

/// Characters of the server's standard error that are quoted when it ended.
const SAID: usize = 300;

/// Longer than anybody waits.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What came of a request.
#[derive(Debug)]
pub(super) enum Answer {
    Result(Value),
    Error(Value),
    /// The server has ended instead.
    Ended,
    /// There was none in time.
    Late,
}

/// What a wait came to, besides answers.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Answered(u64),
    Ack,
    Other,
    Ended,
    Late,
}

pub(super) struct Visit {
    start: Start,
    talk: Talk,
    slips: Slips,
    /// For the first answer.
    first_patience: Duration,
    patience: Duration,
    /// The last answer, until whoever waits for it takes it.
    answer: Option<(u64, Result<Value, Value>)>,
    pub(super) is_acked: bool,
    pub(super) is_endless: bool,
}

impl Visit {
    pub(super) fn new(start: Start, slips: Slips, first: Option<Duration>, patience: Duration) -> Self {
        let talk = Talk::default();
        let first_patience = first.unwrap_or(FOR_EVER);
        Self {
            start,
            talk,
            slips,
            first_patience,
            patience,
            answer: None,
            is_acked: false,
            is_endless: false,
        }
    }

    /// Makes the first request of a session that somebody else has.
    pub(super) fn first_request(era: Era) -> Value {
        first_request(&mut Talk::default(), era).1
    }

    /// Opens a session, with our offer in the request if asked to.
    pub(super) fn open(&mut self, era: Era, has_offer: bool) -> Result<Answer, Stop> {
        let (number, mut request) = first_request(&mut self.talk, era);
        if has_offer
            && let Ok(message) = Message::copy_from(request.to_string().as_bytes())
            && let Some(offered) = offer::add(&message)
            && let Ok(offered) = serde_json::from_slice(offered.bytes())
        {
            request = offered;
        }
        self.send(&request)?;
        let deadline = self.start.now() + self.first_patience;
        let answer = self.answer_to(number, deadline)?;
        if matches!((&answer, era), (Answer::Result(_), Era::Legacy)) {
            self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        }
        Ok(answer)
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(&mut self, era: Era, method: &str) -> Result<Answer, Stop> {
        let number = self.request(era, method)?;
        let deadline = self.deadline();
        self.answer_to(number, deadline)
    }

    /// Asks without waiting.
    pub(super) fn request(&mut self, era: Era, method: &str) -> Result<u64, Stop> {
        let params = if era == Era::Modern { modern() } else { json!({}) };
        let (number, request) = self.talk.request(method, params, method.ends_with("/list"));
        self.send(&request)?;
        Ok(number)
    }

    /// Sends bytes that are no message, after which one line about them is no slip.
    pub(super) fn probe(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.talk.on_probe();
        let deadline = self.deadline();
        self.start.write(bytes, deadline)
    }

    /// Waits for the answer to a probe; `false` if the server has ended.
    pub(super) fn wait_ack(&mut self, patience: Duration) -> Result<bool, Stop> {
        let deadline = self.start.now() + patience;
        while !self.is_acked {
            match self.step(deadline)? {
                Step::Ended => return Ok(false),
                Step::Late => break,
                Step::Answered(_) | Step::Ack | Step::Other => {}
            }
        }
        Ok(true)
    }

    /// Closes its input and takes what it still says until it has ended, for at most so long. Returns whether it has.
    pub(super) fn close(&mut self, patience: Duration) -> Result<bool, Stop> {
        self.start.close_input();
        let deadline = self.start.now() + patience;
        loop {
            match self.step(deadline)? {
                Step::Ended => return Ok(self.start.wait_exit(deadline)?.is_some()),
                Step::Late => return Ok(false),
                Step::Answered(_) | Step::Ack | Step::Other => {}
            }
        }
    }

    /// Ends a visit that has seen enough: what is left of the server after so long is killed. Returns whether it has
    /// ended by itself, and the slips.
    pub(super) fn end(mut self, patience: Duration) -> Result<(bool, Slips), Stop> {
        let has_ended = !self.start.has_input() || self.close(patience)?;
        Ok((has_ended, self.slips))
    }

    pub(super) fn start(&mut self) -> &mut Start {
        &mut self.start
    }

    /// Returns how many requests are not answered.
    pub(super) fn owed(&self) -> usize {
        self.talk.owed()
    }

    /// Returns the one line about a probe.
    pub(super) fn stray(&self) -> Option<&str> {
        self.talk.stray()
    }

    /// Returns the end of what it said on its standard error, once it has ended.
    pub(super) fn last_words(&mut self) -> Result<String, Stop> {
        let deadline = self.start.now() + STOP_STEP;
        self.start.wait_exit(deadline)?;
        let said = self.start.stderr_tail();
        let skipped = said.trim_end().chars().count().saturating_sub(SAID);
        Ok(said.trim_end().chars().skip(skipped).collect())
    }

    fn deadline(&self) -> Instant {
        self.start.now() + self.patience
    }

    fn send(&mut self, message: &Value) -> Result<(), Stop> {
        let deadline = self.deadline();
        self.start.write(format!("{message}\n").as_bytes(), deadline)
    }

    fn answer_to(&mut self, number: u64, deadline: Instant) -> Result<Answer, Stop> {
        loop {
            match self.step(deadline)? {
                Step::Answered(other) if other == number => {}
                Step::Ended => return Ok(Answer::Ended),
                Step::Late => return Ok(Answer::Late),
                Step::Answered(_) | Step::Ack | Step::Other => continue,
            }
            return Ok(match self.answer.take() {
                Some((_, Ok(result))) => Answer::Result(result),
                Some((_, Err(error))) => Answer::Error(error),
                None => Answer::Late,
            });
        }
    }

    /// Takes one piece of output. A server that never stops talking is late too.
    fn step(&mut self, deadline: Instant) -> Result<Step, Stop> {
        if self.start.now() >= deadline {
            return Ok(Step::Late);
        }
        let line = match self.start.hear(deadline)? {
            Heard::Ended => return Ok(Step::Ended),
            Heard::Late => return Ok(Step::Late),
            Heard::Piece(Piece::Ack) => {
                self.is_acked = true;
                return Ok(Step::Ack);
            }
            Heard::Piece(Piece::Endless) => {
                self.is_endless = true;
                return Ok(Step::Ended);
            }
            Heard::Piece(Piece::Line(line)) => line,
        };
        let said = self.talk.on_line(&line, &mut self.slips);
        for reply in said.replies {
            self.send(&reply)?;
        }
        // One line holds more than one answer only in a batch, which nobody asked for.
        self.answer = said.answers.into_iter().next();
        Ok(self.answer.as_ref().map_or(Step::Other, |(number, _)| Step::Answered(*number)))
    }
}

/// Returns the request with which a session of this era begins.
pub(super) const fn opening(era: Era) -> &'static str {
    match era {
        Era::Legacy => "initialize",
        Era::Modern => "server/discover",
    }
}

fn first_request(talk: &mut Talk, era: Era) -> (u64, Value) {
    let params = match era {
        Era::Legacy => initialize(),
        Era::Modern => modern(),
    };
    talk.request(opening(era), params, false)
}

fn initialize() -> Value {
    json!({
        "protocolVersion": Revision::NEWEST_LEGACY.as_str(),
        "capabilities": {},
        "clientInfo": {"name": "lumen-doctor", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// What every request of the modern era carries.
fn modern() -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.as_str(),
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "lumen-doctor", "version": env!("CARGO_PKG_VERSION")},
    }})
}
