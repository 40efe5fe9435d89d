//! A waker for each port, and the list of the ports that were woken.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use lumen_proto::Port;

/// The list, shared with every waker that was handed out.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    list: Arc<Mutex<List>>,
}

#[derive(Debug, Default)]
struct List {
    /// Each port at most once, see [`Target::listed`].
    woken: VecDeque<Port>,
    /// Whom to wake for the first entry; there only while the task sleeps.
    task: Option<Waker>,
}

impl Wakers {
    /// Makes a waker for `port`, woken already: what is new has to be polled once.
    pub(super) fn add(&self, port: Port) -> PortWaker {
        let target = Arc::new(Target { port, list: Arc::clone(&self.list), listed: AtomicBool::new(false) });
        let waker = PortWaker { waker: Waker::from(Arc::clone(&target)), target };
        waker.wake();
        waker
    }

    /// Returns a port that was woken. Call [`PortWaker::take`] before it is polled.
    pub(super) fn pop(&self) -> Option<Port> {
        lock(&self.list).woken.pop_front()
    }

    /// Leaves word whom to wake, unless a port was woken meanwhile; returns whether the task may sleep.
    pub(super) fn sleep(&self, cx: &Context<'_>) -> bool {
        let mut list = lock(&self.list);
        if list.woken.is_empty() {
            list.task = Some(cx.waker().clone());
        }
        list.woken.is_empty()
    }
}

/// Wakes one port.
#[derive(Debug)]
pub(super) struct PortWaker {
    target: Arc<Target>,
    waker: Waker,
}

impl PortWaker {
    pub(super) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    pub(super) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    /// Lets the port be listed again. A wake that came too early for that is seen by the poll that follows.
    pub(super) fn take(&self) {
        self.target.listed.swap(false, Ordering::AcqRel);
    }
}

#[derive(Debug)]
struct Target {
    port: Port,
    list: Arc<Mutex<List>>,
    listed: AtomicBool,
}

impl Wake for Target {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.listed.swap(true, Ordering::AcqRel) {
            return;
        }
        let task = {
            let mut list = lock(&self.list);
            list.woken.push_back(self.port);
            list.task.take()
        };
        // Outside the lock: whoever is woken may want it.
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// A panic cannot leave the list half changed, so a poisoned lock is as good as any.
fn lock(list: &Mutex<List>) -> std::sync::MutexGuard<'_, List> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
