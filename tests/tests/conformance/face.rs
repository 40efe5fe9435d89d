//! Every binding behind one blocking face, so that a story is told once.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use lumen_proto::endpoint::{Event, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_std::{Closed, Error, MuxEvent, MuxSpec, Target};

/// A binding on its runtime.
pub trait Face: 'static {
    type Client: End;
    type Server: End;
    type Served: Served;

    /// The word for it on the command line of `child_peer`.
    const PEER: &str;

    /// Returns whether it works on this machine.
    fn is_here() -> bool {
        true
    }

    fn new() -> Self;

    fn connect(&self, target: Target, config: ServerConfig) -> Self::Client;

    fn open_error(client: &Self::Client) -> Option<String>;

    /// What the server wrote to its standard error.
    fn stderr(client: &Self::Client) -> String;

    fn serve(&self, stream: UnixStream) -> Self::Server;

    fn serve_tcp(&self, stream: TcpStream) -> Self::Server;

    /// Serves in the background.
    fn mux(&self, spec: MuxSpec, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> Self::Served;

    /// Starts a server and lives through `session` with it, but drops everything when that has waited so often; returns
    /// whether it came to its end before. Where nothing can be dropped while it waits, calls are counted instead.
    fn give_up_after(&self, waits: usize, target: Target, config: ServerConfig) -> bool;
}

/// A mux in the background.
pub trait Served {
    fn close(self);
}

/// One end of a session.
pub trait End {
    fn send(&mut self, message: Message) -> Result<(), Error>;
    fn recv(&mut self) -> Option<Message>;
    fn flush(&mut self) -> bool;
    fn close(self) -> Closed;
    fn on_notice(&mut self, notice: impl FnMut(Event) + Send + 'static);
    fn is_lumen(&self) -> bool;

    /// Has the call that waits for the `wait`th time from now dropped at that point and made again; every waiting call at
    /// each of its waits, if that is `None`. Returns nothing where calls cannot be dropped.
    fn drop_at(&mut self, wait: Option<usize>);

    /// Returns whether a call was dropped.
    fn was_dropped(&self) -> bool;
}

/// What a session that is given up consists of, in calls.
pub const GIVEN_UP: [&str; 3] = ["echo", "echo", "say"];

pub fn message(text: &str) -> Message {
    Message::copy_from(text.as_bytes()).unwrap()
}

pub fn request(id: u32, method: &str, params: &str) -> Message {
    message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#))
}
