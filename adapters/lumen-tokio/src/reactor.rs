//! tokio as a reactor: descriptors that are watched, connections, a clock and its alarm.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lumen_os::reactor::{Connecting, Interest, OwnsFd, Reactor, Stdio, Watched};
use lumen_proto::Instant;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;
use tokio::task::coop::{cooperative, unconstrained};
use tokio::time::{Sleep, sleep_until};

use crate::Stream;

/// The reactor and the clock of the tokio runtime around it.
#[derive(Debug)]
pub struct Tokio {
    /// Tokio's own clock, so that paused time in a test is paused here too.
    epoch: tokio::time::Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Default for Tokio {
    fn default() -> Self {
        Self { epoch: tokio::time::Instant::now(), sleep: None }
    }
}

/// A descriptor that tokio watches.
#[derive(Debug)]
pub struct Watch<T: OwnsFd> {
    io: AsyncFd<T>,
    interest: Interest,
}

impl<T: OwnsFd> Watched<T> for Watch<T> {
    fn poll_with<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            let mut guard = ready!(match self.interest {
                Interest::Readable => self.io.poll_read_ready(cx),
                Interest::Writable => self.io.poll_write_ready(cx),
            })?;
            // Not ready after all: the guard has noted that, so the next round waits.
            if let Ok(result) = guard.try_io(|fd| io(fd.get_ref())) {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        mut read: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.io.poll_read_ready(cx))?;
            if let Ok(result) = guard.try_io(|fd| read(fd.get_ref())) {
                if matches!(result, Ok(len) if (1..most).contains(&len)) {
                    guard.clear_ready();
                }
                return Poll::Ready(result);
            }
        }
    }

    fn as_inner(&self) -> &T {
        self.io.get_ref()
    }

    fn into_inner(self) -> io::Result<T> {
        Ok(self.io.into_inner())
    }
}

impl Reactor for Tokio {
    type Fd<T: OwnsFd> = Watch<T>;
    type Stream = Stream;

    #[expect(
        deprecated,
        reason = "its successor is the same but `unsafe`, because a type might change or close its descriptor; \
                  one that owns its descriptor does not, and unsafe code is forbidden here"
    )]
    fn watch<T: OwnsFd>(inner: T, interest: Interest) -> io::Result<Watch<T>> {
        let ready = match interest {
            Interest::Readable => tokio::io::Interest::READABLE,
            Interest::Writable => tokio::io::Interest::WRITABLE,
        };
        Ok(Watch { io: AsyncFd::with_interest(inner, ready)?, interest })
    }

    fn pipes(read: OwnedFd, write: OwnedFd) -> io::Result<Stream> {
        Stream::pipes(read, write)
    }

    fn unix(socket: OwnedFd) -> io::Result<Stream> {
        Stream::quiet(socket)
    }

    fn stdio(stdio: Stdio<Self>) -> Stream {
        Stream::from(stdio)
    }

    fn connect_tcp(address: String) -> Connecting<Stream> {
        Box::pin(async { Ok(TcpStream::connect(address).await?.into()) })
    }

    fn now(&self) -> Instant {
        Instant::from_micros(u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()> {
        let until = until.and_then(|until| self.epoch.checked_add(Duration::from_micros(until.as_micros())));
        let Some(until) = until else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx)
    }

    fn poll_budgeted<T>(cx: &mut Context<'_>, work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        // In the middle of the work tokio's budget would only make it spin. A task that is never out of events yields all
        // the same.
        pin!(cooperative(unconstrained(std::future::poll_fn(work)))).poll(cx)
    }
}
