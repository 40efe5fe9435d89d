//! One waker for all who wait at the same driver, which knows only of one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Who wait, by a key that each picks. All are woken, whatever happens: who waits here waits for the same few bytes.
///
/// # Bounds
/// One waker for each future that waits.
#[derive(Debug, Default)]
pub(crate) struct Bell(Mutex<BTreeMap<u64, Waker>>);

impl Bell {
    /// Has `waker` woken at the next ring.
    pub(crate) fn register(&self, key: u64, waker: &Waker) {
        let mut waiting = self.lock();
        match waiting.get_mut(&key) {
            Some(known) => known.clone_from(waker),
            None => drop(waiting.insert(key, waker.clone())),
        }
    }

    pub(crate) fn forget(&self, key: u64) {
        self.lock().remove(&key);
    }

    pub(crate) fn ring(&self) {
        let waiting = std::mem::take(&mut *self.lock());
        waiting.into_values().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: std::sync::Arc<Self>) {
        self.ring();
    }
}
