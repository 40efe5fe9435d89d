//! Logging to stderr, which whoever started this process may never read: a full pipe loses lines and stops nothing. Or to
//! a file that takes its place.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write, stderr};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use lumen_os::stdio::Stdout;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::stdio::dup2_stderr;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

/// Bytes of a log file before it is renamed and begun anew. Worst case: twice this, plus two lines, on the disk.
pub(crate) const MAX_LOG: u64 = 1024 * 1024;

/// What has taken the place of standard error.
static LOG: OnceLock<Log> = OnceLock::new();

#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// It can be begun anew. A terminal or /dev/null cannot.
    is_file: bool,
}

/// Puts a file in the place of standard error, for good, in which every line has its time. To be called before anything is
/// said.
///
/// # Errors
/// As [`open`].
pub(crate) fn to_file(path: &Path) -> io::Result<()> {
    let file = open(path)?;
    let is_file = file.metadata()?.is_file();
    dup2_stderr(file)?;
    let _ = LOG.set(Log { path: path.to_owned(), is_file });
    Ok(())
}

/// Opens a log to append to it.
///
/// # Errors
/// It cannot be opened, or made with mode 0600; or it is a pipe or a socket, where somebody would have to read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let unfit = || io::Error::other("a log is a regular file, a terminal or a device such as /dev/null");
    // A pipe without a reader is waited for otherwise, and a terminal may become that of this process.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| if Errno::from_io_error(&error) == Some(Errno::NXIO) { unfit() } else { error })?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_char_device() {
        return Err(unfit());
    }
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
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
    LazyLock::new(|| Mutex::new(Lines::new(Own::new(), LOG.get().is_some())));

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
    /// Each line begins with its time.
    is_stamped: bool,
}

impl<W: Write> Lines<W> {
    const fn new(to: W, is_stamped: bool) -> Self {
        Self { to, dropped: 0, is_cut: false, is_stamped }
    }

    fn put(&mut self, line: &[u8]) {
        let stamp = if self.is_stamped { stamp() } else { String::new() };
        let line = &[stamp.as_bytes(), line].concat();
        if self.dropped > 0 {
            let end = if self.is_cut { "\n" } else { "" };
            let note = format!("{end}{stamp}lumen: {} lines before this one had no room\n", self.dropped);
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

/// Returns the time, UTC, as the beginning of a line.
fn stamp() -> String {
    let mut text = String::new();
    // It has a time wherever there is one, and memory takes it.
    let _ = SystemTime.format_time(&mut format::Writer::new(&mut text));
    text + " "
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
        let len = LOG.get().and_then(|log| log.path.metadata().ok()).map_or(0, |file| file.len());
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
        if let Some(log) = LOG.get()
            && log.is_file
            && self.len >= MAX_LOG
        {
            self.len = 0;
            let _ = self.begin_anew(&log.path);
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
        let mut lines = Lines::new(Narrow { room: 6, got: Vec::new() }, false);
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
    fn each_line_of_a_log_begins_with_its_time() {
        let mut lines = Lines::new(Narrow { room: 0, got: Vec::new() }, true);
        lines.put(b"one\n");
        lines.to.room = 1000;
        lines.put(b"two\n");
        let got = String::from_utf8(lines.to.got).unwrap();
        // As in 2026-12-01T08:30:00.123456Z.
        let rest: Vec<_> = got.lines().map(|line| line.split_at(27)).collect();
        for (time, _) in &rest {
            let shape = time.replace(|digit: char| digit.is_ascii_digit(), "0");
            assert_eq!(shape, "0000-00-00T00:00:00.000000Z", "{got}");
        }
        let texts: Vec<_> = rest.iter().map(|(_, text)| *text).collect();
        assert_eq!(texts, [" lumen: 1 lines before this one had no room", " two"]);
    }

    #[test]
    fn what_somebody_would_have_to_read_is_no_log() {
        let folder = std::env::temp_dir().join(format!("lumen-cli-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (pipe, socket, file) = (folder.join("pipe"), folder.join("socket"), folder.join("file"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&pipe, &socket] {
            assert!(open(path).unwrap_err().to_string().starts_with("a log is"));
        }
        // Nor is it when somebody does.
        let reader = rustix::fs::open(&pipe, OFlags::RDONLY | OFlags::NONBLOCK, rustix::fs::Mode::empty());
        assert!(open(&pipe).unwrap_err().to_string().starts_with("a log is"));
        drop(reader);
        for path in [&file, Path::new("/dev/null")] {
            let flags = rustix::fs::fcntl_getfl(open(path).unwrap()).unwrap();
            assert!(flags.contains(OFlags::APPEND) && !flags.contains(OFlags::NONBLOCK));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_note_without_room_is_not_repeated_in_part() {
        let mut lines = Lines::new(Narrow { room: 0, got: Vec::new() }, false);
        lines.put(b"one\n");
        lines.to.room = 3;
        lines.put(b"two\n");
        lines.to.room = 1000;
        lines.put(b"three\n");
        let told = "lum\nlumen: 2 lines before this one had no room\nthree\n";
        assert_eq!(String::from_utf8(lines.to.got).unwrap(), told);
    }
}
