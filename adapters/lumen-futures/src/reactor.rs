//! async-io as a reactor: descriptors that are watched, connections, a clock and its alarm.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use async_io::{Async, Timer};
use async_net::TcpStream;
use futures_lite::FutureExt as _;
use lumen_os::Clock;
use lumen_os::reactor::{Connecting, Interest, OwnsFd, Reactor, Stdio, Watched};
use lumen_proto::Instant;

use crate::Stream;

/// The reactor of async-io, on which smol runs, and async-std too.
///
/// It runs in a thread of its own whenever no task of the executor lends it one, so it needs no runtime around it.
#[derive(Debug, Default)]
pub struct AsyncIo {
    clock: Clock,
    /// For when it is set, and it. Left as it is while nobody sleeps.
    alarm: Option<(Instant, Timer)>,
}

/// A descriptor that async-io watches.
#[derive(Debug)]
pub struct Watch<T: OwnsFd> {
    io: Async<T>,
    interest: Interest,
    /// It was not ready, or has given all that it had, and has not been seen to be ready since.
    is_waiting: bool,
}

impl<T: OwnsFd> Watched<T> for Watch<T> {
    fn poll_with<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            if self.is_waiting {
                match self.interest {
                    Interest::Readable => ready!(self.io.poll_readable(cx))?,
                    Interest::Writable => ready!(self.io.poll_writable(cx))?,
                }
            }
            let result = io(self.io.get_ref());
            self.is_waiting = matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
            if !self.is_waiting {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        read: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let result = ready!(self.poll_with(cx, read));
        self.is_waiting = matches!(result, Ok(len) if (1..most).contains(&len));
        Poll::Ready(result)
    }

    fn as_inner(&self) -> &T {
        self.io.get_ref()
    }

    fn into_inner(self) -> io::Result<T> {
        self.io.into_inner()
    }
}

impl Reactor for AsyncIo {
    type Fd<T: OwnsFd> = Watch<T>;
    type Stream = Stream;

    fn watch<T: OwnsFd>(inner: T, interest: Interest) -> io::Result<Watch<T>> {
        // As it is: the description may be shared with others, who expect it to block.
        Ok(Watch { io: Async::new_nonblocking(inner)?, interest, is_waiting: false })
    }

    fn pipes(read: OwnedFd, write: OwnedFd) -> io::Result<Stream> {
        Stream::pipes(read, write)
    }

    fn unix(socket: OwnedFd) -> io::Result<Stream> {
        Stream::quiet(socket)
    }

    fn stdio(stdio: Stdio<Self>) -> Stream {
        Stream::own(stdio)
    }

    fn connect_tcp(address: String) -> Connecting<Stream> {
        Box::pin(async { Ok(TcpStream::connect(address).await?.into()) })
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()> {
        let Some(until) = until else { return Poll::Pending };
        let Some(at) = self.clock.std_instant(until) else { return Poll::Pending };
        let (set, timer) = self.alarm.get_or_insert_with(|| (until, Timer::at(at)));
        if *set != until {
            *set = until;
            timer.set_at(at);
        }
        ready!(timer.poll(cx));
        // It rings only once.
        self.alarm = None;
        Poll::Ready(())
    }
}
