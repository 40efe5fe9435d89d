//! The starts of one examination, in order, and what each shows.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use lumen_os::{CommandSpec, Stderr, Target};
use lumen_proto::Exit;
use lumen_proto::jsonrpc::Message;
use lumen_proto::limits::{PROBE_TIMEOUT, STOP_STEP};
use lumen_proto::mcp::Era;
use lumen_proto::negotiate::hello::OPENING_PROBE;
use lumen_proto::negotiate::{Mode, offer};
use lumen_proto::supervisor::Behind;
use lumen_std::{Client, ServerConfig};
use serde_json::Value;

use super::Stop;
use super::finding::Finding;
use super::report::{AtEof, Reaction, Report};
use super::start::Start;
use super::visit::{Answer, Visit, opening};

/// How long a server may take to end when its input has ended.
const EOF_PATIENCE: Duration = Duration::from_secs(5);

/// The lists that a capability of this name promises.
const LISTS: [(&str, &str); 3] =
    [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")];

/// One server under examination.
pub(super) struct Exam<S, P> {
    /// Makes the command, for every start anew.
    pub(super) spec: S,
    /// How long each answer may take.
    pub(super) patience: Duration,
    /// The same for the very first one, which may have to wait for a download; `None` is for ever.
    pub(super) first_patience: Option<Duration>,
    /// Can be read when this process is to end.
    pub(super) interrupts: Rc<OwnedFd>,
    /// Tells what is tried next.
    pub(super) progress: P,
    pub(super) report: Report,
    /// It was seen to stay when its input ended: that is waited for only once more.
    pub(super) stays: bool,
}

/// Why there was no session.
enum Unopened {
    Refused(String),
    /// It ended, and said this on its standard error; or nothing came.
    Ended(String),
    Late,
}

impl<S: Fn() -> CommandSpec, P: Fn(&str)> Exam<S, P> {
    /// Does all of it, and leaves it in the report.
    pub(super) fn run(&mut self) -> Result<(), Stop> {
        let legacy = self.session(Era::Legacy)?;
        let modern = self.session(Era::Modern)?;
        match (legacy, modern) {
            (None, modern) => {
                match modern {
                    Some(Unopened::Ended(_)) => self.report.add(Finding::ExitsAtDiscover),
                    Some(Unopened::Late) => self.report.add(unanswered(Era::Modern)),
                    Some(Unopened::Refused(_)) | None => {}
                }
                self.rest(Era::Legacy)?;
            }
            (Some(legacy), None) => {
                match legacy {
                    Unopened::Ended(said) => {
                        self.report.add(Finding::Ended(opening(Era::Legacy).to_owned(), said));
                    }
                    Unopened::Late => self.report.add(unanswered(Era::Legacy)),
                    Unopened::Refused(_) => {}
                }
                self.rest(Era::Modern)?;
            }
            (Some(Unopened::Refused(error)), Some(_)) | (Some(_), Some(Unopened::Refused(error))) => {
                self.report.add(Finding::NoEra(error));
            }
            (Some(Unopened::Ended(said)), Some(_)) => self.report.add(Finding::NoAnswer(said)),
            (Some(Unopened::Late), Some(_)) => self.report.add(Finding::NoAnswer(String::new())),
        }
        self.report.finish();
        Ok(())
    }

    /// What is only worth trying with a server that has opened a session.
    fn rest(&mut self, era: Era) -> Result<(), Stop> {
        self.probe(era)?;
        self.offer(era)?;
        if self.report.by_probe {
            self.lumen(era);
        }
        self.eof(era)
    }

    /// An ordinary session: the handshake, and every list that is declared. Returns why there was none.
    fn session(&mut self, era: Era) -> Result<Option<Unopened>, Stop> {
        let mut visit = self.begin(&format!("a session that begins with {}", opening(era)))?;
        let unopened = match visit.open(era, false)? {
            Answer::Result(result) => {
                self.report.note_opening(era, &result, visit.start().now().as_micros() / 1000);
                self.ask_all(&mut visit, era, &result)?;
                None
            }
            Answer::Error(error) => Some(Unopened::Refused(message(&error))),
            Answer::Ended => Some(Unopened::Ended(visit.last_words()?)),
            Answer::Late => Some(Unopened::Late),
        };
        self.end(visit)?;
        Ok(unopened)
    }

    /// Makes every request that has no effect.
    fn ask_all(&mut self, visit: &mut Visit, era: Era, opened: &Value) -> Result<(), Stop> {
        for method in harmless(era, opened) {
            match visit.ask(era, method)? {
                Answer::Result(_) => {}
                Answer::Error(error) => {
                    self.report.add(Finding::Refused(method.to_owned(), message(&error)));
                }
                Answer::Late => self.report.add(Finding::Unanswered(method.to_owned())),
                Answer::Ended if visit.is_endless => break,
                Answer::Ended => {
                    self.report.add(Finding::Ended(method.to_owned(), visit.last_words()?));
                    break;
                }
            }
        }
        Ok(())
    }

    /// A probe before everything else, as `connect` sends it.
    fn probe(&mut self, era: Era) -> Result<(), Stop> {
        let mut visit = self.begin("a session after a probe")?;
        visit.probe(OPENING_PROBE)?;
        let is_there = visit.wait_ack(PROBE_TIMEOUT)?;
        let answer = if is_there { visit.open(era, false)? } else { Answer::Ended };
        let reaction = match (answer, visit.stray()) {
            (Answer::Ended, _) => Reaction::Exits,
            (Answer::Late, _) => Reaction::Deaf,
            _ if visit.is_acked => Reaction::Answers,
            (_, Some(line)) => Reaction::Stray(line.to_owned()),
            (_, None) => Reaction::Ignores,
        };
        self.end(visit)?;
        match reaction {
            Reaction::Exits => self.report.add(Finding::ExitsAtProbe),
            Reaction::Deaf => self.report.add(Finding::DeafAfterProbe),
            Reaction::Answers => self.report.by_probe = true,
            Reaction::Ignores | Reaction::Stray(_) => {}
        }
        self.report.reaction = Some(reaction);
        Ok(())
    }

    /// An offer in the first request, and the probe if that is echoed.
    fn offer(&mut self, era: Era) -> Result<(), Stop> {
        let mut visit = self.begin("a session with an offer")?;
        match visit.open(era, true)? {
            Answer::Result(result) => {
                let extensions = result.pointer("/capabilities/extensions");
                if extensions.is_some_and(|extensions| extensions.get(offer::KEY).is_some()) {
                    visit.probe(OPENING_PROBE)?;
                    visit.wait_ack(self.patience)?;
                    self.report.by_offer = visit.is_acked;
                    if !visit.is_acked {
                        self.report.add(Finding::LumenBroken);
                    }
                }
            }
            Answer::Error(_) | Answer::Ended | Answer::Late => self.report.add(Finding::MindsOffer),
        }
        self.end(visit)
    }

    /// A session over LUMEN, by the machine that `connect` uses too.
    fn lumen(&mut self, era: Era) {
        self.note_start("a session over LUMEN");
        let config = ServerConfig::new(Behind::Process, Mode::Probe)
            .with_probe_timeout(self.patience)
            .with_start_timeout(Some(self.patience));
        let spec = (self.spec)().stderr(Stderr::Ignore);
        let mut client = Client::connect(Target::Command(spec), config);
        let request = Visit::first_request(era).to_string();
        let is_answered = Message::parse(request.into()).is_ok_and(|request| {
            client.send(request).is_ok()
                && std::iter::from_fn(|| client.recv())
                    .find(|message| message.id().is_some())
                    .is_some_and(|answer| answer.envelope().result.is_some())
        });
        if !is_answered || !client.is_lumen() {
            self.report.add(Finding::LumenBroken);
        }
        client.close();
    }

    /// The end of its input while answers are owed.
    fn eof(&mut self, era: Era) -> Result<(), Stop> {
        let mut visit = self.begin("the end of its input")?;
        let Answer::Result(opened) = visit.open(era, false)? else { return self.end(visit) };
        // What it does not answer otherwise says nothing about its end.
        let is_sound = |method: &&str| {
            !self.report.findings.iter().any(|finding| match finding {
                Finding::Unanswered(bad) | Finding::Ended(bad, _) => bad == method,
                _ => false,
            })
        };
        for method in harmless(era, &opened).into_iter().filter(is_sound) {
            visit.request(era, method)?;
        }
        let asked = visit.owed();
        let closed = visit.start().now();
        let has_ended = visit.close(EOF_PATIENCE.min(self.patience))?;
        let took = visit.start().now().saturating_since(closed).as_millis();
        let exit = visit.start().try_exit().filter(|_| has_ended);
        let left = visit.start().descendants();
        if exit.is_none() {
            self.report.add(Finding::StaysAfterEof);
            visit.start().terminate();
            let deadline = visit.start().now() + STOP_STEP;
            if visit.start().wait_exit(deadline)?.is_none() {
                self.report.add(Finding::IgnoresTerm);
            }
        } else if !left.is_empty() {
            self.report.add(Finding::Leftovers(left));
        }
        if let Some(exit) = exit.filter(|exit| *exit != Exit::Code(0)) {
            self.report.add(Finding::BadExit(exit));
        }
        if visit.owed() > 0 {
            self.report.add(Finding::OwedAtEof(visit.owed(), asked));
        }
        self.report.at_eof = Some(AtEof {
            asked,
            answered: asked - visit.owed(),
            exit: exit.map(|exit| (exit, u64::try_from(took).unwrap_or(u64::MAX))),
        });
        self.end(visit)
    }

    fn note_start(&mut self, what: &str) {
        self.report.starts += 1;
        (self.progress)(what);
    }

    fn begin(&mut self, what: &str) -> Result<Visit, Stop> {
        self.note_start(what);
        let start = Start::new((self.spec)(), self.report.starts, Rc::clone(&self.interrupts))?;
        let first = if self.report.starts > 1 { Some(self.patience) } else { self.first_patience };
        Ok(Visit::new(start, std::mem::take(&mut self.report.slips), first, self.patience))
    }

    fn end(&mut self, visit: Visit) -> Result<(), Stop> {
        if visit.is_endless {
            self.report.add(Finding::EndlessLine);
        }
        let patience = if self.stays { Duration::ZERO } else { self.patience.min(STOP_STEP) };
        let (has_ended, slips) = visit.end(patience)?;
        self.stays |= !has_ended;
        self.report.slips = slips;
        Ok(())
    }
}

impl Report {
    /// Takes what the answer to an opening says.
    fn note_opening(&mut self, era: Era, result: &Value, ms: u64) {
        let text =
            |pointer: &str| result.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        match era {
            Era::Legacy => self.legacy = Some(text("/protocolVersion")),
            Era::Modern => {
                let versions = result.get("supportedVersions").and_then(Value::as_array);
                let versions = versions.into_iter().flatten().filter_map(Value::as_str);
                self.modern = Some(versions.map(str::to_owned).collect());
            }
        }
        if self.first_answer_ms.is_some() {
            return;
        }
        self.first_answer_ms = Some(ms);
        self.server = Some((text("/serverInfo/name"), text("/serverInfo/version")));
        let capabilities = result.get("capabilities").and_then(Value::as_object);
        self.capabilities = capabilities.into_iter().flat_map(|all| all.keys().cloned()).collect();
    }
}

/// The requests without an effect that a server serves by what it declared.
fn harmless(era: Era, opened: &Value) -> Vec<&'static str> {
    let ping = (era == Era::Legacy).then_some("ping");
    let is_declared = |name: &str| opened.pointer("/capabilities").is_some_and(|all| all.get(name).is_some());
    let lists = LISTS.into_iter().filter(|(name, _)| is_declared(name)).map(|(_, method)| method);
    ping.into_iter().chain(lists).collect()
}

fn unanswered(era: Era) -> Finding {
    Finding::Unanswered(opening(era).to_owned())
}

/// Returns what an error says, as it stands there.
fn message(error: &Value) -> String {
    let text = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
    text.chars().take(300).collect()
}
