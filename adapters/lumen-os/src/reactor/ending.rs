//! The end of one thing, awaited by another, in whatever task either is.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Makes something that lives, and what is ready when it has ended.
pub(super) fn life() -> (Alive, Ended) {
    let state = Arc::default();
    (Alive(Arc::clone(&state)), Ended(state))
}

/// Lives until it is dropped.
#[derive(Debug)]
pub(super) struct Alive(Arc<Mutex<State>>);

/// Is ready when its [`Alive`] was dropped, and from then on.
#[derive(Debug)]
pub(super) struct Ended(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    has_ended: bool,
    waiting: Option<Waker>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.has_ended = true;
            state.waiting.take()
        };
        // Outside the lock: whoever is woken may want it.
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

impl Future for Ended {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // A panic cannot leave it half changed, so a poisoned lock is as good as any.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.has_ended {
            return Poll::Ready(());
        }
        state.waiting = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_end_wakes_whoever_waits_and_stays() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let (alive, ended) = life();
        let mut ended = pin!(ended);
        assert_eq!(ended.as_mut().poll(&mut cx), Poll::Pending);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        drop(alive);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(ended.as_mut().poll(&mut cx), Poll::Ready(()));
        assert_eq!(ended.as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
