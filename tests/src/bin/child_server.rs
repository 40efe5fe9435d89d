//! A small MCP server on standard input and output, written by hand, with every fault that a suite asks for.
//!
//! It answers `initialize` (with the version it was asked for), `ping`, `tools/list` (the tool `echo`) and
//! `tools/call`: `echo` gives the arguments back, byte by byte as they came, in `structuredContent`, and as text in
//! `content`; `env` gives the value of the variable `name`; `notify` sends `count` notifications first; `big` gives a
//! text of `bytes` bytes. Lines that are no JSON object are skipped, which is how most servers treat a probe. At the
//! end of its input it exits with 0.
//!
//! Everything after `--` is left alone. The options:
//!
//! | option | fault |
//! |---|---|
//! | `--banner TEXT` | prints this line before anything else |
//! | `--noise-every` | prints a line of noise before each answer |
//! | `--noise-lines N` | prints N lines of noise before the first answer |
//! | `--crlf` | ends its lines with CR LF, and puts an empty line before each |
//! | `--byte-by-byte` | writes each byte by itself |
//! | `--unicode` | puts text of two, three and four byte characters into the results of tools |
//! | `--result-bytes N` | makes the text in the results of tools N bytes long |
//! | `--stderr-flood N` | writes N bytes to standard error before the first answer, in lines of 80 |
//! | `--stderr-no-newline` | the same without line feeds |
//! | `--die-mid-line-at ID` | writes half of the answer to this id (as spelled) and exits with 1 |
//! | `--crash-after N` | answers N requests, then exits with 1 on the next |
//! | `--exit-after N` | answers N requests, then exits with 0 at once |
//! | `--exit-at-start CODE` | exits at once |
//! | `--exit-on-probe` | exits with 1 at a first line that does not start with a brace |
//! | `--deaf-on-probe` | answers nothing after such a line |
//! | `--stray-on-probe` | answers such a line with one error whose id is null |
//! | `--silent` | reads and never answers |
//! | `--ignore-term` | ignores SIGTERM and the end of its input |
//! | `--ignore-eof` | ignores the end of its input |
//! | `--on-eof FILE` | writes this file at the end of its input, and exits only then |
//! | `--on-term FILE` | writes this file at SIGTERM and exits with 0; ignores the end of its input |
//! | `--answer-when FILE` | answers nothing until this file exists |
//! | `--start-when FILE` | does nothing, not even reading, until this file exists |
//! | `--linger-grandchild FILE` | starts a process that holds its standard output, and writes that one's id to the file |
//! | `--write-first N` | writes a notification of N bytes before it reads anything |
//! | `--answer-after-eof` | keeps its answers until the end of its input |
//! | `--record FILE` | adds a line `start` to the file, and every line that it reads |
//! | `--start-after MS` | does nothing, not even reading, for so long |
//! | `--flood-on-probe N` | writes N bytes to standard error at a first line that does not start with a brace |
//! | `--ack-only` | answers each probe as if it spoke LUMEN, and skips the frames that follow |
//! | `--modern` | answers `server/discover` too |
//! | `--modern-only` | answers it, and refuses `initialize` |
//! | `--exit-on METHOD` | exits with 1 at such a request |
//! | `--exit-on-extension` | exits with 1 at a first request that lists extensions |
//! | `--unanswered METHOD` | never answers such a request |
//! | `--refuse METHOD` | answers such a request with an error |
//! | `--no-id` | leaves the id out of its answers |
//! | `--twice` | gives every answer twice |
//! | `--unasked ID` | answers this id (as spelled) too, once |
//! | `--progress TOKEN` | reports progress for this token (as spelled) before each answer to a list |
//! | `--late-progress` | reports progress for the token it was given after it has answered |
//! | `--invalid-utf8` | puts a byte that is no UTF-8 into its answers to lists |
//! | `--lose-at-eof` | leaves what was asked unanswered if its input ends soon after |
//! | `--exit-code N` | exits with this code at the end of its input |
//! | `--argv-to FILE` | writes its arguments, directory and chosen environment to the file as JSON |
//! | `--env NAME` | chooses a variable for that; may be repeated |

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// What `--unicode` puts into results.
const UNICODE: &str = "é—漢😀";

/// The error for a request that it does not know.
const NO_METHOD: &str = r#"{"code":-32601,"message":"Method not found"}"#;

/// The members of an object as they were spelled.
type Members<'a> = BTreeMap<String, &'a RawValue>;

#[derive(Debug, Default)]
struct Options {
    banner: Option<String>,
    noise_every: bool,
    noise_lines: usize,
    crlf: bool,
    byte_by_byte: bool,
    unicode: bool,
    result_bytes: Option<usize>,
    stderr_flood: usize,
    stderr_no_newline: bool,
    die_mid_line_at: Option<String>,
    crash_after: Option<usize>,
    exit_after: Option<usize>,
    exit_at_start: Option<i32>,
    exit_on_probe: bool,
    deaf_on_probe: bool,
    stray_on_probe: bool,
    silent: bool,
    ignore_term: bool,
    ignore_eof: bool,
    on_eof: Option<String>,
    on_term: Option<String>,
    answer_when: Option<String>,
    start_when: Option<String>,
    linger_grandchild: Option<String>,
    write_first: Option<usize>,
    answer_after_eof: bool,
    record: Option<String>,
    start_after: u64,
    flood_on_probe: usize,
    ack_only: bool,
    modern: bool,
    modern_only: bool,
    exit_on: Option<String>,
    exit_on_extension: bool,
    unanswered: Option<String>,
    refuse: Option<String>,
    no_id: bool,
    twice: bool,
    unasked: Option<String>,
    progress: Option<String>,
    late_progress: bool,
    invalid_utf8: bool,
    lose_at_eof: bool,
    exit_code: i32,
    argv_to: Option<String>,
    env: Vec<String>,
}

impl Options {
    fn parse() -> Self {
        let mut options = Self::default();
        let mut args = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
        while let Some(arg) = args.next() {
            let mut text = || args.next().unwrap_or_else(|| fail(&format!("{arg} needs a value")));
            match arg.as_str() {
                "--" => break,
                "--banner" => options.banner = Some(text()),
                "--noise-every" => options.noise_every = true,
                "--noise-lines" => options.noise_lines = number(&text()),
                "--crlf" => options.crlf = true,
                "--byte-by-byte" => options.byte_by_byte = true,
                "--unicode" => options.unicode = true,
                "--result-bytes" => options.result_bytes = Some(number(&text())),
                "--stderr-flood" => options.stderr_flood = number(&text()),
                "--stderr-no-newline" => options.stderr_no_newline = true,
                "--die-mid-line-at" => options.die_mid_line_at = Some(text()),
                "--crash-after" => options.crash_after = Some(number(&text())),
                "--exit-after" => options.exit_after = Some(number(&text())),
                "--exit-at-start" => options.exit_at_start = Some(number(&text())),
                "--exit-on-probe" => options.exit_on_probe = true,
                "--deaf-on-probe" => options.deaf_on_probe = true,
                "--stray-on-probe" => options.stray_on_probe = true,
                "--silent" => options.silent = true,
                "--ignore-term" => options.ignore_term = true,
                "--ignore-eof" => options.ignore_eof = true,
                "--on-eof" => options.on_eof = Some(text()),
                "--on-term" => options.on_term = Some(text()),
                "--answer-when" => options.answer_when = Some(text()),
                "--start-when" => options.start_when = Some(text()),
                "--linger-grandchild" => options.linger_grandchild = Some(text()),
                "--write-first" => options.write_first = Some(number(&text())),
                "--answer-after-eof" => options.answer_after_eof = true,
                "--record" => options.record = Some(text()),
                "--start-after" => options.start_after = number(&text()),
                "--flood-on-probe" => options.flood_on_probe = number(&text()),
                "--ack-only" => options.ack_only = true,
                "--modern" => options.modern = true,
                "--modern-only" => options.modern_only = true,
                "--exit-on" => options.exit_on = Some(text()),
                "--exit-on-extension" => options.exit_on_extension = true,
                "--unanswered" => options.unanswered = Some(text()),
                "--refuse" => options.refuse = Some(text()),
                "--no-id" => options.no_id = true,
                "--twice" => options.twice = true,
                "--unasked" => options.unasked = Some(text()),
                "--progress" => options.progress = Some(text()),
                "--late-progress" => options.late_progress = true,
                "--invalid-utf8" => options.invalid_utf8 = true,
                "--lose-at-eof" => options.lose_at_eof = true,
                "--exit-code" => options.exit_code = number(&text()),
                "--argv-to" => options.argv_to = Some(text()),
                "--env" => options.env.push(text()),
                _ => fail(&format!("unknown option {arg}")),
            }
        }
        options
    }
}

fn fail(message: &str) -> ! {
    eprintln!("child_server: {message}");
    exit(64)
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| fail(&format!("{text} is no number")))
}

fn main() {
    let options = Options::parse();
    record(&options, b"start\n");
    if let Some(code) = options.exit_at_start {
        exit(code);
    }
    if options.ignore_term {
        // Whoever sets a flag with it no longer dies of it.
        signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::new(AtomicBool::new(false)))
            .unwrap_or_else(|error| fail(&error.to_string()));
    }
    if let Some(path) = options.on_term.clone() {
        let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM])
            .unwrap_or_else(|error| fail(&error.to_string()));
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                write_file(&path, "");
                exit(0);
            }
        });
    }
    if let Some(path) = &options.argv_to {
        let argv: Vec<_> =
            std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
        let env: BTreeMap<_, _> = options.env.iter().map(|name| (name, variable(name))).collect();
        let cwd = std::env::current_dir().ok();
        write_file(path, &json!({"argv": argv, "env": env, "cwd": cwd}).to_string());
    }
    if let Some(path) = &options.start_when {
        wait_for(path);
    }
    thread::sleep(Duration::from_millis(options.start_after));
    if let Some(path) = &options.linger_grandchild {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).stderr(Stdio::null());
        #[expect(clippy::zombie_processes, reason = "it is there to be left behind")]
        let grandchild = command.spawn().unwrap_or_else(|error| fail(&error.to_string()));
        write_file(path, &grandchild.id().to_string());
    }
    Server { options, is_first_line: true, answered: 0, kept: Vec::new(), is_spoilt: false }.run();
}

/// Adds to the file of `--record`.
fn record(options: &Options, line: &[u8]) {
    let Some(path) = &options.record else { return };
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line)).unwrap_or_else(|error| fail(&error.to_string()));
}

/// Writes a file that is whole as soon as it is there.
fn write_file(path: &str, text: &str) {
    let part = format!("{path}.part");
    fs::write(&part, text)
        .and_then(|()| fs::rename(&part, path))
        .unwrap_or_else(|error| fail(&error.to_string()));
}

/// Waits until a file is there; for ever if its folder is not.
fn wait_for(path: &str) {
    let path = Path::new(path);
    let folder = path.parent().unwrap_or(Path::new("."));
    let watched = inotify::init(CreateFlags::CLOEXEC).and_then(|watch| {
        inotify::add_watch(&watch, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        while !path.exists() {
            rustix::io::read(&watch, &mut [0; 4096])?;
        }
        Ok(())
    });
    match watched {
        Ok(()) => {}
        Err(Errno::NOENT) => loop {
            thread::park();
        },
        Err(error) => fail(&error.to_string()),
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

struct Server {
    options: Options,
    is_first_line: bool,
    answered: usize,
    kept: Vec<String>,
    /// The next line gets a byte that is no UTF-8.
    is_spoilt: bool,
}

impl Server {
    fn run(mut self) {
        if let Some(banner) = self.options.banner.take() {
            self.print(&banner);
        }
        if let Some(bytes) = self.options.write_first {
            self.print(&notification(&"x".repeat(bytes)));
        }
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        while stdin.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
            self.on_line(&line);
            line.clear();
        }
        for answer in std::mem::take(&mut self.kept) {
            self.print(&answer);
        }
        if let Some(path) = &self.options.on_eof {
            write_file(path, "");
        }
        if self.options.ignore_eof || self.options.ignore_term || self.options.on_term.is_some() {
            loop {
                thread::park();
            }
        }
        exit(self.options.exit_code);
    }

    fn on_line(&mut self, line: &[u8]) {
        record(&self.options, line);
        if self.options.ack_only && line.get(1) == Some(&0x0f) {
            self.write(b"\x2b\x10\x00{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n");
        }
        if std::mem::take(&mut self.is_first_line) && line.first() != Some(&b'{') {
            if self.options.exit_on_probe {
                exit(1);
            }
            if self.options.stray_on_probe {
                let error = r#"{"code":-32700,"message":"Parse error"}"#;
                self.print(&format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#));
            }
            self.flood(self.options.flood_on_probe);
            self.options.silent |= self.options.deaf_on_probe;
        }
        if self.options.silent {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Members<'_>>(line) else { return };
        let (Some(id), Some(method)) = (message.get("id"), string(&message, "method")) else { return };
        let params = members(&message, "params");
        let is = |option: &Option<String>| option.as_deref() == Some(method.as_str());
        let has_extension = members(&params, "capabilities").contains_key("extensions");
        if is(&self.options.exit_on) || (self.options.exit_on_extension && has_extension) {
            exit(1);
        }
        if is(&self.options.unanswered) {
            return;
        }
        if self.options.lose_at_eof && method != "initialize" && has_ended_soon() {
            exit(0);
        }
        let is_list = method.ends_with("/list");
        if let Some(token) = self.options.progress.clone().filter(|_| is_list) {
            self.print(&progress(&token));
        }
        let outcome = match method.as_str() {
            method if self.options.refuse.as_deref() == Some(method) => Err(NO_METHOD.to_owned()),
            "initialize" if self.options.modern_only => {
                Err(json!({"code": -32022, "message": "Unsupported protocol version"}).to_string())
            }
            "initialize" => Ok(initialized(&params)),
            "server/discover" if self.options.modern || self.options.modern_only => Ok(discovered()),
            "ping" => Ok("{}".to_owned()),
            "tools/list" => {
                Ok(json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}).to_string())
            }
            "tools/call" => self.call(&params),
            _ => Err(NO_METHOD.to_owned()),
        };
        let (member, body) = match &outcome {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        let stated = if self.options.no_id { String::new() } else { format!(r#""id":{id},"#) };
        self.is_spoilt = self.options.invalid_utf8 && is_list;
        self.answer(id.get(), &format!(r#"{{"jsonrpc":"2.0",{stated}"{member}":{body}}}"#));
        if let Some(id) = self.options.unasked.take() {
            self.print(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        }
        let token = members(&params, "_meta").get("progressToken").map(|token| token.get().to_owned());
        if let Some(token) = token.filter(|_| self.options.late_progress) {
            self.print(&progress(&token));
        }
    }

    fn call(&mut self, params: &Members<'_>) -> Result<String, String> {
        let arguments = members(params, "arguments");
        let given = params.get("arguments").map_or("{}", |arguments| arguments.get());
        let mut structured = "{}";
        let mut text = match string(params, "name").as_deref() {
            Some("echo") => {
                structured = given;
                string(&arguments, "text").unwrap_or_else(|| given.to_owned())
            }
            Some("env") => {
                let name = string(&arguments, "name").unwrap_or_default();
                variable(&name).unwrap_or_else(|| "(unset)".to_owned())
            }
            Some("notify") => {
                let count = arguments.get("count").and_then(|count| count.get().parse().ok()).unwrap_or(1);
                for index in 0..count {
                    self.print(&notification(&format!("number {index}")));
                }
                String::new()
            }
            Some("big") => {
                let bytes = arguments.get("bytes").and_then(|bytes| bytes.get().parse().ok()).unwrap_or(0);
                "b".repeat(bytes)
            }
            _ => return Err(json!({"code": -32602, "message": "Unknown tool"}).to_string()),
        };
        if self.options.unicode {
            text.push_str(UNICODE);
        }
        if let Some(len) = self.options.result_bytes {
            text = "r".repeat(len);
        }
        let content = json!([{"type": "text", "text": text}]);
        Ok(format!(r#"{{"content":{content},"structuredContent":{structured}}}"#))
    }

    fn answer(&mut self, id: &str, line: &str) {
        if let Some(path) = &self.options.answer_when {
            wait_for(path);
        }
        if self.answered == 0 {
            self.flood(self.options.stderr_flood);
            for index in 0..self.options.noise_lines {
                self.print(&format!("noise {index}"));
            }
        }
        if self.options.crash_after == Some(self.answered) {
            exit(1);
        }
        self.answered += 1;
        if self.options.noise_every {
            self.print("warn: {\"x\"");
        }
        if self.options.die_mid_line_at.as_deref() == Some(id) {
            let half = line.as_bytes().get(..line.len() / 2).unwrap_or_default();
            self.write(half);
            exit(1);
        }
        if self.options.answer_after_eof {
            self.kept.push(line.to_owned());
        } else {
            self.print(line);
        }
        if self.options.twice {
            self.print(line);
        }
        if self.options.exit_after == Some(self.answered) {
            exit(0);
        }
    }

    fn flood(&self, bytes: usize) {
        let mut text = vec![b'e'; bytes];
        if !self.options.stderr_no_newline {
            text.iter_mut().skip(79).step_by(80).for_each(|byte| *byte = b'\n');
        }
        let _ = io::stderr().write_all(&text);
    }

    fn print(&mut self, line: &str) {
        let line = if self.options.crlf { format!("\r\n{line}\r\n") } else { format!("{line}\n") };
        let mut bytes = line.into_bytes();
        if std::mem::take(&mut self.is_spoilt)
            && let Some(quote) = bytes.windows(5).position(|window| window == b"echo\"")
        {
            bytes.insert(quote, 0xff);
        }
        self.write(&bytes);
    }

    /// Ends the process if nobody listens.
    fn write(&self, bytes: &[u8]) {
        let step = if self.options.byte_by_byte { 1 } else { bytes.len().max(1) };
        let mut stdout = io::stdout().lock();
        for chunk in bytes.chunks(step) {
            if stdout.write_all(chunk).and_then(|()| stdout.flush()).is_err() {
                exit(1);
            }
        }
    }
}

fn initialized(params: &Members<'_>) -> String {
    let version = string(params, "protocolVersion").unwrap_or_else(|| "2025-06-18".to_owned());
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "child_server", "version": "1"},
    })
    .to_string()
}

fn discovered() -> String {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "child_server", "version": "1"},
        "ttlMs": 0,
        "cacheScope": "public",
    })
    .to_string()
}

fn progress(token: &str) -> String {
    let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#)
}

/// Returns whether nobody can write to standard input any more, now or a little later.
fn has_ended_soon() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    let soon = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    poll(&mut fds, Some(&soon)).is_ok_and(|ready| ready > 0)
}

fn notification(data: &str) -> String {
    let params = json!({"level": "info", "data": data});
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#)
}

fn string(members: &Members<'_>, name: &str) -> Option<String> {
    match serde_json::from_str(members.get(name)?.get()) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn members<'a>(members: &Members<'a>, name: &str) -> Members<'a> {
    members.get(name).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}
