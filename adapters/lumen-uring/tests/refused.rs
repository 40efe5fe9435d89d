//! Where the kernel lets nobody have a ring, that is said, with what to use instead.

use std::collections::BTreeMap;
use std::io;

use lumen_uring::{Client, CommandSpec, Server};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// The number of the system call, the same everywhere.
const IO_URING_SETUP: i64 = 425;

#[test]
fn no_ring_is_said_with_what_to_use_instead() {
    let thread = std::thread::spawn(|| {
        // For this thread only, as a container's filter does for all.
        let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let refused = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().cast_unsigned());
        let rules = BTreeMap::from([(IO_URING_SETUP, Vec::new())]);
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch).unwrap();
        seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();

        let error = Client::spawn(CommandSpec::new("/bin/true")).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(lumen_uring::is_available().unwrap_err().to_string(), error.to_string());
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let server = Server::socket(ours).unwrap_err();
        assert_eq!(server.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(server.to_string(), error.to_string());
        error.to_string()
    });
    let words = thread.join().unwrap();
    for part in ["io_uring", "Operation not permitted", "lumen-std", "lumen-tokio"] {
        assert!(words.contains(part), "{words:?} does not say {part:?}");
    }
}
