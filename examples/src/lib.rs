//! What examples share. They live beside this file, one folder a runtime.

use std::io;

/// Serves over standard input and output as most servers do: with JSON lines and nothing else. It greets, and counts.
///
/// # Errors
/// Those of the streams.
pub fn serve_json() -> io::Result<()> {
    for (count, line) in (1..).zip(io::stdin().lines()) {
        let request: serde_json::Value = serde_json::from_str(&line?)?;
        let (id, name) = (&request["id"], request["params"].as_str().unwrap_or("whoever you are"));
        println!(r#"{{"jsonrpc":"2.0","id":{id},"result":"Hello, {name}! You are number {count}."}}"#);
    }
    Ok(())
}
