//! Redirects: within the origin they are followed, anything else is an error that names the target.

use serde_json::json;

use crate::server::Server;
use crate::support::{INITIALIZE, ping};

#[test]
fn within_the_origin_they_are_followed_with_method_and_body() {
    let server = Server::start();
    let mut session = server.connected_with(&["--key", "s3cret"]);
    for (status, location, path) in [
        (307, "/mcp/", "/mcp/"),
        (308, "other?x=1", "/other?x=1"),
        (307, &*format!("{}/full", server.origin()), "/full"),
    ] {
        session.send(&[ping(1)]);
        server.post("ping").answer(status, &[("location", location)], "<html>moved</html>");
        let request = server.post("ping");
        assert_eq!(request.path, path);
        assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
        assert_eq!(request.header("mcp-session-id"), Some("s1"));
        assert_eq!(request.body, ping(1).as_bytes());
        request.result();
        assert_eq!(session.json(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    }
}

#[test]
fn elsewhere_is_an_error_that_names_the_target_and_the_key_stays() {
    let server = Server::start();
    let other = Server::start();
    let mut session = server.bridge(&["--key", "s3cret"]);
    let elsewhere = format!("{}/mcp", other.origin());
    for (status, location, named) in [
        (307, elsewhere.as_str(), elsewhere.as_str()),
        (308, &format!("{elsewhere}?token=t0p"), &elsewhere),
        (301, &elsewhere, &elsewhere),
        (302, "/login", "/login"),
        (303, "/login", "/login"),
        (307, "https://host.invalid/x", "https://host.invalid/x"),
    ] {
        session.send(&[INITIALIZE]);
        server.post("initialize").answer(status, &[("location", location)], "");
        let answer = session.json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(0), &json!(-32603)), "{answer}");
        let said = answer.to_string();
        assert!(said.contains(named) && said.contains(&status.to_string()), "{said}");
        assert!(!said.contains("t0p") && !said.contains("s3cret"), "{said}");
    }
    session.close_input();
    let finished = session.finish();
    assert_eq!(finished.code, Some(0));
    assert!(!finished.stderr.contains("s3cret"), "{}", finished.stderr);
    other.assert_idle();
    assert_eq!(other.connections(), 0);
}

#[test]
fn they_end_at_some_point() {
    let server = Server::start();
    let mut session = server.bridge(&[]);
    session.send(&[INITIALIZE]);
    let mut count = 0;
    // The bridge gives up first, and then the next request is the next message.
    loop {
        let request = server.next();
        if request.json()["method"] == "ping" {
            request.result();
            break;
        }
        count += 1;
        let is_last = count == 6;
        request.answer(307, &[("location", "/again")], "");
        if is_last {
            let answer = session.json();
            assert!(answer["error"]["message"].is_string(), "{answer}");
            session.send(&[ping(1)]);
        }
    }
    assert_eq!(count, 6);
    assert_eq!(session.json()["id"], 1);
}
