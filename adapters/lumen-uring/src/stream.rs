//! The byte streams a loop reads and writes: one type over pipes, own standard streams and sockets.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;

use bytes::BytesMut;
use lumen_os::stdio::{Stdin, Stdout};
use rustix::event::PollFlags;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};

use crate::ring::{OpId, Ring};

/// Two directions of bytes.
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    /// Our ends of a child's pipes.
    Pipes { read: Rc<OwnedFd>, write: Option<Rc<OwnedFd>> },
    /// Streams whose descriptions others may share. How they are read and written without blocking depends on what they are,
    /// so the ring only waits for them; but a pipe, of which there can be another description, it can read.
    Stdio { read: Waited<Stdin>, waiting: Option<Rc<OwnedFd>>, write: Option<Waited<Stdout>> },
    /// One descriptor for both directions.
    Socket(Rc<OwnedFd>),
}

/// A standard stream, and a descriptor of it to wait with.
#[derive(Debug)]
struct Waited<S> {
    stream: S,
    fd: Rc<OwnedFd>,
}

impl Stream {
    /// Takes this process's own standard input and output.
    ///
    /// # Errors
    /// One of them cannot be examined, or descriptors are used up.
    pub fn stdio() -> io::Result<Self> {
        Self::halves(Stdin::own()?, Stdout::own()?)
    }

    /// Joins a reading and a writing half.
    ///
    /// # Errors
    /// Descriptors are used up.
    pub fn halves(read: Stdin, write: Stdout) -> io::Result<Self> {
        let (in_fd, out_fd) = (duplicate(read.as_fd())?, duplicate(write.as_fd())?);
        let waiting = read.to_waiting().map(Rc::new);
        let read = Waited { stream: read, fd: in_fd };
        Ok(Self(Kind::Stdio { read, waiting, write: Some(Waited { stream: write, fd: out_fd }) }))
    }

    /// Takes a connected stream socket, such as an accepted one, and `O_NONBLOCK` off it: the ring does the waiting.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub fn socket(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Self::connected(lumen_os::stream_from(fd.into())?)
    }

    /// Takes our ends of a child's pipes.
    pub(crate) fn pipes(read: OwnedFd, write: OwnedFd) -> io::Result<Self> {
        // The other one stays as it is, so that it can be written without the ring.
        wait_in_ring(&read)?;
        Ok(Self(Kind::Pipes { read: Rc::new(read), write: Some(Rc::new(write)) }))
    }

    /// Takes a socket that was made ready by `lumen_os`.
    pub(crate) fn connected(socket: OwnedFd) -> io::Result<Self> {
        wait_in_ring(&socket)?;
        Ok(Self(Kind::Socket(Rc::new(socket))))
    }

    /// Starts a read. If it completes as being ready, [`read`](Self::read) is next.
    pub(crate) fn start_read<K>(&self, ring: &mut Ring<K>, key: K, most: usize) -> OpId {
        match &self.0 {
            Kind::Pipes { read: fd, .. } | Kind::Stdio { waiting: Some(fd), .. } => {
                ring.read(key, Rc::clone(fd), most)
            }
            Kind::Stdio { waiting: None, .. } => self.await_read(ring, key),
            Kind::Socket(fd) => ring.recv(key, Rc::clone(fd), most),
        }
    }

    /// Waits until there is something to read.
    pub(crate) fn await_read<K>(&self, ring: &mut Ring<K>, key: K) -> OpId {
        let fd = match &self.0 {
            Kind::Pipes { read, .. } => read,
            Kind::Stdio { read, .. } => &read.fd,
            Kind::Socket(fd) => fd,
        };
        ring.poll(key, Rc::clone(fd), PollFlags::IN)
    }

    /// Reads at once, without the ring: what is there; 0 is the end, `WouldBlock` means later. `Unsupported` if that cannot
    /// be done, which is so for pipes of other processes before Linux 6.4.
    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Pipes { read, .. } => {
                // The description waits; this call does not.
                let at_its_position = u64::MAX;
                let mut bufs = [IoSliceMut::new(buf)];
                let result =
                    retry_on_intr(|| preadv2(read, &mut bufs, at_its_position, ReadWriteFlags::NOWAIT));
                result.map_err(|errno| match errno {
                    Errno::OPNOTSUPP | Errno::NOSYS => io::ErrorKind::Unsupported.into(),
                    errno => errno.into(),
                })
            }
            Kind::Stdio { read, .. } => read.stream.read(buf),
            Kind::Socket(fd) => lumen_os::recv(fd.as_fd(), buf),
        }
    }

    /// Returns whether the ring does the writing.
    pub(crate) fn is_written_by_ring(&self) -> bool {
        !matches!(self.0, Kind::Stdio { .. })
    }

    /// Starts to write what is in `bytes` after `from`.
    ///
    /// # Errors
    /// Gives the bytes back if the writing half is closed.
    pub(crate) fn start_write<K>(
        &self,
        ring: &mut Ring<K>,
        key: K,
        bytes: BytesMut,
        from: usize,
    ) -> Result<OpId, BytesMut> {
        match &self.0 {
            Kind::Pipes { write: Some(fd), .. } => Ok(ring.write(key, Rc::clone(fd), bytes, from)),
            Kind::Socket(fd) => Ok(ring.send(key, Rc::clone(fd), bytes, from)),
            Kind::Pipes { write: None, .. } | Kind::Stdio { .. } => Err(bytes),
        }
    }

    /// Writes a prefix of `bytes` at once, without the ring; `WouldBlock` means later.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Pipes { write: Some(write), .. } => Ok(retry_on_intr(|| rustix::io::write(write, bytes))?),
            Kind::Stdio { write: Some(write), .. } => write.stream.write(bytes),
            Kind::Pipes { write: None, .. } | Kind::Stdio { write: None, .. } => {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            Kind::Socket(fd) => lumen_os::send(fd.as_fd(), bytes),
        }
    }

    /// Waits until there is room to write; not if the writing half is closed.
    pub(crate) fn await_write<K>(&self, ring: &mut Ring<K>, key: K) -> Option<OpId> {
        let fd = match &self.0 {
            Kind::Pipes { write, .. } => write.as_ref()?,
            Kind::Stdio { write, .. } => &write.as_ref()?.fd,
            Kind::Socket(fd) => fd,
        };
        Some(ring.poll(key, Rc::clone(fd), PollFlags::OUT))
    }

    /// Closes the writing half. That it was broken already is no news: writing said so, or nothing was left.
    pub(crate) fn finish(&mut self) {
        match &mut self.0 {
            Kind::Pipes { write, .. } => drop(write.take()),
            Kind::Stdio { write, .. } => {
                if let Some(Waited { stream, fd }) = write.take() {
                    drop(fd);
                    let _ = stream.finish();
                }
            }
            Kind::Socket(fd) => lumen_os::shutdown_write(fd.as_fd()),
        }
    }

    /// Returns whether the peer has closed both directions, as far as that can be seen.
    pub(crate) fn is_hung_up(&self) -> bool {
        matches!(&self.0, Kind::Socket(fd) if lumen_os::is_hung_up(fd.as_fd()))
    }
}

/// Takes `O_NONBLOCK` off an open file description of our own, with which a ring would not wait but say that it would
/// have to.
fn wait_in_ring(fd: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfl(fd, fcntl_getfl(fd)? & !OFlags::NONBLOCK)?)
}

pub(crate) fn duplicate(fd: BorrowedFd<'_>) -> io::Result<Rc<OwnedFd>> {
    Ok(Rc::new(fd.try_clone_to_owned()?))
}
