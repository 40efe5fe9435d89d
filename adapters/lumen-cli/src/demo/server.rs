//! The small MCP server: two tools, on own stdio. Speaks LUMEN to whoever asks for it.

use std::io;

use lumen_proto::jsonrpc::Kind;
use lumen_std::{Message, Outcome, Server};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::report::say;

/// The newest revision this server speaks; it agrees to any older one that it is asked for.
const REVISION: &str = "2025-11-25";

pub(crate) fn run() -> Exit {
    match serve() {
        Ok(Outcome::Closed(_)) => Exit::Ok,
        Ok(outcome) => {
            say(&format!("the session ended badly: {outcome:?}"));
            Exit::Failed
        }
        Err(error) => {
            say(&format!("{error}; check that stdin and stdout are open"));
            Exit::Failed
        }
    }
}

fn serve() -> io::Result<Outcome> {
    let mut server = Server::stdio()?;
    while let Some(message) = server.recv() {
        if let Some(answer) = answer(&message)
            && server.send(answer).is_err()
        {
            break;
        }
    }
    Ok(server.close().outcome)
}

fn answer(message: &Message) -> Option<Message> {
    if message.kind() != Kind::Request {
        return None;
    }
    let request: Value = serde_json::from_slice(message.bytes()).ok()?;
    let params = request.get("params").unwrap_or(&Value::Null);
    let body = match request.get("method").and_then(Value::as_str).unwrap_or_default() {
        "initialize" => Ok(initialize(params)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": tools()})),
        "tools/call" => call(params),
        method => Err((-32601, format!("method not found: {method}"))),
    };
    let id = request.get("id").unwrap_or(&Value::Null);
    let answer = match body {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, message)) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    };
    Message::parse(answer.to_string().into()).ok()
}

fn initialize(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or(REVISION);
    json!({
        "protocolVersion": if asked < REVISION { asked } else { REVISION },
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "lumen-demo", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn tools() -> Value {
    let schema = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    json!([
        {
            "name": "sum",
            "description": "Adds two numbers",
            "inputSchema": schema(json!({"a": {"type": "number"}, "b": {"type": "number"}}), json!(["a", "b"])),
        },
        {
            "name": "text",
            "description": "Returns a text of so many bytes, at most 1048576",
            "inputSchema": schema(json!({"bytes": {"type": "integer", "minimum": 0}}), json!(["bytes"])),
        },
    ])
}

fn call(params: &Value) -> Result<Value, (i32, String)> {
    let argument = |name: &str| params.get("arguments").and_then(|arguments| arguments.get(name));
    let text = match params.get("name").and_then(Value::as_str) {
        Some("sum") => match (argument("a").and_then(Value::as_f64), argument("b").and_then(Value::as_f64)) {
            (Some(a), Some(b)) => (a + b).to_string(),
            _ => return Err((-32602, "sum takes the numbers a and b".to_owned())),
        },
        Some("text") => match argument("bytes").and_then(Value::as_u64).map(usize::try_from) {
            Some(Ok(bytes)) if bytes <= 1_048_576 => {
                "The quick brown fox. ".chars().cycle().take(bytes).collect()
            }
            _ => return Err((-32602, "text takes bytes, an integer from 0 to 1048576".to_owned())),
        },
        name => return Err((-32602, format!("no such tool: {}", name.unwrap_or("none")))),
    };
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": false}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Value {
        let message = Message::copy_from(text.as_bytes()).unwrap();
        serde_json::from_slice(answer(&message).unwrap().bytes()).unwrap()
    }

    #[test]
    fn it_answers_what_it_offers_and_refuses_the_rest() {
        let sum =
            ask(r#"{"id":"x","method":"tools/call","params":{"name":"sum","arguments":{"a":2,"b":3}}}"#);
        assert_eq!(sum["result"]["content"][0]["text"], "5");
        assert_eq!(sum["id"], "x");
        let init = ask(r#"{"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#);
        assert_eq!(init["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(ask(r#"{"id":1,"method":"nope"}"#)["error"]["code"], -32601);
        assert_eq!(ask(r#"{"id":1,"method":"tools/call","params":{"name":"sum"}}"#)["error"]["code"], -32602);
        assert!(answer(&Message::copy_from(br#"{"method":"notifications/initialized"}"#).unwrap()).is_none());
    }
}
