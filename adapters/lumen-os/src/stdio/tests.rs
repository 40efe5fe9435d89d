//! Every kind of stream: no call blocks, and the shared description keeps its flags.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::fs::fcntl_getfl;

use super::*;

fn would_block<T: std::fmt::Debug>(result: io::Result<T>) -> bool {
    result.unwrap_err().kind() == io::ErrorKind::WouldBlock
}

/// Makes the streams of a pipe, in the usual way or as if the pipe could not be opened anew.
fn pipe(way: Way) -> (Stdin, Stdout, OwnedFd, OwnedFd) {
    let (read, write) = std::io::pipe().unwrap();
    let (read, write) = (OwnedFd::from(read), OwnedFd::from(write));
    let stdin = Stdin::new(read.try_clone().unwrap()).unwrap();
    let stdout = Stdout::new(write.try_clone().unwrap()).unwrap();
    assert_eq!((stdin.way, stdout.way), (Way::Own, Way::Own));
    if way == Way::Own {
        return (stdin, stdout, read, write);
    }
    let stdin = Stdin { fd: read.try_clone().unwrap(), way, pollable: true };
    let stdout = Stdout { fd: write.try_clone().unwrap(), way, pollable: true, is_own: false };
    (stdin, stdout, read, write)
}

#[test]
fn pipes_never_block_and_keep_their_flags() {
    for way in [Way::Own, Way::PollFirst] {
        let (stdin, stdout, read, write) = pipe(way);
        let mut buf = [0; 100_000];
        assert!(stdin.is_pollable() && stdout.is_pollable());
        assert!(would_block(stdin.read(&mut buf)));
        let mut written = 0;
        let full = loop {
            match stdout.write(&buf) {
                Ok(len) => written += len,
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(written, 65536);
        while written > 0 {
            written -= stdin.read(&mut buf).unwrap();
        }
        assert!(would_block(stdin.read(&mut buf)));
        for fd in [&read, &write] {
            assert!(!fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK));
        }
        drop(write);
        stdout.finish().unwrap();
        assert_eq!(stdin.read(&mut buf).unwrap(), 0);
    }
}

#[test]
fn a_pipe_of_our_own_can_also_be_waited_for_and_stays_as_it_is() {
    let (stdin, stdout, read, _write) = pipe(Way::Own);
    let waiting = stdin.to_waiting().unwrap();
    assert!(!fcntl_getfl(&waiting).unwrap().contains(OFlags::NONBLOCK));
    let reader = std::thread::spawn(move || {
        let mut buf = [0; 8];
        rustix::io::read(&waiting, &mut buf).map(|len| buf[..len].to_vec())
    });
    assert!(would_block(stdin.read(&mut [0; 8])));
    stdout.write(b"word").unwrap();
    assert_eq!(reader.join().unwrap().unwrap(), b"word");
    assert!(!fcntl_getfl(&read).unwrap().contains(OFlags::NONBLOCK) && stdin.takes_all());
    let (stdin, ..) = pipe(Way::PollFirst);
    assert!(stdin.to_waiting().is_none() && !stdin.takes_all());
}

#[test]
fn writing_to_a_pipe_that_nobody_reads_is_an_error() {
    for way in [Way::Own, Way::PollFirst] {
        let (stdin, stdout, read, _write) = pipe(way);
        drop((stdin, read));
        assert_eq!(stdout.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}

#[test]
fn pipe_whose_reader_is_gone_already_is_taken_and_fails_on_writing() {
    let (read, write) = std::io::pipe().unwrap();
    drop(read);
    let stdout = Stdout::new(write.into()).unwrap();
    assert_eq!(stdout.write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn sockets_never_block_keep_their_flags_and_half_close() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let stdin = Stdin::new(ours.try_clone().unwrap().into()).unwrap();
    let stdout = Stdout::new(ours.try_clone().unwrap().into()).unwrap();
    assert_eq!((stdin.way, stdout.way), (Way::Socket, Way::Socket));
    let block = [7; 65536];
    assert!(would_block(stdin.read(&mut [0; 8])));
    let mut written = 0;
    let full = loop {
        match stdout.write(&block) {
            Ok(len) => written += len,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    assert!(!fcntl_getfl(&ours).unwrap().contains(OFlags::NONBLOCK));
    stdout.finish().unwrap();
    let mut all = Vec::new();
    theirs.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), written);
    theirs.write_all(b"still").unwrap();
    assert_eq!(stdin.read(&mut [0; 8]).unwrap(), 5);
    drop(theirs);
    assert_eq!(stdin.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn files_and_null_are_always_ready_and_not_pollable() {
    let path = std::env::temp_dir().join(format!("lumen-os-{}-stdio", std::process::id()));
    let mut file = File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let stdout = Stdout::new(file.try_clone().unwrap().into()).unwrap();
    assert!(!stdout.is_pollable());
    assert_eq!(stdout.write(&[b'x'; 5000]).unwrap(), PIPE_BUF);
    file.rewind().unwrap();
    let stdin = Stdin::new(file.try_clone().unwrap().into()).unwrap();
    assert!(!stdin.is_pollable());
    let mut buf = [0; 8192];
    assert_eq!(stdin.read(&mut buf).unwrap(), PIPE_BUF);
    assert_eq!(stdin.read(&mut buf).unwrap(), 0);

    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let stdin = Stdin::new(null.try_clone().unwrap().into()).unwrap();
    let stdout = Stdout::new(null.try_clone().unwrap().into()).unwrap();
    assert!(!stdin.is_pollable() && !stdout.is_pollable());
    assert_eq!(stdin.read(&mut buf).unwrap(), 0);
    assert_eq!(stdout.write(b"gone").unwrap(), 4);
}
