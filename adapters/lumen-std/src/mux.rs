//! One server for many clients over a Unix socket.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::thread::JoinHandle;

use lumen_driver::door::{Door, EXHAUSTED_PAUSE, MuxEvent};
use lumen_driver::status::{MAX_LINES, Process, describe};
use lumen_os::{Accepted, CommandSpec, ListenError, Listener, StderrTail, Target, is_exhausted, own_uid};
use lumen_proto::endpoint::{Hub, HubConfig, HubEvent};
use lumen_proto::idmap::WireId;
use lumen_proto::{Instant, Port};

use crate::{Loop, Stream};

/// Clients accepted in one turn, so that many who come at once do not keep the others waiting.
const TURN_CLIENTS: usize = 16;

/// Shares a server, started by a command, between all who connect to a Unix socket, on the thread that calls it.
///
/// Nothing happens while nobody calls [`next_event`](Self::next_event); [`spawn`](Self::spawn) gives that to a thread.
/// Dropping it closes everything, ends the server with its whole process group, and removes the socket. A signal that
/// ends the process drops nothing: catch it, [`watch`](Self::watch) for it, and [`shut_down`](Self::shut_down).
///
/// ```no_run
/// use std::path::Path;
///
/// use lumen_std::{Behind, CommandSpec, HubConfig, Mode, Mux, ServerConfig};
///
/// let config = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Offer));
/// // Only this user's clients, and root's: no others are named.
/// let mut mux = Mux::bind(Path::new("/run/user/1000/s"), CommandSpec::new("my-server"), config, [])?;
/// while let Some(event) = mux.next_event()? {
///     eprintln!("{event:?}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Bounds
/// Those of [`Hub`], and one descriptor for each client.
#[derive(Debug)]
pub struct Mux {
    driver: Loop<Hub>,
    is_over: bool,
    listener: Listener,
    door: Door,
    events: VecDeque<MuxEvent>,
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
    pub fn bind(
        path: &Path,
        command: CommandSpec,
        config: HubConfig,
        others: impl IntoIterator<Item = u32>,
    ) -> Result<Self, ListenError> {
        let door = Door::new(own_uid(), others);
        let listener =
            if door.is_for_others() { Listener::bind_for_all(path) } else { Listener::bind(path) }?;
        let mut mux = Self {
            listener,
            driver: Loop::new(Hub::new(config), Some(Target::Command(command))),
            is_over: false,
            door,
            events: VecDeque::new(),
            paused: None,
        };
        mux.look().map_err(|source| ListenError::Refused { path: path.to_owned(), step: "watch", source })?;
        Ok(mux)
    }

    /// Lets this descriptor end the wait in [`next_event`](Self::next_event), which then returns `None`; see
    /// [`Loop::watch`].
    pub fn watch(&mut self, fd: impl Into<OwnedFd>) {
        self.driver.watch(fd);
    }

    /// Serves until there is something to tell. `None` after the last event, which is that of the hub's end, and when the
    /// watched descriptor had something to read.
    ///
    /// # Errors
    /// What `poll(2)` said, which is out of memory.
    pub fn next_event(&mut self) -> io::Result<Option<MuxEvent>> {
        while !self.is_over {
            if let Some(event) = self.driver.poll_event() {
                if let HubEvent::Asked { request, .. } = event {
                    self.answer(request);
                    continue;
                }
                let event = MuxEvent::Hub(event);
                self.is_over = event.is_last();
                return Ok(Some(event));
            }
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if self.driver.take_woken() {
                return Ok(None);
            }
            if self.paused.is_some_and(|paused| paused <= self.driver.now()) {
                self.paused = None;
                self.look()?;
            }
            self.driver.turn(self.paused)?;
            if self.driver.take_readable() {
                self.accept();
            }
        }
        Ok(None)
    }

    /// Serves in a thread of its own, and tells `on_event` what there is to tell.
    ///
    /// # Errors
    /// There is no thread, or no descriptors to wake it by.
    pub fn spawn(mut self, mut on_event: impl FnMut(&MuxEvent) + Send + 'static) -> io::Result<MuxHandle> {
        let (wakes, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        self.watch(wakes);
        let serve = move || {
            while !self.is_over {
                match self.next_event() {
                    Ok(Some(event)) => on_event(&event),
                    // The handle was closed or dropped.
                    Ok(None) => self.shut_down(),
                    Err(_) => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name("lumen-mux".to_owned()).spawn(serve)?;
        Ok(MuxHandle { wake: Some(wake), thread: Some(thread) })
    }

    /// Starts the server now, as [`Hub::start`].
    pub fn start(&mut self) {
        let now = self.driver.now();
        self.driver.with(|hub| hub.start(now));
    }

    /// Returns why the server could not be started the last time, in words.
    pub fn open_error(&self) -> Option<&str> {
        self.driver.open_error()
    }

    /// Ends the hub, as [`Hub::shut_down`]; [`next_event`](Self::next_event) then comes to its end.
    pub fn shut_down(&mut self) {
        let now = self.driver.now();
        self.driver.with(|hub| hub.shut_down(now));
    }

    /// Returns the hub, to look at it.
    pub fn hub(&self) -> &Hub {
        self.driver.machine()
    }

    /// Returns the end of what the server behind `port` wrote to its standard error.
    pub fn stderr_tail(&self, port: Port) -> Option<&StderrTail> {
        self.driver.stderr_tail(port)
    }

    fn accept(&mut self) {
        for _ in 0..TURN_CLIENTS {
            match self.listener.accept() {
                Ok(accepted) => self.on_accepted(accepted),
                Err(error) if is_exhausted(&error) => {
                    self.paused = Some(self.driver.now() + EXHAUSTED_PAUSE);
                    self.driver.look_at(None);
                    return self.events.push_back(MuxEvent::Exhausted);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It has gone again.
                Err(_) => {}
            }
        }
    }

    fn on_accepted(&mut self, accepted: Accepted) {
        let Accepted { fd, uid, pid } = accepted;
        let admitted = self.driver.with(|hub| self.door.try_admit(hub, uid));
        self.events.push_back(match admitted {
            Ok(port) => {
                self.driver.attach(port, Stream::connected(fd));
                MuxEvent::Joined { port, uid, pid }
            }
            Err(why) => MuxEvent::Refused { uid, pid, why },
        });
    }

    fn answer(&mut self, request: WireId) {
        let now = self.driver.now();
        let text = describe(self.hub(), now, |port| Process {
            pid: self.driver.child_id(port),
            stderr: self.driver.stderr_tail(port).map_or_else(Vec::new, |tail| tail.last_lines(MAX_LINES)),
        });
        self.driver.with(|hub| hub.answer(now, request, &text));
    }

    fn look(&mut self) -> io::Result<()> {
        self.driver.look_at(Some(self.listener.as_fd().try_clone_to_owned()?));
        Ok(())
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
