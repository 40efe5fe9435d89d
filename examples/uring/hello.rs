//! A client and a server on io_uring. The client starts the server, which is this program again, and asks it for
//! LUMEN, which it has: the messages travel as frames, and neither side has to do anything for it.
//!
//! ```text
//! cargo run -p lumen-examples --example uring_hello
//! ```

use std::error::Error;
use std::time::Duration;

use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_uring::{Client, CommandSpec, Message, Server, ServerConfig, Target};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(),
        _ => ask(),
    }
}

fn ask() -> Result<(), Box<dyn Error>> {
    let server = CommandSpec::new(std::env::current_exe()?).arg("serve");
    // `Client::spawn(server)` is the usual set-up, which waits half a second for a server that may have no LUMEN.
    // This one has it, however long a busy machine takes to start it.
    let config = ServerConfig::new(Behind::Process, Mode::Auto).with_probe_timeout(Duration::from_secs(30));
    let mut client = Client::connect(Target::Command(server), config)?;
    let request = message(r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":"Ada"}"#);
    println!("client asks: {}", text(&request));
    client.send(request)?;
    let answer = client.recv().ok_or("the server is gone")?;
    println!("server answers: {}", text(&answer));
    println!("LUMEN: {}", client.is_lumen());
    let counted = client.counters();
    println!("bytes: {} to the server, {} from it", counted.bytes_written, counted.bytes_read);
    println!("ended: {:?}", client.close().outcome);
    Ok(())
}

fn serve() -> Result<(), Box<dyn Error>> {
    let mut server = Server::stdio()?;
    while let Some(request) = server.recv() {
        if request.method_is("hello") {
            server.send(message(r#"{"jsonrpc":"2.0","id":1,"result":"Hello, Ada!"}"#))?;
        }
    }
    // The client has closed its input. What was sent is written before this returns.
    server.close();
    Ok(())
}

fn message(text: &str) -> Message {
    Message::copy_from(text.as_bytes()).expect("a message")
}

fn text(message: &Message) -> String {
    String::from_utf8_lossy(message.bytes()).into_owned()
}
