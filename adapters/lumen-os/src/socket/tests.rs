//! Connections over both families, and each way in which they fail.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use lumen_proto::OpenErrorKind;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::net::sockopt::tcp_nodelay;

use super::*;

fn socket_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("lumen-os-{}-{name}", std::process::id()))
}

fn talk(ours: &OwnedFd, theirs: &OwnedFd) {
    let mut buf = [0; 16];
    assert!(fcntl_getfl(ours).unwrap().contains(OFlags::NONBLOCK));
    assert_eq!(recv(ours.as_fd(), &mut buf).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert_eq!(send(theirs.as_fd(), b"hello").unwrap(), 5);
    let mut fds = [rustix::event::PollFd::new(ours, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, None).unwrap();
    assert_eq!(recv(ours.as_fd(), &mut buf).unwrap(), 5);
    shutdown_write(theirs.as_fd());
    rustix::event::poll(&mut fds, None).unwrap();
    assert_eq!(recv(ours.as_fd(), &mut buf).unwrap(), 0);
}

#[test]
fn unix_sockets_connect_and_refuse() {
    let path = socket_path("unix");
    let listener = UnixListener::bind(&path).unwrap();
    let ours = connect_unix(&path).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    talk(&ours, &stream_from(theirs.into()).unwrap());

    drop(listener);
    let refused = connect_unix(&path).unwrap_err();
    assert_eq!(refused.open_error().kind, OpenErrorKind::Refused, "{refused}");
    std::fs::remove_file(&path).unwrap();
    let missing = connect_unix(&path).unwrap_err();
    assert_eq!(missing.open_error().kind, OpenErrorKind::NotFound, "{missing}");
    assert!(missing.to_string().contains(&path.display().to_string()), "{missing}");
}

#[test]
fn longest_path_is_taken_and_one_more_is_refused_by_name() {
    let dir = std::env::temp_dir();
    let name = |len: usize| dir.join("p".repeat(len - dir.as_os_str().len() - 1));
    let longest = name(MAX_UNIX_PATH);
    assert_eq!(longest.as_os_str().len(), MAX_UNIX_PATH);
    let missing = connect_unix(&longest).unwrap_err();
    assert_eq!(missing.open_error().kind, OpenErrorKind::NotFound, "{missing}");
    let long = connect_unix(&name(MAX_UNIX_PATH + 1)).unwrap_err();
    assert!(matches!(long, ConnectError::PathTooLong { len: 108, .. }), "{long}");
    assert!(long.to_string().contains("108 bytes is longer than 107"), "{long}");
}

#[test]
fn tcp_connects_without_delay_and_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let ours = connect_tcp(&address).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let theirs = stream_from(theirs.into()).unwrap();
    assert!(tcp_nodelay(&ours).unwrap() && tcp_nodelay(&theirs).unwrap());
    talk(&ours, &theirs);

    // A port below all that are handed out, so that no other test can be listening there.
    let refused = connect_tcp("127.0.0.1:1").unwrap_err();
    assert_eq!(refused.open_error().kind, OpenErrorKind::Refused, "{refused}");
    assert!(connect_tcp("no port here").is_err());
}

#[test]
fn peer_that_is_gone_is_an_error_not_a_signal() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(theirs);
    assert_eq!(send(ours.as_fd(), b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
