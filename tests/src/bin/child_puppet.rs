//! `child_puppet SOCKET`: a server that says what a test has it say, and tells what it is told.
//!
//! It connects to the test's Unix socket, copies its standard input there and what comes from there to its standard output.
//! When the test closes the connection it exits with 3, as after a crash; at the end of its input it tells that end, and exits
//! with 0 once the test has closed.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn main() {
    let path = std::env::args_os().nth(1).unwrap_or_default();
    let socket = UnixStream::connect(path).expect("the test listens");
    let to_test = socket.try_clone().expect("a descriptor");
    let has_ended = Arc::new(AtomicBool::new(false));
    let is_ending = Arc::clone(&has_ended);
    thread::spawn(move || {
        copy(io::stdin().lock(), &to_test);
        is_ending.store(true, Ordering::SeqCst);
        let _ = to_test.shutdown(Shutdown::Write);
    });
    copy(&socket, io::stdout().lock());
    exit(if has_ended.load(Ordering::SeqCst) { 0 } else { 3 });
}

/// Copies until either side ends, each piece at once.
fn copy(mut from: impl Read, mut to: impl Write) {
    let mut block = [0; 65536];
    while let Ok(count) = from.read(&mut block) {
        if count == 0 || to.write_all(&block[..count]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
