//! Completion imitated over readiness: what the pump starts is polled until it is ready.

use std::io::{self, ErrorKind};
use std::task::{Context, Poll};

use lumen_proto::limits::READ_CHUNK;
use lumen_proto::{Exit, Instant, Machine, OpenError, Port, Signal};

use crate::PortMap;
use crate::pump::{Counters, Done, Op, Outcome, Pump};

#[cfg(test)]
mod tests;
mod wakers;

use wakers::{PortWaker, Wakers};

/// Operations and wake-ups handled in one poll before the task yields to others.
pub const TURNS: usize = 256;

/// A byte stream in both directions, polled for readiness.
///
/// A poll that returns `Pending` has arranged for the waker of its context to be woken.
pub trait Stream {
    /// Reads into `buf`; `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// Whatever the system says; taken for the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes a prefix of `bytes`.
    ///
    /// # Errors
    /// Whatever the system says; nothing more is written.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Closes the writing half, so that the peer reads the end of the stream. Best effort.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Returns whether the peer is known to have closed both directions. Asked once, at the end of the stream.
    fn is_hung_up(&self) -> bool {
        false
    }
}

/// What a runtime offers besides streams that are open.
pub trait World {
    /// The streams that [`poll_open`](Self::poll_open) makes, and that exist from the start.
    type Stream: Stream;

    /// Reads the clock.
    fn now(&self) -> Instant;

    /// Begins to start the process or make the connection that the machine calls `port`.
    fn start_open(&mut self, port: Port);

    /// Goes on with what [`start_open`](Self::start_open) began.
    ///
    /// # Errors
    /// Why it could not be started or reached; nothing of the port is left then.
    fn poll_open(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Result<Self::Stream, OpenError>>;

    /// Serves what belongs to the process behind `port` besides its stream, and is ready once: when the process
    /// has ended. Polled again after that, and also for ports without a process.
    fn poll_process(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Exit>;

    /// Sends a signal to the process behind `port` and all it started.
    fn signal(&mut self, port: Port, signal: Signal);

    /// Begins to end what is behind `port`, an opening under way too; its stream is dropped already.
    fn start_close(&mut self, port: Port);

    /// Is ready when nothing of `port` is left.
    fn poll_close(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<()>;

    /// Is ready when `until` is past; never, if there is none.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()>;
}

/// Drives a [`Machine`] in a [`World`] that tells of readiness.
///
/// Each port is polled with a waker of its own, which puts that port on a list: what is idle costs nothing, however
/// much of it there is. Whatever was begun lives in here, so a future over [`poll_event`](Self::poll_event) may
/// be dropped at any point.
///
/// # Bounds
/// One read buffer of [`READ_CHUNK`] for all ports, besides what the [`Pump`] holds.
#[derive(Debug)]
pub struct PollIo<M: Machine, W: World> {
    pump: Pump<M>,
    world: W,
    ports: PortMap<PortIo<W::Stream>>,
    wakers: Wakers,
    buffer: Box<[u8]>,
    /// Why the first write failed that failed for another reason than that its reader had gone.
    write_error: Option<io::ErrorKind>,
    shut: bool,
}

/// What was started on a port and is not ready yet.
#[derive(Debug)]
struct PortIo<S> {
    waker: PortWaker,
    life: Life<S>,
    reading: Option<usize>,
    writing: bool,
    finishing: bool,
}

#[derive(Debug)]
enum Life<S> {
    Opening,
    Open(S),
    Closing,
}

impl<M: Machine, W: World> PollIo<M, W> {
    /// Makes a driver with no port open.
    pub fn new(machine: M, world: W) -> Self {
        Self {
            pump: Pump::new(machine),
            world,
            ports: PortMap::new(),
            wakers: Wakers::default(),
            buffer: vec![0; READ_CHUNK].into(),
            write_error: None,
            shut: false,
        }
    }

    /// Takes a stream that exists already, as `port`. A port that is taken or closed keeps what it has.
    pub fn attach(&mut self, port: Port, stream: W::Stream) {
        if self.shut || self.ports.contains(port) {
            return;
        }
        self.add(port, Life::Open(stream));
        self.pump.complete(self.world.now(), Done::Opened(port, Ok(())));
    }

    /// Gives the machine a command. What it wants done in the world is done by the next
    /// [`poll_event`](Self::poll_event).
    pub fn with<R>(&mut self, command: impl FnOnce(&mut M) -> R) -> R {
        self.with_time(|machine, _| command(machine))
    }

    /// Gives the machine a command that needs the time.
    pub fn with_time<R>(&mut self, command: impl FnOnce(&mut M, Instant) -> R) -> R {
        let now = self.world.now();
        self.pump.with(now, |machine| command(machine, now))
    }

    /// Ends every port; go on with [`poll_event`](Self::poll_event) until it returns `None`.
    pub fn close_all(&mut self) {
        self.shut = true;
        self.pump.close_all(self.world.now());
    }

    /// Does what can be done, and returns the machine's next event, or `None` when no port is open, nothing is
    /// in flight and the machine waits for no deadline.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<M::Event>> {
        self.poll_until(cx, Pump::poll_event)
    }

    /// Does what can be done until `is_done` returns something; `None` as with [`poll_event`](Self::poll_event).
    /// It is asked whenever there is nothing to start.
    pub fn poll_until<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut is_done: impl FnMut(&mut Pump<M>) -> Option<T>,
    ) -> Poll<Option<T>> {
        for _ in 0..TURNS {
            // First all that is there is read: what comes of it goes out in few writes instead of one each.
            if let Some(port) = self.wakers.pop() {
                self.poll_port(port);
            } else if let Some(op) = self.pump.poll_op() {
                self.start(op);
            } else if let Some(done) = is_done(&mut self.pump) {
                return Poll::Ready(Some(done));
            } else {
                let until = self.pump.poll_timeout();
                if self.pump.is_settled() && (self.shut || until.is_none()) {
                    return Poll::Ready(None);
                }
                if self.world.poll_sleep(cx, until).is_ready() {
                    self.pump.handle_timeout(self.world.now());
                } else if self.wakers.sleep(cx) {
                    return Poll::Pending;
                }
            }
        }
        // A deadline may have passed in all that work, and an early call is harmless.
        self.pump.handle_timeout(self.world.now());
        if let Some(done) = is_done(&mut self.pump) {
            return Poll::Ready(Some(done));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Returns the world's time, for commands that ask for it.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// Returns the machine, to look at it.
    pub fn machine(&self) -> &M {
        self.pump.machine()
    }

    /// Returns the world.
    pub const fn world(&self) -> &W {
        &self.world
    }

    /// Returns the world, to change it.
    pub const fn world_mut(&mut self) -> &mut W {
        &mut self.world
    }

    /// Returns why the first write failed that failed for another reason than that its reader had gone: a full disk,
    /// say. The machine only knows that nothing more can be delivered.
    pub const fn write_error(&self) -> Option<io::ErrorKind> {
        self.write_error
    }

    /// Returns what went through `port` so far, as [`Pump::counters`].
    pub fn counters(&self, port: Port) -> Counters {
        self.pump.counters(port)
    }

    fn add(&mut self, port: Port, life: Life<W::Stream>) {
        let waker = self.wakers.add(port);
        self.ports.insert(port, PortIo { waker, life, reading: None, writing: false, finishing: false });
    }

    fn start(&mut self, op: Op) {
        match op {
            Op::Open(port) => {
                self.world.start_open(port);
                self.add(port, Life::Opening);
            }
            Op::Read(port, most) => {
                if let Some(io) = self.ports.get_mut(port) {
                    io.reading = Some(most);
                    self.poll_read(port);
                }
            }
            Op::Write(port) => {
                if let Some(io) = self.ports.get_mut(port) {
                    io.writing = true;
                    self.poll_write(port);
                }
            }
            Op::Finish(port) => {
                if let Some(io) = self.ports.get_mut(port) {
                    io.finishing = true;
                    self.poll_finish(port);
                }
            }
            Op::Signal(port, signal) => self.world.signal(port, signal),
            Op::Close(port) => self.close(port),
        }
    }

    /// Polls all that was started on a port that was woken; its waker does not say which.
    fn poll_port(&mut self, port: Port) {
        let Some(io) = self.ports.get_mut(port) else { return };
        io.waker.take();
        let cx = &mut io.waker.context();
        match io.life {
            Life::Opening => {
                let Poll::Ready(result) = self.world.poll_open(cx, port) else { return };
                let result = result.map(|stream| {
                    io.life = Life::Open(stream);
                    // Its process has to be polled once to be heard of.
                    io.waker.wake();
                });
                if result.is_err() {
                    self.ports.remove(port);
                }
                self.pump.complete(self.world.now(), Done::Opened(port, result));
            }
            Life::Open(_) => {
                let (writing, finishing) = (io.writing, io.finishing);
                self.poll_read(port);
                if writing {
                    self.poll_write(port);
                }
                if finishing {
                    self.poll_finish(port);
                }
                self.poll_process(port);
            }
            Life::Closing => {
                if self.world.poll_close(cx, port).is_ready() {
                    self.ports.remove(port);
                    self.pump.complete(self.world.now(), Done::Closed(port));
                }
            }
        }
    }

    fn poll_read(&mut self, port: Port) {
        let Some(io) = self.ports.get_mut(port) else { return };
        let (Life::Open(stream), Some(most)) = (&mut io.life, io.reading) else { return };
        let cx = &mut io.waker.context();
        let most = most.min(self.buffer.len());
        let Some(buffer) = self.buffer.get_mut(..most) else { return };
        let Poll::Ready(result) = retry(|| stream.poll_read(cx, buffer)) else { return };
        io.reading = None;
        let outcome = match result {
            Ok(count) => Outcome::Ok(buffer.get(..count).unwrap_or(buffer)),
            Err(_) => Outcome::Failed,
        };
        let is_hung_up = matches!(outcome, Outcome::Ok([]) | Outcome::Failed) && stream.is_hung_up();
        self.pump.complete(self.world.now(), Done::Read(port, outcome));
        if is_hung_up {
            self.pump.complete(self.world.now(), Done::HungUp(port));
        }
    }

    fn poll_write(&mut self, port: Port) {
        let Some(io) = self.ports.get_mut(port) else { return };
        let (Life::Open(stream), true) = (&mut io.life, io.writing) else { return };
        let cx = &mut io.waker.context();
        let bytes = self.pump.write_bytes(port);
        let Poll::Ready(result) = retry(|| stream.poll_write(cx, bytes)) else { return };
        io.writing = false;
        if let Err(error) = &result
            && !is_gone(error.kind())
        {
            self.write_error.get_or_insert(error.kind());
        }
        let outcome = result.map_or(Outcome::Failed, Outcome::Ok);
        self.pump.complete(self.world.now(), Done::Wrote(port, outcome));
    }

    fn poll_finish(&mut self, port: Port) {
        let Some(io) = self.ports.get_mut(port) else { return };
        let (Life::Open(stream), true) = (&mut io.life, io.finishing) else { return };
        if stream.poll_finish(&mut io.waker.context()).is_ready() {
            io.finishing = false;
            self.pump.complete(self.world.now(), Done::Finished(port));
        }
    }

    fn poll_process(&mut self, port: Port) {
        let Some(io) = self.ports.get_mut(port) else { return };
        if let Poll::Ready(exit) = self.world.poll_process(&mut io.waker.context(), port) {
            self.pump.complete(self.world.now(), Done::Exited(port, exit));
        }
    }

    /// Lets go of the stream, and so of what was started on it, and begins to end what is behind it.
    fn close(&mut self, port: Port) {
        let Some(io) = self.ports.get_mut(port) else { return };
        io.life = Life::Closing;
        io.waker.wake();
        self.world.start_close(port);
    }
}

/// Returns whether a write that failed like this failed because nobody reads any more.
pub fn is_gone(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

/// Polls again when a signal got in between.
fn retry<T>(mut poll: impl FnMut() -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
    loop {
        match poll() {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
