//! A whole binding over anything that a thread can wait with: what is written once for `poll(2)` and for io_uring.
//!
//! A binding says in its [`Engine`] how reads and writes are started and waited for. From that come [`Loop`], [`Client`],
//! [`Server`] and [`Mux`], which a binding shows under its own name. Nothing here starts a thread but
//! what says so.

mod core;
mod event_loop;
mod keeper;
mod mux;
mod session;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use lumen_proto::{Instant, Machine, Port};
use rustix::io::Errno;

pub use self::core::Core;
pub use crate::remembered::MAX_ENDED;
pub use event_loop::Loop;
pub use keeper::{Keeper, Opened};
pub use mux::{Mux, MuxHandle};
pub use session::{Client, Server};

/// What a thread waits with: it reads and writes open ports, and tells the [`Core`] what came of it.
pub trait Engine: Sized + fmt::Debug {
    /// The byte streams of the binding.
    type Stream: fmt::Debug;

    /// `T`, or why there is no engine; simply `T` where there always is one.
    type Made<T>;

    /// Makes an engine, and of that what was asked for.
    fn make<T>(finish: impl FnOnce(Self) -> T) -> Self::Made<T>;

    /// Makes an engine.
    ///
    /// # Errors
    /// There is none to be had.
    fn try_new() -> io::Result<Self>;

    /// Takes this process's own standard streams.
    ///
    /// # Errors
    /// One of them cannot be examined, or descriptors are used up.
    fn stdio() -> io::Result<Self::Stream>;

    /// Takes a connected stream socket.
    ///
    /// # Errors
    /// The descriptor is no socket.
    fn socket(fd: OwnedFd) -> io::Result<Self::Stream>;

    /// Takes a stream as `port`, which is open now.
    fn attach(&mut self, port: Port, stream: Self::Stream);

    /// Takes what was opened as `port`, and begins to watch the process behind it, which `keeper` has.
    ///
    /// # Errors
    /// The system has no room to watch it.
    fn open(&mut self, keeper: &Keeper, port: Port, opened: Opened) -> io::Result<()>;

    /// Starts a read of at most so many bytes.
    fn start_read<M: Machine>(&mut self, core: &mut Core<M>, port: Port, most: usize);

    /// Starts a write.
    fn start_write<M: Machine>(&mut self, core: &mut Core<M>, port: Port);

    /// Closes the writing half. That it was broken already is no news.
    fn finish(&mut self, port: Port);

    /// Lets go of a port. Calls [`Core::on_closed`] when nothing of it is left here.
    fn start_close<M: Machine>(&mut self, core: &mut Core<M>, port: Port);

    /// Waits until something has happened or the deadline has come, and tells the core what.
    ///
    /// # Errors
    /// `Deadlock` if there is nothing to wait for; else what the system said, which is out of memory.
    fn wait<M: Machine>(&mut self, core: &mut Core<M>, deadline: Option<Instant>) -> io::Result<()>;

    /// As [`Loop::watch`].
    fn watch(&mut self, fd: OwnedFd);

    /// As [`Loop::look_at`].
    fn look_at(&mut self, fd: OwnedFd);

    /// As [`Loop::set_looking`].
    fn set_looking(&mut self, is_looking: bool);

    /// As [`Loop::take_woken`].
    fn take_woken(&mut self) -> bool;

    /// As [`Loop::take_readable`].
    fn take_readable(&mut self) -> bool;
}

/// Reads away what has ended a wait for this descriptor. Returns whether it is worth waiting for any longer: one whose other
/// end is gone would end every wait from now on.
pub fn take_wake(fd: &impl AsFd) -> bool {
    matches!(rustix::io::read(fd, &mut [0; 64]), Ok(1..) | Err(Errno::AGAIN | Errno::INTR))
}
