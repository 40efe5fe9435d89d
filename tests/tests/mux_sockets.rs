//! The hub behind real Unix sockets and over a real child, on each runtime.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lumen_proto::limits;
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::{CommandSpec, HubConfig, HubEvent, MuxEvent, MuxSpec, Parted, Refusal, ServerConfig, Stderr};
use lumen_tests::procs::{Mark, sibling};
use serde_json::Value;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A mux that serves, on either runtime.
enum Served {
    Std(lumen_std::MuxHandle),
    Tokio(lumen_tokio::MuxHandle, tokio::runtime::Runtime),
}

impl Served {
    fn close(self) {
        match self {
            Self::Std(handle) => handle.close(),
            Self::Tokio(handle, runtime) => runtime.block_on(handle.close()),
        }
    }
}

struct Story {
    served: Option<Served>,
    path: PathBuf,
    events: Receiver<MuxEvent>,
}

impl Story {
    fn new(is_tokio: bool, config: HubConfig, arguments: &[&str]) -> Self {
        Self::with(is_tokio, config, arguments, |command| command)
    }

    fn with(
        is_tokio: bool,
        config: HubConfig,
        arguments: &[&str],
        change: impl FnOnce(CommandSpec) -> CommandSpec,
    ) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("lumen-mux-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name).join("lumen.sock");
        let command = CommandSpec::new(sibling("child_server")).args(arguments);
        let command = command.stderr(Stderr::Lines(Box::new(|_| {})));
        let spec = MuxSpec::new(&path, change(command)).hub(config);
        let (tell, events) = channel();
        let on_event = move |event: &MuxEvent| drop(tell.send(event.clone()));
        let served = if is_tokio {
            // The task runs whether or not somebody waits for it, so it gets a thread.
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            let runtime = runtime.unwrap();
            let handle = {
                let _inside = runtime.enter();
                lumen_tokio::Mux::bind(spec).unwrap().spawn(on_event)
            };
            Served::Tokio(handle, runtime)
        } else {
            Served::Std(lumen_std::Mux::bind(spec).unwrap().spawn(on_event).unwrap())
        };
        Self { served: Some(served), path, events }
    }

    fn client(&self) -> Client {
        Client::connect(&self.path)
    }

    /// Waits for an event that is meant.
    fn wait_for(&self, is_meant: impl Fn(&MuxEvent) -> bool) -> MuxEvent {
        loop {
            let event = self.events.recv_timeout(PATIENCE).expect("the event comes");
            if is_meant(&event) {
                return event;
            }
        }
    }

    fn close(mut self) {
        if let Some(served) = self.served.take() {
            served.close();
        }
        assert!(!self.path.exists(), "the socket is removed");
        let _ = std::fs::remove_dir_all(self.path.parent().unwrap());
    }
}

/// A client that speaks JSON lines.
struct Client {
    write: UnixStream,
    read: BufReader<UnixStream>,
}

impl Client {
    fn connect(path: &Path) -> Self {
        let write = UnixStream::connect(path).unwrap();
        write.set_read_timeout(Some(PATIENCE)).unwrap();
        let read = BufReader::new(write.try_clone().unwrap());
        Self { write, read }
    }

    fn say(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line; `None` at the end of the stream.
    fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        let len = self.read.read_line(&mut line).unwrap();
        (len > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    fn ask(&mut self, line: &str) -> Value {
        self.say(line);
        self.hear().expect("an answer")
    }

    fn greeted(mut self) -> Self {
        let answer = self.ask(concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
            r#""capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
        ));
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&0.into(), &"2025-06-18".into()));
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self
    }
}

fn config() -> HubConfig {
    HubConfig::new(ServerConfig::new(Behind::Process, Mode::Offer))
}

fn echo(id: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"t":"{text}"}}}}}}"#
    )
}

fn each(story: impl Fn(bool)) {
    for is_tokio in [false, true] {
        story(is_tokio);
    }
}

#[test]
fn clients_share_one_process() {
    each(|is_tokio| {
        let scratch =
            std::env::temp_dir().join(format!("lumen-mux-record-{}-{is_tokio}", std::process::id()));
        let story = Story::new(is_tokio, config(), &["--record", scratch.to_str().unwrap()]);
        let mut clients: Vec<Client> = (0..8).map(|_| story.client().greeted()).collect();
        for round in 0..20 {
            for (number, client) in clients.iter_mut().enumerate() {
                client.say(&echo("\"same\"", &format!("{number}-{round}")));
            }
            for (number, client) in clients.iter_mut().enumerate() {
                let answer = client.hear().unwrap();
                assert_eq!(answer["id"], "same");
                assert_eq!(answer["result"]["structuredContent"]["t"], format!("{number}-{round}"));
            }
        }
        story.close();
        for mut client in clients {
            assert_eq!(client.hear(), None, "the stream ends");
        }
        let record = std::fs::read_to_string(&scratch).unwrap();
        assert_eq!(record.lines().filter(|line| *line == "start").count(), 1);
        assert_eq!(record.lines().filter(|line| line.contains("\"initialize\"")).count(), 1);
        std::fs::remove_file(&scratch).unwrap();
    });
}

#[test]
fn a_crash_is_answered_and_mended() {
    each(|is_tokio| {
        let mut config = config();
        config.backoff.base = Duration::from_millis(1);
        let story = Story::new(is_tokio, config, &["--crash-after", "3"]);
        let mut client = story.client().greeted();
        assert!(client.ask(&echo("1", "a"))["result"].is_object());
        assert!(client.ask(&echo("2", "a"))["result"].is_object());
        let answer = client.ask(&echo("3", "a"));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&3.into(), &(-32011).into()));
        // The next server is greeted privately; what is asked meanwhile waits for it.
        let answer = client.ask(&echo("4", "b"));
        assert_eq!(answer["result"]["structuredContent"]["t"], "b");
        story.close();
    });
}

#[test]
fn a_client_that_vanishes_is_noticed_while_its_request_is_open() {
    each(|is_tokio| {
        let story = Story::new(is_tokio, config(), &["--unanswered", "resources/list"]);
        let mut stays = story.client().greeted();
        let mut goes = story.client().greeted();
        goes.say(r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#);
        assert!(goes.ask(&echo("2", "a"))["result"].is_object());
        drop(goes);
        story.wait_for(|event| matches!(event, MuxEvent::Hub(HubEvent::Parted { why: Parted::Left, .. })));
        assert!(stays.ask(&echo("1", "a"))["result"].is_object());
        story.close();
    });
}

#[test]
fn anybody_may_ask_how_things_stand_at_any_time() {
    each(|is_tokio| {
        let story = Story::new(is_tokio, config(), &["--stderr-flood", "200"]);
        let mut visitor = story.client();
        let status = visitor.ask(r#"{"jsonrpc":"2.0","id":"s","method":"lumen/status"}"#);
        assert_eq!(status["result"]["servers"][0]["state"], "idle");
        let mut client = story.client().greeted();
        assert!(client.ask(&echo("1", "a"))["result"].is_object());
        // What it wrote to its standard error may come after what it wrote to its output.
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            assert!(Instant::now() < deadline, "the server's standard error is never told");
            let status = visitor.ask(r#"{"jsonrpc":"2.0","id":"s","method":"lumen/status"}"#);
            if status["result"]["servers"][0]["stderr"] != Value::Array(Vec::new()) {
                break status;
            }
        };
        let server = &status["result"]["servers"][0];
        assert_eq!((&server["state"], &server["era"]), (&"running".into(), &"legacy".into()));
        let pid = server["pid"].as_u64().expect("a process");
        assert!(Path::new(&format!("/proc/{pid}")).exists());
        assert_eq!(status["result"]["clients"], 2);
        story.close();
    });
}

#[test]
fn a_client_too_many_hears_why_and_may_ask_how_things_stand() {
    each(|is_tokio| {
        let story = Story::new(is_tokio, HubConfig { max_clients: 1, ..config() }, &[]);
        let mut first = story.client().greeted();
        let mut late = story.client();
        let refused = late.ask(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&1.into(), &(-32603).into()));
        assert_eq!(refused["error"]["data"]["reason"], "full");
        assert_eq!(late.hear(), None);
        story.wait_for(|event| matches!(event, MuxEvent::Visited { .. }));
        let status = story.client().ask(r#"{"jsonrpc":"2.0","id":1,"method":"lumen/status"}"#);
        assert_eq!(status["result"]["servers"][0]["state"], "running");
        assert!(first.ask(&echo("1", "a"))["result"].is_object());
        // Nobody is kept for longer than a visit, and meanwhile there is an end to that, too.
        let visitors: Vec<Client> = (0..limits::MAX_VISITORS).map(|_| story.client()).collect();
        story.client();
        let refused = story.wait_for(|event| matches!(event, MuxEvent::Refused { .. }));
        assert!(matches!(refused, MuxEvent::Refused { why: Refusal::Full, .. }));
        for mut visitor in visitors {
            assert_eq!(visitor.hear(), None);
        }
        story.close();
    });
}

fn private() -> HubConfig {
    let config = config();
    HubConfig { mux: lumen_proto::mux::Config { private: true, ..config.mux }, ..config }
}

fn initialize(capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    )
}

#[test]
fn each_server_is_told_of_its_own_client_and_dies_alone() {
    each(|is_tokio| {
        let scratch = std::env::temp_dir().join(format!("lumen-mux-own-{}-{is_tokio}", std::process::id()));
        let mut config = private();
        config.backoff.base = Duration::from_millis(1);
        // The offer is ours, and would stand in the handshake.
        config.server.mode = Mode::Off;
        let story =
            Story::new(is_tokio, config, &["--record", scratch.to_str().unwrap(), "--crash-after", "3"]);
        let capabilities = [r#"{"roots":{"listChanged":false}}"#, r#"{"sampling":{}, "x":1.0}"#];
        let mut clients: Vec<Client> = (0..2).map(|_| story.client()).collect();
        for (client, capabilities) in clients.iter_mut().zip(capabilities) {
            assert!(client.ask(&initialize(capabilities))["result"].is_object());
            client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            assert!(client.ask(&echo("1", "a"))["result"].is_object());
        }
        let [mut one, mut other] = <[Client; 2]>::try_from(clients).ok().unwrap();
        assert!(one.ask(&echo("2", "a"))["result"].is_object());
        let answer = one.ask(&echo("3", "a"));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&3.into(), &(-32011).into()));
        assert!(other.ask(&echo("2", "b"))["result"].is_object(), "that was not its server");
        assert_eq!(one.ask(&echo("4", "c"))["result"]["structuredContent"]["t"], "c");
        story.close();
        let record = std::fs::read_to_string(&scratch).unwrap();
        let told = |capabilities: &str| {
            let member = format!("\"capabilities\":{capabilities},");
            record.lines().filter(|line| line.contains("\"initialize\"") && line.contains(&member)).count()
        };
        assert_eq!(capabilities.map(told), [2, 1], "{record}");
        std::fs::remove_file(&scratch).unwrap();
    });
}

#[test]
fn twenty_come_and_go_and_nothing_is_left() {
    each(|is_tokio| {
        let mark = Mark::new();
        let story =
            Story::with(is_tokio, private(), &[], |command| command.env(mark.pair().0, mark.pair().1));
        let mut stays = story.client().greeted();
        for round in 0..20 {
            let mut client = story.client().greeted();
            assert!(client.ask(&echo("1", "a"))["result"].is_object());
            assert_eq!(mark.processes().len(), 2, "round {round}");
            drop(client);
            story.wait_for(|event| matches!(event, MuxEvent::Hub(HubEvent::Ended { .. })));
        }
        assert_eq!(mark.processes().len(), 1);
        assert!(stays.ask(&echo("1", "a"))["result"].is_object());
        story.close();
        assert_eq!(mark.wait_gone(PATIENCE), [] as [u32; 0]);
    });
}

#[test]
fn it_ends_however_many_are_connected_and_whatever_the_server_does() {
    each(|is_tokio| {
        let story = Story::new(is_tokio, config(), &["--ignore-term", "--unanswered", "resources/list"]);
        let mut clients: Vec<Client> = (0..5).map(|_| story.client().greeted()).collect();
        for client in &mut clients {
            client.say(r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#);
            // When this is answered, the other is with the server.
            assert!(client.ask(&echo("2", "a"))["result"].is_object());
        }
        story.close();
        for client in &mut clients {
            let answer = client.hear().expect("what was asked is answered");
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&1.into(), &(-32011).into()));
        }
    });
}
