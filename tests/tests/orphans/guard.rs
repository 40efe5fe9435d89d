//! A command below a guard is the same as without: how it starts, what it gets, how it ends.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use lumen_os::{Child, CommandSpec, Process, Stderr, spawn};
use lumen_proto::{Exit, Signal};
use lumen_tests::procs::{Mark, children, lumen, wait_readable};

const LIMIT: Duration = Duration::from_secs(60);

fn sh(script: &str) -> CommandSpec {
    CommandSpec::new("/bin/sh").args(["-c", script, "sh"]).stderr(Stderr::Ignore)
}

fn guarded(spec: CommandSpec) -> CommandSpec {
    spec.guarded_by(lumen(), "guard")
}

fn read_all(fd: OwnedFd) -> String {
    rustix::io::ioctl_fionbio(&fd, false).unwrap();
    let mut text = String::new();
    std::fs::File::from(fd).read_to_string(&mut text).unwrap();
    text
}

fn wait(process: &Process) -> Exit {
    assert!(wait_readable(process, LIMIT));
    process.try_exit().expect("readable is ended")
}

/// The guard, which is no part of the public interface: the parent of the command.
fn guard_of(process: &Process) -> u32 {
    let own = children(std::process::id()).into_iter().map(|(pid, _)| pid);
    own.into_iter().find(|&pid| children(pid).iter().any(|(child, _)| *child == process.id())).unwrap()
}

#[test]
fn it_ends_as_the_command_does() {
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("exit 255", Exit::Code(255)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("ulimit -c 0; kill -SEGV $$", Exit::Signal(11)),
        // To the whole group, which is the guard's.
        ("trap '' TERM; kill -TERM 0; exit 3", Exit::Code(3)),
        ("kill -USR1 0; sleep 1000", Exit::Signal(10)),
    ] {
        let mut child = spawn(&guarded(sh(script))).unwrap();
        assert_eq!(wait(&child.process), exit, "{script}");
        assert_eq!(child.process.try_exit(), Some(exit), "{script}");
        assert_eq!(child.process.end(), exit, "{script}");
        assert_eq!(child.process.try_exit(), Some(exit), "{script}");
    }
}

#[test]
fn it_ends_as_it_is_told_to() {
    let mut child =
        spawn(&guarded(sh("trap 'exit 5' TERM; echo; while :; do sleep 1000 & wait; done"))).unwrap();
    assert!(wait_readable(&child.stdout, LIMIT));
    assert_eq!(child.process.try_exit(), None);
    child.process.signal(Signal::Terminate);
    assert_eq!(wait(&child.process), Exit::Code(5));
    assert_eq!(child.process.end(), Exit::Code(5));

    let child = spawn(&guarded(sh("exec sleep 1000"))).unwrap();
    child.process.signal(Signal::Kill);
    assert_eq!(wait(&child.process), Exit::Signal(9));

    let mut child = spawn(&guarded(sh("exec sleep 1000"))).unwrap();
    assert_eq!(child.process.end(), Exit::Signal(9));
}

#[test]
fn what_cannot_be_started_is_told_in_the_same_words() {
    let folder = std::env::temp_dir().join(format!("lumen-guard-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let script = folder.join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let closed = folder.join("closed");
    std::fs::write(&closed, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let specs: [&dyn Fn() -> CommandSpec; 10] = [
        &|| CommandSpec::new("no-such-program-of-lumen"),
        &|| CommandSpec::new("/no/such/program"),
        &|| CommandSpec::new("sh").env("PATH", "/no/such/directory"),
        &|| CommandSpec::new("").arg("x"),
        &|| CommandSpec::new("/bin/sh").cwd("/no/such/dir"),
        &|| CommandSpec::new(&script),
        &|| CommandSpec::new("./script").cwd(&folder),
        &|| CommandSpec::new(&closed),
        &|| CommandSpec::new(&folder),
        &|| CommandSpec::new("/bin/sh").arg("a\0b"),
    ];
    for spec in specs {
        let bare = spawn(&spec()).unwrap_err();
        let below = spawn(&guarded(spec())).unwrap_err();
        assert_eq!((below.to_string(), below.open_error()), (bare.to_string(), bare.open_error()));
        assert_eq!(format!("{below:?}"), format!("{bare:?}"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_wrong_with_a_guard_is_not_said_of_the_command() {
    for (guard, words) in [("/no/such/guard", "its guard"), ("/bin/true", "its guard has ended")] {
        let error = spawn(&sh("exit 0").guarded_by(guard, "guard")).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.open_error().kind, lumen_proto::OpenErrorKind::Other, "{error}");
    }
}

/// Descriptors, group, signals, directory, environment, arguments: as a command sees them itself.
#[test]
fn it_starts_as_without() {
    let script = "cd /proc/self/fd && echo *; cat /proc/self/status | grep -E '^(Sig(Blk|Ign|Cgt)|Umask|NoNewPrivs)'; \
                  cd - >/dev/null; pwd; printf '%s.' \"$0\" \"$@\"; env | sort | grep -v ^_=; ulimit -a";
    let run = |spec: CommandSpec| {
        let spec = spec.args(["a b", "", "--", "-x", "--help"]).env("A", "").env("B", "b c").cwd("/tmp");
        read_all(spawn(&spec).unwrap().stdout)
    };
    let bare = run(sh(script));
    assert!(bare.contains("SigIgn") && bare.contains("/tmp"), "{bare}");
    assert_eq!(run(guarded(sh(script))), bare);
    assert_eq!(run(guarded(sh(script)).env_clear()), run(sh(script).env_clear()));
}

#[test]
fn its_streams_end_when_the_commands_do() {
    // The end of its input.
    let child = spawn(&guarded(CommandSpec::new("/bin/cat"))).unwrap();
    drop(child.stdin);
    assert_eq!(wait(&child.process), Exit::Code(0));
    assert_eq!(read_all(child.stdout), "");
    // The end of its output, while it lives.
    let Child { stdin, stdout, stderr, mut process } =
        spawn(&guarded(sh("exec >&- 2>&-; read x; exit 4"))).unwrap();
    assert_eq!(read_all(stdout), "");
    assert_eq!(read_all(stderr.unwrap()), "");
    assert_eq!(process.try_exit(), None);
    drop(stdin);
    assert_eq!(wait(&process), Exit::Code(4));
    assert_eq!(process.end(), Exit::Code(4));
    // Nobody reads its input any more.
    let child = spawn(&guarded(sh("exec <&-; echo; read x; sleep 1000"))).unwrap();
    assert!(wait_readable(&child.stdout, LIMIT));
    assert_eq!(rustix::io::write(&child.stdin, b"x"), Err(rustix::io::Errno::PIPE));
}

/// What a command leaves running may go on until the owner is done with it, and not longer.
#[test]
fn the_rest_of_the_tree_outlives_the_command_but_not_the_owner() {
    let mark = Mark::new();
    let (name, value) = mark.pair();
    let child =
        spawn(&guarded(sh("exec 3<&0; (read x; echo $x; exec sleep 1000) <&3 & exit 6")).env(name, value))
            .unwrap();
    assert_eq!(wait(&child.process), Exit::Code(6));
    rustix::io::write(&child.stdin, b"heard\n").unwrap();
    assert!(wait_readable(&child.stdout, LIMIT));
    let mut line = [0; 16];
    let len = rustix::io::read(&child.stdout, &mut line).unwrap();
    assert_eq!(&line[..len], b"heard\n");
    assert!(!mark.processes().is_empty());
    drop(child);
    assert_eq!(mark.processes(), [0; 0]);
}

/// A server may start thousands of helpers in its life that it does not wait for.
#[test]
fn orphans_are_buried() {
    let script = "for i in 1 2 3 4 5 6 7 8 9; do sh -c 'sleep 0 &'; done; echo; exec sleep 1000";
    let child = spawn(&guarded(sh(script))).unwrap();
    assert!(wait_readable(&child.stdout, LIMIT));
    let guard = guard_of(&child.process);
    let deadline = Instant::now() + LIMIT;
    while children(guard).len() > 1 {
        assert!(Instant::now() < deadline, "{:?}", children(guard));
        std::thread::yield_now();
    }
}

/// Nobody is missed while new ones are being started.
#[test]
fn a_tree_that_grows_is_ended() {
    let mark = Mark::new();
    let (name, value) = mark.pair();
    let script = "trap '' TERM HUP; grow() { while :; do setsid sleep 1000 & sleep 0.01; done; }; grow & grow & echo; wait";
    let mut child = spawn(&guarded(sh(script)).env(name, value)).unwrap();
    assert!(wait_readable(&child.stdout, LIMIT));
    while mark.processes().len() < 20 {
        std::thread::yield_now();
    }
    assert_eq!(child.process.end(), Exit::Signal(9));
    assert_eq!(mark.processes(), [0; 0]);
}
