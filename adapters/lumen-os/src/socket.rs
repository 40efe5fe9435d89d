//! Stream sockets: connecting with a bound on the wait, and reading and writing that never blocks or signals.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_nodelay};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect,
    shutdown, socket_with,
};

use crate::ConnectError;
use crate::child::set_nonblocking;

/// The longest path of a Unix socket, in bytes: the address holds 108 with its closing NUL.
pub const MAX_UNIX_PATH: usize = 107;

/// How long making a connection may take in all. Looking up a host name is not under this bound.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the Unix stream socket at `path`; the result is non-blocking.
///
/// # Errors
/// A path above [`MAX_UNIX_PATH`] bytes is refused before the system is asked. A listener whose queue stays
/// full for [`CONNECT_TIMEOUT`] is `WouldBlock`.
pub fn connect_unix(path: &Path) -> Result<OwnedFd, ConnectError> {
    let len = path.as_os_str().as_bytes().len();
    if len > MAX_UNIX_PATH {
        return Err(ConnectError::PathTooLong { path: path.to_owned(), len });
    }
    try_unix(path)
        .map_err(|errno| ConnectError::Refused { target: path.display().to_string(), source: errno.into() })
}

fn try_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Connecting waits only for room in the listener's queue, and the kernel counts that as sending.
    set_socket_timeout(&fd, Timeout::Send, Some(CONNECT_TIMEOUT))?;
    loop {
        match connect(&fd, &address) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    }
    set_socket_timeout(&fd, Timeout::Send, None)?;
    set_nonblocking(fd.as_fd())?;
    Ok(fd)
}

/// The same at once or not at all: `AGAIN` while the listener's queue is full.
pub(crate) fn try_connect_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match connect(&fd, &address) {
            Err(Errno::INTR) => {}
            other => return other.map(|()| fd),
        }
    }
}

/// Connects to `host:port` over TCP, trying the host's addresses in turn; the result is non-blocking and sends
/// small messages at once (`TCP_NODELAY`).
///
/// # Errors
/// What the last address tried said.
pub fn connect_tcp(host_port: &str) -> Result<OwnedFd, ConnectError> {
    try_tcp(host_port).map_err(|source| ConnectError::Refused { target: host_port.to_owned(), source })
}

fn try_tcp(host_port: &str) -> io::Result<OwnedFd> {
    let addresses = host_port.to_socket_addrs()?;
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return stream_from(stream.into()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Makes a connected stream socket, such as an accepted one, non-blocking, and quick if it is TCP.
///
/// # Errors
/// The descriptor is no socket.
pub fn stream_from(fd: OwnedFd) -> io::Result<OwnedFd> {
    set_nonblocking(fd.as_fd())?;
    set_nodelay(fd.as_fd())?;
    Ok(fd)
}

/// Lets small messages of a TCP socket leave at once (`TCP_NODELAY`); a Unix socket does so anyway.
///
/// # Errors
/// The descriptor is no socket, or the connection is broken.
pub fn set_nodelay(fd: BorrowedFd<'_>) -> io::Result<()> {
    match set_tcp_nodelay(fd, true) {
        // A Unix socket has no such option.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOPROTOOPT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Reads what has arrived on a socket; 0 is the end of the stream. Never blocks, whatever the socket's flags.
///
/// # Errors
/// `WouldBlock` if nothing has arrived; anything else is the end of the connection.
pub fn recv(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::net::recv(fd, &mut *buf, RecvFlags::DONTWAIT) {
            Ok((_, len)) => return Ok(len.min(buf.len())),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Writes a prefix of `bytes` to a socket. Never blocks, whatever the socket's flags, and never raises SIGPIPE.
///
/// # Errors
/// `WouldBlock` if there is no room; anything else means that no more can be delivered.
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::net::send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(len) => return Ok(len),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Returns whether the peer of a socket has closed both directions, not only stopped writing.
pub fn is_hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    // It does not wait, so there is nothing to be interrupted; an error means that nothing is known.
    let told = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    told.is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

/// Tells the peer that nothing more will be written. A connection that is gone already is not an error.
pub fn shutdown_write(fd: BorrowedFd<'_>) {
    let _ = shutdown(fd, Shutdown::Write);
}

#[cfg(test)]
mod tests;
