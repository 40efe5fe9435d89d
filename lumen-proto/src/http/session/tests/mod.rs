//! Tests of the session: an agent and a server played by hand, without sockets.

use std::string::{String, ToString};
use std::time::Duration;
use std::vec::Vec;

use serde_json::Value;

use super::*;
use crate::http::{Request, TransportErrorKind};

mod endings;
mod failures;
mod headers;
mod messages;
mod random;
mod renewal;
mod streams;

/// A session with an agent before it and a server behind it.
struct Rig {
    session: Session,
    now: Instant,
}

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const JSON: (&str, &str) = ("content-type", "application/json");
const SSE: (&str, &str) = ("content-type", "text/event-stream");

impl Rig {
    fn new() -> Self {
        Self::with(Config::new("https://host/mcp".into()))
    }

    fn with(config: Config) -> Self {
        Self { session: Session::new(config), now: Instant::from_millis(1000) }
    }

    /// A session that is open, at a server that names it `s1` and has no stream of its own.
    fn opened() -> Self {
        let mut rig = Self::new();
        rig.open("s1");
        let stream = rig.next();
        rig.head(stream.id, 405, &[]);
        assert_eq!(rig.aborted(), [stream.id]);
        rig.events();
        rig
    }

    /// Opens a session; the server's own stream is asked for and not answered yet.
    fn open(&mut self, session: &str) {
        self.say(INITIALIZE);
        let initialize = self.next();
        assert_eq!(
            (header(&initialize, "mcp-session-id"), header(&initialize, "mcp-protocol-version")),
            (None, None)
        );
        self.begin(initialize.id, session, 0);
        assert_eq!(self.told().len(), 1);
        self.say(INITIALIZED);
        let initialized = self.next();
        assert_eq!(initialized.body, INITIALIZED);
        self.none();
        self.accept(initialized.id);
    }

    /// Answers an `initialize` well.
    fn begin(&mut self, id: ExchangeId, session: &str, answered: u32) {
        self.head(id, 200, &[JSON, ("mcp-session-id", session)]);
        let text = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
        self.chunk(id, &text.replace("ID", &answered.to_string()));
        self.end(id);
    }

    fn say(&mut self, text: &str) {
        self.session.handle_message(self.now, Message::copy_from(text.as_bytes()).unwrap());
    }

    #[track_caller]
    fn next(&mut self) -> Request {
        self.session.poll_request().expect("a request")
    }

    #[track_caller]
    fn none(&mut self) {
        assert_eq!(self.session.poll_request(), None);
    }

    fn head(&mut self, id: ExchangeId, status: u16, headers: &[(&str, &str)]) {
        self.session.handle_head(self.now, id, status, headers);
    }

    fn chunk(&mut self, id: ExchangeId, text: &str) {
        self.session.handle_chunk(self.now, id, text.as_bytes());
    }

    fn end(&mut self, id: ExchangeId) {
        self.session.handle_end(self.now, id, Ok(()));
    }

    fn accept(&mut self, id: ExchangeId) {
        self.head(id, 202, &[]);
        self.end(id);
    }

    fn json(&mut self, id: ExchangeId, status: u16, text: &str) {
        self.head(id, status, &[JSON]);
        self.chunk(id, text);
        self.end(id);
    }

    fn sse(&mut self, id: ExchangeId, text: &str) {
        self.head(id, 200, &[SSE]);
        self.chunk(id, text);
    }

    fn fail(&mut self, id: ExchangeId, kind: TransportErrorKind) {
        self.session.handle_end(self.now, id, Err(TransportError { kind, text: "it broke".into() }));
    }

    fn told(&mut self) -> Vec<String> {
        let text = |message: Message| String::from_utf8(message.bytes().to_vec()).unwrap();
        core::iter::from_fn(|| self.session.poll_message()).map(text).collect()
    }

    /// The one error that the agent was told.
    #[track_caller]
    fn error(&mut self) -> Value {
        let told = self.told();
        let [error] = told.as_slice() else { panic!("{told:?}") };
        serde_json::from_str(error).unwrap()
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.session.poll_event()).collect()
    }

    fn aborted(&mut self) -> Vec<ExchangeId> {
        core::iter::from_fn(|| self.session.poll_abort()).collect()
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.session.handle_timeout(self.now);
        assert!(self.session.poll_timeout().is_none_or(|due| due > self.now));
    }

    /// Says a request and returns what is made of it.
    #[track_caller]
    fn call(&mut self, id: u32) -> Request {
        self.say(&call(id));
        self.next()
    }
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let mut found = request.headers.iter().filter(|(header, _)| header == name);
    let value = found.next().map(|(_, value)| value.as_str());
    assert_eq!(found.next(), None, "{name} twice");
    value
}

fn call(id: u32) -> String {
    std::format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo"}}}}"#)
}

fn result(id: u32) -> String {
    std::format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":{id}}}}}"#)
}

fn data(text: &str) -> String {
    std::format!("data: {text}\n\n")
}
