//! What carries the exchanges: TLS, HTTP/2, connections used again, proxies, time limits.

use std::io::{BufRead as _, BufReader, Read as _, Write as _, copy};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use hyper::Version;
use lumen_tests::procs::lumen;
use serde_json::json;

use crate::server::{Over, Server, bridge_command, initialized};
use crate::support::{INITIALIZE, INITIALIZED, Session, parsed, ping, pong};

#[test]
fn tls_with_a_certificate_of_ones_own() {
    for (over, version) in [(Over::Tls, Version::HTTP_11), (Over::Http2, Version::HTTP_2)] {
        let server = Server::start_over(over);
        let mut session = server.connected_with(&["--key", "s3cret"]);
        session.send(&[ping(1), ping(2), ping(3)]);
        // All are there before the first is answered.
        let requests: Vec<_> = (0..3).map(|_| server.post("ping")).collect();
        for request in requests {
            assert_eq!(request.version, version);
            assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
            request.result();
        }
        let mut answers: Vec<_> = (0..3).map(|_| session.json()["id"].to_string()).collect();
        answers.sort();
        assert_eq!(answers, ["1", "2", "3"]);
        if over == Over::Http2 {
            assert_eq!(server.connections(), 1);
        }
        session.close_input();
        server.end().answer(200, &[], "");
        let finished = session.finish();
        assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{}", finished.stderr);
    }
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let server = Server::start_over(Over::Tls);
    let mut session = Session::start(bridge_command(&server.origin()));
    session.send(&[INITIALIZE]);
    let answer = session.json();
    assert_eq!(answer["error"]["code"], -32603);
    assert!(answer.to_string().contains("certificate"), "{answer}");
    server.assert_idle();
}

#[test]
fn connections_are_used_again() {
    let server = Server::start();
    let mut session = server.connected();
    let before = server.connections();
    for id in 1..=50 {
        session.send(&[ping(id)]);
        server.post("ping").result();
        assert_eq!(session.line(), pong(id));
    }
    assert!(server.connections() <= before + 1, "{} and then {}", before, server.connections());
}

#[test]
fn a_connection_that_the_server_has_closed_costs_no_request() {
    let server = Server::start();
    let mut session = server.connected();
    for id in 1..=20 {
        session.send(&[ping(id)]);
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        server.post("ping").answer(
            200,
            &[("content-type", "application/json"), ("connection", "close")],
            answer,
        );
        assert_eq!(session.line(), pong(id));
    }
}

#[test]
fn requests_run_side_by_side() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&(1..=16).map(ping).collect::<Vec<_>>());
    let mut requests: Vec<_> = (1..=16).map(|_| server.post("ping")).collect();
    requests.sort_by_key(|request| request.json()["id"].as_i64());
    for request in requests.into_iter().rev() {
        let id = request.json()["id"].as_i64().unwrap();
        request.result();
        assert_eq!(session.line(), pong(id));
    }
}

#[test]
fn a_body_that_was_coded_unasked_is_one_clear_error() {
    let server = Server::start();
    let mut session = server.connected();
    for kind in ["application/json", "text/event-stream"] {
        session.send(&[ping(1)]);
        let headers = [("content-type", kind), ("content-encoding", "gzip")];
        server.post("ping").answer(200, &headers, &b"\x1f\x8b\x08\x00"[..]);
        let answer = session.json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
        assert!(answer.to_string().contains("gzip"), "{answer}");
    }
}

#[test]
fn who_does_not_answer_is_given_up_after_the_timeout() {
    let server = Server::start();
    let mut session = server.connected_with(&["--timeout", "1"]);
    session.send(&[ping(1)]);
    let request = server.post("ping");
    let answer = session.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
    request.wait_abandoned();
}

#[test]
fn nobody_there_is_an_error_for_each_request_and_the_next_may_do_better() {
    let address = Server::start().stop();
    let mut session = Session::start(bridge_command(&format!("http://{address}/mcp")));
    session.send(&[INITIALIZE]);
    let answer = session.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(0), &json!(-32603)));
    assert_eq!(answer["error"]["data"]["retryable"], true);
    assert!(answer.to_string().contains("refused"), "{answer}");
    session.send(&[INITIALIZE]);
    assert_eq!(session.json()["error"]["data"]["url"], format!("http://{address}/mcp"));
    session.close_input();
    assert_eq!(session.finish().code, Some(0));
}

/// LUMEN frames in the middle: the bridge is probed as any server is.
#[test]
fn an_agent_with_lumen_gets_it() {
    let server = Server::start();
    let bridge = server.command(&[]);
    let mut command = std::process::Command::new(lumen());
    command.args(["connect", "-v", "--probe-timeout", "30000", "--"]).arg(bridge.get_program());
    command.args(bridge.get_args()).env_remove("RUST_LOG");
    for name in ["LUMEN_API_KEY", "LEUMAS_API_KEY"] {
        command.env_remove(name);
    }
    let mut session = Session::start(command);
    server.handshake(&mut session, "s1");
    session.send(&[ping("é")]);
    let request = server.post("ping");
    assert_eq!(request.json(), parsed(ping("é").as_bytes()));
    request.result();
    assert_eq!(session.json(), json!({"jsonrpc": "2.0", "id": "é", "result": {}}));
    session.close_input();
    server.end().answer(405, &[], "");
    let finished = session.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stderr.contains("LUMEN frames"), "{}", finished.stderr);
}

/// A proxy for one test: tells the head of what it was asked, and connects whoever asked to the server.
fn proxy(server: &Server, refusal: Option<&'static str>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (to, (sender, heads)) = (server.address(), channel());
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, sender) = (client.unwrap(), sender.clone());
            thread::spawn(move || {
                let mut reader = BufReader::new(client.try_clone().unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
                let _ = sender.send(head.clone());
                let mut client = client;
                if let Some(refusal) = refusal {
                    let _ = client.write_all(refusal.as_bytes());
                    return;
                }
                let mut server = TcpStream::connect(to).unwrap();
                if head.starts_with("CONNECT") {
                    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
                } else {
                    server.write_all(head.as_bytes()).unwrap();
                }
                let (mut to_client, mut from_server) = (client, server.try_clone().unwrap());
                let back = thread::spawn(move || {
                    let _ = copy(&mut from_server, &mut to_client);
                    let _ = to_client.shutdown(Shutdown::Both);
                });
                let _ = copy(&mut reader, &mut server);
                let _ = server.shutdown(Shutdown::Write);
                let _ = back.join();
            });
        }
    });
    (format!("http://user:pass%20word@{address}"), heads)
}

fn initialize(server: &Server, session: &mut Session) -> String {
    session.send(&[INITIALIZE]);
    let request = server.post("initialize");
    let (path, body) = (request.path.clone(), initialized(&request));
    request.json_answer(body);
    assert_eq!(session.json()["id"], 0);
    path
}

const AUTH: &str = "proxy-authorization: basic dxnlcjpwyxnzihdvcmq=";

#[test]
fn through_a_proxy_of_the_option_or_the_environment() {
    for over in [Over::Tcp, Over::Tls, Over::Http2] {
        for variable in [None, Some("HTTPS_PROXY"), Some("HTTP_PROXY"), Some("ALL_PROXY"), Some("all_proxy")]
        {
            let server = Server::start_over(over);
            let (proxy, heads) = proxy(&server, None);
            let mut command = server.command(&["--key", "s3cret"]);
            match variable {
                Some(name) => command.env(name, &proxy),
                None => command.args(["--proxy", &proxy]),
            };
            let mut session = Session::start(command);
            initialize(&server, &mut session);
            let is_meant = match variable {
                Some("HTTPS_PROXY") => over != Over::Tcp,
                Some("HTTP_PROXY") => over == Over::Tcp,
                _ => true,
            };
            let Ok(head) = heads.try_recv() else {
                assert!(!is_meant, "{over:?} {variable:?}");
                continue;
            };
            assert!(is_meant && head.to_lowercase().contains(AUTH), "{head}");
            let port = server.address().port();
            if over == Over::Tcp {
                assert!(
                    head.starts_with(&format!("POST http://127.0.0.1:{port}/mcp HTTP/1.1\r\n")),
                    "{head}"
                );
            } else {
                assert!(head.starts_with(&format!("CONNECT localhost:{port} HTTP/1.1\r\n")), "{head}");
                assert!(!head.contains("s3cret"), "{head}");
            }
        }
    }
}

#[test]
fn past_the_proxy_where_no_proxy_says_so() {
    let server = Server::start();
    let (proxy, heads) = proxy(&server, None);
    for is_option in [false, true] {
        let mut command = server.command(&[]);
        command.env("NO_PROXY", "example.com, 127.0.0.0/8");
        if is_option {
            command.args(["--proxy", &proxy])
        } else {
            command.env("HTTP_PROXY", &proxy)
        };
        initialize(&server, &mut Session::start(command));
        assert!(heads.try_recv().is_err());
    }
}

#[test]
fn a_proxy_that_refuses_is_named_as_the_one_who_does() {
    let server = Server::start_over(Over::Tls);
    let (proxy, _heads) =
        proxy(&server, Some("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"));
    let mut session = server.bridge(&["--proxy", &proxy]);
    session.send(&[INITIALIZE]);
    let answer = session.json().to_string();
    assert!(answer.contains("proxy") && answer.contains("-32603"), "{answer}");
    assert!(!answer.contains("pass"), "{answer}");
    server.assert_idle();
}

#[test]
fn through_a_socks_proxy() {
    let server = Server::start_over(Over::Tls);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (address, to) = (listener.local_addr().unwrap(), server.address());
    let asked = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut hello = [0; 3];
        client.read_exact(&mut hello).unwrap();
        assert_eq!(hello, [5, 1, 0]);
        client.write_all(&[5, 0]).unwrap();
        let mut request = [0; 4 + 1 + 9 + 2];
        client.read_exact(&mut request).unwrap();
        client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 1]).unwrap();
        let server = TcpStream::connect(to).unwrap();
        let (mut up, mut down) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        let (mut from_server, mut from_client) = (server, client);
        thread::spawn(move || copy(&mut from_server, &mut down));
        thread::spawn(move || copy(&mut from_client, &mut up));
        request
    });
    let mut session = server.bridge(&["--proxy", &format!("socks5://{address}")]);
    initialize(&server, &mut session);
    // The name goes to the proxy, unresolved.
    assert_eq!(&asked.join().unwrap()[..14], b"\x05\x01\x00\x03\x09localhost");
}

#[test]
fn notifications_start_after_what_came_before_and_only_initialize_is_awaited() {
    let server = Server::start();
    let mut session = server.bridge(&[]);
    session.send(&[INITIALIZE, INITIALIZED, &ping(1)]);
    let request = server.post("initialize");
    let body = initialized(&request);
    request.answer(200, &[("content-type", "application/json"), ("mcp-session-id", "s1")], body);
    assert_eq!(session.json()["id"], 0);
    let mut methods: Vec<_> = (0..2)
        .map(|_| {
            let mut request = server.next();
            while request.method == "GET" {
                request.answer(405, &[], "");
                request = server.next();
            }
            assert_eq!(request.header("mcp-session-id"), Some("s1"));
            let method = request.json()["method"].as_str().unwrap().to_owned();
            if method == "ping" {
                request.result()
            } else {
                request.answer(202, &[], "")
            }
            method
        })
        .collect();
    methods.sort();
    assert_eq!(methods, ["notifications/initialized", "ping"]);
    assert_eq!(session.line(), pong(1));
}
