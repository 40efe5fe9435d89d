//! Sessions as most programs want them: messages to send and to receive, over [`Driver`](super::Driver).

use std::io;

use lumen_driver::session::{Closed, Error, Offer, Session, Side};
use lumen_driver::{Counters, Pump};
use lumen_proto::endpoint::{Event, Outcome, Peer, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;

use crate::told::{of_client, of_end};
use crate::{CommandSpec, StderrTail, Target};

use super::{Driver, Reactor, Stdio};

/// A client and its server: a process that it starts, or a connection that it makes.
///
/// Nothing happens while none of its methods is awaited. Dropping it ends the server at once, with all that it
/// started; [`close`](Self::close) gives it time.
#[derive(Debug)]
pub struct Client<R: Reactor> {
    io: Driver<Peer, R>,
    session: Session,
}

/// A server and its one client.
///
/// Nothing happens while none of its methods is awaited. Dropping it drops what was not written;
/// [`close`](Self::close) writes it.
#[derive(Debug)]
pub struct Server<R: Reactor> {
    io: Driver<Peer, R>,
    session: Session,
}

impl<R: Reactor> Client<R> {
    /// Starts a server and asks it for LUMEN; if it has none, the session is plain JSON-RPC.
    ///
    /// The question holds the first messages back for up to half a second, and a server that ends or goes deaf over
    /// it is started a second time without; [`connect`](Self::connect) with another [`Mode`] avoids
    /// both. That it cannot be started is told by how the session ends, and each request is answered by an error.
    pub fn spawn(spec: CommandSpec) -> Self {
        Self::connect(Target::Command(spec), ServerConfig::new(Behind::Process, Mode::Auto))
    }

    /// Starts a server or connects to it, as `config` says; what it says to be behind the target is set right.
    pub fn connect(target: Target, config: ServerConfig) -> Self {
        let config = ServerConfig { behind: target.behind(), ..config };
        Self { io: Driver::new(Peer::client(config), Some(target)), session: Session::default() }
    }
}

impl<R: Reactor> Server<R> {
    /// Serves whoever started this process, over its standard input and output.
    ///
    /// # Errors
    /// One of them cannot be examined or registered with the runtime.
    pub fn stdio() -> io::Result<Self> {
        Ok(Self::socket(R::stdio(Stdio::own()?)))
    }

    /// Serves whoever is at the other end of a connection, such as an accepted one.
    pub fn socket(stream: impl Into<R::Stream>) -> Self {
        let peer = Peer::server();
        let port = peer.port();
        let mut io = Driver::new(peer, None);
        io.attach(port, stream.into());
        Self { io, session: Session::default() }
    }
}

/// What both ends have.
macro_rules! session {
    ($end:ident, $side:expr) => {
        impl<R: Reactor> $end<R> {
            /// Sends a message. It waits while too much waits to be written or too many requests are in flight, and
            /// reads meanwhile. What was sent is written by whatever is awaited next.
            ///
            /// Dropped while it waits, the message is not sent.
            ///
            /// # Errors
            /// The session has ended, or what was received has to be taken first; see [`Side::offer`].
            ///
            /// # Bounds
            /// About [`MAX_QUEUE`](lumen_proto::limits::MAX_QUEUE) bytes wait to be written, and as many to be
            /// received.
            pub async fn send(&mut self, mut message: Message) -> Result<(), Error> {
                loop {
                    match self.io.with_time(|peer, now| $side.offer(peer, now, message)) {
                        Offer::Done(result) => return result,
                        Offer::Wait(back) => message = back,
                    }
                    self.io.wait_until(|pump| $side.is_worth_offering(pump.machine(), &message)).await;
                }
            }

            /// Receives the next message. `None` means that no more will come: the session has ended, or the client
            /// has closed its input.
            ///
            /// Safe to drop at any point, as in `select!`: no message is lost.
            pub async fn recv(&mut self) -> Option<Message> {
                while !self.session.is_over() {
                    let event = self.io.next_event().await?;
                    if let Some(message) = self.session.on_event(event) {
                        return Some(message);
                    }
                }
                // Its process is buried and its last words are heard before this is told.
                if self.io.machine().is_over() {
                    self.io.wait_until(Pump::is_settled).await;
                }
                None
            }

            /// Writes all that was sent, and returns whether that was done. It was not if the session has ended, or a
            /// client has as much to receive as is kept. Safe to drop at any point.
            pub async fn flush(&mut self) -> bool {
                let mut flushed = None;
                self.io
                    .wait_until(|pump| {
                        flushed = $side.flushed(pump);
                        flushed.is_some()
                    })
                    .await;
                flushed.unwrap_or(false)
            }

            /// Ends the session: writes what was sent, and gives a server that was started or connected to its time to
            /// end. Says how it ended, and what was not received.
            pub async fn close(mut self) -> Closed {
                self.io.with_time(|peer, now| peer.close(now));
                while let Some(event) = self.io.next_event().await {
                    if !self.session.on_last_event(event) {
                        self.io.wait_until(|pump| pump.machine().is_over()).await;
                    }
                }
                self.session.into_closed(self.io.machine())
            }
        }
    };
}

session!(Client, Side::Client);
session!(Server, Side::Server);

of_client!(Client<Reactor>);
of_end!(Client<Reactor>);
of_end!(Server<Reactor>);
