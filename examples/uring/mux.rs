//! One server for two clients, on io_uring. The server knows only JSON; the multiplexer starts it when the first client
//! needs it, and speaks LUMEN with both. Both call their request 1, and each gets its own answer; that the server has
//! counted on shows that it is the same one. The program that `lumen mux` is does the same.
//!
//! ```text
//! cargo run -p lumen-examples --example uring_mux
//! ```

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use lumen_uring::{Behind, Client, CommandSpec, Message, Mode, Mux, MuxSpec, ServerConfig, Target};

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return Ok(lumen_examples::serve_json()?);
    }
    let folder = std::env::temp_dir().join(format!("lumen-uring-mux-{}", std::process::id()));
    let socket = folder.join("socket");
    let server = CommandSpec::new(std::env::current_exe()?).arg("serve");
    let mux = Mux::bind_and_spawn(MuxSpec::new(&socket, server), |_event| {})?;

    let mut ada = connect(&socket)?;
    let mut grace = connect(&socket)?;
    ask(&mut ada, "Ada")?;
    ask(&mut grace, "Grace")?;
    ask(&mut ada, "Ada")?;
    println!("LUMEN: {} and {}", ada.is_lumen(), grace.is_lumen());

    // However many clients are connected: it ends the server, and they see the end of their sessions.
    mux.close();
    println!("Ada is told: {:?}", ada.recv().map(|message| text(&message)));
    println!("the socket is there: {}", socket.exists());
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

fn connect(socket: &Path) -> Result<Client, Box<dyn Error>> {
    // It has LUMEN, however long a busy machine takes to serve it.
    let config = ServerConfig::new(Behind::Socket, Mode::Auto).with_probe_timeout(Duration::from_secs(30));
    Ok(Client::connect(Target::Unix(socket.to_owned()), config)?)
}

fn ask(client: &mut Client, name: &str) -> Result<(), Box<dyn Error>> {
    let request = message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"hello","params":"{name}"}}"#));
    println!("{name} asks: {}", text(&request));
    client.send(request)?;
    let answer = client.recv().ok_or("the server is gone")?;
    println!("the server answers: {}", text(&answer));
    Ok(())
}

fn message(text: &str) -> Message {
    Message::copy_from(text.as_bytes()).expect("a message")
}

fn text(message: &Message) -> String {
    String::from_utf8_lossy(message.bytes()).into_owned()
}
