//! Why there is no ring.

use std::io;

/// This process cannot have a ring: the kernel is older than Linux 5.19 or built without io_uring, or a seccomp filter or
/// the setting `kernel.io_uring_disabled` forbids it, or it ran out of descriptors or memory.
#[derive(Debug, thiserror::Error)]
#[error(
    "io_uring cannot be used here: {source}; use lumen-std or lumen-tokio instead, which do the same without it"
)]
pub struct Unavailable {
    /// What the system said.
    #[from]
    pub source: io::Error,
}

impl From<Unavailable> for io::Error {
    fn from(unavailable: Unavailable) -> Self {
        Self::new(unavailable.source.kind(), unavailable)
    }
}
