//! This process's own standard streams, read and written without blocking and without ever setting
//! `O_NONBLOCK` on them.
//!
//! That flag belongs to the open file description, which a terminal's other programs, or whoever started this
//! process, may share: setting it breaks them. So each kind of stream gets its own way:
//!
//! | kind | way |
//! |---|---|
//! | pipe | opened anew through `/proc/self/fd`, which makes a description of our own, with the flag; another one without it, to wait with |
//! | pipe that cannot be opened anew | poll, then read, or write at most 4,096 bytes (`PIPE_BUF`) |
//! | socket | the flag of the single call (`MSG_DONTWAIT`) |
//! | terminal, file, device | poll, then read, or write at most 4,096 bytes |
//!
//! Where it polls first, another process that reads or writes the same stream may get in between; then the call
//! blocks until there is something to read or room to write.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open};
use rustix::io::Errno;

use crate::socket;

/// The most bytes written at once where a write might block: what a pipe takes whole once it polls writable.
const PIPE_BUF: usize = 4096;

/// How a stream is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The description is ours and non-blocking.
    Own,
    /// Every call says that it must not block.
    Socket,
    /// Ask first.
    PollFirst,
}

/// The reading half: this process's standard input, or a stream that is used the same way.
#[derive(Debug)]
pub struct Stdin {
    fd: OwnedFd,
    way: Way,
    pollable: bool,
}

impl Stdin {
    /// Takes this process's standard input.
    ///
    /// # Errors
    /// It is closed, or descriptors are used up.
    pub fn own() -> io::Result<Self> {
        Self::new(duplicate(io::stdin().as_fd())?)
    }

    /// Takes any descriptor that is open for reading. Its open file description stays as it is.
    ///
    /// # Errors
    /// It cannot be examined.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let (fd, way, pollable) = adopt(fd, OFlags::RDONLY)?;
        Ok(Self { fd, way, pollable })
    }

    /// Reads what is there; 0 is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there yet.
    pub fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self.way {
            Way::Own => {}
            Way::Socket => return socket::recv(self.fd.as_fd(), buf),
            Way::PollFirst => is_ready(self.fd.as_fd(), PollFlags::IN)?,
        }
        loop {
            match rustix::io::read(&self.fd, &mut *buf) {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Returns whether a read that brings less than it might has brought all that there was. Not so for a terminal, of which a
    /// read takes one line.
    pub fn takes_all(&self) -> bool {
        matches!(self.way, Way::Own | Way::Socket)
    }

    /// Returns another description of the same stream, one that waits in `read(2)` until there is something. `None` if there
    /// can be none of our own.
    pub fn to_waiting(&self) -> Option<OwnedFd> {
        if self.way != Way::Own {
            return None;
        }
        let own = open_anew(self.fd.as_fd(), OFlags::RDONLY).ok()?;
        let flags = fcntl_getfl(&own).ok()?;
        fcntl_setfl(&own, flags & !OFlags::NONBLOCK).ok()?;
        Some(own)
    }

    /// Returns whether epoll takes this descriptor. Files and some devices it refuses; they are always ready.
    pub fn is_pollable(&self) -> bool {
        self.pollable
    }
}

/// The writing half: this process's standard output, or a stream that is used the same way.
#[derive(Debug)]
pub struct Stdout {
    fd: OwnedFd,
    way: Way,
    pollable: bool,
    is_own: bool,
}

impl Stdout {
    /// Takes this process's standard output.
    ///
    /// # Errors
    /// It is closed, or descriptors are used up.
    pub fn own() -> io::Result<Self> {
        Ok(Self { is_own: true, ..Self::new(duplicate(io::stdout().as_fd())?)? })
    }

    /// Takes any descriptor that is open for writing. Its open file description stays as it is.
    ///
    /// # Errors
    /// It cannot be examined.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let (fd, way, pollable) = adopt(fd, OFlags::WRONLY)?;
        Ok(Self { fd, way, pollable, is_own: false })
    }

    /// Writes a prefix of `bytes`.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; `BrokenPipe` if nobody reads any more (no signal is raised: Rust
    /// programs ignore SIGPIPE).
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = match self.way {
            Way::Own => bytes,
            Way::Socket => return socket::send(self.fd.as_fd(), bytes),
            Way::PollFirst => {
                is_ready(self.fd.as_fd(), PollFlags::OUT)?;
                bytes.get(..PIPE_BUF).unwrap_or(bytes)
            }
        };
        loop {
            match rustix::io::write(&self.fd, bytes) {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Tells the reader that nothing more comes, before this process ends.
    ///
    /// A pipe ends only when every descriptor for it is closed, so if this is the process's own standard output,
    /// that is replaced by `/dev/null` too; a socket is shut down for writing.
    ///
    /// # Errors
    /// `/dev/null` cannot be opened.
    pub fn finish(self) -> io::Result<()> {
        if self.way == Way::Socket {
            socket::shutdown_write(self.fd.as_fd());
        }
        if self.is_own {
            let null = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::stdio::dup2_stdout(null)?;
        }
        Ok(())
    }

    /// Returns whether epoll takes this descriptor. Files and some devices it refuses; they are always ready.
    pub fn is_pollable(&self) -> bool {
        self.pollable
    }
}

impl AsFd for Stdin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Stdin {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Stdout {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Stdout {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn duplicate(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    fd.try_clone_to_owned()
}

/// Finds the way for a descriptor, and opens a pipe anew.
fn adopt(fd: OwnedFd, access: OFlags) -> io::Result<(OwnedFd, Way, bool)> {
    match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
        FileType::Socket => Ok((fd, Way::Socket, true)),
        FileType::Fifo => {
            match open_anew(fd.as_fd(), access) {
                Ok(own) => Ok((own, Way::Own, true)),
                // No /proc, another user's pipe, or nobody reads it any more.
                Err(_) => Ok((fd, Way::PollFirst, true)),
            }
        }
        _ => {
            let pollable = epoll_takes(fd.as_fd());
            Ok((fd, Way::PollFirst, pollable))
        }
    }
}

/// Opens a pipe anew, non-blocking: opening one for reading that nobody writes any more would wait for a writer.
fn open_anew(fd: BorrowedFd<'_>, access: OFlags) -> rustix::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
}

fn epoll_takes(fd: BorrowedFd<'_>) -> bool {
    let Ok(set) = epoll::create(epoll::CreateFlags::CLOEXEC) else { return false };
    epoll::add(set, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN).is_ok()
}

/// Asks without waiting. An error or hang-up counts as ready: the call itself then says what it is.
fn is_ready(fd: BorrowedFd<'_>, events: PollFlags) -> io::Result<()> {
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    loop {
        match poll(&mut fds, Some(&Timespec::default())) {
            Ok(0) => return Err(io::ErrorKind::WouldBlock.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests;
