//! The two ends of a session, as what a transport needs of them.

use std::fmt::Debug;
use std::pin::pin;
use std::task::{Context, Poll};

use lumen_proto::jsonrpc::Message;
use lumen_tokio::{Client, Counters, Error, Event, Outcome, Server};

/// What can be seen of a transport from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Messages leave as LUMEN frames.
    pub is_lumen: bool,
    /// What went both ways.
    pub counters: Counters,
    /// How the session ended, once it has.
    pub outcome: Option<Outcome>,
}

/// An end of a session. Each poll does what can be done, reads and writes too, and may be the last.
pub(crate) trait End: Debug + Send + 'static {
    fn poll_send(&mut self, cx: &mut Context<'_>, message: &Message) -> Poll<Result<(), Error>>;
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Message>>;
    /// Is ready when all is written, or nothing more can be for now.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()>;
    fn close(self) -> impl Future<Output = Outcome> + Send;
    fn on_notice(&mut self, notice: Box<dyn FnMut(Event) + Send>);
    fn seen(&self) -> Seen;
}

/// Their futures keep nothing that is lost when they are dropped, so each poll may make a new one.
macro_rules! end {
    ($end:ident) => {
        impl End for $end {
            fn poll_send(&mut self, cx: &mut Context<'_>, message: &Message) -> Poll<Result<(), Error>> {
                pin!(self.send(message.clone())).poll(cx)
            }

            fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Message>> {
                pin!(self.recv()).poll(cx)
            }

            fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
                pin!(self.flush()).poll(cx).map(drop)
            }

            async fn close(self) -> Outcome {
                $end::close(self).await.outcome
            }

            fn on_notice(&mut self, notice: Box<dyn FnMut(Event) + Send>) {
                $end::on_notice(self, notice);
            }

            fn seen(&self) -> Seen {
                let (is_lumen, counters, outcome) = (self.is_lumen(), self.counters(), self.outcome());
                Seen { is_lumen, counters, outcome }
            }
        }
    };
}

end!(Client);
end!(Server);
