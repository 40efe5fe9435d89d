//! A socket over a reactor, of which is watched only what arrives.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::task::{Context, Poll, ready};

use super::{Interest, Reactor, Watched};

/// A connected stream socket of our own. That there is room to write is news after each read of its peer, and wanted only
/// after there was none; so only then is it watched for that too.
#[derive(Debug)]
pub struct Quiet<R: Reactor> {
    read: R::Fd<OwnedFd>,
    /// A clone, while there is no room.
    write: Option<R::Fd<OwnedFd>>,
}

impl<R: Reactor> Quiet<R> {
    /// Takes a socket that never blocks.
    ///
    /// # Errors
    /// It cannot be watched.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { read: R::watch(socket, Interest::Readable)?, write: None })
    }
}

impl<R: Reactor> lumen_driver::Stream for Quiet<R> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.read.poll_read(cx, buf.len(), |fd| crate::recv(fd.as_fd(), buf))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let fd = self.read.as_inner();
        let write = match &mut self.write {
            Some(write) => write,
            None => match crate::send(fd.as_fd(), bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.write.insert(R::watch(fd.try_clone()?, Interest::Writable)?)
                }
                result => return Poll::Ready(result),
            },
        };
        let result = ready!(write.poll_with(cx, |fd| crate::send(fd.as_fd(), bytes)));
        self.write = None;
        Poll::Ready(result)
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<()> {
        // That it is broken already is no news: writing said so, or nothing was left.
        crate::shutdown_write(self.read.as_inner().as_fd());
        Poll::Ready(())
    }

    fn is_hung_up(&self) -> bool {
        crate::is_hung_up(self.read.as_inner().as_fd())
    }
}
