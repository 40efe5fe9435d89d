//! One server for many clients over a Unix socket.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

use lumen_driver::desk::Knock;
use lumen_driver::door::{self, MuxEvent};
use lumen_driver::{Listen, MuxIo};
use lumen_os::{Accepted, ListenError, Listener, Listening, MuxSpec, StderrTail, Target};
use lumen_proto::Port;
use lumen_proto::endpoint::Hub;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::task::coop::{cooperative, unconstrained};

use crate::Stream;
use crate::register::register;
use crate::world::Runtime;

/// Shares a server, started by a command, between all who connect to a Unix socket.
///
/// Nothing happens while nobody awaits [`next_event`](Self::next_event); [`spawn`](Self::spawn) gives that to a task.
/// Dropping it closes everything, ends the server with its whole process group, and removes the socket. A signal that
/// ends the process drops nothing: catch it, and [`shut_down`](Self::shut_down).
///
/// ```no_run
/// use lumen_tokio::{CommandSpec, Mux, MuxSpec};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let mut mux = Mux::bind(MuxSpec::new("/run/user/1000/s", CommandSpec::new("my-server")))?;
/// while let Some(event) = mux.next_event().await {
///     eprintln!("{event:?}");
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Bounds
/// Those of [`Hub`], and one descriptor for each client.
#[derive(Debug)]
pub struct Mux {
    io: MuxIo<Runtime, Door>,
}

impl Mux {
    /// Serves the socket, whose path it makes its own; see [`Listener`]. The command is started when the first client needs
    /// it.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled.
    pub fn bind(spec: MuxSpec) -> Result<Self, ListenError> {
        let Listening { listener, command, hub, allowed } = spec.listen()?;
        let path = listener.path().to_owned();
        let listener = register(listener, Interest::READABLE).map_err(|source| ListenError::Refused {
            path,
            step: "watch",
            source,
        })?;
        let world = Runtime::new(Some(Target::Command(command)));
        Ok(Self { io: MuxIo::new(Hub::new(hub), world, Door(listener), door::Door::new(allowed)) })
    }

    /// Serves until there is something to tell. `None` after the last event, which is that of the hub's end.
    ///
    /// Safe to drop at any point, as in `select!`.
    pub async fn next_event(&mut self) -> Option<MuxEvent> {
        cooperative(unconstrained(poll_fn(|cx| self.io.poll_event(cx)))).await
    }

    /// Serves in a task of its own, and tells `on_event` what there is to tell.
    pub fn spawn(self, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle {
        // The other end is also ready when the handle was dropped.
        let (close, closed) = oneshot::channel::<()>();
        MuxHandle { close, task: tokio::spawn(unconstrained(self.io.serve(closed, on_event))) }
    }

    /// Starts the server now, as [`Hub::start`].
    pub fn start(&mut self) {
        self.io.start();
    }

    /// Returns why the server could not be started the last time, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.io.world().open_error()
    }

    /// Ends the hub, as [`Hub::shut_down`]; [`next_event`](Self::next_event) then comes to its end.
    pub fn shut_down(&mut self) {
        self.io.shut_down();
    }

    /// Returns the hub, to look at it.
    pub fn hub(&self) -> &Hub {
        self.io.hub()
    }

    /// Returns the end of what the server behind `port` wrote to its standard error.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        self.io.world().tail(port)
    }
}

/// The socket, registered with the runtime.
#[derive(Debug)]
struct Door(AsyncFd<Listener>);

impl Listen for Door {
    type Stream = Stream;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Knock<Stream>>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            let Ok(accepted) = guard.try_io(|listener| listener.get_ref().accept()) else { continue };
            return Poll::Ready(accepted.and_then(|Accepted { fd, uid, pid }| {
                let stream = UnixStream::from_std(fd.into()).map_err(|_| io::ErrorKind::OutOfMemory)?;
                Ok(Knock { stream: stream.into(), uid, pid })
            }));
        }
    }
}

/// A [`Mux`] that serves in a task of its own. Dropping the handle ends it as [`close`](Self::close) does, without waiting.
#[derive(Debug)]
pub struct MuxHandle {
    close: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl MuxHandle {
    /// Ends the hub and waits until it has ended. However many clients are connected and whatever the server does, that
    /// takes a bounded time: what is in flight has [`DRAIN_GRACE`](lumen_proto::limits::DRAIN_GRACE) to be answered, the
    /// server is then killed after two steps, and clients that do not read are left.
    pub async fn close(self) {
        // If it has ended by itself there is nobody to tell.
        let _ = self.close.send(());
        // That the task panicked or was taken down with its runtime is no reason to do the same here.
        let _ = self.task.await;
    }
}
