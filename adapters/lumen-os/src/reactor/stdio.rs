//! Own standard streams over a reactor: watched, unless they are always ready.

use std::io;
use std::task::{Context, Poll};

use crate::stdio::{Stdin, Stdout};

use super::{Interest, OwnsFd, Reactor, Watched};

/// A reading and a writing half whose descriptions others may share.
#[derive(Debug)]
pub struct Stdio<R: Reactor> {
    read: Half<R, Stdin>,
    write: Option<Half<R, Stdout>>,
}

#[derive(Debug)]
enum Half<R: Reactor, T: OwnsFd> {
    Watched(R::Fd<T>),
    /// A file or a device that epoll refuses, because it is always ready.
    Ready(T),
}

impl<R: Reactor> Stdio<R> {
    /// Takes this process's own standard input and output.
    ///
    /// # Errors
    /// One of them cannot be examined, or descriptors are used up.
    pub fn own() -> io::Result<Self> {
        Self::halves(Stdin::own()?, Stdout::own()?)
    }

    /// Joins a reading and a writing half.
    ///
    /// # Errors
    /// One of them cannot be watched.
    pub fn halves(read: Stdin, write: Stdout) -> io::Result<Self> {
        let (reads, writes) = (read.is_pollable(), write.is_pollable());
        Ok(Self {
            read: Half::new(read, reads, Interest::Readable)?,
            write: Some(Half::new(write, writes, Interest::Writable)?),
        })
    }
}

impl<R: Reactor> lumen_driver::Stream for Stdio<R> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.read {
            Half::Watched(stdin) if stdin.as_inner().takes_all() => {
                stdin.poll_read(cx, buf.len(), |stdin| stdin.read(buf))
            }
            half => half.poll_with(cx, |stdin| stdin.read(buf)),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.write {
            Some(write) => write.poll_with(cx, |stdout| stdout.write(bytes)),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        // That it is broken already is no news: writing said so, or nothing was left.
        drop(self.write.take().map(|write| write.into_inner().and_then(Stdout::finish)));
        Poll::Ready(())
    }
}

impl<R: Reactor, T: OwnsFd> Half<R, T> {
    fn new(inner: T, is_pollable: bool, interest: Interest) -> io::Result<Self> {
        Ok(if is_pollable { Self::Watched(R::watch(inner, interest)?) } else { Self::Ready(inner) })
    }

    fn poll_with<O>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: impl FnMut(&T) -> io::Result<O>,
    ) -> Poll<io::Result<O>> {
        match self {
            Self::Watched(fd) => fd.poll_with(cx, io),
            Self::Ready(fd) => Poll::Ready(io(fd)),
        }
    }

    fn into_inner(self) -> io::Result<T> {
        match self {
            Self::Watched(fd) => fd.into_inner(),
            Self::Ready(fd) => Ok(fd),
        }
    }
}
