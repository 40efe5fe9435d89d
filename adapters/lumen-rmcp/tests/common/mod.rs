//! A server with a few tools, and the two ways to start it as a child: over lumen and over rmcp's own transport.

use std::future::pending;

use lumen_rmcp::{ChildOptions, ServerTransport};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig};
use rmcp::service::RunningService;
use rmcp::{ClientLifecycleMode, RoleClient, ServerHandler, ServiceExt as _, schemars, tool, tool_handler};
use rmcp::{ServiceError, tool_router};
use serde_json::{Value, json};

/// Says over which transport a child serves.
pub(crate) const OVER: &str = "LUMEN_RMCP_TEST_OVER";

#[derive(Clone, Debug)]
pub(crate) struct Tools;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    a: i64,
    b: f64,
}

#[tool_router]
impl Tools {
    #[tool(description = "Adds – wörtlich – 和.")]
    async fn sum(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> String {
        format!("{}", a as f64 + b)
    }

    #[tool(description = "Tells how this process was started.")]
    async fn surroundings(&self) -> String {
        let cwd = std::env::current_dir().expect("there is a directory");
        let arguments: Vec<String> = std::env::args().collect();
        json!({ "cwd": cwd, "SOME": std::env::var("SOME").ok(), "last": arguments.last() }).to_string()
    }

    #[tool(description = "Never answers.")]
    async fn hang(&self) -> String {
        pending().await
    }

    #[tool(description = "Ends the process.")]
    async fn die(&self) -> String {
        std::process::exit(3)
    }
}

#[tool_handler]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

/// Serves until the client goes, if this process was started for that. The tests' binary is its own child program:
/// it is told to run the one test that calls this.
pub(crate) fn serve_if_child() {
    let Ok(over) = std::env::var(OVER) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let served = match over.as_str() {
            "lumen" => Tools.serve(ServerTransport::stdio().expect("standard streams")).await,
            _ => Tools.serve(rmcp::transport::stdio()).await,
        };
        served.expect("a client").waiting().await.expect("an end");
    });
    std::process::exit(0);
}

const ARGUMENTS: [&str; 4] = ["--exact", "serve_as_child", "--quiet", "--nocapture"];

/// The server as a child of our transport. Its test harness writes a line of its own first, as many servers do.
pub(crate) fn child(over: &str) -> ChildOptions {
    let program = std::env::current_exe().expect("a test knows its own path");
    // Busy machines are slow to start it, and whoever gives up waiting speaks no LUMEN.
    ChildOptions::new(program)
        .args(ARGUMENTS)
        .env(OVER, over)
        .probe_timeout(std::time::Duration::from_secs(30))
}

/// The same for rmcp's own transport.
pub(crate) fn command(over: &str) -> tokio::process::Command {
    let program = std::env::current_exe().expect("a test knows its own path");
    let mut command = tokio::process::Command::new(program);
    command.args(ARGUMENTS).env(OVER, over);
    command
}

/// All ways to begin.
pub(crate) fn lifecycles() -> [ClientLifecycleMode; 3] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: preferred_versions.clone() },
        ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
    ]
}

pub(crate) type Client = RunningService<RoleClient, ()>;

pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> Result<String, ServiceError> {
    let params = json!({ "name": tool, "arguments": arguments });
    let params: CallToolRequestParams = serde_json::from_value(params).expect("parameters");
    let result = serde_json::to_value(client.call_tool(params).await?).expect("JSON");
    Ok(result["content"][0]["text"].as_str().expect("a text").to_owned())
}

/// What a visitor gets to see, to be the same whatever is between.
pub(crate) async fn visit(client: &Client) -> Value {
    let tools = client.list_all_tools().await.expect("tools");
    let sum = call(client, "sum", json!({ "a": 9_007_199_254_740_993_i64, "b": 0.5 })).await.expect("a sum");
    let wrong = call(client, "no such tool", json!({})).await.expect_err("there is none");
    let refused = call(client, "sum", json!({ "a": "no number" })).await.expect("a refusal");
    json!({
        "server": client.peer_info().as_deref(), "tools": tools, "sum": sum, "wrong": wrong.to_string(),
        "refused": refused,
    })
}
