//! rmcp over lumen against rmcp's own transport over a child's standard streams: the same client and the same server,
//! in one run, in all three lifecycles. Says whether both get the same results, how many calls a second go one after
//! the other and 64 at a time, and how many bytes crossed for each call, as the server counted them.
//!
//! ```text
//! cargo run --release -p lumen-rmcp --example compare
//! ```
#![expect(clippy::print_stdout, reason = "the table is what it is for")]

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use lumen_rmcp::{ChildOptions, ChildTransport, ServerTransport, Watch};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig};
use rmcp::service::RunningService;
use rmcp::transport::{TokioChildProcess, stdio};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, Peer, RoleClient, ServerHandler, ServiceExt as _};
use rmcp::{schemars, tool, tool_handler, tool_router};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type Failure = Box<dyn Error + Send + Sync>;

/// Calls of each kind; those that go one after the other, and 64 at a time.
const CALLS: u64 = 5_000;
const AT_ONCE: u64 = 64;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    match std::env::args().nth(1).as_deref() {
        None => compare().await,
        Some("lumen") => {
            let transport = ServerTransport::stdio()?;
            let _ = LUMEN.set(transport.watch());
            Server.serve(transport).await?.waiting().await?;
            Ok(())
        }
        Some(_) => {
            let (read, write) = stdio();
            Server.serve((Counted(read, &READ), Counted(write, &WRITTEN))).await?.waiting().await?;
            Ok(())
        }
    }
}

async fn compare() -> Result<(), Failure> {
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let lifecycles = [
        ("legacy", ClientLifecycleMode::Initialize),
        ("discover", ClientLifecycleMode::Discover { preferred_versions: modern.clone() }),
        ("auto", ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version: None }),
    ];
    println!(
        "{:9} {:7} {:>12} {:>12} {:>14} {:>14}",
        "lifecycle", "over", "calls/s", "64 at once", "bytes/call in", "bytes/call out"
    );
    for (name, lifecycle) in lifecycles {
        let mut seen: Option<Value> = None;
        for over in ["rmcp", "lumen"] {
            let program = std::env::current_exe()?;
            let client = if over == "lumen" {
                // A server of our own: it answers, however long a busy machine takes to start it.
                let server = ChildOptions::new(program).arg(over).probe_timeout(Duration::from_secs(30));
                ().serve_with_lifecycle(ChildTransport::spawn(server), lifecycle.clone()).await?
            } else {
                let mut server = tokio::process::Command::new(program);
                server.arg(over);
                ().serve_with_lifecycle(TokioChildProcess::new(server)?, lifecycle.clone()).await?
            };
            let results = measure(&client, name, over).await?;
            client.cancel().await?;
            if seen.get_or_insert_with(|| results.clone()) != &results {
                return Err(format!("other results: {results:#}").into());
            }
        }
    }
    println!("the same results in all of them");
    Ok(())
}

/// Measures and prints a row. Returns what was seen.
async fn measure(client: &RunningService<RoleClient, ()>, name: &str, over: &str) -> Result<Value, Failure> {
    let mut results = vec![serde_json::to_value(client.list_all_tools().await?)?];
    for number in 0..10 {
        results.push(call(client.peer(), "find", number).await?);
    }
    let before = traffic(client.peer()).await?;
    let start = Instant::now();
    for number in 0..CALLS {
        call(client.peer(), "find", number).await?;
    }
    let one = start.elapsed();
    let after = traffic(client.peer()).await?;
    let start = Instant::now();
    let callers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let peer = client.peer().clone();
            tokio::spawn(async move {
                for number in 0..CALLS / AT_ONCE {
                    call(&peer, "find", number).await?;
                }
                Ok::<(), Failure>(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    let many = start.elapsed();
    let rate = |calls: u64, time: Duration| calls as f64 / time.as_secs_f64();
    println!(
        "{name:9} {over:7} {:12.0} {:12.0} {:14} {:14}",
        rate(CALLS, one),
        rate(CALLS / AT_ONCE * AT_ONCE, many),
        (after.0 - before.0) / CALLS,
        (after.1 - before.1) / CALLS,
    );
    Ok(results.into())
}

async fn call(peer: &Peer<RoleClient>, tool: &str, number: u64) -> Result<Value, Failure> {
    let arguments = json!({ "number": number, "path": format!("/work/documents/chapter-{number}.md") });
    let params: CallToolRequestParams =
        serde_json::from_value(json!({ "name": tool, "arguments": arguments }))?;
    Ok(serde_json::to_value(peer.call_tool(params).await?)?)
}

async fn traffic(peer: &Peer<RoleClient>) -> Result<(u64, u64), Failure> {
    let result = call(peer, "traffic", 0).await?;
    let text = result.pointer("/content/0/text").and_then(Value::as_str).ok_or("no text")?;
    Ok(serde_json::from_str(text)?)
}

#[derive(Clone)]
struct Server;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    number: u64,
    path: String,
}

#[tool_router]
impl Server {
    #[tool(description = "Finds lines in a document.")]
    async fn find(&self, Parameters(Query { number, path }): Parameters<Query>) -> String {
        let lines = (1..=5)
            .map(|line| format!("{path}:{}: a line with the words that were looked for", number + line));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[tool(description = "Tells how many bytes this server has read and written.")]
    async fn traffic(&self) -> String {
        let plain = (READ.load(Ordering::Relaxed), WRITTEN.load(Ordering::Relaxed));
        let counted = LUMEN.get().map(|watch| watch.seen().counters);
        let (read, written) = counted.map_or(plain, |counters| (counters.bytes_read, counters.bytes_written));
        json!([read, written]).to_string()
    }
}

#[tool_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

static LUMEN: OnceLock<Watch> = OnceLock::new();
static READ: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// A stream whose bytes are counted.
struct Counted<T>(T, &'static AtomicU64);

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.0).poll_read(cx, buf);
        this.1.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.0).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = &polled {
            this.1.fetch_add(*count as u64, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
