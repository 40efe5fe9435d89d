//! Alone in its process, because it counts all that the process has.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use lumen_os::{CommandSpec, Stderr, spawn};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The processes whose parent is this one, zombies too, each by the line that the system has on it.
fn children() -> Vec<String> {
    let parent = std::process::id().to_string();
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    // A process may go while it is looked at.
    let stats = all.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    // `pid (name) state parent ..`; the name may hold anything.
    stats
        .filter(|stat| {
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            rest.split_whitespace().nth(1) == Some(&parent)
        })
        .collect()
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
    let seen = spawn(&CommandSpec::new("/bin/cat").stderr(Stderr::Ignore)).unwrap();
    assert_eq!(children().len(), 1, "what is looked for is found");
    drop(seen);
    let before = descriptors();
    (0..50).for_each(once);
    assert_eq!(descriptors(), before);
    assert_eq!(children(), [""; 0]);
}
