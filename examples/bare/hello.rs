//! Two ends of a session with no adapter between them: a client and a server in one thread, and what one writes is
//! put into a `Vec` and given to the other. This is all that an adapter has to do, besides reading and writing for
//! real. It prints what crosses: the client asks for LUMEN, the server has it, and the messages travel as frames.
//!
//! ```text
//! cargo run -p lumen-examples --example bare_hello
//! ```

use bytes::BytesMut;
use lumen_proto::endpoint::{Event, Peer, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{Action, Input, Instant, Machine, Port, Transmit};

/// Machines have no clock: they are told the time. Nothing here takes any.
const NOW: Instant = Instant::ZERO;

fn main() {
    let mut client = Peer::client(ServerConfig::new(Behind::Socket, Mode::Auto));
    let mut server = Peer::server();
    open(&mut client);
    open(&mut server);
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":"Ada"}"#;
    client.try_send(NOW, message(request)).expect("it is empty still");
    loop {
        let to_server = written("client", &mut client);
        let to_client = written("server", &mut server);
        if to_server.is_empty() && to_client.is_empty() {
            break;
        }
        read(&mut server, &to_server);
        while let Some(event) = server.poll_event() {
            if let Event::Message(request) = event {
                println!("client asks: {}", text(&request));
                let answer = r#"{"jsonrpc":"2.0","id":1,"result":"Hello, Ada!"}"#;
                server.try_send(NOW, message(answer)).expect("it is empty still");
            }
        }
        read(&mut client, &to_client);
        while let Some(event) = client.poll_event() {
            if let Event::Message(answer) = event {
                println!("server answers: {}", text(&answer));
            }
        }
    }
    println!("LUMEN: {}", client.is_lumen());
}

/// Says that the other end is there. The client asks for that; the server was made for one that is.
fn open(peer: &mut Peer) {
    let asked = peer.poll_action();
    let port: Port = if let Some(Action::Spawn(port)) = asked { port } else { peer.port() };
    peer.handle_input(NOW, Input::Opened(port));
}

fn written(who: &str, peer: &mut Peer) -> Vec<u8> {
    let mut all = Vec::new();
    let mut frame = BytesMut::new();
    while peer.poll_transmit(NOW, peer.port(), &mut frame) == Transmit::More {
        println!("{who} writes {} bytes: {}", frame.len(), frame.escape_ascii());
        all.extend_from_slice(&frame);
        frame.clear();
    }
    all
}

fn read(peer: &mut Peer, bytes: &[u8]) {
    peer.handle_input(NOW, Input::Data(peer.port(), bytes));
}

fn message(text: &str) -> Message {
    Message::copy_from(text.as_bytes()).expect("a message")
}

fn text(message: &Message) -> String {
    String::from_utf8_lossy(message.bytes()).into_owned()
}
