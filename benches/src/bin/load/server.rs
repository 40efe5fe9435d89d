//! What is measured against: a server that costs next to nothing, and a program that serves a socket and does nothing else.

use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};

use memchr::memmem::find;

/// What every first answer says.
const HELLO: &[u8] =
    br#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}"#;

/// Answers each request that the load makes with its arguments, without parsing what it need not.
pub(crate) fn echo() {
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
        if let Some(id) = between(&line, b"\"id\":", b",") {
            let arguments = find(&line, b"\"arguments\":").map(|at| &line[at + 12..line.len() - 3]);
            let head: io::Result<()> =
                [br#"{"jsonrpc":"2.0","id":"#, id, b","].iter().try_for_each(|part| output.write_all(part));
            let body = match arguments {
                Some(arguments) => [&br#""result":{"structuredContent":"#[..], arguments, b"}}"]
                    .iter()
                    .try_for_each(|part| output.write_all(part)),
                None => output.write_all(HELLO),
            };
            if head.and(body).and_then(|()| output.write_all(b"\n")).is_err() {
                return;
            }
        }
        line.clear();
        // What has gathered goes out before it waits.
        if input.buffer().is_empty() && output.flush().is_err() {
            return;
        }
    }
}

/// Returns what stands between two texts.
pub(crate) fn between<'a>(line: &'a [u8], before: &[u8], after: &[u8]) -> Option<&'a [u8]> {
    let rest = &line[find(line, before)? + before.len()..];
    Some(&rest[..find(rest, after)?])
}

/// Serves a Unix socket on tokio and answers each line with an empty one.
pub(crate) fn hello(path: &str) {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::bind(path).expect("it is bound");
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut stream = tokio::io::BufReader::new(stream);
                let mut line = Vec::new();
                while stream.read_until(b'\n', &mut line).await.is_ok_and(|len| len > 0) {
                    let _ = stream.write_all(b"\n").await;
                }
            });
        }
    });
}
