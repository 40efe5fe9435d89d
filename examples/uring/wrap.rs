//! LUMEN in front of a server that knows only JSON, on io_uring. The client starts the wrapper, the wrapper starts the
//! server, all three of them this program; between client and wrapper go frames, between wrapper and server JSON lines.
//! The program that `lumen wrap` is does the same.
//!
//! ```text
//! cargo run -p lumen-examples --example uring_wrap
//! ```

use std::error::Error;
use std::time::Duration;

use lumen_proto::endpoint::Relay;
use lumen_uring::{
    Behind, Client, CommandSpec, Event, Loop, Message, Mode, Outcome, ServerConfig, Stream, Target,
};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => Ok(lumen_examples::serve_json()?),
        Some("wrap") => wrap(),
        _ => ask(),
    }
}

fn wrap() -> Result<(), Box<dyn Error>> {
    let server = CommandSpec::new(std::env::current_exe()?).arg("serve");
    let relay = Relay::wrap(ServerConfig::new(Behind::Process, Mode::Off));
    let client = relay.client_port();
    let mut driver = Loop::new(relay, Some(Target::Command(server)))?;
    driver.attach(client, Stream::stdio()?);
    // It ends when the client has closed its input and the server has ended.
    while let Some(event) = driver.next_event()? {
        match event {
            Event::Finished(Outcome::Closed(_)) => {}
            Event::Finished(outcome) => return Err(format!("it ended with {outcome:?}").into()),
            _ => {}
        }
    }
    Ok(())
}

fn ask() -> Result<(), Box<dyn Error>> {
    let wrapper = CommandSpec::new(std::env::current_exe()?).arg("wrap");
    // It has LUMEN, however long a busy machine takes to start it.
    let config = ServerConfig::new(Behind::Process, Mode::Auto).with_probe_timeout(Duration::from_secs(30));
    let mut client = Client::connect(Target::Command(wrapper), config)?;
    let request = message(r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":"Ada"}"#);
    println!("client asks: {}", text(&request));
    client.send(request)?;
    let answer = client.recv().ok_or("the server is gone")?;
    println!("server answers: {}", text(&answer));
    println!("LUMEN: {}", client.is_lumen());
    println!("ended: {:?}", client.close().outcome);
    Ok(())
}

fn message(text: &str) -> Message {
    Message::copy_from(text.as_bytes()).expect("a message")
}

fn text(message: &Message) -> String {
    String::from_utf8_lossy(message.bytes()).into_owned()
}
