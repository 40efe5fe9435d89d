//! The face of every binding that is an engine. It blocks by itself, so no call can be dropped while it waits.

use std::marker::PhantomData;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use lumen_os::engine::{Client, Engine, Mux, MuxHandle, Server};
use lumen_proto::endpoint::{Event, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_std::{Closed, Error, MuxEvent, MuxSpec, Target};

use crate::face::{End, Face, GIVEN_UP, Served, request};

/// Says how an engine is made.
pub trait Makes: 'static {
    type Engine: Engine;

    /// The word for it on the command line of `child_peer`.
    const PEER: &str;

    /// As [`Face::is_here`].
    fn is_here() -> bool {
        true
    }

    fn made<T>(made: <Self::Engine as Engine>::Made<T>) -> T;
}

/// A binding over an engine, which looks for up to so many microseconds before it sleeps.
pub struct Blocking<M, const SPIN: u64 = 0>(PhantomData<M>);

impl<M: Makes, const SPIN: u64> Blocking<M, SPIN> {
    fn server(stream: impl Into<OwnedFd>) -> Server<M::Engine> {
        let mut server = Server::socket(stream).unwrap();
        server.set_spin(Duration::from_micros(SPIN));
        server
    }
}

impl<M: Makes, const SPIN: u64> Face for Blocking<M, SPIN> {
    type Client = Client<M::Engine>;
    type Server = Server<M::Engine>;
    type Served = MuxHandle;

    const PEER: &str = M::PEER;

    fn is_here() -> bool {
        M::is_here()
    }

    fn new() -> Self {
        Self(PhantomData)
    }

    fn connect(&self, target: Target, config: ServerConfig) -> Self::Client {
        let mut client = M::made(Client::<M::Engine>::connect(target, config));
        client.set_spin(Duration::from_micros(SPIN));
        client
    }

    fn open_error(client: &Self::Client) -> Option<String> {
        client.open_error().map(str::to_owned)
    }

    fn stderr(client: &Self::Client) -> String {
        client.stderr_tail().unwrap().text()
    }

    fn serve(&self, stream: UnixStream) -> Self::Server {
        Self::server(stream)
    }

    fn serve_tcp(&self, stream: TcpStream) -> Self::Server {
        Self::server(stream)
    }

    fn mux(&self, spec: MuxSpec, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle {
        Mux::<M::Engine>::bind_and_spawn(spec, on_event).unwrap()
    }

    fn give_up_after(&self, waits: usize, target: Target, config: ServerConfig) -> bool {
        let mut client = self.connect(target, config);
        let mut calls = 0;
        let mut is_enough = || {
            calls += 1;
            calls > waits
        };
        for (id, method) in (0..).zip(GIVEN_UP) {
            if is_enough() {
                return false;
            }
            client.send(request(id, method, "[]")).unwrap();
            if is_enough() {
                return false;
            }
            client.recv().unwrap();
        }
        client.close();
        true
    }
}

impl Served for MuxHandle {
    fn close(self) {
        self.close();
    }
}

macro_rules! end {
    ($end:ident) => {
        impl<E: Engine + 'static> End for $end<E> {
            fn send(&mut self, message: Message) -> Result<(), Error> {
                self.send(message)
            }

            fn recv(&mut self) -> Option<Message> {
                self.recv()
            }

            fn flush(&mut self) -> bool {
                self.flush()
            }

            fn close(self) -> Closed {
                self.close()
            }

            fn on_notice(&mut self, notice: impl FnMut(Event) + Send + 'static) {
                self.on_notice(notice);
            }

            fn is_lumen(&self) -> bool {
                self.is_lumen()
            }

            fn drop_at(&mut self, _: Option<usize>) {}

            fn was_dropped(&self) -> bool {
                false
            }
        }
    };
}

end!(Client);
end!(Server);
