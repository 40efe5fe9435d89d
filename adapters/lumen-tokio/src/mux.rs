//! One server for many clients over a Unix socket.

use std::io;
use std::path::Path;

use lumen_driver::door::{Door, EXHAUSTED_PAUSE, MuxEvent};
use lumen_driver::status::{MAX_LINES, Process, describe};
use lumen_os::{Accepted, CommandSpec, ListenError, Listener, StderrTail, Target, is_exhausted, own_uid};
use lumen_proto::Port;
use lumen_proto::endpoint::{Hub, HubConfig, HubEvent};
use lumen_proto::idmap::WireId;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::register::register;
use crate::{Driver, Stream};

/// Shares a server, started by a command, between all who connect to a Unix socket.
///
/// Nothing happens while nobody awaits [`next_event`](Self::next_event); [`spawn`](Self::spawn) gives that to a task.
/// Dropping it closes everything, ends the server with its whole process group, and removes the socket. A signal that
/// ends the process drops nothing: catch it, and [`shut_down`](Self::shut_down).
///
/// ```no_run
/// use std::path::Path;
///
/// use lumen_tokio::{Behind, CommandSpec, HubConfig, Mode, Mux, ServerConfig};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let config = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Offer));
/// // Only this user's clients, and root's: no others are named.
/// let mut mux = Mux::bind(Path::new("/run/user/1000/s"), CommandSpec::new("my-server"), config, [])?;
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
    driver: Driver<Hub>,
    /// The hub has nothing to wait for, so only a new client can make it move.
    is_idle: bool,
    is_over: bool,
    listener: AsyncFd<Listener>,
    door: Door,
    /// Nobody is accepted before then.
    paused: Option<Instant>,
}

impl Mux {
    /// Serves `path`, which it makes its own; see [`Listener`]. The command is started when the first client needs it.
    /// Clients may run as the same user, as root, or as one of `others`, by number; only with
    /// those can other users reach the socket.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled.
    pub fn bind(
        path: &Path,
        command: CommandSpec,
        config: HubConfig,
        others: impl IntoIterator<Item = u32>,
    ) -> Result<Self, ListenError> {
        let door = Door::new(own_uid(), others);
        let listener =
            if door.is_for_others() { Listener::bind_for_all(path) } else { Listener::bind(path) }?;
        let refused = |source| ListenError::Refused { path: path.to_owned(), step: "watch", source };
        Ok(Self {
            listener: register(listener, Interest::READABLE).map_err(refused)?,
            driver: Driver::new(Hub::new(config), Some(Target::Command(command))),
            is_idle: false,
            is_over: false,
            door,
            paused: None,
        })
    }

    /// Serves until there is something to tell. `None` after the last event, which is that of the hub's end.
    ///
    /// Safe to drop at any point, as in `select!`.
    pub async fn next_event(&mut self) -> Option<MuxEvent> {
        while !self.is_over {
            let Self { driver, listener, paused, .. } = self;
            tokio::select! {
                event = driver.next_event(), if !self.is_idle => match event {
                    Some(HubEvent::Asked { request, .. }) => self.answer(request),
                    Some(event) => {
                        let event = MuxEvent::Hub(event);
                        self.is_over = event.is_last();
                        return Some(event);
                    }
                    None => self.is_idle = true,
                },
                accepted = accept(listener), if paused.is_none() => {
                    if let Some(event) = self.on_accepted(accepted) {
                        return Some(event);
                    }
                }
                () = until(*paused), if paused.is_some() => self.paused = None,
            }
        }
        None
    }

    /// Serves in a task of its own, and tells `on_event` what there is to tell.
    pub fn spawn(mut self, mut on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle {
        let (close, mut closed) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut is_told = false;
            loop {
                tokio::select! {
                    event = self.next_event() => match event {
                        Some(event) => on_event(&event),
                        None => return,
                    },
                    // Also when the handle was dropped.
                    _ = &mut closed, if !is_told => {
                        is_told = true;
                        self.shut_down();
                    }
                }
            }
        });
        MuxHandle { close, task }
    }

    /// Starts the server now, as [`Hub::start`].
    pub fn start(&mut self) {
        let now = self.driver.now();
        self.driver.with(|hub| hub.start(now));
        self.is_idle = false;
    }

    /// Returns why the server could not be started the last time, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.driver.open_error()
    }

    /// Ends the hub, as [`Hub::shut_down`]; [`next_event`](Self::next_event) then comes to its end.
    pub fn shut_down(&mut self) {
        let now = self.driver.now();
        self.driver.with(|hub| hub.shut_down(now));
        self.is_idle = false;
    }

    /// Returns the hub, to look at it.
    pub fn hub(&self) -> &Hub {
        self.driver.machine()
    }

    /// Returns the end of what the server behind `port` wrote to its standard error.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        self.driver.stderr_tail(port)
    }

    fn answer(&mut self, request: WireId) {
        let now = self.driver.now();
        let text = describe(self.hub(), now, |port| Process {
            pid: self.driver.child_id(port),
            stderr: self.driver.stderr_tail(port).map_or_else(Vec::new, |tail| tail.last_lines(MAX_LINES)),
        });
        self.driver.with(|hub| hub.answer(now, request, &text));
    }

    fn on_accepted(&mut self, accepted: io::Result<Accepted>) -> Option<MuxEvent> {
        let Accepted { fd, uid, pid } = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_exhausted(&error) => {
                self.paused = Some(Instant::now() + EXHAUSTED_PAUSE);
                return Some(MuxEvent::Exhausted);
            }
            // It has gone again.
            Err(_) => return None,
        };
        let Ok(stream) = UnixStream::from_std(fd.into()) else {
            self.paused = Some(Instant::now() + EXHAUSTED_PAUSE);
            return Some(MuxEvent::Exhausted);
        };
        match self.driver.with(|hub| self.door.try_admit(hub, uid)) {
            Ok(port) => {
                self.driver.attach(port, Stream::from(stream));
                self.is_idle = false;
                Some(MuxEvent::Joined { port, uid, pid })
            }
            Err(why) => Some(MuxEvent::Refused { uid, pid, why }),
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

async fn accept(listener: &AsyncFd<Listener>) -> io::Result<Accepted> {
    loop {
        let mut guard = listener.readable().await?;
        if let Ok(accepted) = guard.try_io(|listener| listener.get_ref().accept()) {
            return accepted;
        }
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
