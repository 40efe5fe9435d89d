//! The future of one message that is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use lumen_proto::jsonrpc::Message;

use crate::Error;
use crate::end::End;
use crate::link::Shared;

/// Is ready when the message is written. Dropped while there is no room for it, the message is not sent.
#[derive(Debug)]
pub(crate) struct Sending<E: End> {
    shared: Arc<Shared<E>>,
    ticket: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// There was no room for it.
    Waiting(Message),
    /// It will be written after all that was sent before.
    Sent,
    Failed(Error),
    Done,
}

impl<E: End> Sending<E> {
    /// Sends the message now if there is room: that is what keeps the order, for these futures are polled in any.
    pub(crate) fn new(shared: Arc<Shared<E>>, message: Result<Message, Error>) -> Self {
        let ticket = shared.ticket();
        let stage = match message {
            Ok(message) => match shared.try_send(ticket, &message, None) {
                Poll::Ready(Ok(())) => Stage::Sent,
                Poll::Ready(Err(error)) => Stage::Failed(error),
                Poll::Pending => Stage::Waiting(message),
            },
            Err(error) => Stage::Failed(error),
        };
        Self { shared, ticket, stage }
    }
}

impl<E: End> Future for Sending<E> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::Waiting(message) = &self.stage {
            self.stage = match self.shared.try_send(self.ticket, message, Some(cx.waker())) {
                Poll::Ready(Ok(())) => Stage::Sent,
                Poll::Ready(Err(error)) => Stage::Failed(error),
                Poll::Pending => return Poll::Pending,
            };
        }
        if let Stage::Sent = self.stage
            && self.shared.poll_flush(self.ticket, cx.waker()).is_pending()
        {
            return Poll::Pending;
        }
        self.shared.leave(self.ticket);
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Failed(error) => Poll::Ready(Err(error)),
            Stage::Sent | Stage::Done | Stage::Waiting(_) => Poll::Ready(Ok(())),
        }
    }
}

impl<E: End> Drop for Sending<E> {
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Done) {
            self.shared.leave(self.ticket);
        }
    }
}
