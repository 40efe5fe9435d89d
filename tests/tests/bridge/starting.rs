//! What is said and done before anything is sent (O-30), and that no secret leaves by the log.

use std::process::Command;

use crate::server::{Over, Server, bridge_command, initialized};
use crate::support::{Finished, INITIALIZE, Session, ping};

/// A session that is to end by itself at once, whatever it is sent.
fn refused(mut command: Command) -> Finished {
    command.env_remove("RUST_LOG");
    let session = Session::start(command);
    let finished = session.finish();
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(finished.lines.is_empty(), "{finished:?}");
    finished
}

#[test]
fn a_url_that_cannot_be_used_is_2_and_nothing_is_read() {
    for url in [
        "",
        "host",
        "ftp://host",
        "unix:/x",
        "http://",
        "http://u:s3cret@host",
        "https://s3cret@host/mcp",
        "/mcp",
    ] {
        let finished = refused(bridge_command(url));
        assert!(finished.stderr.contains("URL"), "{}", finished.stderr);
        assert!(!finished.stderr.contains("s3cret"), "{}", finished.stderr);
    }
}

#[test]
fn o_30_what_is_wrong_with_options_is_2_and_nothing_is_sent() {
    let server = Server::start();
    for options in [
        &["--header", "X-A: ${O30_UNSET} s3cret"][..],
        &["--header", "X-A: s3cret${O30"],
        &["--header", "s3cret"],
        &["--header", "Content-Type: s3cret"],
        &["--header", "X-A: s3cret\nX-B: y"],
        &["--header", "a b: s3cret"],
        &["--key", ""],
        &["--key", "s3cret\nX: y"],
        &["--key", "s3cret", "--header", "Authorization: s3cret"],
        &["--ca", "/nonexistent/s3cret.pem"],
        &["--ca", "/dev/null"],
        &["--proxy", "https://s3cret@proxy"],
        &["--proxy", "socks4://s3cret"],
        &["--site", ""],
        &["--timeout", "x"],
        &["--no-such-option"],
    ] {
        let finished = refused(server.command(options));
        assert!(!finished.stderr.is_empty());
        let is_path = options[0] == "--ca";
        assert!(is_path || !finished.stderr.contains("s3cret"), "{}", finished.stderr);
    }
    server.assert_idle();
}

#[test]
fn help_goes_to_standard_error() {
    let mut command = bridge_command("x");
    command.arg("--help");
    let finished = Session::start(command).finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0));
    assert!(finished.stderr.contains("Exit codes:") && finished.stderr.contains("LUMEN_API_KEY"));
}

#[test]
fn o_30_headers_arrive_as_they_were_given() {
    let server = Server::start();
    let options = [
        "--header",
        "X-Plain: a  b \"c\" $HOME 'd' \\",
        "--header",
        "X-Expanded:Token ${O30_SET}${O30_EMPTY}.",
        "--header",
        "X-Empty: ${O30_EMPTY}",
        "--header",
        "X-Text: é漢",
    ];
    let mut command = server.command(&options);
    command.env("O30_SET", "a ${HOME} b").env("O30_EMPTY", "");
    let mut session = Session::start(command);
    session.send(&[INITIALIZE]);
    let request = server.post("initialize");
    assert_eq!(request.header("x-plain"), Some("a  b \"c\" $HOME 'd' \\"));
    assert_eq!(request.header("x-expanded"), Some("Token a ${HOME} b."));
    assert_eq!(request.header("x-empty"), Some(""));
    assert_eq!(request.headers["x-text"].as_bytes(), "é漢".as_bytes());
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    let accept = request.header("accept").unwrap();
    assert!(accept.contains("application/json") && accept.contains("text/event-stream"));
    assert_eq!(request.header("content-type"), Some("application/json"));
}

#[test]
fn the_path_is_mcp_unless_the_url_says_otherwise() {
    let server = Server::start();
    for (path, options, wanted) in [
        ("", &[][..], "/mcp"),
        ("/", &[], "/"),
        ("/a/b?c=d", &[], "/a/b?c=d"),
        ("", &["--site", "w x"], "/mcp/w%20x"),
        ("/mcp", &["--site", "w"], "/mcp/w"),
    ] {
        let mut command = bridge_command(&format!("{}{path}", server.origin()));
        command.args(options);
        let mut session = Session::start(command);
        session.send(&[INITIALIZE]);
        let request = server.post("initialize");
        assert_eq!(request.path, wanted);
        let body = initialized(&request);
        request.json_answer(body);
        assert_eq!(session.json()["id"], 0);
    }
}

/// Returns what the bridge sends as its authorization, and what it says.
fn authorization(options: &[&str], variables: &[(&str, &str)]) -> (Option<String>, String) {
    let server = Server::start();
    let mut command = server.command(options);
    command.envs(variables.iter().copied());
    let mut session = Session::start(command);
    session.send(&[INITIALIZE]);
    let request = server.post("initialize");
    let found = request.header("authorization").map(str::to_owned);
    request.answer(401, &[("content-type", "text/plain")], "who are you?");
    let answer = session.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&0.into(), &(-32603).into()));
    assert_eq!(answer["error"]["data"]["httpStatus"], 401);
    assert!(answer["error"].to_string().contains("who are you?"), "{answer}");
    session.close_input();
    let finished = session.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let hint = format!("{}/connect", server.origin());
    assert_eq!(finished.stderr.matches(&hint).count(), usize::from(found.is_none()), "{}", finished.stderr);
    assert!(!finished.stderr.contains("s3cret"), "{}", finished.stderr);
    (found, finished.stderr)
}

#[test]
fn the_key_is_the_option_or_the_first_variable() {
    let both = [("LUMEN_API_KEY", "s3cret-1"), ("LEUMAS_API_KEY", "s3cret-2")];
    for (options, variables, wanted) in [
        (&["--key", "s3cret-0"][..], &both[..], Some("Bearer s3cret-0")),
        (&[], &both, Some("Bearer s3cret-1")),
        (&[], &both[1..], Some("Bearer s3cret-2")),
        (&[], &[("LUMEN_API_KEY", " "), ("LEUMAS_API_KEY", " s3cret-2\n")], Some("Bearer s3cret-2")),
        (&["--header", "authorization: Basic s3cret"], &both, Some("Basic s3cret")),
        (&[], &[], None),
    ] {
        assert_eq!(authorization(options, variables).0.as_deref(), wanted);
    }
}

#[test]
fn o_30_no_secret_in_the_log_or_in_an_error() {
    for over in [Over::Tcp, Over::Http2] {
        let server = Server::start_over(over);
        let mut command = server.command(&["-vvv", "--key", "s3cret-key", "--header", "X-A: ${O30_SECRET}"]);
        command.env("O30_SECRET", "s3cret-variable");
        let mut session = Session::start(command);
        session.send(&[INITIALIZE, &ping(1), &ping(2)]);
        server.post("initialize").answer(403, &[], "no");
        for _ in 0..2 {
            let request = server.next();
            assert_eq!(request.header("authorization"), Some("Bearer s3cret-key"));
            assert_eq!(request.header("x-a"), Some("s3cret-variable"));
            drop(request);
        }
        let said: Vec<_> = (0..3).map(|_| session.line()).collect();
        session.close_input();
        let finished = session.finish();
        assert!(!said.concat().windows(6).any(|bytes| bytes == b"s3cret"));
        assert!(!finished.stderr.is_empty() && !finished.stderr.contains("s3cret"), "{}", finished.stderr);
    }
}
