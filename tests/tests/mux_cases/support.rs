//! One mux whose server is the test itself.

use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixListener;

use lumen_tests::mux::{Client, Ended, MuxProcess, PATIENCE, Scratch};
use lumen_tests::procs::{sibling, wait_readable};
use serde_json::Value;

pub use lumen_tests::mux::{call, initialize, notification, request};

/// The code for requests in flight when a server dies.
pub const GONE: i64 = -32011;

/// Runs a story on each runtime.
pub fn each(story: impl Fn(&str)) {
    for runtime in ["tokio", "std"] {
        story(runtime);
    }
}

/// A mux, and the place where its servers come to be told what to say.
pub struct Stage {
    mux: MuxProcess,
    servers: UnixListener,
    _scratch: Scratch,
}

impl Stage {
    /// One whose servers are started again at once.
    pub fn new(runtime: &str) -> Self {
        Self::with_backoff(runtime, "10ms..10ms")
    }

    pub fn with_backoff(runtime: &str, backoff: &str) -> Self {
        let scratch = Scratch::new();
        let servers = UnixListener::bind(scratch.path("puppet")).unwrap();
        let words = [sibling("child_puppet"), scratch.path("puppet")];
        let mux =
            MuxProcess::start(&["--runtime", runtime, "--backoff", backoff, "--negotiate", "off"], words);
        Self { mux, servers, _scratch: scratch }
    }

    /// The next server that is started.
    #[track_caller]
    pub fn server(&self) -> Puppet {
        assert!(wait_readable(&self.servers, PATIENCE), "no server is started: {}", self.mux.stderr());
        Puppet(Client::over(self.servers.accept().unwrap().0).unwrap())
    }

    /// A first client and a server that have shaken hands.
    #[track_caller]
    pub fn greeted(&self) -> (Client, Puppet) {
        let mut server = self.server();
        let mut client = self.mux.client();
        client.say(&initialize("0", ALL, "2025-06-18"));
        server.greet();
        let answer = client.hear();
        assert!(answer["id"] == 0 && answer["result"].is_object(), "{answer}");
        client.say(INITIALIZED);
        server.next("notifications/initialized");
        (client, server)
    }

    /// A further client, greeted from memory.
    #[track_caller]
    pub fn another(&self) -> Client {
        self.mux.client().greeted_with(ALL, "2025-06-18")
    }

    /// Ends it while a server runs.
    #[track_caller]
    pub fn end(self, server: Puppet) -> Ended {
        self.mux.signal(rustix::process::Signal::TERM);
        // It goes at the end of its input.
        assert_eq!(server.rest(), [0; 0].map(Value::from), "nothing is left to say");
        let ended = self.mux.finish(PATIENCE);
        assert_eq!((ended.code, ended.left.len(), ended.has_socket), (Some(0), 0, false), "{ended:?}");
        ended
    }

    /// Ends it while no server is wanted.
    #[track_caller]
    pub fn stop(self) {
        self.mux.end();
    }
}

impl Deref for Stage {
    type Target = MuxProcess;

    fn deref(&self) -> &MuxProcess {
        &self.mux
    }
}

/// What a client says after the handshake.
const INITIALIZED: &str = lumen_tests::mux::INITIALIZED;

/// All that a client can do for a server.
const ALL: &str = r#"{"roots":{},"sampling":{},"elicitation":{}}"#;

/// A server. Dropping it is a crash.
pub struct Puppet(Client);

impl Puppet {
    /// Answers the handshake and returns what it was.
    #[track_caller]
    pub fn greet(&mut self) -> Value {
        let hello = self.next("initialize");
        let capabilities = r#"{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true}}"#;
        self.answer(
            &hello,
            &format!(
                r#"{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"serverInfo":{{"name":"puppet","version":"1"}}}}"#
            ),
        );
        hello
    }

    /// The next message, which must have this method.
    #[track_caller]
    pub fn next(&mut self, method: &str) -> Value {
        let message = self.hear();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Answers a request with this result.
    #[track_caller]
    pub fn answer(&mut self, request: &Value, result: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"]));
    }

    /// Says half of a line and dies.
    pub fn die_inside(mut self, half: &str) {
        self.try_write(half.as_bytes()).unwrap();
    }

    /// Lets its input end, and returns what came before.
    #[track_caller]
    pub fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(line) = self.try_hear().unwrap() {
            rest.push(serde_json::from_slice(&line).unwrap());
        }
        rest
    }
}

impl Deref for Puppet {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl DerefMut for Puppet {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.0
    }
}

/// Asserts that this is the answer to this id (as JSON) with this error, and returns it.
#[track_caller]
pub fn error(answer: &Value, id: &str, code: i64) -> Value {
    assert!(answer["id"] == json(id) && answer["error"]["code"] == code, "{answer}");
    answer["error"].clone()
}

/// Asserts that this is the answer to this id (as JSON) with this result.
#[track_caller]
pub fn result(answer: &Value, id: &str, result: impl Into<Value>) {
    assert!(answer["id"] == json(id) && answer["result"] == result.into(), "{answer}");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
