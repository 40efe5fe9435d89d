//! The engine: `poll(2)`, for all that would block.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use lumen_driver::{Outcome, PortMap};
use lumen_os::engine::{Core, Keeper, Opened, take_wake};
use lumen_proto::limits::READ_CHUNK;
use lumen_proto::{Instant, Machine, Port};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use smallvec::SmallVec;

use crate::Stream;

/// How often the one port that is read is tried between two looks at everything, while it is looked whether something has
/// happened.
const TRIES: u8 = 16;

/// Descriptors that are waited for without an allocation: those of two ports and a watch.
const FEW: usize = 8;

/// The descriptors of the open ports, looked at all together.
///
/// # Bounds
/// One buffer of [`READ_CHUNK`] bytes for all ports.
#[derive(Debug)]
pub struct Engine {
    ports: PortMap<Entry>,
    watched: Option<OwnedFd>,
    woken: bool,
    /// A descriptor whose readiness is only told.
    looked_at: Option<OwnedFd>,
    is_looking: bool,
    is_readable: bool,
    /// Until the next look at everything, see [`TRIES`].
    tries: u8,
    buf: Box<[u8]>,
}

/// An open port.
#[derive(Debug)]
struct Entry {
    stream: Stream,
    /// Bytes to read once there are some.
    reading: Option<usize>,
    /// The last read was as long as it might be, so the next is worth trying without asking.
    is_full: bool,
    /// A write waits for room.
    is_writing: bool,
}

/// What a descriptor in the poll set stands for.
#[derive(Clone, Copy, Debug)]
enum Ready {
    Read(Port),
    Write(Port),
    Exit(Port),
    Stderr(Port),
    Watched,
    LookedAt,
}

/// What ended a wait.
#[derive(Debug)]
enum Ended {
    /// These can do something.
    Ready(SmallVec<[Ready; FEW]>),
    /// This read was made meanwhile.
    Read(Port, io::Result<usize>),
}

impl lumen_os::engine::Engine for Engine {
    type Stream = Stream;
    type Made<T> = T;

    fn make<T>(finish: impl FnOnce(Self) -> T) -> T {
        finish(Self::new())
    }

    fn try_new() -> io::Result<Self> {
        Ok(Self::new())
    }

    fn stdio() -> io::Result<Stream> {
        Stream::stdio()
    }

    fn socket(fd: OwnedFd) -> io::Result<Stream> {
        Stream::socket(fd)
    }

    fn attach(&mut self, port: Port, stream: Stream) {
        self.ports.insert(port, Entry { stream, reading: None, is_full: false, is_writing: false });
    }

    fn open(&mut self, _: &Keeper, port: Port, opened: Opened) -> io::Result<()> {
        self.attach(
            port,
            match opened {
                Opened::Pipes { read, write } => Stream::pipes(read, write),
                Opened::Socket(socket) => Stream::connected(socket)?,
            },
        );
        Ok(())
    }

    fn start_read<M: Machine>(&mut self, core: &mut Core<M>, port: Port, most: usize) {
        if let Some(entry) = self.ports.get_mut(port) {
            entry.reading = Some(most);
            // After a short read there is mostly nothing more: asking first saves the failed attempt.
            if entry.is_full {
                self.read(core, port);
            }
        }
    }

    fn start_write<M: Machine>(&mut self, core: &mut Core<M>, port: Port) {
        let Some(entry) = self.ports.get_mut(port) else { return };
        match entry.stream.write(core.pump().write_bytes(port)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => entry.is_writing = true,
            result => {
                entry.is_writing = false;
                core.on_wrote(port, result);
            }
        }
    }

    fn finish(&mut self, port: Port) {
        if let Some(entry) = self.ports.get_mut(port) {
            entry.stream.finish();
        }
    }

    fn start_close<M: Machine>(&mut self, core: &mut Core<M>, port: Port) {
        self.ports.remove(port);
        core.on_closed(port);
    }

    fn wait<M: Machine>(&mut self, core: &mut Core<M>, deadline: Option<Instant>) -> io::Result<()> {
        let ready = match self.poll(core, deadline)? {
            Ended::Ready(ready) => ready,
            Ended::Read(port, result) => {
                self.on_read(core, port, result);
                return Ok(());
            }
        };
        for ready in ready {
            match ready {
                Ready::Read(port) => self.read(core, port),
                Ready::Write(port) => self.start_write(core, port),
                // It is asked about again if it has not.
                Ready::Exit(port) => _ = core.on_exit(port),
                Ready::Stderr(port) => _ = core.on_stderr(port),
                Ready::Watched => self.on_watched(),
                Ready::LookedAt => self.is_readable = true,
            }
        }
        Ok(())
    }

    fn watch(&mut self, fd: OwnedFd) {
        self.watched = Some(fd);
    }

    fn look_at(&mut self, fd: OwnedFd) {
        self.looked_at = Some(fd);
    }

    fn set_looking(&mut self, is_looking: bool) {
        self.is_looking = is_looking;
    }

    fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.woken)
    }

    fn take_readable(&mut self) -> bool {
        std::mem::take(&mut self.is_readable)
    }
}

impl Engine {
    fn new() -> Self {
        Self {
            ports: PortMap::new(),
            watched: None,
            woken: false,
            looked_at: None,
            is_looking: true,
            is_readable: false,
            tries: TRIES,
            buf: vec![0; READ_CHUNK].into_boxed_slice(),
        }
    }

    fn read<M: Machine>(&mut self, core: &mut Core<M>, port: Port) {
        let Some(entry) = self.ports.get(port) else { return };
        let Some(most) = entry.reading else { return };
        let result = entry.stream.read(first(&mut self.buf, most));
        self.on_read(core, port, result);
    }

    /// Takes what a read into the buffer has brought.
    fn on_read<M: Machine>(&mut self, core: &mut Core<M>, port: Port, result: io::Result<usize>) {
        let Some(entry) = self.ports.get_mut(port) else { return };
        let Some(most) = entry.reading else { return };
        let outcome = match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                entry.is_full = false;
                return;
            }
            Err(_) => Outcome::Failed,
            Ok(len) => {
                entry.is_full = len == most.min(self.buf.len());
                Outcome::Ok(self.buf.get(..len).unwrap_or_default())
            }
        };
        entry.reading = None;
        core.on_read(port, outcome, || entry.stream.is_hung_up());
    }

    /// Waits for a descriptor that something depends on.
    fn poll<M: Machine>(&mut self, core: &Core<M>, deadline: Option<Instant>) -> io::Result<Ended> {
        let Self { ports, buf, tries, .. } = self;
        // With one port to read, reading it is the quickest way to see whether there is something.
        let mut reads = ports.iter().filter_map(|(port, entry)| Some((port, &entry.stream, entry.reading?)));
        let lone = reads.next().filter(|_| reads.next().is_none());
        let others = [self.watched.as_ref(), self.looked_at.as_ref().filter(|_| self.is_looking)];
        let gather = || Waits::gather(ports, others, core.keeper());
        let (mut waits, mut read) = (None, None);
        let now = Timespec::default();
        core.wait(
            &mut (&mut waits, &mut read, buf),
            deadline,
            |(waits, read, buf)| {
                *tries -= 1;
                if let (Some((port, stream, most)), 1..) = (lone, *tries) {
                    let result = stream.read(first(buf, most));
                    let is_found =
                        !matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
                    **read = is_found.then_some((port, result));
                    return Ok(is_found);
                }
                *tries = TRIES;
                match poll(&mut waits.get_or_insert_with(gather).fds, Some(&now)) {
                    Err(Errno::INTR) => Ok(false),
                    found => Ok(found? > 0),
                }
            },
            |(waits, read, buf)| {
                let waits = waits.get_or_insert_with(gather);
                if waits.fds.is_empty() && deadline.is_none() {
                    return Err(io::ErrorKind::Deadlock.into());
                }
                if let (Some((port, stream, most)), 1, None) = (lone, waits.fds.len(), deadline)
                    && let Some(result) = stream.wait_read(first(buf, most))
                {
                    **read = Some((port, result));
                    return Ok(());
                }
                loop {
                    // Anew after an interruption, so that signals cannot prolong the wait.
                    let left = deadline.map(|deadline| core.clock().until(deadline));
                    // A wait that is too long to be told is as good as none at all.
                    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
                    match poll(&mut waits.fds, timeout.as_ref()) {
                        Err(Errno::INTR) => {}
                        found => return Ok(found.map(drop)?),
                    }
                }
            },
        )?;
        if let Some((port, result)) = read {
            return Ok(Ended::Read(port, result));
        }
        Ok(Ended::Ready(waits.map_or_else(SmallVec::new, |waits| waits.ready().collect())))
    }

    fn on_watched(&mut self) {
        self.woken = true;
        self.watched = self.watched.take().filter(take_wake);
    }
}

/// What a wait is for, side by side with how `poll(2)` is asked for it.
#[derive(Debug, Default)]
struct Waits<'a> {
    keys: SmallVec<[Ready; FEW]>,
    fds: SmallVec<[PollFd<'a>; FEW]>,
}

impl<'a> Waits<'a> {
    /// Gathers the descriptors that something depends on. Those that nobody asks about are left out: one whose peer hung up
    /// would end every wait at once.
    fn gather(
        ports: &'a PortMap<Entry>,
        [watched, looked_at]: [Option<&'a OwnedFd>; 2],
        keeper: &'a Keeper,
    ) -> Self {
        let mut waits = Self::default();
        for (port, entry) in ports.iter() {
            if entry.reading.is_some() {
                waits.add(Ready::Read(port), entry.stream.read_fd(), PollFlags::IN);
            }
            if let (true, Some(fd)) = (entry.is_writing, entry.stream.write_fd()) {
                waits.add(Ready::Write(port), fd, PollFlags::OUT);
            }
            if let (None, Some(process)) = (keeper.exit(port), keeper.process(port)) {
                waits.add(Ready::Exit(port), process.as_fd(), PollFlags::IN);
            }
            // After the exit, so that what a process said last is read in the turn that sees its end.
            if let Some(stderr) = keeper.stderr(port) {
                waits.add(Ready::Stderr(port), stderr.as_fd(), PollFlags::IN);
            }
        }
        if let Some(fd) = watched {
            waits.add(Ready::Watched, fd.as_fd(), PollFlags::IN);
        }
        if let Some(fd) = looked_at {
            waits.add(Ready::LookedAt, fd.as_fd(), PollFlags::IN);
        }
        waits
    }

    fn add(&mut self, key: Ready, fd: BorrowedFd<'a>, flags: PollFlags) {
        self.keys.push(key);
        self.fds.push(PollFd::from_borrowed_fd(fd, flags));
    }

    fn ready(&self) -> impl Iterator<Item = Ready> {
        let ready = self.keys.iter().zip(&self.fds).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|(&key, _)| key)
    }
}

/// Returns the part of the buffer that a read of at most so many bytes is made into.
fn first(buf: &mut [u8], most: usize) -> &mut [u8] {
    let most = most.min(buf.len());
    buf.get_mut(..most).unwrap_or_default()
}
