//! Sessions as most programs want them: messages to send and to receive, over [`Loop`].

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use lumen_driver::session::{Closed, Error, Offer, Session, Side};
use lumen_driver::{Counters, Pump};
use lumen_proto::endpoint::{Event, Outcome, Peer, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;

use crate::told::{of_client, of_end};
use crate::{CommandSpec, StderrTail, Target};

use super::{Engine, Loop};

/// A client and its server: a process that it starts, or a connection that it makes.
///
/// Nothing happens while none of its methods is called. Dropping it ends the server at once, with all that it
/// started; [`close`](Self::close) gives it time.
#[derive(Debug)]
pub struct Client<E: Engine> {
    io: Loop<Peer, E>,
    session: Session,
}

/// A server and its one client.
///
/// Nothing happens while none of its methods is called. Dropping it drops what was not written;
/// [`close`](Self::close) writes it.
#[derive(Debug)]
pub struct Server<E: Engine> {
    io: Loop<Peer, E>,
    session: Session,
}

impl<E: Engine> Client<E> {
    /// Starts a server and asks it for LUMEN; if it has none, the session is plain JSON-RPC.
    ///
    /// The question holds the first messages back for up to half a second, and a server that ends or goes deaf over
    /// it is started a second time without; [`connect`](Self::connect) with another [`Mode`] avoids
    /// both. That it cannot be started is told by how the session ends, and each request is answered by an error.
    pub fn spawn(spec: CommandSpec) -> E::Made<Self> {
        Self::connect(Target::Command(spec), ServerConfig::new(Behind::Process, Mode::Auto))
    }

    /// Starts a server or connects to it, as `config` says; what it says to be behind the target is set right.
    pub fn connect(target: Target, config: ServerConfig) -> E::Made<Self> {
        let config = ServerConfig { behind: target.behind(), ..config };
        E::make(|engine| Self {
            io: Loop::over(engine, Peer::client(config), Some(target)),
            session: Session::default(),
        })
    }
}

impl<E: Engine> Server<E> {
    /// Serves whoever started this process, over its standard input and output.
    ///
    /// # Errors
    /// One of them cannot be examined, descriptors are used up, or there is no engine.
    pub fn stdio() -> io::Result<Self> {
        Self::over(E::stdio()?)
    }

    /// Serves whoever is at the other end of a connection, such as an accepted one.
    ///
    /// # Errors
    /// The descriptor is no socket, or there is no engine.
    pub fn socket(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Self::over(E::socket(fd.into())?)
    }

    fn over(stream: E::Stream) -> io::Result<Self> {
        let peer = Peer::server();
        let port = peer.port();
        let mut io = Loop::try_new(peer, None)?;
        io.attach(port, stream);
        Ok(Self { io, session: Session::default() })
    }
}

/// What both ends have.
macro_rules! session {
    ($end:ident, $side:expr) => {
        impl<E: Engine> $end<E> {
            /// Sends a message. It waits while too much waits to be written or too many requests are in flight, and
            /// reads meanwhile. What was sent is written by whatever is called next.
            ///
            /// # Errors
            /// The session has ended, or what was received has to be taken first; see [`Side::offer`].
            ///
            /// # Bounds
            /// About [`MAX_QUEUE`](lumen_proto::limits::MAX_QUEUE) bytes wait to be written, and as many to be
            /// received.
            pub fn send(&mut self, mut message: Message) -> Result<(), Error> {
                loop {
                    match self.io.with_time(|peer, now| $side.offer(peer, now, message)) {
                        Offer::Done(result) => return result,
                        Offer::Wait(back) => message = back,
                    }
                    let is_due = |pump: &Pump<Peer>| $side.is_worth_offering(pump.machine(), &message);
                    if self.io.wait_until(is_due).is_err() {
                        return Err(Error::OutOfMemory(message));
                    }
                }
            }

            /// Receives the next message, however long that takes. `None` means that no more will come: the session has ended, or the client
            /// has closed its input. Also if the system is out of memory, which [`close`](Self::close) then meets too.
            pub fn recv(&mut self) -> Option<Message> {
                while !self.session.is_over() {
                    let event = self.io.next_event().ok().flatten()?;
                    if let Some(message) = self.session.on_event(event) {
                        return Some(message);
                    }
                }
                // Its process is buried and its last words are heard before this is told; out of memory, it is told anyway.
                if self.io.machine().is_over() {
                    let _ = self.io.wait_until(Pump::is_settled);
                }
                None
            }

            /// Writes all that was sent, and returns whether that was done. It was not if the session has ended, or a
            /// client has as much to receive as is kept.
            pub fn flush(&mut self) -> bool {
                let mut flushed = None;
                let is_done = self.io.wait_until(|pump| {
                    flushed = $side.flushed(pump);
                    flushed.is_some()
                });
                is_done.is_ok() && flushed == Some(true)
            }

            /// Ends the session: writes what was sent, and gives a server that was started or connected to its time to
            /// end. Says how it ended, and what was not received.
            pub fn close(mut self) -> Closed {
                self.io.with_time(|peer, now| peer.close(now));
                while let Ok(Some(event)) = self.io.next_event() {
                    if !self.session.on_last_event(event) {
                        // Out of memory to wait with is met again at once.
                        let _ = self.io.wait_until(|pump| pump.machine().is_over());
                    }
                }
                self.session.into_closed(self.io.machine())
            }

            /// Lets it look for up to so long before it sleeps; see [`Loop::set_spin`].
            pub fn set_spin(&mut self, bound: Duration) {
                self.io.set_spin(bound);
            }
        }
    };
}

session!(Client, Side::Client);
session!(Server, Side::Server);

of_client!(Client<Engine>);
of_end!(Client<Engine>);
of_end!(Server<Engine>);
