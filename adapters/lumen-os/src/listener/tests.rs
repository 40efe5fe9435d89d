//! Who gets the path, who does not, and what is left behind.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder of this test's own, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("lumen-listener-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn the_socket_and_its_directory_are_private() {
    let scratch = Scratch::new();
    let path = scratch.path("made/for/it/lumen.sock");
    let listener = Listener::bind(&path).unwrap();
    let socket = std::fs::symlink_metadata(&path).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
    let lock = scratch.path("made/for/it/lumen.sock.lock");
    assert_eq!(std::fs::metadata(&lock).unwrap().mode() & 0o777, 0o600);
    drop(listener);
    assert!(!path.exists() && lock.exists());
}

#[test]
fn a_client_is_known_by_its_user() {
    let scratch = Scratch::new();
    let path = scratch.path("s");
    let listener = Listener::bind(&path).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let _client = UnixStream::connect(&path).unwrap();
    let accepted = listener.accept().unwrap();
    assert_eq!(accepted.uid, own_uid());
    assert_eq!(u32::try_from(accepted.pid).unwrap(), std::process::id());
}

#[test]
fn a_socket_for_all_can_be_reached_whatever_the_umask_says() {
    let scratch = Scratch::new();
    let path = scratch.path("made/s");
    let listener = Listener::bind_for_all(&path).unwrap();
    assert_eq!(std::fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o666);
    assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o711, 0o711);
    let lock = std::fs::metadata(scratch.path("made/s.lock")).unwrap();
    assert_eq!(lock.mode() & 0o777, 0o600);
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn a_live_owner_keeps_its_path() {
    let scratch = Scratch::new();
    let path = scratch.path("s");
    let owner = Listener::bind(&path).unwrap();
    assert!(matches!(Listener::bind(&path), Err(ListenError::InUse { .. })));
    assert!(UnixStream::connect(&path).is_ok(), "the owner's socket is still there");
    drop(owner);
    drop(Listener::bind(&path).unwrap());
}

#[test]
fn a_stale_socket_is_replaced() {
    let scratch = Scratch::new();
    let path = scratch.path("s");
    // What a killed process leaves: the file, and nobody behind it.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let listener = Listener::bind(&path).unwrap();
    assert!(UnixStream::connect(listener.path()).is_ok());
}

#[test]
fn a_socket_served_by_a_stranger_is_not_taken() {
    let scratch = Scratch::new();
    let path = scratch.path("s");
    let stranger = UnixListener::bind(&path).unwrap();
    assert!(matches!(Listener::bind(&path), Err(ListenError::InUse { .. })));
    assert!(UnixStream::connect(&path).is_ok());
    drop(stranger);
}

#[test]
fn what_is_no_socket_is_not_removed() {
    let scratch = Scratch::new();
    let path = scratch.path("s");
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(Listener::bind(&path), Err(ListenError::NotASocket { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    let link = scratch.path("l");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(Listener::bind(&link), Err(ListenError::NotASocket { .. })));
}

#[test]
fn somebody_elses_socket_is_not_removed_at_the_end() {
    let scratch = Scratch::new();
    let path = scratch.path("s");
    let listener = Listener::bind(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(listener);
    assert!(path.exists());
    drop(other);
}

#[test]
fn a_long_path_is_refused_before_anything_is_made() {
    let scratch = Scratch::new();
    let path = scratch.path(&format!("new/{}", "x".repeat(120)));
    assert!(matches!(Listener::bind(&path), Err(ListenError::PathTooLong { .. })));
    assert!(!scratch.path("new").exists());
}

/// Each step of `bind` that can be made to fail from outside, and what is open afterwards: nothing.
#[test]
fn a_failed_step_leaves_no_descriptor() {
    let scratch = Scratch::new();
    let held = scratch.path("held");
    let _owner = Listener::bind(&held).unwrap();
    let file = scratch.path("file");
    std::fs::write(&file, "").unwrap();
    let lock_is_a_directory = scratch.path("d");
    std::fs::create_dir(scratch.path("d.lock")).unwrap();
    let stranger = scratch.path("stranger");
    let _stranger = UnixListener::bind(&stranger).unwrap();
    let below_a_file = file.join("s");
    let before = open_descriptors();
    for _ in 0..100 {
        for path in [&held, &file, &lock_is_a_directory, &stranger, &below_a_file] {
            assert!(Listener::bind(path).is_err(), "{path:?}");
        }
    }
    // Other tests of this process open and close some at the same time, but not five hundred.
    assert!(open_descriptors() < before + 100, "{before} before, {} after", open_descriptors());
}
