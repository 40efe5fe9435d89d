//! Runs a command in between: `child_tee [--in FILE] [--out FILE] -- COMMAND ARGS..`
//!
//! What comes on standard input goes to the command, what the command writes goes to standard output, and each
//! byte is written to the file before it is passed on, so a file never lacks what the other side has seen. Exits as
//! the command did; a signal counts as 128 more than its number.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio, exit};
use std::thread;

fn main() {
    let mut args = std::env::args_os().skip(1);
    let (mut into, mut out) = (None, None);
    let program = loop {
        let arg = args.next().unwrap_or_else(|| fail("no command"));
        let file = match arg.to_str() {
            Some("--") => break args.next().unwrap_or_else(|| fail("no command after --")),
            Some("--in") => &mut into,
            Some("--out") => &mut out,
            _ => fail("usage: child_tee [--in FILE] [--out FILE] -- COMMAND ARGS.."),
        };
        let path = args.next().unwrap_or_else(|| fail("a file is missing"));
        *file = Some(File::create(path).unwrap_or_else(|error| fail(&error.to_string())));
    };
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| fail(&error.to_string()));
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { fail("no pipes") };
    // Not joined: it may sit in a read when the command has ended.
    thread::spawn(move || copy(io::stdin(), stdin, into));
    copy(stdout, io::stdout(), out);
    let status = child.wait().unwrap_or_else(|error| fail(&error.to_string()));
    exit(status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1))
}

fn fail(message: &str) -> ! {
    eprintln!("child_tee: {message}");
    exit(64)
}

/// Copies until either side ends; dropping `to` closes it.
fn copy(mut from: impl Read, mut to: impl Write, mut file: Option<File>) {
    let mut buf = [0; 65536];
    loop {
        let len = match from.read(&mut buf) {
            Ok(len @ 1..) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return,
        };
        let bytes = &buf[..len];
        if let Some(file) = &mut file
            && let Err(error) = file.write_all(bytes)
        {
            fail(&error.to_string());
        }
        if to.write_all(bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
