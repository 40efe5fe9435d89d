//! Owning a Unix socket's path: made safe, never taken from somebody who serves it, left behind by nobody.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};

use crate::ListenError;
use crate::socket::MAX_UNIX_PATH;

/// Connections that wait to be accepted; the system may allow fewer.
pub const BACKLOG: i32 = 128;

/// A listening Unix socket and the right to its path.
///
/// # Ownership
/// Whoever holds the lock on `PATH.lock` owns the path: only that process unlinks or binds it. The lock file is never
/// removed, for a lock on a file that somebody else has replaced would protect nothing. Dropping this removes the socket,
/// if it is still the one that was bound, and then gives the lock back, in this order; a process that is killed leaves a
/// socket that nobody serves, which the next owner replaces.
#[derive(Debug)]
pub struct Listener {
    // In the order in which they are dropped: the path while the lock is held.
    bound: Bound,
    socket: OwnedFd,
    _lock: OwnedFd,
}

/// A path that was bound, as it was then.
#[derive(Debug)]
struct Bound {
    path: PathBuf,
    inode: (u64, u64),
}

impl Bound {
    /// Sets the mode of the socket that was bound, and of nothing that somebody may have put in its place. The mode that
    /// it is bound with would be cut down by the umask.
    fn let_all_connect(&self) -> io::Result<()> {
        let found =
            rustix::fs::open(&self.path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        if inode(&rustix::fs::fstat(&found)?) != self.inode {
            return Err(io::ErrorKind::NotFound.into());
        }
        let by_descriptor = format!("/proc/self/fd/{}", found.as_raw_fd());
        Ok(rustix::fs::chmod(by_descriptor, Mode::from_raw_mode(0o666))?)
    }
}

/// Whose clients can connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Own,
    All,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // If it cannot be looked at, it is not ours to remove.
        if stat(&self.path).is_ok_and(|found| inode(&found) == self.inode) {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// A client that has connected.
#[derive(Debug)]
pub struct Accepted {
    /// The connection, non-blocking.
    pub fd: OwnedFd,
    /// The user that the client runs as.
    pub uid: u32,
    /// The client's process id, 0 if it is in another namespace.
    pub pid: i32,
}

impl Listener {
    /// Binds `path` and listens there. Its directory is made, with mode 0700, if it is missing; the socket has mode 0600
    /// from its first moment.
    ///
    /// # Errors
    /// Another process owns the path or serves it, something else than a socket is there, the path is longer than
    /// [`MAX_UNIX_PATH`] bytes, or the system refused a step. Nothing stays behind but directories and the lock file.
    pub fn bind(path: &Path) -> Result<Self, ListenError> {
        Self::bind_for(path, Access::Own)
    }

    /// The same for clients of every user, who are to be told apart by [`Accepted::uid`]: a directory that is made has
    /// mode 0711, the socket 0666.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_for_all(path: &Path) -> Result<Self, ListenError> {
        Self::bind_for(path, Access::All)
    }

    fn bind_for(path: &Path, access: Access) -> Result<Self, ListenError> {
        let len = path.as_os_str().as_bytes().len();
        if len > MAX_UNIX_PATH {
            return Err(ListenError::PathTooLong { path: path.to_owned(), len });
        }
        let refused = |step: &'static str| {
            let path = path.to_owned();
            move |source: io::Error| ListenError::Refused { path, step, source }
        };
        make_directory(path, if access == Access::All { 0o711 } else { 0o700 })
            .map_err(refused("make the directory of"))?;
        let lock = lock(&lock_path(path, ".lock")).map_err(|error| match error {
            Errno::WOULDBLOCK => ListenError::InUse { path: path.to_owned() },
            errno => refused("lock")(errno.into()),
        })?;
        remove_stale(path)?;
        let socket = unix_socket().map_err(|errno| refused("make a socket for")(errno.into()))?;
        let bound = bind_at(&socket, path).map_err(|errno| refused("bind")(errno.into()))?;
        if access == Access::All {
            bound.let_all_connect().map_err(refused("set the mode of"))?;
        }
        listen(&socket, BACKLOG).map_err(|errno| refused("listen on")(errno.into()))?;
        Ok(Self { bound, socket, _lock: lock })
    }

    /// Takes the next client.
    ///
    /// # Errors
    /// `WouldBlock` if there is none. `OutOfMemory` when the system is out of descriptors or memory: the client waits, and
    /// it is no use to try again before something was closed. Anything else concerns one client that has gone already.
    pub fn accept(&self) -> io::Result<Accepted> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = loop {
            match accept_with(&self.socket, flags) {
                Err(Errno::INTR) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return Err(io::ErrorKind::OutOfMemory.into());
                }
                other => break other?,
            }
        };
        let credentials = getsockopt(&fd, PeerCredentials)?;
        Ok(Accepted { fd, uid: credentials.uid(), pid: credentials.pid() })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.bound.path
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the user that this process runs as.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the directory of a path with this mode, if it is missing, and those above it.
pub(crate) fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    match path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        Some(directory) => DirBuilder::new().recursive(true).mode(mode).create(directory),
        None => Ok(()),
    }
}

/// Returns the path of a file beside a socket.
pub(crate) fn lock_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Takes the lock on a file without waiting for it.
pub(crate) fn lock(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes a socket that nobody serves any more. To be called by the holder of the lock.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let refused = |source: Errno| ListenError::Refused {
        path: path.to_owned(),
        step: "replace what is at",
        source: source.into(),
    };
    let found = match stat(path) {
        Err(Errno::NOENT) => return Ok(()),
        found => found.map_err(refused)?,
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Err(ListenError::NotASocket { path: path.to_owned() });
    }
    // Somebody who knows nothing of the lock may be serving it.
    if is_served(path).map_err(refused)? {
        return Err(ListenError::InUse { path: path.to_owned() });
    }
    rustix::fs::unlink(path).map_err(refused)
}

fn is_served(path: &Path) -> Result<bool, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(!matches!(connect(&probe, &SocketAddrUnix::new(path)?), Err(Errno::CONNREFUSED)))
}

fn unix_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The path gets the mode of the socket: nobody else can connect, not even between two calls of ours.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    Ok(socket)
}

fn bind_at(socket: &OwnedFd, path: &Path) -> Result<Bound, Errno> {
    bind(socket, &SocketAddrUnix::new(path)?)?;
    match stat(path) {
        Ok(found) => Ok(Bound { path: path.to_owned(), inode: inode(&found) }),
        Err(errno) => {
            let _ = rustix::fs::unlink(path);
            Err(errno)
        }
    }
}

fn stat(path: &Path) -> Result<Stat, Errno> {
    rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
}

const fn inode(found: &Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

#[cfg(test)]
mod tests;
