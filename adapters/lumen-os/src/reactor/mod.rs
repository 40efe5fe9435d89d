//! A whole binding over any runtime that tells of readiness: what is written once for tokio, smol and their like.
//!
//! A binding says in its [`Reactor`] how its runtime watches a descriptor, connects and sleeps. From that come
//! [`Driver`], [`Client`] and [`Server`], and [`Mux`], which a binding shows under its own name. Nothing here starts a
//! task or asks for `Send`; all of it is `Send` when the reactor's own types are.

mod connect;
mod driver;
mod ending;
mod mux;
mod quiet;
mod session;
mod stdio;
mod world;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use lumen_driver::Stream;
use lumen_proto::Instant;

use crate::stdio::{Stdin, Stdout};
use crate::{Listener, Process};

pub use crate::remembered::MAX_ENDED;
pub use driver::Driver;
pub use mux::{Mux, MuxHandle};
pub use quiet::Quiet;
pub use session::{Client, Server};
pub use stdio::Stdio;

/// A connection in the making.
pub type Connecting<S> = Pin<Box<dyn Future<Output = io::Result<S>> + Send>>;

/// A type that owns one descriptor, the same from its making to its drop.
pub trait OwnsFd: AsFd + AsRawFd + fmt::Debug + sealed::Sealed {}

mod sealed {
    /// Keeps the promise of [`OwnsFd`](super::OwnsFd) in this crate.
    pub trait Sealed {}
}

macro_rules! owns_fd {
    ($($owner:ty),*) => {$(
        impl sealed::Sealed for $owner {}
        impl OwnsFd for $owner {}
    )*};
}
owns_fd!(OwnedFd, std::fs::File, Listener, Process, Stdin, Stdout);

/// What the runtime is asked to tell of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// That it can be read.
    Readable,
    /// That it can be written.
    Writable,
}

/// A descriptor that the runtime watches. Dropping it ends the watch, then closes the descriptor.
pub trait Watched<T>: fmt::Debug {
    /// Calls `io` until it no longer fails with `WouldBlock`, and in between waits for the readiness that was asked for.
    ///
    /// # Errors
    /// What `io` said, or that the runtime is going down.
    fn poll_with<R>(
        &mut self,
        cx: &mut Context<'_>,
        io: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>>;

    /// Reads at most so many bytes with `read`, as [`poll_with`](Self::poll_with) does. If less has come, there is no more, so
    /// the next call waits without trying.
    ///
    /// # Errors
    /// As there.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        read: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>>;

    /// Returns what is watched, to look at it.
    fn as_inner(&self) -> &T;

    /// Ends the watch.
    ///
    /// # Errors
    /// The system would not end it; what was watched is dropped.
    fn into_inner(self) -> io::Result<T>;
}

/// What a runtime offers: descriptors that are watched, connections, and by its value a clock with one alarm.
pub trait Reactor: Default + fmt::Debug {
    /// A descriptor that is watched.
    type Fd<T: OwnsFd>: Watched<T>;

    /// The byte streams of the binding.
    type Stream: Stream + fmt::Debug;

    /// Has a descriptor watched that never blocks.
    ///
    /// # Errors
    /// The system has no room for it.
    fn watch<T: OwnsFd>(inner: T, interest: Interest) -> io::Result<Self::Fd<T>>;

    /// Joins our two ends of a child's pipes, which never block.
    ///
    /// # Errors
    /// As [`watch`](Self::watch).
    fn pipes(read: OwnedFd, write: OwnedFd) -> io::Result<Self::Stream>;

    /// Takes a connected Unix socket, which never blocks.
    ///
    /// # Errors
    /// As [`watch`](Self::watch).
    fn unix(socket: OwnedFd) -> io::Result<Self::Stream>;

    /// Joins this process's own standard streams, or streams that are used like them.
    fn stdio(stdio: Stdio<Self>) -> Self::Stream;

    /// Connects to `host:port`, for as long as that takes.
    fn connect_tcp(address: String) -> Connecting<Self::Stream>;

    /// Returns the time since this value was made.
    fn now(&self) -> Instant;

    /// Is ready when `until` is past; never, if there is none or if the clock cannot tell it.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()>;

    /// Does a share of work that has a bound of its own, and is one unit in whatever the runtime lets a task do before it
    /// has to yield.
    fn poll_budgeted<T>(cx: &mut Context<'_>, work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let mut work = work;
        work(cx)
    }
}
