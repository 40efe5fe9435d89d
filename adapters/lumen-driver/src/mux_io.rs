//! A whole multiplexer for a runtime that tells of readiness: what a binding adds is how clients are accepted.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use lumen_proto::endpoint::{HubConfig, Pool};
use lumen_proto::{Instant, Port};

use crate::desk::{Desk, Drive, Knock, shut_down, start};
use crate::door::MuxEvent;
use crate::status::Process;
use crate::{PollIo, TURNS, World};

/// A socket that clients connect to.
pub trait Listen {
    /// The stream of a client.
    type Stream;

    /// Takes the next client.
    ///
    /// # Errors
    /// `OutOfMemory` if the system has no room for it; with anything else it has gone again.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Knock<Self::Stream>>>;
}

/// A [`World`] that can tell of the processes that it started.
pub trait Processes {
    /// Returns what is known of the process behind `port`.
    fn process(&self, port: Port) -> Process;
}

/// Shares a server between all who connect to a listening socket.
///
/// # Bounds
/// Those of [`Pool`] and of [`PollIo`], and one descriptor for each client.
pub struct MuxIo<W: World, L> {
    // In the order in which they are dropped: when the socket goes, the server has ended.
    io: PollIo<Pool, W>,
    listener: L,
    desk: Desk,
}

impl<W: World + Processes, L: Listen<Stream = W::Stream>> MuxIo<W, L> {
    /// Shares what `world` starts.
    pub fn new(config: HubConfig, world: W, listener: L, desk: Desk) -> Self {
        Self { io: PollIo::new(Pool::new(config), world), listener, desk }
    }

    /// Serves until there is something to tell. `None` after the last event, which is that of the hub's end.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<MuxEvent>> {
        loop {
            if let Some(event) = self.desk.poll_event() {
                return Poll::Ready(Some(event));
            }
            if self.desk.is_over() {
                return Poll::Ready(None);
            }
            // Both are polled each time, so that neither those who come nor those who are there wait for the other.
            let is_taking = self.pool().is_taking_clients();
            let knock = if is_taking { self.listener.poll_accept(cx) } else { Poll::Pending };
            let event = self.io.poll_event(cx);
            let is_same = is_taking == self.pool().is_taking_clients();
            if let Poll::Ready(Some(event)) = event {
                self.desk.on_event(&mut self.io, event);
            } else if knock.is_pending() && is_same {
                return Poll::Pending;
            }
            if let Poll::Ready(knock) = knock {
                self.desk.on_knock(&mut self.io, knock);
            }
        }
    }

    /// Serves to the end, and tells `on_event` what there is to tell. When `close` is ready it shuts down.
    pub async fn serve(mut self, close: impl Future, mut on_event: impl FnMut(&MuxEvent)) {
        let mut close = pin!(close);
        let mut is_closing = false;
        let serving = poll_fn(|cx| {
            if !is_closing && close.as_mut().poll(cx).is_ready() {
                is_closing = true;
                self.shut_down();
            }
            for _ in 0..TURNS {
                match ready!(self.poll_event(cx)) {
                    Some(event) => on_event(&event),
                    None => return Poll::Ready(()),
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        serving.await;
    }

    /// Starts the server now, as [`Pool::start`].
    pub fn start(&mut self) {
        start(&mut self.io);
    }

    /// Ends the hub, as [`Pool::shut_down`].
    pub fn shut_down(&mut self) {
        shut_down(&mut self.io);
    }

    /// Returns the machine, to look at it.
    pub fn pool(&self) -> &Pool {
        self.io.machine()
    }

    /// Returns the world.
    pub const fn world(&self) -> &W {
        self.io.world()
    }
}

impl<W: World, L: fmt::Debug> fmt::Debug for MuxIo<W, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MuxIo")
            .field("pool", self.io.machine())
            .field("listener", &self.listener)
            .field("desk", &self.desk)
            .finish_non_exhaustive()
    }
}

impl<W: World + Processes> Drive for PollIo<Pool, W> {
    type Stream = W::Stream;

    fn now(&self) -> Instant {
        self.now()
    }

    fn pool(&self) -> &Pool {
        self.machine()
    }

    fn with<R>(&mut self, command: impl FnOnce(&mut Pool) -> R) -> R {
        self.with(command)
    }

    fn attach(&mut self, port: Port, stream: W::Stream) {
        self.attach(port, stream);
    }

    fn process(&self, port: Port) -> Process {
        self.world().process(port)
    }
}
