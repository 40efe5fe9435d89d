//! The one place where descriptors of our own types are registered with the runtime.

use std::io;
use std::os::fd::AsRawFd;

use lumen_os::stdio::{Stdin, Stdout};
use lumen_os::{Listener, Process, StderrDrain};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A type that owns one descriptor, the same from its making to its drop.
pub(crate) trait OwnsFd: AsRawFd {}

impl OwnsFd for Listener {}
impl OwnsFd for Process {}
impl OwnsFd for StderrDrain {}
impl OwnsFd for Stdin {}
impl OwnsFd for Stdout {}

/// Registers a descriptor.
#[expect(
    deprecated,
    reason = "its successor is the same but `unsafe`, because a type might change or close its descriptor; \
              ours do not, and unsafe code is forbidden here"
)]
pub(crate) fn register<T: OwnsFd>(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(inner, interest)
}
