//! Logging to stderr, which whoever started this process may never read: a full pipe loses lines and stops nothing. Or to
//! a file that takes its place.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write, stderr};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use lumen_os::stdio::Stdout;
use rustix::stdio::dup2_stderr;
use tracing_subscriber::EnvFilter;

/// Bytes of a log file before it is renamed and begun anew. Worst case: twice this, plus two lines, on the disk.
pub(crate) const MAX_LOG: u64 = 1024 * 1024;

/// The file that has taken the place of standard error.
static LOG: OnceLock<PathBuf> = OnceLock::new();

/// Puts a file in the place of standard error, for good. To be called before anything is said.
///
/// # Errors
/// It cannot be opened, or made with mode 0600.
pub(crate) fn to_file(path: &Path) -> io::Result<()> {
    dup2_stderr(open(path)?)?;
    let _ = LOG.set(path.to_owned());
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Sets logging up: warnings by default, more with every `-v`; `RUST_LOG` decides alone if it is set.
pub(crate) fn init(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colour = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Stderr)
        .with_ansi(colour)
        .with_target(false)
        .without_time()
        .log_internal_errors(false)
        .init();
}

/// Standard error, written a whole line at a time, and never waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stderr;

static LINES: LazyLock<Mutex<Lines<Own>>> =
    LazyLock::new(|| Mutex::new(Lines { to: Own::new(), dropped: 0, is_cut: false }));

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines to a stream that may have no room for them.
#[derive(Debug)]
struct Lines<W> {
    to: W,
    dropped: u64,
    /// The last line was written in part.
    is_cut: bool,
}

impl<W: Write> Lines<W> {
    fn put(&mut self, line: &[u8]) {
        if self.dropped > 0 {
            let end = if self.is_cut { "\n" } else { "" };
            let note = format!("{end}lumen: {} lines before this one had no room\n", self.dropped);
            if !self.try_put(note.as_bytes()) {
                self.dropped += 1;
                return;
            }
            self.dropped = 0;
        }
        if !self.try_put(line) {
            self.dropped += 1;
        }
    }

    fn try_put(&mut self, mut line: &[u8]) -> bool {
        while !line.is_empty() {
            match self.to.write(line) {
                Ok(count @ 1..) => {
                    line = line.get(count..).unwrap_or_default();
                    self.is_cut = !line.is_empty();
                }
                // No room, or nobody: that cannot be told to anybody.
                Ok(0) | Err(_) => return false,
            }
        }
        true
    }
}

/// This process's standard error without blocking; nothing if it cannot be examined.
#[derive(Debug)]
struct Own {
    to: Option<Stdout>,
    /// Of the file, if it is one that is begun anew.
    len: u64,
}

impl Own {
    fn new() -> Self {
        let len = LOG.get().and_then(|path| path.metadata().ok()).map_or(0, |file| file.len());
        Self { to: own(), len }
    }

    /// Begins the log file anew. If that cannot be done, the old one goes on.
    fn begin_anew(&mut self, path: &Path) -> io::Result<()> {
        let mut old = OsString::from(path);
        old.push(".old");
        std::fs::rename(path, old)?;
        dup2_stderr(open(path)?)?;
        self.to = own();
        Ok(())
    }
}

fn own() -> Option<Stdout> {
    stderr().as_fd().try_clone_to_owned().and_then(Stdout::new).ok()
}

impl Write for Own {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(path) = LOG.get()
            && self.len >= MAX_LOG
        {
            self.len = 0;
            let _ = self.begin_anew(path);
        }
        let count = self.to.as_mut().map_or(Ok(bytes.len()), |to| to.write(bytes))?;
        self.len += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes.
    struct Narrow {
        room: usize,
        got: Vec<u8>,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.got.extend(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_without_room_are_counted_and_told_when_there_is_some() {
        let mut lines = Lines { to: Narrow { room: 6, got: Vec::new() }, dropped: 0, is_cut: false };
        lines.put(b"one\n");
        lines.put(b"two\n");
        lines.put(b"three\n");
        lines.to.room = 1000;
        lines.put(b"four\n");
        lines.put(b"five\n");
        let told = "one\ntw\nlumen: 2 lines before this one had no room\nfour\nfive\n";
        assert_eq!(String::from_utf8(lines.to.got).unwrap(), told);
    }

    #[test]
    fn a_note_without_room_is_not_repeated_in_part() {
        let mut lines = Lines { to: Narrow { room: 0, got: Vec::new() }, dropped: 0, is_cut: false };
        lines.put(b"one\n");
        lines.to.room = 3;
        lines.put(b"two\n");
        lines.to.room = 1000;
        lines.put(b"three\n");
        let told = "lum\nlumen: 2 lines before this one had no room\nthree\n";
        assert_eq!(String::from_utf8(lines.to.got).unwrap(), told);
    }
}
