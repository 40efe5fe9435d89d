//! O-20 to O-24: who goes first, and who is left.

use lumen_tests::mux::{MuxProcess, PATIENCE, child_server};
use lumen_tests::procs::{children, sibling};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::*;

/// Starts a mux over `child_server`, and a client that is greeted.
#[track_caller]
fn over_child(runtime: &str, options: &[&str]) -> (MuxProcess, lumen_tests::mux::Client) {
    let mux = MuxProcess::start(
        &["--runtime", runtime, "--backoff", "10ms..10ms", "--negotiate", "off"],
        child_server(options),
    );
    let client = mux.client().greeted();
    (mux, client)
}

#[test]
fn o_20_a_client_that_vanishes_while_it_is_written_to_harms_nobody() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        let mut b = stage.another();
        a.say(&call("1", "x", "{}"));
        let asked = server.next("tools/call");
        server.answer(&asked, &format!("\"{}\"", "x".repeat(5 << 20)));
        // Not before its first bytes are there, and most are not.
        a.try_hear_some().unwrap();
        drop(a);
        b.say(&call("2", "x", "{}"));
        let asked = loop {
            let message = server.hear();
            if message["method"] == "tools/call" {
                break message;
            }
        };
        server.answer(&asked, "2");
        result(&b.hear(), "2", 2);
        stage.wait_status(|status| status["clients"] == 2 && status["queuedBytes"] == 0);
        drop(b);
        stage.end(server);
    });
}

#[test]
fn o_20_a_server_that_leaves_during_the_handshake_is_started_again() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let mut server = stage.server();
        let mut a = stage.client();
        a.say(&initialize("\"h\"", "{}", "2025-06-18"));
        server.greet();
        drop(server);
        let answer = a.hear();
        assert_eq!(answer["id"], "h", "{answer}");
        // Whoever comes next is served. Before that it would be by the first one.
        stage.wait_status(|status| status["servers"][0]["lastEnd"].is_string());
        let mut b = stage.client();
        b.say(&initialize("0", "{}", "2025-06-18"));
        b.say(&call("1", "x", "{}"));
        let mut server = stage.server();
        server.greet();
        let asked = loop {
            let message = server.hear();
            if message["method"] == "tools/call" {
                break message;
            }
        };
        server.answer(&asked, "1");
        let mut answers = Vec::new();
        while answers.len() < 2 {
            let message = b.hear();
            if message.get("id").is_some() {
                answers.push(message);
            }
        }
        assert!(answers[0]["result"].is_object(), "{answers:?}");
        result(&answers[1], "1", 1);
        stage.end(server);
    });
}

#[test]
fn o_21_a_client_that_closes_its_input_gets_what_it_asked_for() {
    each(|runtime| {
        let stage = Stage::new(runtime);
        let (mut a, mut server) = stage.greeted();
        for id in ["1", "\"2\"", "3"] {
            a.say(&call(id, "x", "{}"));
        }
        a.close_input();
        let asked: Vec<Value> = (0..3).map(|_| server.next("tools/call")).collect();
        for (request, value) in asked.iter().zip(["1", "2", "3"]).rev() {
            server.answer(request, value);
        }
        for (id, value) in [("3", 3), ("\"2\"", 2), ("1", 1)] {
            result(&a.hear(), id, value);
        }
        assert_eq!(a.try_hear().unwrap(), None, "and then the end");
        stage.end(server);
    });
}

#[test]
fn o_22_a_client_that_is_owed_nothing_goes_at_once() {
    each(|runtime| {
        let (mux, a) = over_child(runtime, &[]);
        let mut b = mux.client().greeted();
        assert_eq!(a.rest(), [0; 0].map(Value::from));
        assert!(b.ask(&call("1", "echo", "{}"))["result"].is_object());
        drop(b);
        mux.end();
    });
}

#[test]
fn o_23_a_server_that_ignores_being_told_to_end_is_ended() {
    each(|runtime| {
        let (mux, mut a) = over_child(runtime, &["--ignore-term", "--unanswered", "resources/list"]);
        a.say(&request("7", "resources/list", "{}"));
        // When this is answered, the other is with the server.
        assert!(a.ask(&call("8", "echo", "{}"))["result"].is_object());
        mux.end();
        error(&a.hear(), "7", GONE);
        assert_eq!(a.try_hear().unwrap(), None);
    });
}

/// Told to end itself, the mux tells the server so at once, and does not kill it first.
#[test]
fn o_23_a_polite_server_is_given_the_time_to_go() {
    each(|runtime| {
        let scratch = lumen_tests::mux::Scratch::new();
        let (mux, client) = over_child(runtime, &["--on-term", &scratch.text("term")]);
        mux.end();
        assert!(scratch.path("term").exists(), "it was killed first");
        drop(client);
    });
}

/// A server below a shell, and beside it a process that holds its output.
const TREE: &str = "sleep 1000 & exec 3<&0; \"$@\" <&3 & wait %2";

fn tree(options: &[&str]) -> Vec<std::ffi::OsString> {
    let mut words: Vec<std::ffi::OsString> = ["sh", "-c", TREE, "sh"].map(Into::into).to_vec();
    words.push(sibling("child_server").into());
    words.extend(options.iter().map(Into::into));
    words
}

#[test]
fn o_24_twenty_crashes_leave_nobody_behind() {
    each(|runtime| {
        let mux = MuxProcess::start(
            &["--runtime", runtime, "--backoff", "10ms..10ms", "--negotiate", "off"],
            // It lives as long as nobody asks for more than the handshake.
            tree(&["--exit-on", "tools/call"]),
        );
        let mut a = mux.client().greeted();
        let before = mux.processes().len();
        assert!(before >= 4, "it does not see the tree");
        for id in 0..20 {
            a.say(&call(&id.to_string(), "x", "{}"));
            let answer = loop {
                let message = a.hear();
                if message.get("id").is_some() {
                    break message;
                }
            };
            error(&answer, &id.to_string(), GONE);
        }
        // One more start, without a crash.
        a.say(&request("\"last\"", "tools/list", "{}"));
        while a.hear()["id"] != json!("last") {}
        let deadline = std::time::Instant::now() + PATIENCE;
        while mux.processes().len() != before {
            assert!(std::time::Instant::now() < deadline, "{:?}, {before} before", mux.processes());
            std::thread::yield_now();
        }
        let found = children(mux.pid());
        assert!(found.len() == 1 && found[0].1 != 'Z', "{found:?}");
        drop(a);
        mux.end();
    });
}

#[test]
fn o_24_a_mux_that_is_killed_leaves_nobody_behind() {
    each(|runtime| {
        let mux = MuxProcess::start(&["--runtime", runtime], tree(&["--ignore-term"]));
        let mut a = mux.client().greeted();
        assert!(mux.processes().len() >= 4, "it does not see the tree");
        mux.signal(Signal::KILL);
        assert_eq!(a.try_hear().ok().flatten(), None);
        let ended = mux.finish(PATIENCE);
        assert_eq!((ended.code, ended.left), (None, Vec::new()));
    });
}
