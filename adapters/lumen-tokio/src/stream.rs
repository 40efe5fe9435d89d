//! The byte streams a driver reads and writes: one type over pipes, own standard streams and sockets.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lumen_os::reactor::{Quiet, Stdio};
use lumen_os::stdio::{Stdin, Stdout};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;
use tokio::net::{TcpStream, UnixStream};

use crate::Tokio;

/// Two directions of bytes.
///
/// Made inside a runtime that has I/O enabled; the constructors panic outside of one, as tokio's own do.
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    /// Our ends of a child's pipes.
    Pipes {
        read: pipe::Receiver,
        write: Option<pipe::Sender>,
    },
    /// Streams whose descriptions others may share.
    Stdio(Stdio<Tokio>),
    /// A socket that we made tokio watch ourselves.
    Quiet(Quiet<Tokio>),
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Takes this process's own standard input and output.
    ///
    /// # Errors
    /// One of them cannot be examined, or descriptors are used up.
    pub fn stdio() -> io::Result<Self> {
        Stdio::own().map(Self::from)
    }

    /// Joins a reading and a writing half.
    ///
    /// # Errors
    /// One of them cannot be registered with the runtime.
    pub fn halves(read: Stdin, write: Stdout) -> io::Result<Self> {
        Stdio::halves(read, write).map(Self::from)
    }

    /// Joins two descriptors of pipes that are non-blocking already.
    pub(crate) fn pipes(read: OwnedFd, write: OwnedFd) -> io::Result<Self> {
        let read = pipe::Receiver::from_owned_fd(read)?;
        Ok(Self(Kind::Pipes { read, write: Some(pipe::Sender::from_owned_fd(write)?) }))
    }

    /// Takes a connected Unix socket.
    pub(crate) fn quiet(socket: OwnedFd) -> io::Result<Self> {
        Quiet::new(socket).map(|socket| Self(Kind::Quiet(socket)))
    }
}

impl From<Stdio<Tokio>> for Stream {
    fn from(stdio: Stdio<Tokio>) -> Self {
        Self(Kind::Stdio(stdio))
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self(Kind::Unix(stream))
    }
}

/// Sets `TCP_NODELAY`, so that small messages do not wait for an acknowledgement of earlier ones.
impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        // Of a connection that is broken already, reading and writing will tell.
        let _ = stream.set_nodelay(true);
        Self(Kind::Tcp(stream))
    }
}

impl lumen_driver::Stream for Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Pipes { read, .. } => read_from(read, cx, buf),
            Kind::Stdio(stdio) => stdio.poll_read(cx, buf),
            Kind::Quiet(socket) => socket.poll_read(cx, buf),
            Kind::Unix(stream) => read_from(stream, cx, buf),
            Kind::Tcp(stream) => read_from(stream, cx, buf),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Pipes { write: Some(write), .. } => Pin::new(write).poll_write(cx, bytes),
            Kind::Pipes { write: None, .. } => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Kind::Stdio(stdio) => stdio.poll_write(cx, bytes),
            Kind::Quiet(socket) => socket.poll_write(cx, bytes),
            Kind::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Kind::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // That it is broken already is no news: writing said so, or nothing was left.
        match &mut self.0 {
            Kind::Pipes { write, .. } => drop(write.take()),
            Kind::Stdio(stdio) => return stdio.poll_finish(cx),
            Kind::Quiet(socket) => return socket.poll_finish(cx),
            Kind::Unix(stream) => return Pin::new(stream).poll_shutdown(cx).map(drop),
            Kind::Tcp(stream) => return Pin::new(stream).poll_shutdown(cx).map(drop),
        }
        Poll::Ready(())
    }

    fn is_hung_up(&self) -> bool {
        match &self.0 {
            Kind::Quiet(socket) => socket.is_hung_up(),
            Kind::Unix(stream) => lumen_os::is_hung_up(stream.as_fd()),
            Kind::Tcp(stream) => lumen_os::is_hung_up(stream.as_fd()),
            Kind::Pipes { .. } | Kind::Stdio(_) => false,
        }
    }
}

fn read_from<R>(from: &mut R, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>
where
    R: AsyncRead + Unpin,
{
    let mut buf = ReadBuf::new(buf);
    ready!(Pin::new(from).poll_read(cx, &mut buf))?;
    Poll::Ready(Ok(buf.filled().len()))
}
