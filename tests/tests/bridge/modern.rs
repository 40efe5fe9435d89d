//! The stateless revision: headers from the body, no session, closing is cancelling; and cancelling in the older ones.

use serde_json::{Value, json};

use crate::server::{JSON, Request, Server};
use crate::support::{Session, pong};

const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"ttlMs":0,"cacheScope":"private"}}"#;

fn modern(id: i64, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn discovered(server: &Server) -> Session {
    let mut session = server.bridge(&[]);
    session.send(&[modern(0, "server/discover", json!({}))]);
    let request = server.post("server/discover");
    checked(&request, "server/discover", None);
    request.json_answer(DISCOVERED);
    assert_eq!(session.line(), DISCOVERED.as_bytes());
    session
}

fn checked(request: &Request, method: &str, name: Option<&str>) {
    assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(request.header("mcp-method"), Some(method));
    assert_eq!(request.header("mcp-name"), name);
    assert_eq!(request.header("mcp-session-id"), None);
}

#[test]
fn headers_say_what_the_body_says() {
    let server = Server::start();
    let mut session = discovered(&server);
    for (method, params, name) in [
        ("tools/call", json!({"name": "sum", "arguments": {}}), Some("sum")),
        ("prompts/get", json!({"name": "hello"}), Some("hello")),
        ("resources/read", json!({"uri": "file:///a b"}), Some("file:///a b")),
        ("tools/call", json!({"name": "é"}), Some("=?base64?w6k=?=")),
        ("tools/list", json!({}), None),
    ] {
        let sent = modern(1, method, params);
        session.send(&[&sent]);
        let request = server.post(method);
        checked(&request, method, name);
        assert_eq!(request.body, sent.as_bytes());
        request.result();
        assert_eq!(session.line(), pong(1));
    }
    session.close_input();
    // There is no session to end.
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(0), 0), "{finished:?}");
    server.assert_idle();
}

#[test]
fn parameters_that_belong_into_headers_go_there() {
    let server = Server::start();
    let mut session = discovered(&server);
    session.send(&[modern(1, "tools/list", json!({}))]);
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "plain": {"type": "string"},
    }});
    let tools = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": [{"name": "t", "inputSchema": schema}], "ttlMs": 0, "cacheScope": "private"}});
    server.post("tools/list").json_answer(tools.to_string());
    assert_eq!(session.json(), tools);
    session.send(&[modern(
        2,
        "tools/call",
        json!({"name": "t", "arguments": {"region": "eu ü", "count": 7, "plain": "x"}}),
    )]);
    let request = server.post("tools/call");
    checked(&request, "tools/call", Some("t"));
    assert_eq!(request.header("mcp-param-region"), Some("=?base64?ZXUgw7w=?="));
    assert_eq!(request.header("mcp-param-count"), Some("7"));
    assert_eq!(request.header("mcp-param-plain"), None);
    request.result();
    assert_eq!(session.json()["id"], 2);
}

#[test]
fn cancelling_closes_the_response_and_posts_nothing() {
    let server = Server::start();
    let mut session = discovered(&server);
    session.send(&[modern(1, "tools/call", json!({"name": "slow"}))]);
    let request = server.post("tools/call");
    session.send(&[r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#]);
    request.wait_abandoned();
    session.send(&[modern(2, "tools/list", json!({}))]);
    server.post("tools/list").result();
    assert_eq!(session.line(), pong(2));
}

#[test]
fn an_error_of_the_server_passes_with_its_status() {
    let server = Server::start();
    let mut session = discovered(&server);
    for (status, code) in [(404, -32601), (400, -32021), (400, -32022)] {
        session.send(&[modern(1, "x/y", json!({}))]);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"m"}}}}"#);
        server.post("x/y").answer(status, &[JSON], body.clone());
        assert_eq!(session.line(), body.as_bytes());
    }
}

#[test]
fn in_the_older_revisions_cancelling_is_posted_and_closes_nothing() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}"#]);
    let request = server.post("tools/call");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    session.send(&[cancel]);
    let posted = server.post("notifications/cancelled");
    assert_eq!(posted.body, cancel.as_bytes());
    posted.answer(202, &[], "");
    assert!(!request.is_abandoned());
}
