//! `lumen mux` as a process, and clients of it that speak JSON lines over its Unix socket.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::procs::{Mark, lumen, sibling, wait_exit};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of its own, in which sockets and files of one test are.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder.
    ///
    /// # Panics
    /// If it cannot be made.
    #[expect(clippy::new_without_default, reason = "each one differs")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lumen-muxed-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Returns the path that a name has in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The same as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the words that start `child_server`.
pub fn child_server(options: &[&str]) -> Vec<OsString> {
    std::iter::once(sibling("child_server").into()).chain(options.iter().map(OsString::from)).collect()
}

/// A `lumen mux` that serves a socket of its own. Dropping it kills all that it has started.
#[derive(Debug)]
pub struct MuxProcess {
    child: Child,
    mark: Mark,
    scratch: Scratch,
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

/// How a mux ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// All of its standard error.
    pub stderr: String,
    /// Processes that it left behind.
    pub left: Vec<u32>,
    /// The socket is still there.
    pub has_socket: bool,
}

impl MuxProcess {
    /// Starts it and waits until it serves.
    ///
    /// # Panics
    /// If it does not serve.
    pub fn start(options: &[&str], server: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self::start_with(options, server, &[])
    }

    /// The same with these variables in its environment.
    ///
    /// # Panics
    /// If it does not serve.
    pub fn start_with(
        options: &[&str],
        server: impl IntoIterator<Item = impl Into<OsString>>,
        env: &[(&str, &str)],
    ) -> Self {
        let scratch = Scratch::new();
        let mark = Mark::new();
        let mut command = Command::new(lumen());
        command.arg("mux").arg("--socket").arg(scratch.path("s")).args(options).arg("--");
        command.args(server.into_iter().map(Into::into));
        // What another test's server minded is nothing for this one.
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME").env_remove("RUST_LOG");
        command.envs(env.iter().copied());
        mark.put_on(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("lumen starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let said = Arc::new(Mutex::new(String::new()));
        let mut line = String::new();
        while !line.starts_with("lumen: ready, serving ") {
            line.clear();
            let len = stderr.read_line(&mut line).expect("text");
            add(&said, &line);
            assert!(len > 0, "it does not serve: {}", text_of(&said));
        }
        let heard = Arc::clone(&said);
        let listener = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while stderr.read_until(b'\n', &mut bytes).is_ok_and(|len| len > 0) {
                add(&heard, &String::from_utf8_lossy(&bytes));
                bytes.clear();
            }
        });
        Self { child, mark, scratch, said, listener: Some(listener) }
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it has ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is there");
    }

    /// Waits for its end, and for that of all it has started.
    ///
    /// # Panics
    /// If it does not end.
    pub fn finish(mut self, limit: Duration) -> Ended {
        assert!(wait_exit(self.child.id(), limit), "it does not end: {}", self.stderr());
        let code = self.child.wait().expect("it has ended").code();
        let left = self.mark.wait_gone(limit);
        if let (true, Some(listener)) = (left.is_empty(), self.listener.take()) {
            let _ = listener.join();
        }
        Ended { code, stderr: self.stderr(), left, has_socket: self.socket().exists() }
    }

    /// Ends it by SIGTERM; asserts that it does so in order and leaves nothing.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn end(self) -> Ended {
        self.signal(Signal::TERM);
        let ended = self.finish(PATIENCE);
        assert_eq!((ended.code, ended.left.len(), ended.has_socket), (Some(0), 0, false), "{ended:?}");
        ended
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The socket that it serves.
    pub fn socket(&self) -> PathBuf {
        self.scratch.path("s")
    }

    /// The folder of its socket, for further files.
    pub const fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// What it has said on standard error so far.
    pub fn stderr(&self) -> String {
        text_of(&self.said)
    }

    /// A further client.
    ///
    /// # Panics
    /// If it cannot connect.
    pub fn client(&self) -> Client {
        Client::connect(&self.socket()).expect("it serves")
    }

    /// How things stand, by its own account.
    ///
    /// # Panics
    /// If it does not tell.
    pub fn status(&self) -> Value {
        let mut client = self.client();
        client.ask(r#"{"jsonrpc":"2.0","id":"status","method":"lumen/status"}"#)["result"].take()
    }

    /// Asks how things stand again and again, until they stand as wanted.
    ///
    /// # Panics
    /// If they do not come to that.
    #[track_caller]
    pub fn wait_status(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let status = self.status();
            if is_wanted(&status) {
                return status;
            }
            assert!(std::time::Instant::now() < deadline, "it stays as it is: {status}");
            std::thread::yield_now();
        }
    }

    /// All living processes that belong to it, itself included.
    pub fn processes(&self) -> Vec<u32> {
        self.mark.processes()
    }

    /// The living processes of a program that it has started, directly or not.
    pub fn processes_of(&self, program: &str) -> Vec<u32> {
        let is_it = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.ends_with(program))
        };
        self.mark.processes().into_iter().filter(is_it).collect()
    }
}

impl Drop for MuxProcess {
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

fn add(said: &Mutex<String>, text: &str) {
    said.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
}

fn text_of(said: &Mutex<String>) -> String {
    said.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A client that speaks JSON lines.
#[derive(Debug)]
pub struct Client {
    write: UnixStream,
    read: BufReader<UnixStream>,
}

impl Client {
    /// Connects to a socket.
    ///
    /// # Errors
    /// If nobody serves it.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Self::over(UnixStream::connect(path)?)
    }

    /// Speaks over a socket that is connected.
    ///
    /// # Errors
    /// As the socket.
    pub fn over(write: UnixStream) -> io::Result<Self> {
        write.set_read_timeout(Some(PATIENCE))?;
        write.set_write_timeout(Some(PATIENCE))?;
        let read = BufReader::new(write.try_clone()?);
        Ok(Self { write, read })
    }

    /// Sends a line.
    ///
    /// # Panics
    /// If that is refused.
    #[track_caller]
    pub fn say(&mut self, line: &str) {
        self.try_say(line).expect("it is taken");
    }

    /// The same, for one that may have been sent away.
    ///
    /// # Errors
    /// As the socket.
    pub fn try_say(&mut self, line: &str) -> io::Result<()> {
        self.write.write_all(format!("{line}\n").as_bytes())
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// As the socket.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write.write_all(bytes)
    }

    /// Returns the next line without its end; `None` at the end of the stream.
    ///
    /// # Errors
    /// As the socket, also when nothing comes for [`PATIENCE`].
    pub fn try_hear(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        if self.read.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        line.pop();
        Ok(Some(line))
    }

    /// Waits until the first bytes of a line are there, and keeps them.
    ///
    /// # Errors
    /// As the socket.
    pub fn try_hear_some(&mut self) -> io::Result<usize> {
        Ok(self.read.fill_buf()?.len())
    }

    /// Returns the next line as bytes.
    ///
    /// # Panics
    /// If none comes.
    #[track_caller]
    pub fn line(&mut self) -> Vec<u8> {
        self.try_hear().expect("something comes").expect("the stream has not ended")
    }

    /// Returns the next message.
    ///
    /// # Panics
    /// If none comes.
    #[track_caller]
    pub fn hear(&mut self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// Sends a line and returns the next message.
    ///
    /// # Panics
    /// If none comes.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> Value {
        self.say(line);
        self.hear()
    }

    /// Shakes hands as a client that can do nothing.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    #[track_caller]
    pub fn greeted(self) -> Self {
        self.greeted_with("{}", "2025-06-18")
    }

    /// Shakes hands with these capabilities, for this revision.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    #[track_caller]
    pub fn greeted_with(mut self, capabilities: &str, revision: &str) -> Self {
        let answer = self.ask(&initialize("0", capabilities, revision));
        assert!(answer["id"] == 0 && answer["result"].is_object(), "{answer}");
        self.say(INITIALIZED);
        self
    }

    /// Says that nothing more will be sent.
    ///
    /// # Panics
    /// If the socket is broken.
    pub fn close_input(&self) {
        self.write.shutdown(Shutdown::Write).expect("it is connected");
    }

    /// Closes the input and returns what still comes until the end of the stream.
    ///
    /// # Panics
    /// If the stream does not end.
    #[track_caller]
    pub fn rest(mut self) -> Vec<Value> {
        self.close_input();
        let mut rest = Vec::new();
        while let Some(line) = self.try_hear().expect("the stream ends") {
            rest.push(serde_json::from_slice(&line).expect("JSON"));
        }
        rest
    }
}

/// What a client says after the handshake.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A first request.
pub fn initialize(id: &str, capabilities: &str, revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    )
}

/// A call of a tool, with these arguments.
pub fn call(id: &str, tool: &str, arguments: &str) -> String {
    request(id, "tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#))
}

/// A request; all parts are JSON as it is to be sent.
pub fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A notification.
pub fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}
