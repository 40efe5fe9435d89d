//! What was learned about servers that a probe hurts, kept in the user's cache directory for their next start.
//!
//! One small text file for each server, `lumen/no-probe/` and 32 hex digits below the cache directory. It says in
//! plain words what it is, why and when. Its name is made of the command with all its arguments and of the
//! program's path, size and time of change, so a server that was replaced is looked at anew. Arguments may be
//! secrets: the file does not have them.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::CommandSpec;

/// Verdicts that are kept; with one more the oldest goes. Costs one small file each.
pub const MAX_VERDICTS: usize = 1000;

/// The first line of every file.
const TITLE: &str = "lumen: do not probe this server\n";

const REMARK: &str = "\
After the probe of a start before it had to be started again, so it is asked for LUMEN in its first request instead.
Remove this file to have it probed again, or use `--negotiate probe`, which ignores it.
";

/// The verdicts of this user.
#[derive(Debug)]
pub struct Verdicts {
    folder: PathBuf,
}

impl Verdicts {
    /// Names the verdicts in the cache directory of the user: `$XDG_CACHE_HOME`, or `.cache` in `$HOME`. `None` if
    /// neither is an absolute path. Nothing is opened yet.
    pub fn of_user() -> Option<Self> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Self::below(&cache))
    }

    /// Names the verdicts in this cache directory.
    pub fn below(cache: &Path) -> Self {
        Self { folder: cache.join("lumen/no-probe") }
    }

    /// Returns the file which says that this server is not to be probed, if there is one.
    ///
    /// # Errors
    /// Folder or file belongs to somebody else, may be changed by others, or cannot be read.
    pub fn find(&self, command: &CommandSpec) -> io::Result<Option<PathBuf>> {
        match self.read(command) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other,
        }
    }

    /// Keeps that this server is not to be probed, and why, and returns the file.
    ///
    /// # Errors
    /// The program is not there, the folder belongs to somebody else, may be changed by others, or cannot be written.
    pub fn record(&self, command: &CommandSpec, why: &str) -> io::Result<PathBuf> {
        let program = Program::find(command)?;
        self.make_folder()?;
        let path = self.path(command, &program);
        let part = path.with_extension(format!("{}.part", std::process::id()));
        let text = format!(
            "{TITLE}{REMARK}\nprogram: {}\nwhy: {why}\nwhen: {}\n",
            program.path.display(),
            Utc::of(SystemTime::now())
        );
        let written = write_new(&part, &text).and_then(|()| fs::rename(&part, &path));
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written?;
        self.prune()?;
        Ok(path)
    }

    /// Removes what was kept about this server.
    ///
    /// # Errors
    /// There is nothing, or it cannot be removed.
    pub fn forget(&self, command: &CommandSpec) -> io::Result<()> {
        self.check_folder()?;
        fs::remove_file(self.path(command, &Program::find(command)?))
    }

    fn read(&self, command: &CommandSpec) -> io::Result<Option<PathBuf>> {
        self.check_folder()?;
        let path = self.path(command, &Program::find(command)?);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || !is_ours(&metadata) {
            return Err(refused(&path));
        }
        let mut title = String::new();
        file.take(TITLE.len() as u64).read_to_string(&mut title)?;
        Ok((title == TITLE).then_some(path))
    }

    fn path(&self, command: &CommandSpec, program: &Program) -> PathBuf {
        self.folder.join(format!("{:032x}", program.hash(command)))
    }

    fn make_folder(&self) -> io::Result<()> {
        let Some(own) = self.folder.parent() else { return Err(io::ErrorKind::NotFound.into()) };
        if let Some(cache) = own.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
            // In the cache of somebody else (of whom `sudo` was called by, say) a folder of ours would shut them out.
            if !is_ours(&fs::metadata(cache)?) {
                return Err(refused(cache));
            }
        }
        for folder in [own, &self.folder] {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        self.check_folder()
    }

    /// Nobody else may be able to put files in our folder.
    fn check_folder(&self) -> io::Result<()> {
        for folder in [self.folder.parent(), Some(self.folder.as_path())].into_iter().flatten() {
            let metadata = fs::symlink_metadata(folder)?;
            if !metadata.is_dir() || !is_ours(&metadata) {
                return Err(refused(folder));
            }
        }
        Ok(())
    }

    /// Removes the oldest files beyond the bound, whatever else there is of ours included.
    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.as_bytes().len() >= 32 && name.as_bytes().iter().take(32).all(u8::is_ascii_hexdigit) {
                // It may be gone by now.
                let Ok(metadata) = entry.metadata() else { continue };
                files.push(((metadata.mtime(), metadata.mtime_nsec()), entry.path()));
            }
        }
        let excess = files.len().saturating_sub(MAX_VERDICTS);
        files.sort_unstable();
        for (_, path) in files.iter().take(excess) {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }
}

/// The file that a command runs.
#[derive(Debug)]
struct Program {
    path: PathBuf,
    size: u64,
    changed: (i64, i64),
}

impl Program {
    /// Looks where the start will look.
    fn find(command: &CommandSpec) -> io::Result<Self> {
        let cwd = command.working_dir().unwrap_or(Path::new(""));
        let program = Path::new(command.program());
        if command.program().as_bytes().contains(&b'/') {
            return Self::at(&cwd.join(program));
        }
        let path = command.variable("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path);
        let found = folders.filter_map(|folder| Self::at(&cwd.join(folder).join(program)).ok()).next();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Takes what can be executed.
    fn at(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let metadata = fs::metadata(&path)?;
        if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { path, size: metadata.size(), changed: (metadata.mtime(), metadata.mtime_nsec()) })
    }

    /// FNV-1a of 128 bits, which is the same in every build. Each part is led by its length, so that no two
    /// commands are one text.
    fn hash(&self, command: &CommandSpec) -> u128 {
        let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        let mut add = |bytes: &[u8]| {
            for &byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
                hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            }
        };
        add(command.program().as_bytes());
        for arg in command.arguments() {
            add(arg.as_bytes());
        }
        add(self.path.as_os_str().as_bytes());
        for number in [self.size.cast_signed(), self.changed.0, self.changed.1] {
            add(&number.to_le_bytes());
        }
        hash
    }
}

impl CommandSpec {
    /// Returns a variable as the child will have it.
    fn variable(&self, name: &str) -> Option<std::ffi::OsString> {
        let given = self.env.iter().rev().find(|(given, _)| given == OsStr::new(name));
        match given {
            Some((_, value)) => Some(value.clone()),
            None if self.env_clear => None,
            None => std::env::var_os(name),
        }
    }
}

/// A moment as people write it, in seconds.
struct Utc {
    days: u64,
    seconds: u64,
}

impl Utc {
    fn of(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        Self { days: since / 86_400, seconds: since % 86_400 }
    }
}

impl std::fmt::Display for Utc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Years begin in March, so that the odd day is the last one; 719,468 days lie between that year 0 and 1970.
        let days = self.days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = era * 400 + year + carry;
        let (hour, minute, second) = (self.seconds / 3600, self.seconds / 60 % 60, self.seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let open = || -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
    };
    let mut file = match open() {
        // Of a process with our id that did not get to its end.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            open()?
        }
        other => other?,
    };
    file.write_all(text.as_bytes())
}

/// Returns whether it belongs to this user and nobody else may write it.
fn is_ours(metadata: &Metadata) -> bool {
    metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

fn refused(path: &Path) -> io::Error {
    let text = format!("{} is not this user's alone, or not what it should be", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

#[cfg(test)]
mod tests;
