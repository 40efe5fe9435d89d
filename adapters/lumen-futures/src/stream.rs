//! The byte streams a driver reads and writes: one type over pipes, own standard streams and sockets.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};
use lumen_os::reactor::{Interest, Quiet, Reactor as _, Stdio, Watched as _};
use lumen_os::stdio::{Stdin, Stdout};

use crate::reactor::{AsyncIo, Watch};

/// Two directions of bytes.
pub struct Stream(Kind);

enum Kind {
    /// Our ends of a child's pipes.
    Pipes {
        read: Watch<File>,
        write: Option<Watch<File>>,
    },
    /// Streams whose descriptions others may share.
    Stdio(Stdio<AsyncIo>),
    /// A socket that we made async-io watch ourselves.
    Quiet(Quiet<AsyncIo>),
    Socket(Box<dyn Socket>),
}

/// A connected stream socket, whichever crate it is from.
trait Socket: AsyncRead + AsyncWrite + AsFd + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + AsFd + Send + Unpin> Socket for S {}

impl Stream {
    /// Takes this process's own standard input and output.
    ///
    /// # Errors
    /// One of them cannot be examined, or descriptors are used up.
    pub fn stdio() -> io::Result<Self> {
        Stdio::own().map(Self::own)
    }

    /// Joins a reading and a writing half.
    ///
    /// # Errors
    /// One of them cannot be registered with the reactor.
    pub fn halves(read: Stdin, write: Stdout) -> io::Result<Self> {
        Stdio::halves(read, write).map(Self::own)
    }

    /// Joins two descriptors of pipes that are non-blocking already.
    pub(crate) fn pipes(read: OwnedFd, write: OwnedFd) -> io::Result<Self> {
        let read = AsyncIo::watch(File::from(read), Interest::Readable)?;
        let write = AsyncIo::watch(File::from(write), Interest::Writable)?;
        Ok(Self(Kind::Pipes { read, write: Some(write) }))
    }

    /// Takes a connected Unix socket.
    pub(crate) fn quiet(socket: OwnedFd) -> io::Result<Self> {
        Quiet::new(socket).map(|socket| Self(Kind::Quiet(socket)))
    }

    pub(crate) const fn own(stdio: Stdio<AsyncIo>) -> Self {
        Self(Kind::Stdio(stdio))
    }
}

/// Takes a connected stream socket: of smol, of async-std, or an `Async` of std's. If it is TCP, small messages no longer
/// wait for an acknowledgement of earlier ones (`TCP_NODELAY`).
impl<S: AsyncRead + AsyncWrite + AsFd + Send + Unpin + 'static> From<S> for Stream {
    fn from(socket: S) -> Self {
        // Of a connection that is broken already, reading and writing will tell.
        let _ = lumen_os::set_nodelay(socket.as_fd());
        Self(Kind::Socket(Box::new(socket)))
    }
}

impl lumen_driver::Stream for Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Pipes { read, .. } => read.poll_read(cx, buf.len(), |mut pipe| pipe.read(buf)),
            Kind::Stdio(stdio) => stdio.poll_read(cx, buf),
            Kind::Quiet(socket) => socket.poll_read(cx, buf),
            Kind::Socket(socket) => Pin::new(socket).poll_read(cx, buf),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Pipes { write: Some(write), .. } => write.poll_with(cx, |mut pipe| pipe.write(bytes)),
            Kind::Pipes { write: None, .. } => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Kind::Stdio(stdio) => stdio.poll_write(cx, bytes),
            Kind::Quiet(socket) => socket.poll_write(cx, bytes),
            Kind::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Kind::Pipes { write, .. } => drop(write.take()),
            Kind::Stdio(stdio) => return stdio.poll_finish(cx),
            Kind::Quiet(socket) => return socket.poll_finish(cx),
            // Not by its own `poll_close`, which in async-io only flushes.
            Kind::Socket(socket) => lumen_os::shutdown_write(socket.as_fd()),
        }
        Poll::Ready(())
    }

    fn is_hung_up(&self) -> bool {
        match &self.0 {
            Kind::Quiet(socket) => socket.is_hung_up(),
            Kind::Socket(socket) => lumen_os::is_hung_up(socket.as_fd()),
            Kind::Pipes { .. } | Kind::Stdio(_) => false,
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Pipes { read, write } => {
                f.debug_struct("Pipes").field("read", read).field("write", write).finish()
            }
            Kind::Stdio(stdio) => stdio.fmt(f),
            Kind::Quiet(socket) => socket.fmt(f),
            Kind::Socket(socket) => f.debug_tuple("Socket").field(&socket.as_fd()).finish(),
        }
    }
}
