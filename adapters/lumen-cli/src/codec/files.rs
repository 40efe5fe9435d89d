//! The two ends of a conversion: files, or this process's own streams.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Read, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Stop;
use crate::args::Files;

/// Where bytes come from.
#[derive(Debug)]
pub(super) struct Source {
    file: Patient,
    name: String,
}

/// Where bytes go.
#[derive(Debug)]
pub(super) struct Sink {
    file: BufWriter<Patient>,
    name: String,
}

/// Opens both ends. An output that is there already is emptied, unless it is the input.
pub(super) fn open(files: &Files) -> Result<(Source, Sink), Stop> {
    let input = named(files.input.as_deref());
    let name = input.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
    let file = match input {
        Some(path) => File::open(path),
        None => own(io::stdin().as_fd()),
    };
    let file = file.map_err(|error| Stop::Failed(format!("cannot open {name}: {error}; does it exist?")))?;
    let source = Source { file: Patient(file), name };

    let output = named(files.output.as_deref());
    let name = output.map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
    let open = || {
        let file = match output {
            Some(path) => OpenOptions::new().write(true).create(true).truncate(false).open(path)?,
            None => own(io::stdout().as_fd())?,
        };
        let (to, from) = (file.metadata()?, source.file.0.metadata()?);
        if to.is_file() && (to.dev(), to.ino()) == (from.dev(), from.ino()) {
            return Err(io::Error::other("it is the input"));
        }
        if output.is_some() && to.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    };
    let file = open().map_err(|error| {
        Stop::Failed(format!("cannot write to {name}: {error}; -o FILE names another output"))
    })?;
    Ok((source, Sink { file: BufWriter::with_capacity(64 * 1024, Patient(file)), name }))
}

impl Source {
    /// Reads what comes next; 0 is the end.
    pub(super) fn read(&mut self, buf: &mut [u8]) -> Result<usize, Stop> {
        self.file.read(buf).map_err(|error| self.unreadable(&error))
    }

    /// Reads everything, of which there may be so much.
    pub(super) fn whole(&mut self, max: usize) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(max as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.unreadable(&error))?;
        if bytes.len() > max {
            return Err(self.failed(&format!("more than {max} bytes, the most that one value may have")));
        }
        Ok(bytes)
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.file.0.is_terminal()
    }

    /// Tells what is wrong with the input.
    pub(super) fn failed(&self, fault: &str) -> Stop {
        Stop::Failed(format!("{}: {fault}", self.name))
    }

    fn unreadable(&self, error: &io::Error) -> Stop {
        Stop::Failed(format!("cannot read {}: {error}; name a file, or pipe the input in", self.name))
    }
}

impl Sink {
    /// Writes, sooner or later.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.file.write_all(bytes).map_err(|error| self.unwritable(&error))
    }

    /// Writes what has been put.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        self.file.flush().map_err(|error| self.unwritable(&error))
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.file.get_ref().0.is_terminal()
    }

    fn unwritable(&self, error: &io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::NoReader,
            _ => {
                Stop::Failed(format!("cannot write to {}: {error}; -o FILE names another output", self.name))
            }
        }
    }
}

/// A file that is waited for even if whoever shares it has made it non-blocking.
#[derive(Debug)]
struct Patient(File);

impl Patient {
    fn until_done<T>(
        &mut self,
        events: PollFlags,
        mut step: impl FnMut(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match step(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match poll(&mut [PollFd::new(&self.0, events)], None) {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                done => return done,
            }
        }
    }
}

impl Read for Patient {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.until_done(PollFlags::IN, |file| file.read(buf))
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(PollFlags::OUT, |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the file that is meant, if it is not one of the own streams.
fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| *path != Path::new("-"))
}

fn own(stream: BorrowedFd<'_>) -> io::Result<File> {
    Ok(stream.try_clone_to_owned()?.into())
}
