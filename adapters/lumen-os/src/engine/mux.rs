//! One server for many clients over a Unix socket.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lumen_driver::desk::{self, Desk, Drive, Knock};
use lumen_driver::door::MuxEvent;
use lumen_driver::status::{MAX_LINES, Process};
use lumen_proto::endpoint::Pool;
use lumen_proto::{Instant, Port};

use crate::{Accepted, ListenError, Listener, Listening, MuxSpec, StderrTail, Target};

use super::{Engine, Loop};

/// Clients accepted in one turn, so that many who come at once do not keep the others waiting.
const TURN_CLIENTS: usize = 16;

/// Shares a server, started by a command, between all who connect to a Unix socket, on the thread that calls it.
///
/// Nothing happens while nobody calls [`next_event`](Self::next_event); [`spawn`](Self::spawn) gives that to a thread.
/// Dropping it closes everything, ends the server with its whole process group, and removes the socket. A signal that
/// ends the process drops nothing: catch it, [`watch`](Self::watch) for it, and [`shut_down`](Self::shut_down).
///
/// # Bounds
/// Those of [`Pool`], and one descriptor for each client.
#[derive(Debug)]
pub struct Mux<E: Engine> {
    // In the order in which they are dropped: when the socket goes, the server has ended.
    driver: Loop<Pool, E>,
    listener: Listener,
    desk: Desk,
}

impl<E: Engine> Mux<E> {
    /// Serves the socket, whose path it makes its own; see [`Listener`]. The command is started when the first client needs
    /// it.
    ///
    /// # Errors
    /// As [`Listener::bind`], or there is no engine.
    pub fn bind(spec: MuxSpec) -> Result<Self, ListenError> {
        Self::over(spec.listen()?)
    }

    fn over(listening: Listening) -> Result<Self, ListenError> {
        let Listening { listener, command, hub, desk } = listening;
        let refused = |step| {
            let path = listener.path().to_owned();
            move |source| ListenError::Refused { path, step, source }
        };
        let engine = E::try_new().map_err(refused("serve"))?;
        let mut driver = Loop::over(engine, Pool::new(hub), Some(Target::Command(command)));
        driver.look_at(listener.as_fd().try_clone_to_owned().map_err(refused("watch"))?);
        Ok(Self { driver, listener, desk })
    }

    /// Lets this descriptor end the wait in [`next_event`](Self::next_event), which then returns `None`; see
    /// [`Loop::watch`].
    pub fn watch(&mut self, fd: impl Into<OwnedFd>) {
        self.driver.watch(fd);
    }

    /// Lets it look for up to so long before it sleeps; see [`Loop::set_spin`].
    pub fn set_spin(&mut self, bound: Duration) {
        self.driver.set_spin(bound);
    }

    /// Serves until there is something to tell. `None` after the last event, which is that of the hub's end, and when the
    /// watched descriptor had something to read.
    ///
    /// # Errors
    /// What the system said, which is out of memory.
    pub fn next_event(&mut self) -> io::Result<Option<MuxEvent>> {
        loop {
            if let Some(event) = self.desk.poll_event() {
                return Ok(Some(event));
            }
            if self.desk.is_over() {
                return Ok(None);
            }
            if let Some(event) = self.driver.poll_event() {
                self.desk.on_event(&mut self.driver, event);
                continue;
            }
            if self.driver.take_woken() {
                return Ok(None);
            }
            let is_taking = self.pool().is_taking_clients();
            self.driver.set_looking(is_taking);
            self.driver.turn(None)?;
            if self.driver.take_readable() {
                self.accept();
            }
        }
    }

    /// Serves in a thread of its own, and tells `on_event` what there is to tell.
    ///
    /// # Errors
    /// There is no thread, or no descriptors to wake it by.
    pub fn spawn(self, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> io::Result<MuxHandle>
    where
        Self: Send + 'static,
    {
        MuxHandle::new(move |wakes| self.serve(wakes, on_event))
    }

    /// The same as [`bind`](Self::bind) and [`spawn`](Self::spawn), also with an engine that has to stay on the thread that
    /// made it.
    ///
    /// # Errors
    /// As those two.
    pub fn bind_and_spawn(
        spec: MuxSpec,
        on_event: impl FnMut(&MuxEvent) + Send + 'static,
    ) -> Result<MuxHandle, ListenError> {
        let listening = spec.listen()?;
        let path = listening.listener.path().to_owned();
        let (tell, told) = mpsc::sync_channel(1);
        let handle = MuxHandle::new(move |wakes| {
            let (mux, result) = match Self::over(listening) {
                Ok(mux) => (Some(mux), Ok(())),
                Err(error) => (None, Err(error)),
            };
            // If nobody waits to hear it, the handle is gone, and that ends the service.
            let _ = tell.send(result);
            if let Some(mux) = mux {
                mux.serve(wakes, on_event);
            }
        });
        let refused = |source| ListenError::Refused { path, step: "serve", source };
        match (handle, told.recv()) {
            (Ok(handle), Ok(Ok(()))) => Ok(handle),
            (_, Ok(Err(error))) => Err(error),
            (Err(error), _) => Err(refused(error)),
            (_, Err(_)) => Err(refused(io::ErrorKind::Other.into())),
        }
    }

    fn serve(mut self, wakes: OwnedFd, mut on_event: impl FnMut(&MuxEvent)) {
        self.watch(wakes);
        while !self.desk.is_over() {
            match self.next_event() {
                Ok(Some(event)) => on_event(&event),
                // The handle was closed or dropped.
                Ok(None) => self.shut_down(),
                Err(_) => return,
            }
        }
    }

    /// Starts the server now, as [`Pool::start`].
    pub fn start(&mut self) {
        desk::start(&mut self.driver);
    }

    /// Returns why the server could not be started the last time, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.driver.open_error()
    }

    /// Ends the hub, as [`Pool::shut_down`]; [`next_event`](Self::next_event) then comes to its end.
    pub fn shut_down(&mut self) {
        desk::shut_down(&mut self.driver);
    }

    /// Returns the machine, to look at it.
    pub fn pool(&self) -> &Pool {
        self.driver.machine()
    }

    /// Returns the end of what the server behind `port` wrote to its standard error.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        self.driver.stderr_tail(port)
    }

    fn accept(&mut self) {
        for _ in 0..TURN_CLIENTS {
            let accepted = match self.listener.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                accepted => accepted,
            };
            let knock =
                accepted.and_then(|Accepted { fd, uid, pid }| Ok(Knock { stream: E::socket(fd)?, uid, pid }));
            self.desk.on_knock(&mut self.driver, knock);
            if !self.pool().is_taking_clients() {
                return;
            }
        }
    }
}

impl<E: Engine> Drive for Loop<Pool, E> {
    type Stream = E::Stream;

    fn now(&self) -> Instant {
        self.now()
    }

    fn pool(&self) -> &Pool {
        self.machine()
    }

    fn with<R>(&mut self, command: impl FnOnce(&mut Pool) -> R) -> R {
        self.with(command)
    }

    fn attach(&mut self, port: Port, stream: E::Stream) {
        self.attach(port, stream);
    }

    fn process(&self, port: Port) -> Process {
        let stderr = self.stderr_tail(port).map_or_else(Vec::new, |tail| tail.last_lines(MAX_LINES));
        Process { pid: self.child_id(port), stderr }
    }
}

/// A [`Mux`] that serves in a thread of its own. Dropping the handle ends it as [`close`](Self::close) does, without
/// waiting.
#[derive(Debug)]
pub struct MuxHandle {
    /// Its end wakes the thread.
    wake: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl MuxHandle {
    /// Starts the thread, with a descriptor that can be read when the handle is closed or dropped.
    fn new(serve: impl FnOnce(OwnedFd) + Send + 'static) -> io::Result<Self> {
        let (wakes, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let thread = thread::Builder::new().name("lumen-mux".to_owned()).spawn(move || serve(wakes))?;
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }

    /// Ends the hub and waits until it has ended. However many clients are connected and whatever the server does, that
    /// takes a bounded time: what is in flight has [`DRAIN_GRACE`](lumen_proto::limits::DRAIN_GRACE) to be answered, the
    /// server is then killed after two steps, and clients that do not read are left.
    pub fn close(mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // That it panicked is no reason to do the same here.
            let _ = thread.join();
        }
    }
}
