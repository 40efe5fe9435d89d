//! The byte streams a loop reads and writes: one type over pipes, own standard streams and sockets.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use lumen_os::stdio::{Stdin, Stdout};
use rustix::io::Errno;

/// Two directions of bytes, neither of which ever blocks.
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    /// Our ends of a child's pipes, non-blocking by themselves.
    Pipes { read: OwnedFd, write: Option<OwnedFd> },
    /// Streams whose descriptions others may share.
    Stdio {
        read: Stdin,
        /// Of the same stream, to wait with.
        waiting: Option<OwnedFd>,
        write: Option<Stdout>,
    },
    /// One descriptor for both directions.
    Socket(OwnedFd),
}

impl Stream {
    /// Takes this process's own standard input and output.
    ///
    /// # Errors
    /// One of them cannot be examined, or descriptors are used up.
    pub fn stdio() -> io::Result<Self> {
        Ok(Self::halves(Stdin::own()?, Stdout::own()?))
    }

    /// Joins a reading and a writing half.
    pub fn halves(read: Stdin, write: Stdout) -> Self {
        let waiting = read.to_waiting();
        Self(Kind::Stdio { read, waiting, write: Some(write) })
    }

    /// Takes a connected stream socket, such as an accepted one, and `O_NONBLOCK` off it: each call says whether it may
    /// block.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub fn socket(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Self::connected(lumen_os::stream_from(fd.into())?)
    }

    /// Joins two descriptors that are non-blocking already.
    pub(crate) fn pipes(read: OwnedFd, write: OwnedFd) -> Self {
        Self(Kind::Pipes { read, write: Some(write) })
    }

    /// Takes a socket that was made ready by `lumen_os`.
    pub(crate) fn connected(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, false)?;
        Ok(Self(Kind::Socket(socket)))
    }

    /// Reads what is there; 0 is the end of the stream, `WouldBlock` means later.
    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Pipes { read, .. } => uninterrupted(|| rustix::io::read(read, &mut *buf)),
            Kind::Stdio { read, .. } => read.read(buf),
            Kind::Socket(fd) => lumen_os::recv(fd.as_fd(), buf),
        }
    }

    /// Waits until there is something, and reads that, in one call; `None` where there is no such call.
    pub(crate) fn wait_read(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        match &self.0 {
            Kind::Pipes { .. } | Kind::Stdio { waiting: None, .. } => None,
            Kind::Stdio { waiting: Some(fd), .. } | Kind::Socket(fd) => {
                Some(uninterrupted(|| rustix::io::read(fd, &mut *buf)))
            }
        }
    }

    /// Writes a prefix of `bytes`; `WouldBlock` means later.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Pipes { write: Some(write), .. } => uninterrupted(|| rustix::io::write(&*write, bytes)),
            Kind::Stdio { write: Some(write), .. } => write.write(bytes),
            Kind::Pipes { write: None, .. } | Kind::Stdio { write: None, .. } => {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            Kind::Socket(fd) => lumen_os::send(fd.as_fd(), bytes),
        }
    }

    /// Closes the writing half. That it was broken already is no news: writing said so, or nothing was left.
    pub(crate) fn finish(&mut self) {
        match &mut self.0 {
            Kind::Pipes { write, .. } => drop(write.take()),
            Kind::Stdio { write, .. } => {
                if let Some(write) = write.take() {
                    let _ = write.finish();
                }
            }
            Kind::Socket(fd) => lumen_os::shutdown_write(fd.as_fd()),
        }
    }

    /// Returns whether the peer has closed both directions, as far as that can be seen.
    pub(crate) fn is_hung_up(&self) -> bool {
        matches!(&self.0, Kind::Socket(fd) if lumen_os::is_hung_up(fd.as_fd()))
    }

    pub(crate) fn read_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Pipes { read, .. } => read.as_fd(),
            Kind::Stdio { read, .. } => read.as_fd(),
            Kind::Socket(fd) => fd.as_fd(),
        }
    }

    pub(crate) fn write_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Kind::Pipes { write, .. } => write.as_ref().map(|fd| fd.as_fd()),
            Kind::Stdio { write, .. } => write.as_ref().map(|fd| fd.as_fd()),
            Kind::Socket(fd) => Some(fd.as_fd()),
        }
    }
}

fn uninterrupted(mut call: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
