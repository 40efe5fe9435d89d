//! Stories that look at the whole process are told in one of their own.

use std::process::Command;

use crate::teller::Log;

const ALONE: &str = "CONFORMANCE_ALONE";
const MARK: &str = "told alone: ";

/// Tells `story` in a process in which nothing else happens.
pub fn alone(log: &Log, story: impl FnOnce(&Log)) {
    if std::env::var_os(ALONE).is_some() {
        let inner = Log::new("");
        story(&inner);
        for line in inner.text().lines() {
            println!("{MARK}{line}");
        }
        // The transcript is compared by whoever started this process.
        std::process::exit(0);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &log.test, "--nocapture", "--test-threads=1"]).env(ALONE, "1");
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} alone: {}\n{told}\n{complaints}", log.test, output.status);
    for line in told.lines() {
        // The harness may have begun a line of its own.
        if let Some((_, line)) = line.split_once(MARK) {
            log.line(line);
        }
    }
}
