//! A server made with rmcp that speaks LUMEN: only the transport differs from any other. `rmcp/client.rs` starts it.
//!
//! ```text
//! cargo run -p lumen-examples --example rmcp_server
//! ```

use lumen_rmcp::ServerTransport;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, ServiceExt as _, schemars, tool, tool_handler, tool_router};

#[derive(Clone)]
struct Greeter;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

#[tool_router]
impl Greeter {
    #[tool(description = "Greets somebody.")]
    async fn hello(&self, Parameters(Name { name }): Parameters<Name>) -> String {
        format!("Hello, {name}!")
    }
}

#[tool_handler]
impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Its client may leave without a word, as any may.
    if let Ok(session) = Greeter.serve(ServerTransport::stdio()?).await {
        session.waiting().await?;
    }
    Ok(())
}
