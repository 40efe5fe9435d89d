//! Alone in its process, because it counts all that the process has.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use lumen_os::{CommandSpec, Stderr, spawn};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn children() -> String {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()).collect()
}

#[test]
fn fifty_starts_leave_no_descriptor_and_no_process() {
    let once = |cycle: usize| {
        let spec = match cycle % 5 {
            0 => CommandSpec::new("/no/such/program"),
            1 => CommandSpec::new("/bin/sh").cwd("/no/such/dir"),
            2 => CommandSpec::new("/bin/sh").args(["-c", "kill -9 $$"]),
            3 => CommandSpec::new("/bin/sh").args(["-c", "sleep 1000 & sleep 1000"]),
            _ => CommandSpec::new("/bin/cat"),
        };
        let child = spawn(&spec.stderr(Stderr::Ignore));
        assert_eq!(child.is_ok(), cycle % 5 > 1);
    };
    once(4);
    let before = descriptors();
    (0..50).for_each(once);
    assert_eq!(descriptors(), before);
    assert_eq!(children(), "");
}
