//! A process that takes its own standard streams: this test program, started a second time.

use std::io::Read as _;

use lumen_os::stdio::{Stdin, Stdout};
use lumen_os::{CommandSpec, spawn};
use rustix::event::{PollFd, PollFlags, poll};

/// Runs in the second process only, where standard input and output are pipes.
#[test]
#[ignore = "started by the other test"]
fn second_process() {
    let stdin = Stdin::own().unwrap();
    let stdout = Stdout::own().unwrap();
    assert_eq!(stdin.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    stdout.write(b"<hello>").unwrap();
    stdout.finish().unwrap();
    let mut rest = String::new();
    std::io::stdin().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "go on");
}

#[test]
fn finished_output_ends_before_the_process_does() {
    let program = std::env::current_exe().unwrap();
    let spec = CommandSpec::new(program).args(["--exact", "second_process", "--ignored", "--nocapture"]);
    let child = spawn(&spec).unwrap();
    let mut output = Vec::new();
    let mut buf = [0; 4096];
    loop {
        match rustix::io::read(&child.stdout, &mut buf) {
            Ok(0) => break,
            Ok(len) => output.extend_from_slice(&buf[..len]),
            Err(_) => drop(poll(&mut [PollFd::new(&child.stdout, PollFlags::IN)], None).unwrap()),
        }
    }
    assert!(String::from_utf8(output).unwrap().ends_with("<hello>"));
    assert_eq!(child.process.try_exit(), None, "its output has ended, it has not");
    rustix::io::write(&child.stdin, b"go on").unwrap();
    drop(child.stdin);
    poll(&mut [PollFd::new(&child.process, PollFlags::IN)], None).unwrap();
    assert_eq!(child.process.try_exit(), Some(lumen_proto::Exit::Code(0)));
}
