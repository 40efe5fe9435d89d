//! Real processes: what they are given, how they end, and what they leave behind.
//!
//! Apart from the unit tests: a process that is just being started holds copies of all descriptors for a moment,
//! so in one process with these tests a closed socket might not be closed yet.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use lumen_os::{Child, CommandSpec, Drained, MAX_STDERR_TAIL, Stderr, StderrDrain, spawn};
use lumen_proto::{Exit, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

fn sh(script: &str) -> CommandSpec {
    CommandSpec::new("/bin/sh").args(["-c", script, "sh"]).stderr(Stderr::Ignore)
}

fn wait_for(fd: impl AsFd, events: PollFlags) {
    poll(&mut [PollFd::new(&fd, events)], None).unwrap();
}

fn read_until(fd: &OwnedFd, is_enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buf = [0; 4096];
    while !is_enough(&all) {
        match rustix::io::read(fd, &mut buf) {
            Ok(0) => break,
            Ok(len) => all.extend_from_slice(&buf[..len]),
            Err(Errno::AGAIN) => wait_for(fd, PollFlags::IN),
            Err(errno) => panic!("{errno}"),
        }
    }
    all
}

fn read_all(fd: &OwnedFd) -> Vec<u8> {
    read_until(fd, |_| false)
}

/// Follows a process that is not ours, by the number it printed.
fn follow(fd: &OwnedFd) -> OwnedFd {
    let line = read_until(fd, |bytes| bytes.ends_with(b"\n"));
    let pid: i32 = String::from_utf8(line).unwrap().trim().parse().unwrap();
    pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap()
}

#[test]
fn arguments_arrive_exactly() {
    let args = ["a b", "", "\"q'", "$HOME `id` $(id)", "*", "\\n", "é—漢😀", "--", "-x", "a\nb"];
    let child = spawn(&sh("printf '%s\\0' \"$@\"").args(args)).unwrap();
    let expected: String = args.iter().map(|arg| format!("{arg}\0")).collect();
    assert_eq!(String::from_utf8(read_all(&child.stdout)).unwrap(), expected);
}

#[test]
fn environment_is_inherited_overridden_empty_or_cleared() {
    let name =
        ["CARGO_MANIFEST_DIR", "HOME", "LANG"].into_iter().find(|name| std::env::var(name).is_ok()).unwrap();
    let script = &format!("printf '%s|' \"${{{name}-unset}}\" \"${{LUMEN_A-unset}}\" \"${{LUMEN_B-unset}}\"");
    let run = |spec: CommandSpec| String::from_utf8(read_all(&spawn(&spec).unwrap().stdout)).unwrap();
    let inherited = std::env::var(name).unwrap();
    assert_eq!(run(sh(script)), format!("{inherited}|unset|unset|"));
    let set = sh(script).env("LUMEN_A", "").env("LUMEN_B", "x y$z");
    assert_eq!(run(set), format!("{inherited}||x y$z|"));
    let replaced = sh(script).env(name, "other");
    assert_eq!(run(replaced), "other|unset|unset|");
    let cleared = sh(script).env_clear().env("LUMEN_A", "1");
    assert_eq!(run(cleared), "unset|1|unset|");
}

#[test]
fn working_directory_is_where_the_child_starts() {
    let child = spawn(&sh("pwd").cwd("/")).unwrap();
    assert_eq!(read_all(&child.stdout), b"/\n");
}

#[test]
fn exit_is_seen_before_it_is_buried_and_after() {
    let mut process = spawn(&sh("exit 7")).unwrap().process;
    wait_for(&process, PollFlags::IN);
    assert_eq!(process.try_exit(), Some(Exit::Code(7)));
    assert_eq!(process.try_exit(), Some(Exit::Code(7)), "looking must not bury it");
    assert_eq!(process.end(), Exit::Code(7));
    assert_eq!(process.end(), Exit::Code(7));
    assert_eq!(process.try_exit(), Some(Exit::Code(7)));
    process.signal(Signal::Terminate);
}

#[test]
fn running_child_has_no_exit_and_obeys_a_signal() {
    let mut process = spawn(&sh("exec sleep 1000")).unwrap().process;
    assert_eq!(process.try_exit(), None);
    process.signal(Signal::Terminate);
    wait_for(&process, PollFlags::IN);
    assert_eq!(process.end(), Exit::Signal(15));
}

#[test]
fn ended_child_takes_its_grandchildren_along() {
    for drop_only in [true, false] {
        let Child { stdout, mut process, .. } = spawn(&sh("sleep 1000 & echo $!; wait")).unwrap();
        let grandchild = follow(&stdout);
        if !drop_only {
            assert_eq!(process.end(), Exit::Signal(9));
        }
        drop(process);
        wait_for(&grandchild, PollFlags::IN);
        assert_eq!(read_all(&stdout), b"", "nobody holds the pipe open any more");
    }
}

#[test]
fn grandchildren_of_a_child_that_exited_are_ended_too() {
    let Child { stdout, mut process, .. } = spawn(&sh("sleep 1000 & echo $!")).unwrap();
    let grandchild = follow(&stdout);
    wait_for(&process, PollFlags::IN);
    assert_eq!(process.end(), Exit::Code(0));
    wait_for(&grandchild, PollFlags::IN);
}

#[test]
fn ended_child_is_no_zombie() {
    let process = spawn(&sh("exit 0")).unwrap().process;
    let pid = Pid::from_raw(process.id().try_into().unwrap()).unwrap();
    drop(process);
    assert_eq!(waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).unwrap_err(), Errno::CHILD);
}

#[test]
fn our_ends_do_not_block_and_the_childs_do() {
    let child = spawn(&sh("exec sleep 1000")).unwrap();
    let block = [0; 65536];
    let full = loop {
        if let Err(errno) = rustix::io::write(&child.stdin, &block) {
            break errno;
        }
    };
    assert_eq!(full, Errno::AGAIN);
    assert_eq!(rustix::io::read(&child.stdout, &mut [0; 1]).unwrap_err(), Errno::AGAIN);
    assert_eq!(rustix::io::read(child.stderr.as_ref().unwrap(), &mut [0; 1]).unwrap_err(), Errno::AGAIN);
    for fd in 0..3 {
        let info = fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", child.process.id())).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
        let flags = u32::from_str_radix(flags, 8).unwrap();
        assert_eq!(flags & OFlags::NONBLOCK.bits(), 0, "descriptor {fd}");
    }
}

#[test]
fn siblings_do_not_hold_each_others_pipes() {
    let first = spawn(&sh("exec cat")).unwrap();
    let second = spawn(&sh("exec cat")).unwrap();
    drop(first.stdin);
    wait_for(&first.process, PollFlags::IN);
    assert_eq!(first.process.try_exit(), Some(Exit::Code(0)));
    assert_eq!(second.process.try_exit(), None);
}

#[test]
fn each_child_leads_a_group_of_its_own() {
    let child = spawn(&sh("exec sleep 1000")).unwrap();
    let pid = Pid::from_raw(child.process.id().try_into().unwrap()).unwrap();
    assert_eq!(rustix::process::getpgid(Some(pid)).unwrap(), pid);
    let timeout = Duration::ZERO.try_into().unwrap();
    let ready = poll(&mut [PollFd::new(&child.process, PollFlags::IN)], Some(&timeout)).unwrap();
    assert_eq!(ready, 0, "a running process is not readable");
}

#[test]
fn flood_without_line_feeds_never_stops_the_child() {
    let spec = CommandSpec::new("/bin/sh")
        .args(["-c", "head -c 1000000 /dev/zero | tr '\\0' e >&2; echo done"])
        .stderr(Stderr::Ignore);
    let child = spawn(&spec).unwrap();
    let mut drain = StderrDrain::new(child.stderr.unwrap());
    let mut total = 0;
    loop {
        match drain.drain(|line| total += line.len()) {
            Drained::Ended => break,
            Drained::More => {}
            Drained::WouldBlock => wait_for(&drain, PollFlags::IN),
        }
    }
    assert_eq!(total, 1_000_000);
    assert_eq!(drain.finish(|_| {}).text().len(), MAX_STDERR_TAIL);
}
