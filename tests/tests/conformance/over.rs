//! The face of every binding that is made over a reactor.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::Poll;
use std::thread::{self, JoinHandle};

use lumen_os::reactor::{self, MuxHandle, Reactor};
use lumen_proto::endpoint::{Event, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_std::{Closed, Error, MuxEvent, MuxSpec, Target};
use tokio::sync::oneshot;

use crate::face::{End, Face, GIVEN_UP, Served, request};

/// How a runtime is driven.
pub trait Runs: Default + 'static {
    type Reactor: Reactor;

    /// The word for it on the command line of `child_peer`.
    const PEER: &str;

    fn block_on<F: Future>(&self, future: F) -> F::Output;

    /// Takes a socket; called inside [`block_on`](Self::block_on), as are the next two.
    fn unix(socket: UnixStream) -> <Self::Reactor as Reactor>::Stream;

    /// Takes a socket, by way of the runtime's own type if it has one.
    fn tcp(socket: TcpStream) -> <Self::Reactor as Reactor>::Stream;

    /// Binds a mux and serves in a task.
    fn spawn_mux(spec: MuxSpec, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle;
}

/// A runtime, and the bindings on it.
pub struct Over<A>(Rc<A>);

/// An end and the runtime that drives it.
pub struct Driven<A, T> {
    end: T,
    runtime: Rc<A>,
    /// Waits until a call is dropped.
    left: Cell<Option<usize>>,
    is_always: bool,
    was_dropped: bool,
}

/// A thread that runs a mux until it is told to close it.
pub struct InThread {
    close: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl<A: Runs> Face for Over<A> {
    type Client = Driven<A, reactor::Client<A::Reactor>>;
    type Server = Driven<A, reactor::Server<A::Reactor>>;
    type Served = InThread;

    const PEER: &str = A::PEER;

    fn new() -> Self {
        Self(Rc::default())
    }

    fn connect(&self, target: Target, config: ServerConfig) -> Self::Client {
        self.driven(|| reactor::Client::connect(target, config))
    }

    fn open_error(client: &Self::Client) -> Option<String> {
        client.end.open_error().map(str::to_owned)
    }

    fn stderr(client: &Self::Client) -> String {
        client.end.stderr_tail().unwrap().text()
    }

    fn serve(&self, stream: UnixStream) -> Self::Server {
        self.driven(|| reactor::Server::socket(A::unix(stream)))
    }

    fn serve_tcp(&self, stream: TcpStream) -> Self::Server {
        self.driven(|| reactor::Server::socket(A::tcp(stream)))
    }

    fn mux(&self, spec: MuxSpec, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> InThread {
        let (close, closed) = oneshot::channel();
        let (bound, is_bound) = mpsc::channel();
        let thread = thread::spawn(move || {
            A::default().block_on(async {
                let handle = A::spawn_mux(spec, on_event);
                bound.send(()).unwrap();
                let _ = closed.await;
                handle.close().await;
            });
        });
        is_bound.recv().expect("it is bound");
        InThread { close, thread }
    }

    fn give_up_after(&self, waits: usize, target: Target, config: ServerConfig) -> bool {
        let session = async {
            let mut client = reactor::Client::<A::Reactor>::connect(target, config);
            for (id, method) in (0..).zip(GIVEN_UP) {
                client.send(request(id, method, "[]")).await.unwrap();
                client.recv().await.unwrap();
            }
            client.flush().await;
            client.close().await;
        };
        let left = Cell::new(Some(waits));
        self.0.block_on(until_dropped(&left, session)).is_some()
    }
}

impl<A: Runs> Over<A> {
    fn driven<T>(&self, make: impl FnOnce() -> T) -> Driven<A, T> {
        Driven {
            end: self.0.block_on(async { make() }),
            runtime: Rc::clone(&self.0),
            left: Cell::new(None),
            is_always: false,
            was_dropped: false,
        }
    }
}

impl Served for InThread {
    fn close(self) {
        self.close.send(()).expect("it serves");
        self.thread.join().unwrap();
    }
}

/// Drops `call` when it waits for the last time that is left, and returns `None` then.
async fn until_dropped<F: Future>(left: &Cell<Option<usize>>, call: F) -> Option<F::Output> {
    let mut call = pin!(call);
    poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => match left.get() {
            Some(0) => {
                left.set(None);
                Poll::Ready(None)
            }
            waits => {
                left.set(waits.map(|waits| waits - 1));
                Poll::Pending
            }
        },
    })
    .await
}

/// A call that waits is dropped as was asked, and made again.
macro_rules! call {
    ($self:ident, $end:ident => $call:expr) => {
        loop {
            let Driven { end: $end, runtime, left, .. } = $self;
            if let Some(result) = runtime.block_on(until_dropped(left, $call)) {
                break result;
            }
            $self.was_dropped = true;
            if $self.is_always {
                // The call itself is let wait once, else nobody would ever be woken.
                $self.left.set(Some(1));
            }
        }
    };
}

macro_rules! end {
    ($end:ident) => {
        impl<A: Runs> End for Driven<A, reactor::$end<A::Reactor>> {
            fn send(&mut self, message: Message) -> Result<(), Error> {
                call!(self, end => end.send(message.clone()))
            }

            fn recv(&mut self) -> Option<Message> {
                call!(self, end => end.recv())
            }

            fn flush(&mut self) -> bool {
                call!(self, end => end.flush())
            }

            fn close(self) -> Closed {
                self.runtime.block_on(self.end.close())
            }

            fn on_notice(&mut self, notice: impl FnMut(Event) + Send + 'static) {
                self.end.on_notice(notice);
            }

            fn is_lumen(&self) -> bool {
                self.end.is_lumen()
            }

            fn drop_at(&mut self, wait: Option<usize>) {
                self.is_always = wait.is_none();
                self.left.set(Some(wait.unwrap_or(0)));
                self.was_dropped = false;
            }

            fn was_dropped(&self) -> bool {
                self.was_dropped
            }
        }
    };
}

end!(Client);
end!(Server);
