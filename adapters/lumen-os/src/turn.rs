//! The turn to start whatever is to serve a socket, so that of many who find nobody there one does it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use rustix::io::Errno;

use crate::listener::{lock, lock_path, make_directory};

/// The turn, until it is dropped.
///
/// It is a lock on `PATH.start`, which is there only meanwhile. It says nothing of who serves the path: that is the lock
/// of the [`Listener`](crate::Listener).
#[derive(Debug)]
pub struct Turn {
    socket: PathBuf,
    path: PathBuf,
    // Given back after the file is gone.
    _lock: OwnedFd,
}

impl Turn {
    /// Takes the turn for a socket; `None` if somebody else has it. The socket's directory is made, with mode 0700, if it
    /// is missing.
    ///
    /// # Errors
    /// The system refused.
    pub fn try_take(socket: &Path) -> io::Result<Option<Self>> {
        make_directory(socket, 0o700)?;
        let path = lock_path(socket, ".start");
        loop {
            let lock = match lock(&path) {
                Err(Errno::WOULDBLOCK) => return Ok(None),
                locked => locked?,
            };
            // Whoever had it may have removed the file that this is a lock on.
            if fstat(&lock)?.st_nlink > 0 {
                return Ok(Some(Self { socket: socket.to_owned(), path, _lock: lock }));
            }
        }
    }

    /// Returns whether a process owns the path: it serves it, is about to, or still has to end.
    ///
    /// # Errors
    /// The system refused.
    pub fn is_owned(&self) -> io::Result<bool> {
        match lock(&lock_path(&self.socket, ".lock")) {
            Ok(_) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Listener;

    #[test]
    fn one_has_the_turn_and_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("lumen-os-turn-{}", std::process::id()));
        let socket = folder.join("a.b");
        let turn = Turn::try_take(&socket).unwrap().unwrap();
        assert!(Turn::try_take(&socket).unwrap().is_none());
        assert!(Turn::try_take(&folder.join("a.c")).unwrap().is_some());
        assert!(!turn.is_owned().unwrap());
        let listener = Listener::bind(&socket).unwrap();
        assert!(turn.is_owned().unwrap());
        drop(listener);
        assert!(!turn.is_owned().unwrap());
        drop(turn);
        drop(Turn::try_take(&socket).unwrap().unwrap());
        let left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["a.b.lock"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
