//! A client made with rmcp that speaks LUMEN: only the transport differs from any other. It starts `rmcp/server.rs`.
//!
//! ```text
//! cargo build -p lumen-examples --example rmcp_server
//! cargo run -p lumen-examples --example rmcp_client
//! ```

use std::time::Duration;

use lumen_rmcp::{ChildOptions, ChildTransport};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = ChildOptions::new(std::env::current_exe()?.with_file_name("rmcp_server"));
    // It has LUMEN, however long a busy machine takes to start it.
    let transport = ChildTransport::spawn(server.probe_timeout(Duration::from_secs(30)));
    let watch = transport.watch();
    let client = ().serve(transport).await?;
    for tool in client.list_all_tools().await? {
        println!("tool: {}, {}", tool.name, tool.description.unwrap_or_default());
    }
    let ada: serde_json::Value = serde_json::from_str(r#"{"name":"hello","arguments":{"name":"Ada"}}"#)?;
    let call: CallToolRequestParams = serde_json::from_value(ada)?;
    println!("answer: {}", serde_json::to_string(&client.call_tool(call).await?.content)?);
    println!("LUMEN: {}", watch.seen().is_lumen);
    client.cancel().await?;
    println!("ended: {:?}", watch.seen().outcome);
    Ok(())
}
