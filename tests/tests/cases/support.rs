//! One session with `lumen` on pipes: nothing here waits without a deadline, and nothing sleeps.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lumen_tests::procs::{Mark, lumen, sibling, wait_exit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};

/// A session that takes longer hangs.
pub const LIMIT: Duration = Duration::from_secs(60);

pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The way from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `lumen connect`, JSON on both sides, no probe.
    Connect,
    /// The same with a probe that the server does not know.
    Probing,
    /// `lumen wrap`, with a client that speaks JSON.
    Wrap,
    /// `lumen connect -- lumen wrap`: frames in the middle.
    Both,
}

/// Makes one test for each way, and each by its own name.
macro_rules! ways {
    ($($case:ident: $($name:ident = $way:ident),+;)+) => {
        $($(#[test] fn $name() { $case($crate::support::Way::$way); })+)+
    };
}
pub(crate) use ways;

impl Way {
    /// Returns the command that puts this way before a server.
    pub fn command(self, server: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        self.command_with(&[], server)
    }

    /// The same with options for the `lumen` that starts the server.
    pub fn command_with(
        self,
        options: &[&str],
        server: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Command {
        let mut command = Command::new(lumen());
        match self {
            Self::Connect => command.args(["connect", "--negotiate", "off"]),
            Self::Probing => command.arg("connect"),
            Self::Wrap => command.arg("wrap"),
            Self::Both => {
                command.args(["connect", "--probe-timeout", "30000", "--"]).arg(lumen()).arg("wrap")
            }
        };
        command.args(options).arg("--").args(server.into_iter().map(Into::into));
        // What one test's server minded is nothing for the next one.
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
        command
    }

    pub fn start(self, server: &[&str]) -> Session {
        Session::start(self.command(child_server(server)))
    }
}

/// Returns the words that start `child_server`.
pub fn child_server(options: &[&str]) -> Vec<OsString> {
    std::iter::once(sibling("child_server").into()).chain(options.iter().map(OsString::from)).collect()
}

/// Returns what `child_server` itself says to these lines: what every way has to deliver.
pub fn direct(options: &[&str], lines: &[String]) -> Vec<Vec<u8>> {
    let mut command = Command::new(sibling("child_server"));
    command.args(options);
    let mut session = Session::start(command);
    session.send(lines);
    session.close_input();
    session.finish().lines
}

/// A path that nothing has, in a folder of its own.
pub fn temp(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("lumen-cases-{}-{count}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

pub fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params}).to_string()
}

pub fn ping(id: impl Into<Value>) -> String {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"}).to_string()
}

pub fn pong(id: impl Into<Value>) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id.into()).into_bytes()
}

pub fn parsed(line: &[u8]) -> Value {
    serde_json::from_slice(line)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line[..line.len().min(300)])))
}

/// A running command with pipes on all three streams.
pub struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    to_write: VecDeque<u8>,
    /// The client's end of the input broke.
    pub is_broken: bool,
    read: Vec<u8>,
    /// How much of `read` was handed out.
    taken: usize,
    said: Vec<u8>,
    mark: Mark,
    deadline: Instant,
    /// It had ended when that was last looked at.
    is_over: bool,
}

/// What a session left.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Whole lines that were not taken before, and what stands after the last line feed if it is anything.
    pub lines: Vec<Vec<u8>>,
    /// All of standard error.
    pub stderr: String,
}

impl Session {
    /// Starts a command, marked, with pipes.
    pub fn start(mut command: Command) -> Self {
        let mark = Mark::new();
        mark.put_on(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::spawn(command, mark)
    }

    /// Starts a command whose standard error is full, and is never read. Keep the descriptor.
    pub fn start_unheard(mut command: Command) -> (Self, OwnedFd) {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        nonblocking(write.as_fd(), true);
        while rustix::io::write(&write, &[b'.'; 4096]).is_ok() {}
        while rustix::io::write(&write, b".").is_ok() {}
        nonblocking(write.as_fd(), false);
        let mark = Mark::new();
        mark.put_on(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(write);
        (Self::spawn(command, mark), read)
    }

    fn spawn(mut command: Command, mark: Mark) -> Self {
        let mut child = command.spawn().unwrap();
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        for fd in [stdin.as_ref().map(|fd| fd.as_fd()), stdout.as_ref().map(|fd| fd.as_fd())] {
            nonblocking(fd.unwrap(), true);
        }
        if let Some(stderr) = &stderr {
            nonblocking(stderr.as_fd(), true);
        }
        Self {
            child,
            stdin,
            stdout,
            stderr,
            to_write: VecDeque::new(),
            is_broken: false,
            read: Vec::new(),
            taken: 0,
            said: Vec::new(),
            mark,
            deadline: Instant::now() + LIMIT,
            is_over: false,
        }
    }

    /// Writes lines, reading meanwhile, until all are written.
    pub fn send<T: AsRef<[u8]>>(&mut self, lines: &[T]) {
        for line in lines {
            self.to_write.extend(line.as_ref());
            self.to_write.push_back(b'\n');
        }
        self.pump(|session| session.to_write.is_empty());
    }

    /// The same without ever reading.
    pub fn send_deaf<T: AsRef<[u8]>>(&mut self, lines: &[T]) {
        let stdout = self.stdout.take();
        self.send(lines);
        self.stdout = stdout;
    }

    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Closes the client's reading end.
    pub fn close_output(&mut self) {
        self.stdout = None;
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for so many more bytes of output.
    pub fn wait_bytes(&mut self, count: usize) {
        let wanted = self.read.len() + count;
        self.pump(|session| session.read.len() >= wanted);
    }

    /// Waits for the next line.
    pub fn line(&mut self) -> Vec<u8> {
        let mut searched = self.taken;
        let mut end = None;
        self.pump(|session| {
            end = session.read[searched..].iter().position(|&byte| byte == b'\n').map(|at| searched + at);
            searched = session.read.len();
            end.is_some()
        });
        let line = self.read[self.taken..end.unwrap()].to_vec();
        self.taken = end.unwrap() + 1;
        line
    }

    pub fn json(&mut self) -> Value {
        parsed(&self.line())
    }

    /// Waits for the exit; asserts that nothing it started has outlived it.
    pub fn finish(mut self) -> Finished {
        let pid = self.child.id();
        self.pump(|_| wait_exit(pid, Duration::ZERO));
        let left = self.mark.wait_gone(LIMIT);
        assert!(left.is_empty(), "still there: {left:?}");
        while self.read_all() {}
        let code = self.child.wait().unwrap().code();
        let mut lines: Vec<_> =
            self.read[self.taken..].split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        if lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        Finished { code, lines, stderr: String::from_utf8_lossy(&self.said).into_owned() }
    }

    /// Moves bytes in all directions until `is_done`.
    fn pump(&mut self, mut is_done: impl FnMut(&Self) -> bool) {
        loop {
            self.write_all();
            while self.read_all() {}
            if is_done(self) {
                return;
            }
            self.wait();
        }
    }

    fn wait(&mut self) {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let pidfd = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        // It may have ended since it was last asked whether all is done; then that is asked once more.
        let was_over = std::mem::replace(&mut self.is_over, wait_exit(self.child.id(), Duration::ZERO));
        let is_over = self.is_over && was_over;
        let ends = [
            Some((pidfd.as_fd(), PollFlags::IN)),
            self.stdout.as_ref().map(|fd| (fd.as_fd(), PollFlags::IN)),
            self.stderr.as_ref().map(|fd| (fd.as_fd(), PollFlags::IN)),
            self.stdin.as_ref().filter(|_| !self.to_write.is_empty()).map(|fd| (fd.as_fd(), PollFlags::OUT)),
        ];
        let mut fds: Vec<_> =
            ends.into_iter().flatten().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        let ready = poll(&mut fds, Some(&Timespec::try_from(left).unwrap())).unwrap();
        assert!(
            ready > 0 && !(is_over && self.stdout.is_none()),
            "nothing more comes (exited: {is_over}); unwritten {}, output {:?}, standard error {}",
            self.to_write.len(),
            String::from_utf8_lossy(&self.read[self.read.len().saturating_sub(500)..]),
            String::from_utf8_lossy(&self.said),
        );
    }

    fn write_all(&mut self) {
        while let (Some(stdin), false) = (&mut self.stdin, self.to_write.is_empty()) {
            match stdin.write(self.to_write.as_slices().0) {
                Ok(count) => drop(self.to_write.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_broken = true;
                    self.stdin = None;
                }
            }
        }
        if self.stdin.is_none() {
            self.to_write.clear();
        }
    }

    /// Reads what is there, of both; `false` if that was nothing.
    fn read_all(&mut self) -> bool {
        take(&mut self.stdout, &mut self.read) | take(&mut self.stderr, &mut self.said)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // After a failed assertion.
        for pid in self.mark.processes() {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = self.child.wait();
    }
}

fn take<R: Read>(from: &mut Option<R>, to: &mut Vec<u8>) -> bool {
    let mut block = [0; 65536];
    let Some(reader) = from else { return false };
    match reader.read(&mut block) {
        Ok(0) => *from = None,
        Ok(count) => {
            to.extend_from_slice(&block[..count]);
            return true;
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) => panic!("read: {error}"),
    }
    false
}

fn nonblocking(fd: BorrowedFd<'_>, is_on: bool) {
    rustix::io::ioctl_fionbio(fd, is_on).unwrap();
}
