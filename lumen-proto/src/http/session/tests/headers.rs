//! The modern era: every request by itself, and what of it stands in headers.

use super::*;

/// A modern request.
fn modern(id: &str, method: &str, params: &str) -> String {
    std::format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"_meta":{{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

const TOOLS: &str = r#"{"id":ID,"result":{"tools":[{"name":"sql","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]NEXT}}"#;
const MISMATCH: &str = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32020,"message":"header mismatch"}}"#;

fn sql(id: &str, region: &str) -> String {
    modern(id, "tools/call", &std::format!(r#""name":"sql","arguments":{{"region":"{region}"}},"#))
}

fn tools(id: &str) -> String {
    TOOLS.replace("ID", id).replace("NEXT", "")
}

#[test]
fn modern_requests_say_in_headers_what_they_are() {
    let mut rig = Rig::new();
    for (method, params, name) in [
        ("server/discover", "", None),
        ("tools/call", r#""name":"a b","#, Some("a b")),
        ("prompts/get", r#""name":"é","#, Some("=?base64?w6k=?=")),
        ("resources/read", r#""uri":"file:\/\/x","name":"no","#, Some("file://x")),
        ("tools/list", r#""name":"no","#, None),
        ("subscriptions/listen", "", None),
    ] {
        rig.say(&modern("1", method, params));
        let made = rig.next();
        assert_eq!(header(&made, "mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(header(&made, "mcp-method"), Some(method));
        assert_eq!(header(&made, "mcp-name"), name);
        assert_eq!(header(&made, "mcp-session-id"), None);
    }
    rig.none();
}

#[test]
fn calls_carry_what_the_remembered_list_of_tools_asks_for() {
    let mut rig = Rig::new();
    rig.say(&modern("1", "tools/list", ""));
    let list = rig.next();
    rig.json(list.id, 200, &tools("1"));
    rig.say(&sql("2", "eu"));
    let made = rig.next();
    assert_eq!(header(&made, "mcp-param-region"), Some("eu"));
    assert_eq!(rig.told(), [tools("1")]);
}

#[test]
fn a_mismatch_fetches_the_list_once_for_all_and_calls_again() {
    let mut rig = Rig::new();
    let calls = ["1", "2"].map(|id| {
        rig.say(&sql(id, "eu"));
        rig.next()
    });
    rig.json(calls[0].id, 400, &MISMATCH.replace("ID", "1"));
    let list = rig.next();
    assert_eq!(header(&list, "mcp-method"), Some("tools/list"));
    assert_eq!(header(&list, "mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(
        list.body,
        r#"{"jsonrpc":"2.0","id":"lumen","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#
    );
    rig.json(calls[1].id, 400, &MISMATCH.replace("ID", "2"));
    rig.none();
    rig.json(list.id, 200, &TOOLS.replace("ID", "\"lumen\"").replace("NEXT", r#","nextCursor":"c\"2""#));
    let page = rig.next();
    assert!(page.body.starts_with(
        br#"{"jsonrpc":"2.0","id":"lumen","method":"tools/list","params":{"cursor":"c\"2","_meta""#
    ));
    rig.sse(page.id, &data(r#"{"id":"lumen","result":{"tools":[]}}"#));
    let again = [rig.next(), rig.next()];
    for (made, id) in again.iter().zip(["1", "2"]) {
        assert_eq!(
            (&made.body[..], header(made, "mcp-param-region")),
            (sql(id, "eu").as_bytes(), Some("eu"))
        );
    }
    rig.json(again[0].id, 200, &result(1));
    let refused = MISMATCH.replace("ID", "2");
    rig.json(again[1].id, 400, &refused);
    assert_eq!(rig.told(), [result(1), refused], "a second refusal is the answer");
    rig.none();
}

#[test]
fn a_list_that_cannot_be_had_leaves_the_refusal() {
    let mut rig = Rig::new();
    rig.say(&sql("1", "eu"));
    let made = rig.next();
    rig.json(made.id, 400, &MISMATCH.replace("ID", "1"));
    let list = rig.next();
    rig.fail(list.id, TransportErrorKind::Reset);
    let again = rig.next();
    rig.json(again.id, 400, &MISMATCH.replace("ID", "1"));
    assert_eq!(rig.told(), [MISMATCH.replace("ID", "1")]);
}

#[test]
fn other_modern_refusals_pass_unchanged() {
    let mut rig = Rig::new();
    for (status, code) in [(400, "-32022"), (400, "-32021"), (404, "-32601"), (404, "-32000")] {
        let refused = MISMATCH.replace("ID", "1").replace("-32020", code);
        rig.say(&sql("1", "eu"));
        let made = rig.next();
        rig.json(made.id, status, &refused);
        assert_eq!(rig.told(), [refused]);
        rig.none();
    }
}

#[test]
fn a_modern_cancel_drops_the_exchange_and_goes_no_further() {
    let mut rig = Rig::new();
    rig.say(&sql("\"a\"", "eu"));
    let made = rig.next();
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":"\u0061"}}"#;
    rig.say(cancel);
    assert_eq!(rig.aborted(), [made.id]);
    rig.say(cancel);
    rig.json(made.id, 200, r#"{"id":"a","result":{}}"#);
    rig.none();
    assert_eq!((rig.told().len(), rig.events().len(), rig.aborted().len()), (0, 0, 0));
    // One that nobody has taken yet is never made.
    rig.say(&sql("2", "eu"));
    rig.say(&cancel.replace(r#""\u0061""#, "2"));
    rig.none();
    assert_eq!(rig.aborted(), []);
}

#[test]
fn a_modern_stream_that_breaks_is_not_resumed() {
    let mut rig = Rig::new();
    rig.say(&sql("1", "eu"));
    let made = rig.next();
    rig.sse(made.id, "id: 1\ndata: {\"method\":\"n\"}\n\n");
    rig.fail(made.id, TransportErrorKind::Reset);
    assert!(rig.told()[1].contains("connection_lost"));
    assert_eq!(rig.session.poll_timeout(), None);
}

#[test]
fn an_agent_that_falls_back_is_served_in_the_other_era() {
    let mut rig = Rig::new();
    rig.say(&modern("0", "server/discover", ""));
    let made = rig.next();
    rig.json(made.id, 400, r#"{"id":null,"error":{"code":-32000,"message":"Server not initialized"}}"#);
    assert_eq!(rig.told(), [r#"{"id":0,"error":{"code":-32000,"message":"Server not initialized"}}"#]);
    rig.open("s1");
    let stream = rig.next();
    assert_eq!((stream.method, header(&stream, "mcp-method")), (Method::Get, None));
    let made = rig.call(5);
    assert_eq!((header(&made, "mcp-method"), header(&made, "mcp-session-id")), (None, Some("s1")));
}

#[test]
fn nothing_that_a_server_names_can_break_a_header() {
    let mut rig = Rig::new();
    rig.say(INITIALIZE);
    let initialize = rig.next();
    rig.head(initialize.id, 200, &[JSON, ("mcp-session-id", "a\u{e9}")]);
    rig.chunk(initialize.id, r#"{"id":0,"result":{"protocolVersion":"2025\r\nx: y"}}"#);
    rig.end(initialize.id);
    let made = rig.call(1);
    assert_eq!((header(&made, "mcp-session-id"), header(&made, "mcp-protocol-version")), (None, None));
    rig.sse(made.id, "id: \u{7f}\n\n");
    rig.end(made.id);
    assert_eq!(rig.session.poll_timeout(), None, "no id to go on from");
    assert_eq!(rig.told().len(), 2);
}
