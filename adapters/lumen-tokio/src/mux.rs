//! One server for many clients over a Unix socket.

use std::ops::{Deref, DerefMut};

use lumen_os::reactor::{self, MuxHandle};
use tokio::task::coop::unconstrained;

use crate::{ListenError, MuxEvent, MuxSpec, Tokio};

/// Shares a server, started by a command, between all who connect to a Unix socket.
///
/// Nothing happens while nobody awaits [`next_event`](reactor::Mux::next_event); [`spawn`](Self::spawn) gives that to a
/// task. Dropping it closes everything, ends the server with its whole process group, and removes the socket. A signal that
/// ends the process drops nothing: catch it, and [`shut_down`](reactor::Mux::shut_down).
///
/// ```no_run
/// use std::time::Duration;
///
/// use lumen_tokio::{CommandSpec, Mux, MuxSpec};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let server = CommandSpec::new("my-server").arg("--stdio").cwd("/srv/data").env("TOKEN", "t");
/// let spec = MuxSpec::new("/run/user/1000/s", server)
///     .backoff(Duration::from_secs(1), Duration::from_secs(30))
///     .request_timeout(Some(Duration::from_secs(60)));
/// // It serves in a task. To serve here, ask `next_event` for what happens.
/// let handle = Mux::bind(spec)?.spawn(|event| eprintln!("{event:?}"));
/// handle.close().await;
/// # Ok(())
/// # }
/// ```
///
/// # Bounds
/// Those of [`Pool`](lumen_proto::endpoint::Pool), and one descriptor for each client.
#[derive(Debug)]
pub struct Mux(reactor::Mux<Tokio>);

impl Mux {
    /// Serves the socket, as [`reactor::Mux::bind`].
    ///
    /// # Errors
    /// As [`Listener::bind`](crate::Listener::bind).
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled.
    pub fn bind(spec: MuxSpec) -> Result<Self, ListenError> {
        reactor::Mux::bind(spec).map(Self)
    }

    /// Serves in a task of its own, and tells `on_event` what there is to tell.
    pub fn spawn(self, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle {
        let (serve, handle) = self.0.serve(on_event);
        // It has a budget of its own.
        tokio::spawn(unconstrained(serve));
        handle
    }
}

impl Deref for Mux {
    type Target = reactor::Mux<Tokio>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Mux {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
