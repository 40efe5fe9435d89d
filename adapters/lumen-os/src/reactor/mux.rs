//! One server for many clients over a Unix socket.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use lumen_driver::desk::Knock;
use lumen_driver::door::MuxEvent;
use lumen_driver::{Listen, MuxIo};
use lumen_proto::Port;
use lumen_proto::endpoint::Pool;

use crate::{Accepted, ListenError, Listener, Listening, MuxSpec, StderrTail, Target};

use super::ending::{Alive, Ended, life};
use super::world::Ports;
use super::{Interest, Reactor, Watched as _};

/// Shares a server, started by a command, between all who connect to a Unix socket.
///
/// Nothing happens while nobody awaits [`next_event`](Self::next_event). Dropping it closes everything, ends the server
/// with its whole process group, and removes the socket. A signal that ends the process drops nothing: catch it, and
/// [`shut_down`](Self::shut_down).
///
/// # Bounds
/// Those of [`Pool`], and one descriptor for each client.
#[derive(Debug)]
pub struct Mux<R: Reactor> {
    io: MuxIo<Ports<R>, Door<R>>,
}

impl<R: Reactor> Mux<R> {
    /// Serves the socket, whose path it makes its own; see [`Listener`]. The command is started when the first client needs
    /// it.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    ///
    /// # Panics
    /// Where the runtime has to be around and is not: outside of a tokio runtime with I/O and time enabled.
    pub fn bind(spec: MuxSpec) -> Result<Self, ListenError> {
        let Listening { listener, command, hub, desk } = spec.listen()?;
        let path = listener.path().to_owned();
        let listener = R::watch(listener, Interest::Readable).map_err(|source| ListenError::Refused {
            path,
            step: "watch",
            source,
        })?;
        let world = Ports::new(Some(Target::Command(command)));
        Ok(Self { io: MuxIo::new(hub, world, Door(listener), desk) })
    }

    /// Serves until there is something to tell. `None` after the last event, which is that of the hub's end.
    ///
    /// Safe to drop at any point, as in `select!`.
    pub async fn next_event(&mut self) -> Option<MuxEvent> {
        poll_fn(|cx| R::poll_budgeted(cx, |cx| self.io.poll_event(cx))).await
    }

    /// Returns what serves, for a task of its own, and tells `on_event` what there is to tell; and the handle to end it by.
    pub fn serve(self, on_event: impl FnMut(&MuxEvent)) -> (impl Future<Output = ()>, MuxHandle) {
        let (open, closed) = life();
        let (serving, served) = life();
        let serve = async move {
            // Dropped with it, also if it panics or its runtime goes down.
            let _serving = serving;
            self.io.serve(closed, on_event).await;
        };
        (serve, MuxHandle { open, served })
    }

    /// Starts the server now, as [`Pool::start`].
    pub fn start(&mut self) {
        self.io.start();
    }

    /// Returns why the server could not be started the last time, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.io.world().open_error()
    }

    /// Ends the hub, as [`Pool::shut_down`]; [`next_event`](Self::next_event) then comes to its end.
    pub fn shut_down(&mut self) {
        self.io.shut_down();
    }

    /// Returns the machine, to look at it.
    pub fn pool(&self) -> &Pool {
        self.io.pool()
    }

    /// Returns the end of what the server behind `port` wrote to its standard error.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        self.io.world().tail(port)
    }
}

/// The socket, watched by the runtime.
#[derive(Debug)]
struct Door<R: Reactor>(R::Fd<Listener>);

impl<R: Reactor> Listen for Door<R> {
    type Stream = R::Stream;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Knock<R::Stream>>> {
        let Accepted { fd, uid, pid } = ready!(self.0.poll_with(cx, Listener::accept))?;
        let stream = R::unix(fd).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Poll::Ready(Ok(Knock { stream, uid, pid }))
    }
}

/// A [`Mux`] that serves in a task of its own. Dropping the handle ends it as [`close`](Self::close) does, without waiting.
#[derive(Debug)]
pub struct MuxHandle {
    open: Alive,
    served: Ended,
}

impl MuxHandle {
    /// Ends the hub and waits until it has ended. However many clients are connected and whatever the server does, that
    /// takes a bounded time: what is in flight has [`DRAIN_GRACE`](lumen_proto::limits::DRAIN_GRACE) to be answered, the
    /// server is then killed after two steps, and clients that do not read are left.
    pub async fn close(self) {
        drop(self.open);
        self.served.await;
    }
}
