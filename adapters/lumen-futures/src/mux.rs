//! One server for many clients over a Unix socket.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use lumen_os::reactor::{self, MuxHandle};

use crate::{AsyncIo, ListenError, MuxEvent, MuxSpec};

/// Who runs tasks.
pub trait Executor: sealed::Sealed {
    /// Runs a task that nobody waits for.
    fn spawn(task: impl Future<Output = ()> + Send + 'static);
}

pub(crate) mod sealed {
    /// Keeps [`Executor`](super::Executor) to this crate.
    pub trait Sealed {}
}

/// Shares a server, started by a command, between all who connect to a Unix socket.
///
/// Nothing happens while nobody awaits [`next_event`](reactor::Mux::next_event); [`spawn`](Self::spawn) gives that to a
/// task. Dropping it closes everything, ends the server with its whole process group, and removes the socket. A signal that
/// ends the process drops nothing: catch it, and [`shut_down`](reactor::Mux::shut_down).
///
/// # Bounds
/// Those of [`Pool`](lumen_proto::endpoint::Pool), and one descriptor for each client.
#[derive(Debug)]
pub struct Mux<E> {
    inner: reactor::Mux<AsyncIo>,
    executor: PhantomData<fn() -> E>,
}

impl<E: Executor> Mux<E> {
    /// Serves the socket, as [`reactor::Mux::bind`].
    ///
    /// # Errors
    /// As [`Listener::bind`](crate::Listener::bind).
    pub fn bind(spec: MuxSpec) -> Result<Self, ListenError> {
        Ok(Self { inner: reactor::Mux::bind(spec)?, executor: PhantomData })
    }

    /// Serves in a task of its own, and tells `on_event` what there is to tell.
    pub fn spawn(self, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle {
        let (serve, handle) = self.inner.serve(on_event);
        E::spawn(serve);
        handle
    }
}

impl<E> Deref for Mux<E> {
    type Target = reactor::Mux<AsyncIo>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl<E> DerefMut for Mux<E> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}
