//! Helpers for suites on real processes: find what was built, find what was left behind, wait without sleeping.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Returns the path of the `lumen` binary of the profile that this test was built in, and builds it first: cargo
/// does not know that a test of another package needs it, and an old one would prove nothing.
///
/// # Panics
/// If it cannot be built.
pub fn lumen() -> &'static Path {
    static LUMEN: OnceLock<PathBuf> = OnceLock::new();
    LUMEN.get_or_init(|| {
        build();
        let path = target_dir().join(format!("lumen{}", std::env::consts::EXE_SUFFIX));
        assert!(path.exists(), "{} was not built", path.display());
        path
    })
}

/// Returns the path of a binary of this package, such as a child program.
///
/// # Panics
/// If it was not built; cargo builds them for every integration test of this package.
pub fn sibling(name: &str) -> PathBuf {
    let path = target_dir().join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// The folder of the profile: `target/debug` for `target/debug/deps/test-0123`.
fn target_dir() -> PathBuf {
    let mut path = std::env::current_exe().expect("a test knows its own path");
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path
}

fn build() {
    let profile = target_dir();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "lumen-cli", "--bin", "lumen", "--target-dir"]);
    command.arg(profile.parent().expect("a profile lies in a target folder"));
    if profile.ends_with("release") {
        command.arg("--release");
    }
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let status = command.status().expect("cargo starts");
    assert!(status.success(), "lumen-cli does not build: {status}");
}

/// Returns how many descriptors a process has open.
///
/// # Errors
/// If it is gone.
pub fn descriptors(pid: u32) -> io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// Returns the children of a process with their state letters, zombies (`Z`) included.
pub fn children(pid: u32) -> Vec<(u32, char)> {
    let parent = pid.to_string();
    processes()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name stands in parentheses and may hold anything, also parentheses.
            let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
            let state = fields.next()?.chars().next()?;
            (fields.next()? == parent).then_some((pid, state))
        })
        .collect()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A mark in the environment that every descendant inherits, wherever it went and whoever adopted it.
#[derive(Debug)]
pub struct Mark {
    value: String,
}

impl Mark {
    const NAME: &str = "LUMEN_TEST_MARK";

    /// Makes a mark that nobody else has.
    #[expect(clippy::new_without_default, reason = "each one differs")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { value: format!("{}-{count}-mark", std::process::id()) }
    }

    /// Marks a command that is to be started.
    pub fn put_on<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(Self::NAME, &self.value)
    }

    /// Returns name and value, for interfaces that take an environment otherwise.
    pub fn pair(&self) -> (&'static str, &str) {
        (Self::NAME, &self.value)
    }

    /// Returns the living processes that carry it. A zombie carries nothing.
    pub fn processes(&self) -> Vec<u32> {
        let wanted = format!("{}={}", Self::NAME, self.value).into_bytes();
        processes()
            .filter(|pid| {
                fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|pair| pair == wanted))
            })
            .collect()
    }

    /// Blocks until no living process carries it, and returns those that still do after `limit`.
    pub fn wait_gone(&self, limit: Duration) -> Vec<u32> {
        let deadline = Instant::now() + limit;
        loop {
            let left = self.processes();
            let Some(&first) = left.first() else { return left };
            if !wait_exit(first, deadline.saturating_duration_since(Instant::now())) {
                return self.processes();
            }
        }
    }
}

/// Blocks until a process has exited (reaped or not); `false` if that takes longer than `limit`.
///
/// # Panics
/// If the kernel has no pidfds.
pub fn wait_exit(pid: u32, limit: Duration) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => wait_readable(fd, limit),
        Err(rustix::io::Errno::SRCH) => true,
        Err(error) => panic!("pidfd_open: {error}"),
    }
}

/// Blocks until a descriptor can be read (or is at its end); `false` if that takes longer than `limit`.
pub fn wait_readable(fd: impl AsFd, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("a sensible time");
        match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Reads from a pipe until `enough` says so, the end, or `limit`; returns everything read and whether it was
/// enough.
///
/// # Panics
/// If reading fails.
pub fn read_until<R: io::Read + AsFd>(
    from: &mut R,
    limit: Duration,
    mut enough: impl FnMut(&[u8]) -> bool,
) -> (Vec<u8>, bool) {
    let deadline = Instant::now() + limit;
    let mut bytes = Vec::new();
    let mut block = [0; 4096];
    loop {
        if enough(&bytes) {
            return (bytes, true);
        }
        if !wait_readable(&*from, deadline.saturating_duration_since(Instant::now())) {
            return (bytes, false);
        }
        match from.read(&mut block) {
            Ok(0) => return (bytes, false),
            Ok(count) => bytes.extend_from_slice(&block[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => panic!("read: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::process::Stdio;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_marked_grandchild_is_found_although_its_parent_is_gone() {
        let mark = Mark::new();
        let script = "sleep 600 & echo $!";
        let mut shell = Command::new("sh");
        let mut child = mark.put_on(shell.args(["-c", script]).stdout(Stdio::piped())).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (line, enough) = read_until(&mut stdout, LIMIT, |bytes| bytes.ends_with(b"\n"));
        assert!(enough);
        let sleeper: u32 = String::from_utf8(line).unwrap().trim().parse().unwrap();
        assert!(wait_exit(child.id(), LIMIT));
        assert_eq!(children(std::process::id()).iter().find(|(pid, _)| *pid == child.id()).unwrap().1, 'Z');
        child.wait().unwrap();
        assert_eq!(mark.processes(), [sleeper]);
        assert_eq!(mark.wait_gone(Duration::ZERO), [sleeper]);
        assert!(descriptors(sleeper).unwrap() >= 3);

        assert!(Command::new("kill").arg(sleeper.to_string()).status().unwrap().success());
        assert!(mark.wait_gone(LIMIT).is_empty());
        assert!(!read_until(&mut stdout, LIMIT, |_| false).1);
    }
}
