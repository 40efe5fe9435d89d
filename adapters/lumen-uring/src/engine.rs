//! The engine: operations of the pump become operations of the ring, one to one.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use lumen_driver::{Done, Outcome, PortMap};
use lumen_os::engine::{Core, Keeper, Opened, take_wake};
use lumen_proto::limits::READ_CHUNK;
use lumen_proto::{Instant, Machine, Port};
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::Unavailable;
use crate::ring::{self, Completion, OpId, Ring};
use crate::stream::{Stream, duplicate};

/// A ring, and the ports that are in it. It stays on the thread that made it.
///
/// # Bounds
/// 64 buffers of 32 KiB for what is read on all ports together, and one of [`READ_CHUNK`] once something was read without the
/// ring: a standard stream, or while it was looked whether something had come. A port that waits for its peer has no buffer.
#[derive(Debug)]
pub struct Engine {
    // Goes before the descriptors.
    ring: Ring<Key>,
    ports: PortMap<Entry>,
    watched: Option<Watch>,
    woken: bool,
    /// A descriptor whose readiness is only told.
    looked_at: Option<Watch>,
    is_looking: bool,
    is_readable: bool,
    /// Something was written since the last wait.
    has_written: bool,
    /// The one port that is to be read, while it is looked whether there is something. A read in the ring would take it away
    /// from plain calls, which see sooner that something has come.
    lone: Option<Port>,
    /// Until the next look at the ring, see [`TRIES`].
    tries: u8,
    /// What is read without the ring.
    buf: Vec<u8>,
}

/// How often the one port that is read is tried between two looks at the ring, while it is looked whether something has
/// happened.
const TRIES: u8 = 16;

/// What an operation of the ring is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Port(Role, Port),
    Watched,
    LookedAt,
}

/// What it is for on its port, which has one of each at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Read,
    Write,
    Exit,
    Stderr,
}

/// An open port.
#[derive(Debug)]
struct Entry {
    stream: Stream,
    exit_fd: Option<Rc<OwnedFd>>,
    stderr_fd: Option<Rc<OwnedFd>>,
    /// How much the read that was started may bring.
    most: usize,
    /// It can only be read by the ring.
    needs_ring: bool,
    ops: Vec<(Role, OpId)>,
    is_closing: bool,
}

/// A descriptor that is watched, and the operation that does it.
#[derive(Debug)]
struct Watch {
    fd: Rc<OwnedFd>,
    op: Option<OpId>,
}

impl lumen_os::engine::Engine for Engine {
    type Stream = Stream;
    type Made<T> = Result<T, Unavailable>;

    fn make<T>(finish: impl FnOnce(Self) -> T) -> Result<T, Unavailable> {
        Self::new().map(finish)
    }

    fn try_new() -> io::Result<Self> {
        Ok(Self::new()?)
    }

    fn stdio() -> io::Result<Stream> {
        Stream::stdio()
    }

    fn socket(fd: OwnedFd) -> io::Result<Stream> {
        Stream::socket(fd)
    }

    fn attach(&mut self, port: Port, stream: Stream) {
        self.ports.insert(port, Entry::new(stream));
    }

    fn open(&mut self, keeper: &Keeper, port: Port, opened: Opened) -> io::Result<()> {
        let mut entry = match opened {
            Opened::Socket(fd) => Entry::new(Stream::connected(fd)?),
            Opened::Pipes { read, write } => Entry {
                exit_fd: keeper.process(port).map(|process| duplicate(process.as_fd())).transpose()?,
                stderr_fd: keeper.stderr(port).map(|stderr| duplicate(stderr.as_fd())).transpose()?,
                ..Entry::new(Stream::pipes(read, write)?)
            },
        };
        entry.await_exit(&mut self.ring, port);
        entry.await_stderr(&mut self.ring, port);
        self.ports.insert(port, entry);
        Ok(())
    }

    fn start_read<M: Machine>(&mut self, core: &mut Core<M>, port: Port, most: usize) {
        let is_alone = self.ports.len() == 1;
        let Some(entry) = self.ports.get_mut(port) else { return };
        entry.most = most;
        if core.is_looking() && !entry.needs_ring && is_alone {
            self.lone = Some(port);
        } else {
            entry.start_read(&mut self.ring, port);
        }
    }

    fn start_write<M: Machine>(&mut self, core: &mut Core<M>, port: Port) {
        let Some(entry) = self.ports.get_mut(port) else { return };
        // The first one is made at once: a lone write through the ring would end the wait that it was submitted with, and
        // so cost a second one. What more there is goes in one call.
        if !entry.stream.is_written_by_ring() || !std::mem::replace(&mut self.has_written, true) {
            return match entry.stream.write(core.pump().write_bytes(port)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.await_write(port),
                result => core.on_wrote(port, result),
            };
        }
        let (bytes, from) = core.pump().lend_write(port);
        match entry.stream.start_write(&mut self.ring, Key::Port(Role::Write, port), bytes, from) {
            Ok(op) => entry.ops.push((Role::Write, op)),
            Err(bytes) => {
                core.pump().give_back_write(port, bytes);
                core.complete(Done::Wrote(port, Outcome::Failed));
            }
        }
    }

    fn finish(&mut self, port: Port) {
        if let Some(entry) = self.ports.get_mut(port) {
            entry.stream.finish();
        }
    }

    fn start_close<M: Machine>(&mut self, core: &mut Core<M>, port: Port) {
        self.lone.take_if(|lone| *lone == port);
        match self.ports.get_mut(port) {
            Some(entry) if !entry.ops.is_empty() => {
                entry.is_closing = true;
                for (_, op) in &entry.ops {
                    self.ring.cancel(*op);
                }
            }
            _ => self.on_closed(core, port),
        }
    }

    fn wait<M: Machine>(&mut self, core: &mut Core<M>, deadline: Option<Instant>) -> io::Result<()> {
        self.has_written = false;
        if let Some(watch) = &mut self.watched {
            watch.start(&mut self.ring, Key::Watched);
        }
        if let (Some(watch), true) = (&mut self.looked_at, self.is_looking) {
            watch.start(&mut self.ring, Key::LookedAt);
        }
        if self.ring.in_flight() == 0 && self.lone.is_none() && deadline.is_none() {
            return Err(io::ErrorKind::Deadlock.into());
        }
        let mut read = None;
        core.wait(
            &mut (&mut *self, &mut read),
            deadline,
            |(engine, read)| engine.look(read),
            |(engine, _)| {
                engine.stop_looking();
                engine.ring.wait(deadline.map(|deadline| core.clock().until(deadline)))
            },
        )?;
        if let Some((port, result)) = read {
            self.on_read(core, port, result);
        }
        while let Some(completion) = self.ring.next() {
            self.on_completion(core, completion);
        }
        Ok(())
    }

    fn watch(&mut self, fd: OwnedFd) {
        let earlier = self.watched.replace(Watch::new(fd));
        self.cancel(earlier);
    }

    fn look_at(&mut self, fd: OwnedFd) {
        let earlier = self.looked_at.replace(Watch::new(fd));
        self.cancel(earlier);
    }

    fn set_looking(&mut self, is_looking: bool) {
        self.is_looking = is_looking;
        if let (false, Some(watch)) = (is_looking, &mut self.looked_at)
            && let Some(op) = watch.op.take()
        {
            self.ring.cancel(op);
        }
    }

    fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.woken)
    }

    fn take_readable(&mut self) -> bool {
        std::mem::take(&mut self.is_readable)
    }
}

impl Engine {
    fn new() -> Result<Self, Unavailable> {
        Ok(Self {
            ring: Ring::new()?,
            ports: PortMap::new(),
            watched: None,
            woken: false,
            looked_at: None,
            is_looking: true,
            is_readable: false,
            has_written: false,
            lone: None,
            tries: TRIES,
            buf: Vec::new(),
        })
    }

    fn cancel(&mut self, watch: Option<Watch>) {
        if let Some(op) = watch.and_then(|watch| watch.op) {
            self.ring.cancel(op);
        }
    }

    /// Returns whether something has happened, and what was read if that was it.
    fn look(&mut self, read: &mut Option<(Port, io::Result<usize>)>) -> io::Result<bool> {
        if let Some(port) = self.lone
            && self.tries > 0
            && !self.ring.has_unsubmitted()
        {
            self.tries -= 1;
            let result = self.read(port);
            match &result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    if let Some(entry) = self.ports.get_mut(port) {
                        entry.needs_ring = true;
                    }
                    self.stop_looking();
                }
                _ => {
                    self.lone = None;
                    *read = Some((port, result));
                    return Ok(true);
                }
            }
        }
        self.tries = TRIES;
        self.ring.wait(Some(Duration::ZERO))?;
        Ok(self.ring.has_completed())
    }

    /// Lets the ring read what was only looked at.
    fn stop_looking(&mut self) {
        if let Some(port) = self.lone.take()
            && let Some(entry) = self.ports.get_mut(port)
        {
            entry.start_read(&mut self.ring, port);
        }
    }

    fn read(&mut self, port: Port) -> io::Result<usize> {
        self.buf.resize(READ_CHUNK, 0);
        let Some(entry) = self.ports.get(port) else { return Err(io::ErrorKind::WouldBlock.into()) };
        let most = entry.most.min(self.buf.len());
        entry.stream.read(self.buf.get_mut(..most).unwrap_or_default())
    }

    /// Takes what a read into the buffer has brought.
    fn on_read<M: Machine>(&mut self, core: &mut Core<M>, port: Port, result: io::Result<usize>) {
        let Some(entry) = self.ports.get_mut(port) else { return };
        let outcome = match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return entry.start_read(&mut self.ring, port);
            }
            Err(_) => Outcome::Failed,
            Ok(len) => Outcome::Ok(self.buf.get(..len).unwrap_or_default()),
        };
        core.on_read(port, outcome, || entry.stream.is_hung_up());
    }

    fn await_write(&mut self, port: Port) {
        let Some(entry) = self.ports.get_mut(port) else { return };
        if let Some(op) = entry.stream.await_write(&mut self.ring, Key::Port(Role::Write, port)) {
            entry.ops.push((Role::Write, op));
        }
    }

    /// Nothing of the port is in the ring any more.
    fn on_closed<M: Machine>(&mut self, core: &mut Core<M>, port: Port) {
        self.ports.remove(port);
        core.on_closed(port);
    }

    fn on_completion<M: Machine>(&mut self, core: &mut Core<M>, completion: Completion<Key>) {
        let Completion { id, key, outcome } = completion;
        match key {
            Key::Port(role, port) => {
                let Some(entry) = self.ports.get_mut(port) else { return };
                entry.ops.retain(|(_, op)| *op != id);
                if !entry.is_closing {
                    self.on_port(core, role, port, outcome);
                } else if entry.ops.is_empty() {
                    self.on_closed(core, port);
                }
            }
            Key::Watched => {
                if self.watched.as_mut().is_some_and(|watch| watch.ends(id)) {
                    self.on_watched();
                }
            }
            Key::LookedAt => {
                self.is_readable |= self.looked_at.as_mut().is_some_and(|watch| watch.ends(id));
            }
        }
    }

    fn on_port<M: Machine>(&mut self, core: &mut Core<M>, role: Role, port: Port, outcome: ring::Outcome) {
        let Some(entry) = self.ports.get_mut(port) else { return };
        match (role, outcome) {
            (_, ring::Outcome::Read(Err(Errno::AGAIN))) => {
                let op = entry.stream.await_read(&mut self.ring, Key::Port(Role::Read, port));
                entry.ops.push((Role::Read, op));
            }
            (_, ring::Outcome::Read(result)) => {
                let outcome = match &result {
                    Ok(filled) => Outcome::Ok(filled.as_deref().unwrap_or_default()),
                    Err(errno) if is_void(*errno) => Outcome::Cancelled,
                    Err(_) => Outcome::Failed,
                };
                core.on_read(port, outcome, || entry.stream.is_hung_up());
            }
            (_, ring::Outcome::Wrote(bytes, result)) => {
                core.pump().give_back_write(port, bytes);
                match result {
                    Err(Errno::AGAIN) => self.await_write(port),
                    Err(errno) if is_void(errno) => core.complete(Done::Wrote(port, Outcome::Cancelled)),
                    result => core.on_wrote(port, result.map_err(io::Error::from)),
                }
            }
            (Role::Read, ring::Outcome::Ready) => {
                let result = self.read(port);
                self.on_read(core, port, result);
            }
            (Role::Write, ring::Outcome::Ready) => {
                lumen_os::engine::Engine::start_write(self, core, port);
            }
            (Role::Exit, ring::Outcome::Ready) => {
                if !core.on_exit(port) {
                    entry.await_exit(&mut self.ring, port);
                }
            }
            (Role::Stderr, ring::Outcome::Ready) => {
                if !core.on_stderr(port) {
                    entry.await_stderr(&mut self.ring, port);
                }
            }
        }
    }

    fn on_watched(&mut self) {
        self.woken = true;
        self.watched = self.watched.take().filter(|watch| take_wake(&*watch.fd));
    }
}

impl Entry {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            exit_fd: None,
            stderr_fd: None,
            most: 0,
            needs_ring: false,
            ops: Vec::new(),
            is_closing: false,
        }
    }

    fn start_read(&mut self, ring: &mut Ring<Key>, port: Port) {
        self.ops.push((Role::Read, self.stream.start_read(ring, Key::Port(Role::Read, port), self.most)));
    }

    fn await_exit(&mut self, ring: &mut Ring<Key>, port: Port) {
        self.await_readable(ring, self.exit_fd.clone(), Role::Exit, port);
    }

    fn await_stderr(&mut self, ring: &mut Ring<Key>, port: Port) {
        self.await_readable(ring, self.stderr_fd.clone(), Role::Stderr, port);
    }

    fn await_readable(&mut self, ring: &mut Ring<Key>, fd: Option<Rc<OwnedFd>>, role: Role, port: Port) {
        if let Some(fd) = fd {
            self.ops.push((role, ring.poll(Key::Port(role, port), fd, PollFlags::IN)));
        }
    }
}

impl Watch {
    fn new(fd: OwnedFd) -> Self {
        Self { fd: Rc::new(fd), op: None }
    }

    fn start(&mut self, ring: &mut Ring<Key>, key: Key) {
        if self.op.is_none() {
            self.op = Some(ring.poll(key, Rc::clone(&self.fd), PollFlags::IN));
        }
    }

    /// Returns whether it was this operation that watched.
    fn ends(&mut self, id: OpId) -> bool {
        self.op.take_if(|op| *op == id).is_some()
    }
}

/// Whether an operation that ended like this did nothing: it was cancelled, there was no buffer for it, or a signal came.
fn is_void(errno: Errno) -> bool {
    matches!(errno, Errno::CANCELED | Errno::NOBUFS | Errno::INTR)
}
