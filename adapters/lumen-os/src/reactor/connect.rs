//! Making a connection, within a bound.

use std::io;
use std::path::Path;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lumen_proto::Instant;
use rustix::io::Errno;

use crate::CONNECT_TIMEOUT;
use crate::socket::try_connect_unix;

use super::{Connecting, Reactor};

/// How long a listener's full queue is left alone. Nobody tells when there is room in it again.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// One connection in the making, which gives up after [`CONNECT_TIMEOUT`].
pub(super) struct Connect<R: Reactor> {
    clock: R,
    /// The queue was full.
    again: Option<Instant>,
    tcp: Option<Connecting<R::Stream>>,
}

impl<R: Reactor> Connect<R> {
    /// Begins now.
    pub(super) fn new() -> Self {
        Self { clock: R::default(), again: None, tcp: None }
    }

    pub(super) fn poll_unix(&mut self, cx: &mut Context<'_>, path: &Path) -> Poll<io::Result<R::Stream>> {
        loop {
            if self.again.is_some() {
                ready!(self.clock.poll_sleep(cx, self.again));
            }
            let now = self.clock.now();
            match try_connect_unix(path) {
                Err(Errno::AGAIN) if now < deadline() => self.again = Some(now + BUSY_PAUSE),
                connected => return Poll::Ready(connected.map_err(Into::into).and_then(R::unix)),
            }
        }
    }

    pub(super) fn poll_tcp(&mut self, cx: &mut Context<'_>, address: &str) -> Poll<io::Result<R::Stream>> {
        let connecting = self.tcp.get_or_insert_with(|| R::connect_tcp(address.to_owned()));
        match connecting.as_mut().poll(cx) {
            Poll::Pending => {
                ready!(self.clock.poll_sleep(cx, Some(deadline())));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            connected => connected,
        }
    }
}

/// By a clock that was made when the connection was begun.
fn deadline() -> Instant {
    Instant::ZERO + CONNECT_TIMEOUT
}
