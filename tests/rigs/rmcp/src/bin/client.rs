//! A client on rmcp 3: `rig-rmcp-client MODE COMMAND ARGS..` starts the server, lists the tools, calls one, and prints all of it as
//! canonical JSON on stdout and the milliseconds to the first answer on stderr. MODE is `legacy` or `auto`.

use std::error::Error;
use std::time::Instant;

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use serde_json::{Value, json};

const CALLS: &str = include_str!("../../../calls.json");

async fn visit(mut words: impl Iterator<Item = String>) -> Result<Value, Box<dyn Error>> {
    let lifecycle = match words.next().as_deref() {
        Some("legacy") => ClientLifecycleMode::Initialize,
        Some("auto") => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        },
        other => return Err(format!("no such mode: {other:?}").into()),
    };
    let mut command = tokio::process::Command::new(words.next().ok_or("which server?")?);
    command.args(words);

    let start = Instant::now();
    let client = ().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?;
    eprintln!("first answer after {} ms", start.elapsed().as_millis());
    let mut tools = client.list_all_tools().await?;
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let calls: Vec<Value> = serde_json::from_str(CALLS)?;
    let call = calls
        .iter()
        .find(|call| tools.iter().any(|tool| call["name"] == *tool.name))
        .ok_or("the server has none of the tools that the rig calls")?;
    let params: CallToolRequestParams = serde_json::from_value(json!({
        "name": call["name"],
        "arguments": call["arguments"],
    }))?;
    let result = client.call_tool(params).await?;
    let answer = call["answer"].as_str().ok_or("what answer?")?;
    if !serde_json::to_value(&result.content)?.to_string().contains(answer) {
        return Err(format!("not the answer: {result:?}").into());
    }
    let found = json!({ "server": client.peer_info().as_deref(), "tools": tools, "call": result });
    client.cancel().await?;
    Ok(found)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match visit(std::env::args().skip(1)).await {
        Ok(found) => println!("{found:#}"),
        Err(error) => {
            eprintln!("failure: {error}");
            std::process::exit(1);
        }
    }
}
