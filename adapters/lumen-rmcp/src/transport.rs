//! The transports: thin names over one link.

use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use lumen_tokio::{Client, Event, Mode, Server, ServerConfig, Stream, Target};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleClient, RoleServer};

use crate::codec::encode;
use crate::end::{End, Seen};
use crate::link::{Link, Shared};
use crate::{ChildOptions, Error};

/// A client's transport to a server that it starts, in the place of rmcp's `TokioChildProcess`.
#[derive(Debug)]
pub struct ChildTransport(Link<Client>);

/// A client's transport to a server that runs already, or to one set up in every detail.
#[derive(Debug)]
pub struct ClientTransport(Link<Client>);

/// A server's transport to its one client.
#[derive(Debug)]
pub struct ServerTransport(Link<Server>);

/// Looks at a transport from outside, also after it was given away to rmcp and when it is closed.
#[derive(Clone, Debug)]
pub struct Watch(Arc<dyn Observed>);

impl ChildTransport {
    /// Starts a server once the transport is used. That it cannot be started is told to the first request, by an
    /// error answer.
    pub fn spawn(options: impl Into<ChildOptions>) -> Self {
        let (target, config) = options.into().into_parts();
        Self(Link::new(Client::connect(target, config)))
    }
}

impl ClientTransport {
    /// Connects to a server on a Unix stream socket, such as one of `lumen mux`, once the transport is used. That it
    /// cannot be reached is told to the first request, by an error answer.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self::socket(Target::Unix(path.into()))
    }

    /// The same over TCP, to `host:port`.
    pub fn tcp(address: impl Into<String>) -> Self {
        Self::socket(Target::Tcp(address.into()))
    }

    /// Starts a server or connects to one as `config` says.
    pub fn connect(target: Target, config: ServerConfig) -> Self {
        Self(Link::new(Client::connect(target, config)))
    }

    fn socket(target: Target) -> Self {
        let config = ServerConfig::new(target.behind(), Mode::Auto);
        Self::connect(target, config)
    }
}

impl ServerTransport {
    /// Serves whoever started this process, over its standard input and output.
    ///
    /// # Errors
    /// One of them cannot be examined or registered with the runtime.
    pub fn stdio() -> io::Result<Self> {
        Ok(Self(Link::new(Server::stdio()?)))
    }

    /// Serves whoever is at the other end of a connection: an accepted tokio `UnixStream` or
    /// `TcpStream`.
    pub fn socket(stream: impl Into<Stream>) -> Self {
        Self(Link::new(Server::socket(stream)))
    }
}

impl Watch {
    /// Returns what is to be seen now; of a transport that is closed, what was when that began, and how it ended.
    pub fn seen(&self) -> Seen {
        self.0.seen()
    }
}

trait Observed: std::fmt::Debug + Send + Sync {
    fn seen(&self) -> Seen;
}

impl<E: End> Observed for Shared<E> {
    fn seen(&self) -> Seen {
        self.seen()
    }
}

/// What all of them have.
macro_rules! transport {
    ($transport:ident, $role:ty) => {
        impl $transport {
            /// Returns something to look at this transport with when rmcp has it.
            pub fn watch(&self) -> Watch {
                Watch(self.0.shared().clone())
            }

            /// Sets who is told of what is no message: that frames are used now, that a server wrote what is no
            /// JSON, how it ended.
            pub fn on_notice(&mut self, notice: impl FnMut(Event) + Send + 'static) {
                self.0.on_notice(Box::new(notice));
            }
        }

        impl Transport<$role> for $transport {
            type Error = Error;

            /// Queues the message at once, in the order of the calls, and is ready when it is written. Where there is
            /// no room it waits for that, and dropped meanwhile the message is not sent.
            fn send(
                &mut self,
                item: TxJsonRpcMessage<$role>,
            ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
                self.0.send(encode::<$role>(&item))
            }

            /// Safe to drop at any point, as in `select!`: no message is lost.
            fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<$role>>> + Send {
                poll_fn(|cx| self.0.poll_receive::<$role>(cx))
            }

            /// Writes what was sent, and waits for a server that was started to end. Dropped meanwhile, that server
            /// is ended at once.
            fn close(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
                self.0.close()
            }
        }
    };
}

transport!(ChildTransport, RoleClient);
transport!(ClientTransport, RoleClient);
transport!(ServerTransport, RoleServer);
