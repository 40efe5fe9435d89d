//! The transports of every binding, over a child's streams and over sockets: the same stories with the same ends.

#[path = "transports/fixture.rs"]
mod fixture;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fixture::{Client, Runtime, Server, Via, is_error, message, request};
use lumen_proto::endpoint::{Event, Outcome, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::{Behind, Ended};
use lumen_proto::{Exit, OpenErrorKind};
use lumen_std::{CommandSpec, Error, Stderr, Target};
use lumen_tests::procs::sibling;

/// Runs a story on each runtime, over each way to a server.
macro_rules! everywhere {
    ($($story:ident)*) => {$(
        mod $story {
            use super::{Runtime, Via};
            everywhere!(@ $story std Std, current_thread CurrentThread, multi_thread MultiThread, uring Uring);
        }
    )*};
    (@ $story:ident $($name:ident $runtime:ident),*) => {$(
        mod $name {
            use super::{Runtime, Via};
            #[test]
            fn child() { if Runtime::$runtime.is_here() { super::super::$story(Runtime::$runtime, Via::Child); } }
            #[test]
            fn unix() { if Runtime::$runtime.is_here() { super::super::$story(Runtime::$runtime, Via::Unix); } }
            #[test]
            fn tcp() { if Runtime::$runtime.is_here() { super::super::$story(Runtime::$runtime, Via::Tcp); } }
        }
    )*};
}

everywhere! {
    lumen_is_agreed_on
    json_is_spoken_if_forced
    a_mebibyte_goes_both_ways
    requests_are_pipelined_without_reading
    a_client_that_only_sends_is_told_to_read
    a_server_that_dies_leaves_no_request_unanswered
    closing_settles_what_is_in_flight
}

/// The usual set-up, for a machine that may be very busy.
fn config() -> ServerConfig {
    ServerConfig::new(Behind::Process, Mode::Auto).with_probe_timeout(Duration::from_secs(30))
}

fn lumen_is_agreed_on(runtime: Runtime, via: Via) {
    let (mut client, server) = fixture::start(runtime, via, config());
    let upgrades = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&upgrades);
    client.on_notice(move |event| *counted.lock().unwrap() += u32::from(matches!(event, Event::Upgraded(_))));
    assert_eq!(client.ask(1, "echo", "[1]"), "[1]");
    assert!(client.is_lumen());
    assert_eq!(*upgrades.lock().unwrap(), 1);
    assert!(client.counters().bytes_read > 0 && client.counters().bytes_written > 0);
    client.close();
    server.assert_closed();
}

fn json_is_spoken_if_forced(runtime: Runtime, via: Via) {
    let (mut client, server) = fixture::start(runtime, via, config().with_force_json_rpc(true));
    let text = request(1, "echo", "[1]");
    assert_eq!(client.ask(1, "echo", "[1]"), "[1]");
    assert!(!client.is_lumen());
    // Lines, and nothing else.
    assert_eq!(client.counters().bytes_written, text.len() as u64 + 1);
    client.close();
    server.assert_closed();
}

fn a_mebibyte_goes_both_ways(runtime: Runtime, via: Via) {
    let (mut client, server) = fixture::start(runtime, via, config());
    let text = format!("\"{}\"", "0123456789abcdef".repeat(65_536));
    assert!(client.ask(1, "echo", &text) == text);
    client.close();
    server.assert_closed();
}

fn requests_are_pipelined_without_reading(runtime: Runtime, via: Via) {
    let (mut client, server) = fixture::start(runtime, via, config());
    for id in 0..100 {
        client.send(request(id, "echo", &id.to_string())).unwrap();
    }
    assert!(client.flush());
    assert!(client.counters().bytes_written > 0);
    for id in 0..100 {
        assert_eq!(
            client.recv().unwrap().bytes(),
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{id}}}"#)
        );
    }
    client.close();
    server.assert_closed();
}

fn a_client_that_only_sends_is_told_to_read(runtime: Runtime, via: Via) {
    let (mut client, server) = fixture::start(runtime, via, config());
    let params = format!("\"{}\"", "x".repeat(100_000));
    // More than all queues and the system hold; that is more for TCP.
    let count = if via == Via::Tcp { 200 } else { 80 };
    let (mut sent, mut received) = (0, 0);
    let mut was_told = false;
    while sent < count {
        match client.send(request(sent, "echo", &params)) {
            Ok(()) => sent += 1,
            Err(Error::Unread(back)) => {
                was_told = true;
                assert_eq!(back, request(sent, "echo", &params));
                // The system may have taken more meanwhile, or not: what counts is that it comes back.
                let _ = client.flush();
                assert_eq!(client.recv().unwrap().id(), Some(received.to_string().as_bytes()));
                received += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(was_told);
    while received < sent {
        assert_eq!(client.recv().unwrap().id(), Some(received.to_string().as_bytes()));
        received += 1;
    }
    assert!(client.flush());
    assert!(client.close().messages.is_empty());
    server.assert_closed();
}

fn a_server_that_dies_leaves_no_request_unanswered(runtime: Runtime, via: Via) {
    let (mut client, server) = fixture::start(runtime, via, config());
    assert_eq!(client.ask(0, "echo", "[]"), "[]");
    client.send(request(1, "die", "[]")).unwrap();
    for id in 2..10 {
        client.send(request(id, "echo", "[]")).unwrap();
    }
    let mut answered: Vec<String> = Vec::new();
    while let Some(answer) = client.recv() {
        assert!(is_error(&answer), "{answer:?}");
        answered.push(String::from_utf8_lossy(answer.id().unwrap()).into_owned());
    }
    answered.sort();
    assert_eq!(answered, (1..10).map(|id| id.to_string()).collect::<Vec<_>>());
    let ended = if via == Via::Child { Ended::Exited(Exit::Code(3)) } else { Ended::Closed };
    let outcome = Outcome::ServerGone(ended);
    assert_eq!(client.send(request(10, "echo", "[]")), Err(Error::Closed(outcome)));
    assert!(!client.flush() && client.recv().is_none());
    let closed = client.close();
    assert_eq!((closed.outcome, closed.messages.len()), (outcome, 0));
    server.assert_died();
}

fn closing_settles_what_is_in_flight(runtime: Runtime, via: Via) {
    let (mut client, server) = fixture::start(runtime, via, config());
    for id in 0..3 {
        client.send(request(id, "echo", "7")).unwrap();
    }
    let closed = client.close();
    let ended = if via == Via::Child { Ended::Exited(Exit::Code(0)) } else { Ended::Closed };
    assert_eq!(closed.outcome, Outcome::Closed(Some(ended)));
    assert_eq!(closed.messages.len(), 3);
    assert!(closed.messages.iter().all(|answer| answer.bytes().ends_with(b":7}")), "{closed:?}");
    server.assert_closed();
}

/// Runs a story on each runtime.
macro_rules! on_each_runtime {
    ($($story:ident)*) => {$(
        mod $story {
            use super::Runtime;
            #[test]
            fn std() { super::$story(Runtime::Std); }
            #[test]
            fn current_thread() { super::$story(Runtime::CurrentThread); }
            #[test]
            fn multi_thread() { super::$story(Runtime::MultiThread); }
            #[test]
            fn uring() { if Runtime::Uring.is_here() { super::$story(Runtime::Uring); } }
        }
    )*};
}

on_each_runtime! {
    a_child_gets_its_surroundings_and_its_stderr_is_heard
    a_server_is_buried_and_its_last_words_known_when_it_is_over
    what_cannot_be_started_answers_and_says_why
    a_server_may_answer_after_its_client_has_closed_its_input
    a_server_is_told_that_its_requests_stay_unanswered
}

fn a_child_gets_its_surroundings_and_its_stderr_is_heard(runtime: Runtime) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&lines);
    let on_line = move |line: &[u8]| heard.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
    let spec = CommandSpec::new(sibling("child_peer"))
        .env("LUMEN_ECHO", "a b")
        .cwd("/")
        .stderr(Stderr::Lines(Box::new(on_line)));
    let mut client = Client::connect(runtime, Target::Command(spec), config());
    assert_eq!(client.ask(1, "env", "[]"), r#"{"cwd":"/","var":"a b"}"#);
    assert_eq!(client.ask(2, "say", r#""first""#), r#""first""#);
    assert_eq!(client.ask(3, "say", r#""last""#), r#""last""#);
    assert_eq!(client.close().outcome, Outcome::Closed(Some(Ended::Exited(Exit::Code(0)))));
    assert_eq!(*lines.lock().unwrap(), [r#""first""#, r#""last""#]);
}

fn a_server_is_buried_and_its_last_words_known_when_it_is_over(runtime: Runtime) {
    let spec = CommandSpec::new("/bin/sh").args(["-c", "read line; echo $$ >&2; exit 5"]);
    let mut client = Client::connect(runtime, Target::Command(spec.stderr(Stderr::Ignore)), config());
    client.send(request(1, "echo", "[]")).unwrap();
    assert!(is_error(&client.recv().unwrap()));
    assert!(client.recv().is_none());
    let pid: u32 = client.stderr().trim().parse().unwrap();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(client.close().outcome, Outcome::ServerGone(Ended::Exited(Exit::Code(5))));
}

fn what_cannot_be_started_answers_and_says_why(runtime: Runtime) {
    let targets = [
        Target::Command(CommandSpec::new("/no/such/program")),
        Target::Unix("/no/such/socket".into()),
        Target::Command(CommandSpec::new("/no/such/program").stderr(Stderr::Ignore)),
    ];
    for target in targets {
        let mut client = Client::connect(runtime, target, config());
        client.send(request(1, "echo", "[]")).unwrap();
        assert!(is_error(&client.recv().unwrap()));
        assert!(client.recv().is_none());
        let words = client.open_error().unwrap();
        assert!(words.contains("/no/such/"), "{words}");
        let Outcome::NotStarted(error) = client.close().outcome else { panic!("it was started") };
        assert_eq!(error.kind, OpenErrorKind::NotFound);
    }
}

fn a_server_may_answer_after_its_client_has_closed_its_input(runtime: Runtime) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut server = Server::socket(runtime, theirs);
    ours.write_all(b"{\"id\":1,\"method\":\"a\"}\n").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(server.recv().unwrap().method_is("a"));
    assert!(server.recv().is_none() && server.recv().is_none());
    let large = format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(1 << 20));
    server.send(message(&large)).unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        ours.read_to_string(&mut text).unwrap();
        text
    });
    assert_eq!(server.close().outcome, Outcome::Closed(None));
    assert!(reader.join().unwrap() == large + "\n");
}

fn a_server_is_told_that_its_requests_stay_unanswered(runtime: Runtime) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut server = Server::socket(runtime, theirs);
    server.send(message(r#"{"id":"s","method":"ping"}"#)).unwrap();
    assert!(server.flush());
    let mut line = [0; 27];
    ours.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"{\"id\":\"s\",\"method\":\"ping\"}\n");
    drop(ours);
    let answer = server.recv().unwrap();
    assert!(is_error(&answer) && answer.id() == Some(b"\"s\""));
    assert!(server.recv().is_none());
    server.close();
}

#[test]
fn receiving_is_safe_to_drop_and_sessions_move_between_threads() {
    let spec = CommandSpec::new(sibling("child_peer"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let session = async {
        let mut client = lumen_tokio::Client::spawn(spec);
        let mut next = 0;
        for id in 0..200 {
            client.send(request(id, "echo", "[]")).await.unwrap();
        }
        while next < 200 {
            tokio::select! {
                biased;
                answer = client.recv() => {
                    assert_eq!(answer.unwrap().id(), Some(next.to_string().as_bytes()));
                    next += 1;
                }
                () = tokio::task::yield_now() => {}
            }
        }
        client.close().await.outcome
    };
    let outcome = runtime.block_on(async { tokio::spawn(session).await.unwrap() });
    assert_eq!(outcome, Outcome::Closed(Some(Ended::Exited(Exit::Code(0)))));
}
