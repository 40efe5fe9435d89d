//! What must hold, in plain lists and maps: what each party sent and got, and what that allows.
//!
//! Nothing here shares code with the hub. It does not foretell every message; it knows for each one that arrives
//! whether it may, and for each one that was sent what must come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lumen_proto::{Instant, Port};
use serde_json::value::RawValue;

use super::parts::{Parts, raw};
use super::stream::Stream;

/// How a client uses the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Legacy,
    Modern,
    Plain,
}

/// How sure it is that a request was withdrawn before its answer was on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    No,
    Perhaps,
    Surely,
}

/// A request of a client that is not answered.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What makes it known wherever it turns up.
    pub tag: u64,
    /// Its id as spelled, and a name for the id's value.
    pub id: String,
    pub value: String,
    pub method: &'static str,
    pub token: Option<String>,
    pub at: Instant,
    pub withdrawn: Withdrawn,
    pub acknowledged: bool,
    pub uri: Option<&'static str>,
    pub level: Option<usize>,
    /// Another request with this id was not answered when it was sent.
    pub repeats: bool,
    pub in_batch: bool,
}

impl Asked {
    pub fn is_listen(&self) -> bool {
        self.method == "subscriptions/listen"
    }

    /// Returns whether its answer may be that to somebody else's request.
    pub fn is_shared(&self) -> bool {
        matches!(
            self.method,
            "initialize" | "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel"
        )
    }
}

/// What becomes true when the hub has taken a client's message.
#[derive(Clone, Debug)]
pub enum Said {
    Nothing,
    Request(Asked),
    Cancel(String),
    /// Something that may be answered with an error without an id, so often.
    Garbage(usize),
    Batch(Vec<Asked>),
}

/// A client.
pub struct Client {
    pub port: Port,
    pub number: usize,
    pub style: Style,
    pub stream: Stream<Said>,
    /// The hub would take nothing when it was asked last.
    pub paused: bool,
    pub acked: bool,
    pub asked: Vec<Asked>,
    /// What it was asked: the id as spelled, and the mark in it.
    pub asks: Vec<(String, u64)>,
    /// Errors without an id that it may still get.
    pub blames: usize,
    pub greeted: bool,
    pub batches: bool,
    pub capable: BTreeSet<&'static str>,
    /// The level that it has, if that is sure, and the tag of the request for the last one.
    pub level: Option<usize>,
    pub last_level: u64,
    /// Resources it may hear of, and the tag of the last request for each.
    pub subscribed: BTreeMap<&'static str, u64>,
    /// Reads nothing.
    pub stalled: bool,
    pub blocked: bool,
    pub eof: bool,
    /// Cannot be written to.
    pub deaf: bool,
    pub poisoned: bool,
    pub finished: bool,
    pub gone: bool,
    /// Marks of what goes to many: each comes once at most.
    pub heard: BTreeSet<u64>,
}

impl Client {
    /// Returns whether everything that the hub says reaches it at once, and the other way round.
    pub fn is_prompt(&self) -> bool {
        !self.gone && !self.stalled && !self.deaf && !self.poisoned && !self.eof && !self.stream.has_output()
    }
}

/// A request that a server has.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: String,
    pub method: String,
    pub tag: Option<u64>,
    pub token: Option<String>,
    pub uri: Option<String>,
    pub acknowledged: bool,
    pub cancelled: bool,
}

/// A server's request to a client.
#[derive(Clone, Debug)]
pub struct Question {
    pub id: String,
    pub mark: u64,
    /// The client that got it.
    pub client: Option<usize>,
    /// It was taken back; an answer may be on its way.
    pub withdrawn: bool,
}

/// One generation of a server.
pub struct Child {
    pub port: Port,
    pub stream: Stream<()>,
    pub knows_lumen: bool,
    pub opened: bool,
    pub failed: bool,
    pub eof: bool,
    pub exited: bool,
    pub aborted: bool,
    pub finished: bool,
    /// Cannot be written to.
    pub lost: bool,
    /// Reads nothing.
    pub deaf: bool,
    pub blocked: bool,
    pub stubborn: bool,
    pub initialized: usize,
    pub told_initialized: usize,
    pub is_modern: bool,
    pub seen: BTreeSet<String>,
    pub jobs: Vec<Job>,
    pub done: Vec<Job>,
    pub questions: Vec<Question>,
    pub answered_any: bool,
    pub subscribed: BTreeSet<String>,
    pub next_question: u64,
}

impl Child {
    pub fn is_open(&self) -> bool {
        self.opened && !self.eof && !self.exited && !self.aborted
    }

    /// Returns whether everything that the hub says reaches it at once.
    pub fn is_prompt(&self) -> bool {
        self.is_open() && !self.deaf && !self.stream.has_output() && !self.finished
    }
}

/// What is known of a tag, whoever has it.
#[derive(Clone, Debug)]
pub struct Tagged {
    pub client: usize,
    pub is_listen: bool,
    /// The servers that got it.
    pub at: Vec<Port>,
}

/// The id of requests that cannot be read.
pub const JUNK: &str = "\"junk\"";

/// All of it.
#[derive(Default)]
pub struct Model {
    pub clients: Vec<Client>,
    pub children: Vec<Child>,
    pub tags: BTreeMap<u64, Tagged>,
    pub counter: u64,
    /// When the last generation of any server ended.
    pub last_end: Option<Instant>,
    /// Progress that has to arrive: the client and the mark in it.
    pub awaited: BTreeSet<(usize, u64)>,
    /// A server has ended on its first `server/discover`: it may be taken for one of the legacy era.
    pub not_modern: bool,
    pub ending: bool,
    /// What the hub did, by kind: a run in which something never happens checks nothing.
    pub counts: BTreeMap<String, u64>,
}

pub const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl Model {
    pub fn fresh(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    /// The hub has taken what this client said.
    pub fn on_said(&mut self, now: Instant, number: usize, said: Said, is_strict: bool) {
        match said {
            Said::Nothing => {}
            Said::Garbage(blames) => self.clients[number].blames += blames,
            Said::Request(asked) => self.on_asked(now, number, asked),
            Said::Batch(all) => all.into_iter().for_each(|asked| self.on_asked(now, number, asked)),
            Said::Cancel(value) => {
                let client = &mut self.clients[number];
                let sure = if is_strict { Withdrawn::Surely } else { Withdrawn::Perhaps };
                for asked in &mut client.asked {
                    if asked.value == value && asked.method != "initialize" {
                        // The error for an id in use may wait for the rest of its array.
                        // What belongs into an array may wait there for the rest of it.
                        asked.withdrawn = if asked.in_batch { Withdrawn::Perhaps } else { sure };
                    }
                }
            }
        }
    }

    fn on_asked(&mut self, now: Instant, number: usize, mut asked: Asked) {
        asked.at = now;
        let is_listen = asked.is_listen();
        self.tags.insert(asked.tag, Tagged { client: number, is_listen, at: Vec::new() });
        let client = &mut self.clients[number];
        if let (Some(uri), "resources/subscribe") = (asked.uri, asked.method) {
            client.subscribed.insert(uri, asked.tag);
        }
        let is_open = |other: &Asked| other.value == asked.value && other.withdrawn != Withdrawn::Surely;
        asked.repeats = client.asked.iter().any(is_open);
        if asked.level.is_some() {
            client.level = None;
            // Before the handshake it is a request like any other.
            client.last_level = if client.greeted { asked.tag } else { 0 };
        }
        client.asked.push(asked);
    }

    /// A client has got this.
    pub fn on_client_got(&mut self, now: Instant, number: usize, text: &str, in_array: bool) {
        if text.starts_with('[') {
            let all: Vec<&RawValue> = serde_json::from_str(text).expect("an array");
            assert!(!all.is_empty(), "an empty array to client {number}");
            return all.into_iter().for_each(|one| self.on_client_got(now, number, one.get(), true));
        }
        let parts = Parts::new(text);
        match (&parts.method, parts.id) {
            (Some(method), Some(id)) => self.on_question(number, method, id.get(), &parts),
            (Some(method), None) => self.on_notice(number, method, text, &parts),
            (None, _) => self.on_answer(now, number, text, &parts, in_array),
        }
    }

    fn on_answer(&mut self, now: Instant, number: usize, text: &str, parts: &Parts<'_>, in_array: bool) {
        let last_end = self.last_end;
        let (is_ending, not_modern) = (self.ending, self.not_modern);
        let client = &mut self.clients[number];
        let id = parts.id.map_or("null", RawValue::get);
        let result = Parts::inner(parts.result);
        let error = Parts::inner(parts.error);
        let is_ours = error.message.as_deref().is_some_and(|message| message.starts_with("lumen: "));
        if id == "null" {
            assert!(client.blames > 0, "an error without id for client {number}, which did nothing: {text}");
            client.blames -= 1;
            return;
        }
        let tag = result.t.or(error.t);
        let reason = error.reason.filter(|_| is_ours);
        let by_tag = client
            .asked
            .iter()
            .position(|asked| Some(asked.tag) == tag && asked.id == id && asked.in_batch == in_array);
        let is_refused = reason.as_deref() == Some("not_json_rpc");
        let same = |asked: &Asked| asked.id == id && asked.in_batch == (in_array || is_refused);
        let at = match (&reason, by_tag) {
            (_, Some(at)) => Some(at),
            (Some(reason), None) if reason == "id_in_use" => {
                client.asked.iter().rposition(|asked| same(asked) && asked.repeats)
            }
            (Some(_), None) if is_refused => client.asked.iter().rposition(same),
            (Some(_), None) => client
                .asked
                .iter()
                .position(|asked| same(asked) && asked.withdrawn == Withdrawn::No && !asked.repeats)
                .or_else(|| {
                    let still = |asked: &Asked| same(asked) && asked.withdrawn == Withdrawn::No;
                    client.asked.iter().position(still)
                })
                .or_else(|| client.asked.iter().position(same)),
            (None, None) => {
                let open = |asked: &Asked| same(asked) && asked.is_shared();
                let wanted = |asked: &Asked| open(asked) && asked.withdrawn != Withdrawn::Surely;
                client.asked.iter().position(wanted).or_else(|| client.asked.iter().position(open))
            }
        };
        let Some(at) = at else {
            panic!(
                "client {number} got an answer to nothing that it asks: {text}; it asks {:?}",
                client.asked
            )
        };
        let asked = client.asked.remove(at);
        assert!(
            asked.withdrawn != Withdrawn::Surely,
            "client {number} got an answer to what it had cancelled: {text}"
        );
        if tag.is_none() && reason.is_none() && asked.method == "initialize" {
            assert!(result.version.is_some() || parts.error.is_some(), "no handshake: {text}");
        }
        if let Some(reason) = &reason {
            let waited = now.saturating_since(asked.at);
            let is_plausible = match reason.as_str() {
                "id_in_use" => asked.repeats,
                "server_gone" => last_end.is_some_and(|end| end >= asked.at),
                "no_answer" => waited >= Duration::from_secs(300) || client.eof || asked.is_shared(),
                "bad_id" => asked.value == "n1.5",
                "wrong_era" => not_modern,
                "no_method" => asked.method == "server/discover",
                "down" | "not_started" => last_end.is_some(),
                "shutting_down" => is_ending,
                "not_json_rpc" => asked.in_batch,
                _ => false,
            };
            assert!(is_plausible, "client {number} got an error for no reason: {text}, asked {asked:?}");
        }
        if result.version.is_some() && asked.method == "initialize" {
            client.greeted = true;
            client.batches = result.version.as_deref() == Some("2025-03-26");
        }
        if asked.is_listen() && result.subscription.is_some() {
            let named = raw(result.subscription);
            assert_eq!(named.as_deref(), Some(id), "the end of a subscription names another: {text}");
        }
        match (asked.method, asked.uri) {
            ("resources/unsubscribe", Some(uri)) if parts.error.is_none() => {
                // Unless it has subscribed again since.
                client.subscribed.retain(|known, tag| *known != uri || *tag > asked.tag);
            }
            _ => {}
        }
        if asked.level.is_some() && parts.error.is_none() && asked.tag == client.last_level {
            client.level = asked.level;
        }
        let kind =
            reason.unwrap_or_else(|| if parts.error.is_some() { "error".into() } else { "result".into() });
        self.count(&format!("answer {kind}"));
    }

    fn on_question(&mut self, number: usize, method: &str, id: &str, parts: &Parts<'_>) {
        let mark = Parts::inner(parts.params).mark.expect("a mark");
        let client = &mut self.clients[number];
        assert!(client.style == Style::Legacy, "client {number} is asked {method}");
        let needs = method.split('/').next().unwrap_or_default();
        assert!(client.capable.contains(needs), "client {number} cannot {method}, and is asked");
        assert!(client.asks.iter().all(|(known, _)| known != id), "client {number} is asked {id} twice");
        client.asks.push((id.to_owned(), mark));
        let mut questions = self.children.iter_mut().flat_map(|child| &mut child.questions);
        let question = questions.find(|question| question.mark == mark);
        // It may come late, when the server that asked is gone.
        if let Some(question) = question {
            assert!(question.client.is_none(), "question {mark} goes to two clients");
            question.client = Some(number);
        }
        self.count("question");
    }

    fn on_notice(&mut self, number: usize, method: &str, text: &str, parts: &Parts<'_>) {
        let inner = Parts::inner(parts.params);
        let client = &mut self.clients[number];
        if let Some(named) = raw(inner.subscription) {
            let asked = client.asked.iter_mut().find(|asked| Some(asked.tag) == inner.t);
            let Some(asked) = asked.filter(|asked| asked.is_listen()) else {
                assert!(
                    client.stalled || self.tags[&inner.t.unwrap()].client == number,
                    "not theirs: {text}"
                );
                panic!("client {number} hears of a subscription that is not open: {text}");
            };
            assert_eq!(asked.id, named, "client {number}: a subscription under another id");
            assert!(
                asked.withdrawn != Withdrawn::Surely,
                "client {number} hears of what it cancelled: {text}"
            );
            if method == "notifications/subscriptions/acknowledged" {
                assert!(!asked.acknowledged, "client {number}: acknowledged twice");
                asked.acknowledged = true;
            }
            if method == "notifications/cancelled" {
                assert_eq!(
                    raw(inner.request).as_deref(),
                    Some(&*named),
                    "cancelled under another id: {text}"
                );
                let tag = inner.t;
                client.asked.retain(|asked| Some(asked.tag) != tag);
            }
            return self.count("subscription");
        }
        match method {
            "notifications/progress" => {
                let asked = client.asked.iter().find(|asked| Some(asked.tag) == inner.t);
                let Some(asked) = asked else {
                    panic!("client {number} got progress of what it does not ask: {text}")
                };
                assert_eq!(asked.token, raw(inner.token), "client {number}: progress under another token");
                assert!(
                    asked.withdrawn != Withdrawn::Surely,
                    "client {number}: progress of what it cancelled"
                );
                self.awaited.remove(&(number, inner.mark.expect("a mark")));
                return self.count("progress");
            }
            "notifications/cancelled" => {
                let id = raw(inner.request).expect("an id");
                let known = client.asks.len();
                client.asks.retain(|(asked, _)| *asked != id);
                // It may have answered already, and the server be gone since.
                let is_known = known > client.asks.len();
                return self.count(if is_known { "withdrawn" } else { "withdrawn late" });
            }
            "notifications/resources/updated" => {
                let uri = inner.uri.as_deref().unwrap_or_default();
                assert!(client.subscribed.contains_key(uri), "client {number} is not subscribed: {text}");
            }
            "notifications/message" if client.style == Style::Legacy => {
                let level = LEVELS.iter().position(|level| Some(*level) == inner.level.as_deref());
                let wanted = client.level.filter(|_| !client.stalled);
                assert!(wanted <= level, "client {number} wants {wanted:?} and above: {text}");
            }
            _ => {}
        }
        if let Some(mark) = inner.mark {
            assert!(client.heard.insert(mark), "client {number} hears it twice: {text}");
            assert!(
                client.style != Style::Modern || method == "notifications/message",
                "not for {number}: {text}"
            );
            self.awaited.remove(&(number, mark));
        }
        self.count(method);
    }

    /// A server has got this.
    pub fn on_child_got(&mut self, now: Instant, at: usize, text: &str) {
        let parts = Parts::new(text);
        match (&parts.method, parts.id) {
            (Some(method), Some(id)) => self.on_job(at, method, id.get(), &parts),
            (Some(method), None) => self.on_told(now, at, method, text, &parts),
            (None, _) => self.on_reply(at, text, &parts),
        }
    }

    fn on_job(&mut self, at: usize, method: &str, id: &str, parts: &Parts<'_>) {
        let inner = Parts::inner(parts.params);
        let child = &mut self.children[at];
        assert!(id.parse::<u64>().is_ok_and(|id| id < 1 << 53), "server {at}: the id {id}");
        assert!(child.seen.insert(id.to_owned()), "server {at} sees the id {id} twice");
        if method == "initialize" {
            child.initialized += 1;
            assert_eq!(child.initialized, 1, "server {at} is initialized twice");
            assert!(inner.t.is_none(), "server {at} sees a client's handshake");
        }
        child.is_modern |= inner.is_modern;
        assert!(!(child.is_modern && child.initialized > 0), "server {at} sees both eras: {method}");
        if let (Some(uri), "resources/subscribe", true) = (&inner.uri, method, child.initialized > 0) {
            assert!(child.subscribed.insert(uri.clone()), "server {at}: subscribed twice to {uri}");
        }
        if let (Some(uri), "resources/unsubscribe") = (&inner.uri, method) {
            child.subscribed.remove(uri);
        }
        let token = raw(inner.asked_token);
        assert!(token.as_deref().is_none_or(|token| token == id), "server {at}: token {token:?} of {id}");
        let port = child.port;
        child.jobs.push(Job {
            id: id.to_owned(),
            method: method.to_owned(),
            tag: inner.t,
            token,
            uri: inner.uri,
            acknowledged: false,
            cancelled: false,
        });
        if let Some(tag) = inner.t {
            let before = self.tags[&tag].at.clone();
            for earlier in before {
                assert!(earlier != port, "server {at} sees {tag} twice");
                let earlier = self.children.iter().find(|child| child.port == earlier).expect("a server");
                assert!(
                    self.tags[&tag].is_listen
                        || (!earlier.answered_any && earlier.port.index() == port.index()),
                    "server {at} sees {tag} again, which another one had"
                );
            }
            self.tags.get_mut(&tag).expect("a tag").at.push(port);
        }
        self.count("job");
    }

    fn on_told(&mut self, now: Instant, at: usize, method: &str, text: &str, parts: &Parts<'_>) {
        let inner = Parts::inner(parts.params);
        let child = &mut self.children[at];
        if method == "notifications/initialized" {
            child.told_initialized += 1;
            assert!(
                child.told_initialized <= child.initialized,
                "server {at} is told {method} without a handshake"
            );
        }
        if method != "notifications/cancelled" {
            return;
        }
        let id = raw(inner.request).expect("an id");
        let all = child.jobs.iter_mut().chain(&mut child.done);
        let Some(job) = all.into_iter().find(|job| job.id == id) else {
            panic!("server {at}: a cancel for {id}, which it was not sent: {text}")
        };
        assert!(job.method != "initialize", "server {at}: its handshake is cancelled");
        assert!(!job.cancelled, "server {at}: {id} is cancelled twice");
        job.cancelled = true;
        let (tag, uri) = (job.tag, job.uri.clone());
        if job.method == "resources/subscribe"
            && let Some(uri) = uri
        {
            child.subscribed.remove(&uri);
        }
        let Some(tag) = tag else { return };
        let owner = self.tags[&tag].client;
        let client = &self.clients[owner];
        let open = client.asked.iter().find(|asked| asked.tag == tag && asked.withdrawn == Withdrawn::No);
        let is_right = open.is_none_or(|asked| {
            client.gone || client.eof || now.saturating_since(asked.at) >= Duration::from_secs(300)
        });
        assert!(is_right, "server {at}: cancelled what client {owner} still wants: {text}");
        self.count("cancel");
    }

    fn on_reply(&mut self, at: usize, text: &str, parts: &Parts<'_>) {
        let id = parts.id.map_or("null", RawValue::get).to_owned();
        let result = Parts::inner(parts.result);
        let error = Parts::inner(parts.error);
        let (mark, from) = (result.mark.or(error.mark), result.from.or(error.from));
        // What it got wrong in full.
        if id == JUNK && error.message.is_some_and(|message| message.starts_with("lumen: ")) {
            return;
        }
        let child = &mut self.children[at];
        let mut all = child.questions.iter();
        let found = match mark {
            Some(mark) => all.position(|question| question.mark == mark),
            None if error.reason.as_deref() == Some("id_in_use") => {
                all.rposition(|question| question.id == id)
            }
            // Whoever was asked says which one it answers.
            None => {
                let unasked = |question: &Question| question.id == id && question.client.is_none();
                all.rposition(unasked)
                    .or_else(|| child.questions.iter().position(|question| question.id == id))
            }
        };
        let Some(found) = found else { panic!("server {at} got a reply to nothing that it asks: {text}") };
        let question = child.questions.remove(found);
        assert_eq!(question.id, id, "server {at}: a reply under another id");
        if let Some(from) = from {
            assert_eq!(question.client, Some(from), "server {at}: a reply of somebody else: {text}");
        }
        self.count(if from.is_some() { "reply" } else { "reply of ours" });
    }
}
