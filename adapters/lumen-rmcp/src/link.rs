//! A session that several futures have hold of: rmcp sends from any number of them while it receives in another.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use lumen_proto::jsonrpc::Message;
use lumen_tokio::{Event, Outcome};
use rmcp::service::{RxJsonRpcMessage, ServiceRole};

use crate::bell::Bell;
use crate::codec::{Decoded, decode};
use crate::end::{End, Seen};
use crate::sending::Sending;
use crate::{Error, codec};

/// Who receives, at the bell. Tickets begin above.
const RECEIVER: u64 = 0;

/// One end of a session and all who wait at it.
#[derive(Debug)]
pub(crate) struct Shared<E> {
    core: Mutex<Core<E>>,
    bell: Arc<Bell>,
    /// Rings the bell. Whoever polls the end does so with this one, so that all others hear of what happens too.
    waker: Waker,
}

#[derive(Debug)]
struct Core<E> {
    /// None once it is closed.
    end: Option<E>,
    /// What was seen of it last, for when it is closed.
    seen: Seen,
    tickets: u64,
    /// Sends for which there was no room, in the order of their calls; their messages are with their futures. Only the
    /// first waits at the bell, for with many of them it would be a crowd that each ring wakes in vain.
    waiting: BTreeMap<u64, Option<Waker>>,
}

impl<E: End> Shared<E> {
    pub(crate) fn new(end: E) -> Self {
        let bell = Arc::new(Bell::default());
        let core =
            Core { end: Some(end), seen: Seen::default(), tickets: RECEIVER, waiting: BTreeMap::new() };
        Self { core: Mutex::new(core), waker: Waker::from(Arc::clone(&bell)), bell }
    }

    /// Takes a place in the row of those who send.
    pub(crate) fn ticket(&self) -> u64 {
        let mut core = self.lock();
        core.tickets += 1;
        core.tickets
    }

    /// Sends a message when it is its turn and there is room for it. Until then its place is kept; see
    /// [`leave`](Self::leave). `waker` is woken when that may have changed.
    pub(crate) fn try_send(
        &self,
        ticket: u64,
        message: &Message,
        waker: Option<&Waker>,
    ) -> Poll<Result<(), Error>> {
        let mut core = self.lock();
        let is_behind = core.waiting.first_key_value().is_some_and(|(first, _)| *first < ticket);
        let sent = match &mut core.end {
            None => Poll::Ready(Err(Error::Closed)),
            Some(_) if is_behind => Poll::Pending,
            Some(end) => {
                self.register(ticket, waker);
                match end.poll_send(&mut Context::from_waker(&self.waker), message) {
                    // What was received has to be taken first: receiving rings.
                    Poll::Pending | Poll::Ready(Err(lumen_tokio::Error::Unread(_))) => Poll::Pending,
                    Poll::Ready(sent) => Poll::Ready(sent.map_err(Error::Session)),
                }
            }
        };
        if sent.is_pending() {
            core.waiting.insert(ticket, waker.cloned());
        } else {
            step_out(core, ticket);
        }
        sent
    }

    /// Is ready when what was sent is written, or will not be.
    pub(crate) fn poll_flush(&self, ticket: u64, waker: &Waker) -> Poll<()> {
        self.register(ticket, Some(waker));
        match &mut self.lock().end {
            Some(end) => end.poll_flush(&mut Context::from_waker(&self.waker)),
            // Closing writes it.
            None => Poll::Ready(()),
        }
    }

    /// Before it is looked whether there is anything to wait for, lest the bell rings in between.
    fn register(&self, ticket: u64, waker: Option<&Waker>) {
        if let Some(waker) = waker {
            self.bell.register(ticket, waker);
        }
    }

    /// Gives a place in the row up; the next one may be let in.
    pub(crate) fn leave(&self, ticket: u64) {
        self.bell.forget(ticket);
        step_out(self.lock(), ticket);
    }

    pub(crate) fn seen(&self) -> Seen {
        let core = self.lock();
        core.end.as_ref().map_or(core.seen, End::seen)
    }

    fn poll_recv(&self) -> Poll<Option<Message>> {
        let mut core = self.lock();
        let Some(end) = &mut core.end else { return Poll::Ready(None) };
        let received = ready!(end.poll_recv(&mut Context::from_waker(&self.waker)));
        if !core.waiting.is_empty() {
            drop(core);
            self.bell.ring();
        }
        Poll::Ready(received)
    }

    fn take(&self) -> Option<E> {
        let mut core = self.lock();
        let end = core.end.take()?;
        core.seen = end.seen();
        let waiting = std::mem::take(&mut core.waiting);
        drop(core);
        // Who waits will find it closed.
        waiting.into_values().flatten().for_each(Waker::wake);
        self.bell.ring();
        Some(end)
    }

    fn lock(&self) -> MutexGuard<'_, Core<E>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a place out of the row; if it was the first, the next one is to look whether there is room.
fn step_out<E>(mut core: MutexGuard<'_, Core<E>>, ticket: u64) {
    let was_first = core.waiting.first_key_value().is_some_and(|(first, _)| *first == ticket);
    core.waiting.remove(&ticket);
    let next = core.waiting.first_entry().filter(|_| was_first).and_then(|mut next| next.get_mut().take());
    drop(core);
    if let Some(waker) = next {
        waker.wake();
    }
}

/// What a transport is. Dropping it ends the session at once, also when futures that send are left over.
#[derive(Debug)]
pub(crate) struct Link<E: End> {
    shared: Arc<Shared<E>>,
    /// An answer of our own on its way; nothing is received meanwhile.
    refusal: Option<Sending<E>>,
}

impl<E: End> Link<E> {
    pub(crate) fn new(end: E) -> Self {
        Self { shared: Arc::new(Shared::new(end)), refusal: None }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<E>> {
        &self.shared
    }

    pub(crate) fn on_notice(&mut self, notice: Box<dyn FnMut(Event) + Send>) {
        if let Some(end) = &mut self.shared.lock().end {
            end.on_notice(notice);
        }
    }

    /// Sends a message, or takes its place in the row.
    pub(crate) fn send(&self, message: Result<Message, Error>) -> Sending<E> {
        Sending::new(Arc::clone(&self.shared), message)
    }

    /// Is ready with the next message that rmcp has a type for.
    pub(crate) fn poll_receive<R: ServiceRole>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<RxJsonRpcMessage<R>>> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                // If it cannot be sent, receiving will tell.
                let _ = ready!(Pin::new(refusal).poll(cx));
                self.refusal = None;
            }
            self.shared.register(RECEIVER, Some(cx.waker()));
            let Some(message) = ready!(self.shared.poll_recv()) else { return Poll::Ready(None) };
            match decode::<R>(&message) {
                Decoded::Message(message) => return Poll::Ready(Some(message)),
                Decoded::Refused(answer) => self.refusal = Some(self.send(codec::encode::<R>(&answer))),
                Decoded::Ignored => {}
            }
        }
    }

    /// Writes what was sent and ends the session.
    pub(crate) async fn close(&mut self) -> Result<(), Error> {
        self.refusal = None;
        let Some(end) = self.shared.take() else { return Ok(()) };
        let outcome = end.close().await;
        self.shared.lock().seen.outcome = Some(outcome);
        match outcome {
            Outcome::Closed(_) | Outcome::Terminated(_) => Ok(()),
            other => Err(Error::Ended(other)),
        }
    }
}

impl<E: End> Drop for Link<E> {
    fn drop(&mut self) {
        drop(self.shared.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use rmcp::RoleClient;

    use super::*;

    /// An end that takes nothing before what was received is taken.
    #[derive(Debug)]
    struct Stuck(Option<Message>);

    impl End for Stuck {
        fn poll_send(
            &mut self,
            _: &mut Context<'_>,
            message: &Message,
        ) -> Poll<Result<(), lumen_tokio::Error>> {
            Poll::Ready(match self.0 {
                Some(_) => Err(lumen_tokio::Error::Unread(message.clone())),
                None => Ok(()),
            })
        }

        fn poll_recv(&mut self, _: &mut Context<'_>) -> Poll<Option<Message>> {
            self.0.take().map_or(Poll::Pending, |message| Poll::Ready(Some(message)))
        }

        fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }

        async fn close(self) -> Outcome {
            Outcome::Closed(None)
        }

        fn on_notice(&mut self, _: Box<dyn FnMut(Event) + Send>) {}

        fn seen(&self) -> Seen {
            Seen::default()
        }
    }

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_waits_for_received_messages_to_be_taken_hears_of_that() {
        let ping = Message::copy_from(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap();
        let mut link = Link::new(Stuck(Some(ping.clone())));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = &mut Context::from_waker(&waker);
        let mut first = link.send(Ok(ping.clone()));
        let mut second = link.send(Ok(ping));
        assert!(Pin::new(&mut second).poll(cx).is_pending() && Pin::new(&mut first).poll(cx).is_pending());
        let idle = &mut Context::from_waker(Waker::noop());
        assert!(link.poll_receive::<RoleClient>(idle).is_ready());
        assert_eq!(woken.0.load(Ordering::Relaxed), 1, "the first is let in");
        assert!(Pin::new(&mut second).poll(cx).is_pending(), "it keeps behind the first");
        assert!(Pin::new(&mut first).poll(cx).is_ready());
        assert_eq!(woken.0.load(Ordering::Relaxed), 2, "and then the second");
        assert!(Pin::new(&mut second).poll(cx).is_ready());
    }
}
