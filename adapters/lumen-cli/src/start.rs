//! `connect --start`: has a socket served by a mux that is started detached, if nobody serves it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use lumen_os::detach::{self, Detached};
use lumen_os::{ConnectError, Turn, connect_unix};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tracing::{info, warn};

use crate::args::Connect;
use crate::exit::Exit;
use crate::log;
use crate::mux::status::{harmless, words as words_of};
use crate::report::say;

/// The first argument of the process that detaches a mux. It is no command for people, so the command line's parser does
/// not know it.
const WORD: &str = "detach";

/// How long a mux may take to serve, and to start its server, before it counts as not started.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How often it is looked whether somebody serves by now.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long whoever serves may take to say how it does. What is no mux need not know the question.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest answer to that, in bytes.
const MAX_ANSWER: u64 = 4 * 1024 * 1024;

/// Bytes of the end of the log that are quoted when a mux does not start.
const MAX_QUOTE: u64 = 2048;

/// Starts muxes for one socket.
#[derive(Debug)]
pub(crate) struct Starter {
    socket: PathBuf,
    log: PathBuf,
    words: Vec<OsString>,
    /// The server's command, as it is told of one that is served.
    command: Vec<String>,
    /// The last other command that people were told of.
    other: Option<Value>,
    env: Vec<(OsString, OsString)>,
    signals: OwnedFd,
}

/// What came of having the socket served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum There {
    /// Somebody serves it.
    Served,
    /// Somebody else is there, and takes long.
    Unready,
    /// There was a signal first.
    ToldToEnd,
}

/// What is at the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Served,
    /// Somebody is there, and starts, or ends.
    Unready,
    Nobody,
}

impl Starter {
    /// Makes one; it stops waiting when there is a signal.
    pub(crate) fn new(connect: &Connect, socket: &Path, signals: OwnedFd) -> Self {
        let server = &connect.server;
        let log = connect.log.clone().unwrap_or_else(|| beside(socket, ".log"));
        let option = |name: &str, value: &Path| {
            let mut word = OsString::from(name);
            word.push(value);
            word
        };
        let mut words = vec!["mux".into(), option("--socket=", socket), option("--log=", &log)];
        words.push(format!("--idle-exit={}", connect.idle_exit).into());
        words.extend(connect.child_per_session.then(|| "--child-per-session".into()));
        words.push(
            format!("--start-timeout={}", server.start_timeout().map_or(0, |limit| limit.as_secs())).into(),
        );
        words.extend(server.cwd.as_deref().map(|dir| option("--cwd=", dir)));
        words.push("--".into());
        let command = server.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.extend(server.command.iter().cloned());
        let env = server.env().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { socket: socket.to_owned(), log, words, command, other: None, env, signals }
    }

    /// Waits until somebody serves the socket and has its server started.
    ///
    /// # Errors
    /// Why nobody does, in words. The first line is for anybody; the others are the end of the log.
    pub(crate) fn ensure(&mut self) -> Result<There, String> {
        let socket = self.socket.display().to_string();
        let failed = |step: &str, error: io::Error| format!("cannot {step} for {socket}: {error}");
        let deadline = Instant::now() + START_LIMIT;
        let mut turn = None;
        let mut started: Option<(Detached, u64)> = None;
        loop {
            // Before the look at who is there: who has ended by then is not there for this reason.
            let has_ended = match &started {
                Some((mux, _)) => mux.has_ended().map_err(|error| failed("wait", error))?,
                None => false,
            };
            let seen = self.look()?;
            match seen {
                Seen::Served => return Ok(There::Served),
                Seen::Nobody if has_ended || started.is_none() => {
                    if self.is_our_turn(&mut turn).map_err(|error| failed("take the turn", error))? {
                        if let Some((_, from)) = started {
                            let quote = self.quote(from);
                            return Err(format!("the mux that was started for {socket} has ended{quote}"));
                        }
                        started = Some(self.start().map_err(|error| failed("start a mux", error))?);
                    }
                }
                Seen::Nobody | Seen::Unready => {}
            }
            if Instant::now() >= deadline {
                return match (seen, started) {
                    // Somebody else's, and perhaps as it should be.
                    (Seen::Unready, None) => Ok(There::Unready),
                    (_, started) => {
                        let quote = started.map_or_else(String::new, |(_, from)| self.quote(from));
                        Err(format!("nobody came to serve {socket} in {} s{quote}", START_LIMIT.as_secs()))
                    }
                };
            }
            if self.wait(started.as_ref().filter(|_| !has_ended)).map_err(|error| failed("wait", error))? {
                return Ok(There::ToldToEnd);
            }
        }
    }

    /// Takes the turn to start a mux, if it can be had. Returns whether it is ours and the path nobody's.
    fn is_our_turn(&self, turn: &mut Option<Turn>) -> io::Result<bool> {
        if turn.is_none() {
            *turn = Turn::try_take(&self.socket)?;
        }
        turn.as_ref().map_or(Ok(false), |turn| turn.is_owned().map(|is_owned| !is_owned))
    }

    /// Looks who is there, and asks whether its server is still being started.
    fn look(&mut self) -> Result<Seen, String> {
        let stream = match connect_unix(&self.socket) {
            Ok(fd) => UnixStream::from(fd),
            Err(ConnectError::Refused { source, .. })
                if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                return Ok(Seen::Nobody);
            }
            Err(error) => return Err(error.to_string()),
        };
        Ok(match ask(stream) {
            Ok(status) if is_starting(&status["result"]) => Seen::Unready,
            Ok(status) => {
                self.compare(&status["result"]["command"]);
                Seen::Served
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Seen::Served,
            Err(_) => Seen::Unready,
        })
    }

    /// Tells people once if another command than the one that they gave is served.
    fn compare(&mut self, served: &Value) {
        if !is_other(served, &self.command) || self.other.as_ref() == Some(served) {
            return;
        }
        let theirs = served.as_array().map(|words| words_of(words)).unwrap_or_default();
        warn!(
            "{} is served by a mux of another command, which is used: {}; the one that was given is not started: {}",
            self.socket.display(),
            harmless(&theirs),
            self.command.join(" ")
        );
        self.other = Some(served.clone());
    }

    /// Starts a mux. Returns also where its part of the log begins.
    fn start(&self) -> io::Result<(Detached, u64)> {
        let log = log::open(&self.log).map_err(|error| {
            io::Error::new(error.kind(), format!("its log {}: {error}", self.log.display()))
        })?;
        let from = log.metadata()?.len();
        let mut helper = Command::new("/proc/self/exe");
        helper.arg0("lumen").arg(WORD).args(&self.words).stderr(log);
        helper.envs(self.env.iter().map(|(name, value)| (name, value)));
        let mux = detach::spawn(&mut helper)?;
        info!(
            "started process {} to serve {}; its log is {}",
            mux.id(),
            self.socket.display(),
            self.log.display()
        );
        Ok((mux, from))
    }

    /// Waits a little, or until the mux has ended. Returns whether there is a signal.
    fn wait(&self, mux: Option<&(Detached, u64)>) -> io::Result<bool> {
        let ended: Option<BorrowedFd<'_>> = mux.and_then(|(mux, _)| mux.as_fd());
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        fds.extend(ended.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout = Timespec::try_from(LOOK_EVERY).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(fds.first().is_some_and(|signals| !signals.revents().is_empty()))
    }

    /// Returns the end of what was logged from there on, as the rest of a sentence.
    fn quote(&self, from: u64) -> String {
        let text = end_of(&self.log, from).unwrap_or_default();
        // It is the server's text: nothing in it is for a terminal to obey.
        let lines = text.lines().map(|line| line.replace(char::is_control, "\u{fffd}"));
        let lines: String = lines.map(|line| format!("\n  | {line}")).collect();
        format!("; its log is {}{lines}", self.log.display())
    }
}

/// Does the work of detaching, if this process was started for that.
pub(crate) fn try_run() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    Some(match detach::run("/proc/self/exe", words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!(
                "cannot detach: {error}; lumen does that by itself, there is no use for it by hand"
            ));
            Exit::Usage.into()
        }
    })
}

/// Asks how a mux does.
fn ask(mut stream: UnixStream) -> io::Result<Value> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"lumen/status\"}\n")?;
    let mut line = String::new();
    BufReader::new(stream).take(MAX_ANSWER).read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line).unwrap_or_default())
}

/// Returns whether a mux that says this may still find that it cannot start its server. A server of somebody else's, or for
/// clients of the other era, is nothing to wait for: it may never answer.
fn is_starting(status: &Value) -> bool {
    let servers = status["servers"].as_array().map_or(&[][..], Vec::as_slice);
    status["private"] != true
        && !servers.is_empty()
        && servers.iter().all(|server| server["state"] == "starting")
}

/// Returns whether a mux that tells of this command serves another one. One that does not tell is believed.
fn is_other(served: &Value, command: &[String]) -> bool {
    served.as_array().is_some_and(|served| served.iter().ne(command.iter()))
}

/// Reads the end of a file that may have been begun anew.
fn end_of(path: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        // Such as a terminal: people have read it there, and here somebody would have to type.
        return Ok(String::new());
    }
    let len = metadata.len();
    let from = if from > len { 0 } else { from };
    file.seek(SeekFrom::Start(from.max(len.saturating_sub(MAX_QUOTE))))?;
    let mut bytes = Vec::new();
    file.take(MAX_QUOTE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_command_is_one_of_other_words() {
        let given = ["npx", "a b"].map(String::from);
        assert!(!is_other(&json!(["npx", "a b"]), &given) && !is_other(&Value::Null, &given));
        for other in [json!(["npx", "a", "b"]), json!(["npx"]), json!(["npx", "a b", "c"]), json!([])] {
            assert!(is_other(&other, &given), "{other}");
        }
    }

    #[test]
    fn only_the_one_server_of_all_is_waited_for() {
        let status = |is_private: bool, states: &[&str]| {
            let servers: Vec<_> = states.iter().map(|state| json!({ "state": state })).collect();
            is_starting(&json!({"private": is_private, "servers": servers}))
        };
        assert!(status(false, &["starting"]));
        assert!(!status(false, &["running"]) && !status(false, &["backoff"]));
        assert!(!status(false, &["running", "starting"]) && !status(false, &["starting", "running"]));
        assert!(!status(true, &["starting"]) && !status(true, &["running", "starting"]));
        assert!(!status(true, &[]) && !is_starting(&Value::Null));
    }
}
