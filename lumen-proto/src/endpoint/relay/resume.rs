//! How a session goes on at a server that comes back.

use core::time::Duration;

use super::link::{Link, Private, State};
use super::{Phase, Relay};
use crate::endpoint::event::{Event, Outcome, Unlike};
use crate::jsonrpc::{Message, text_is};
use crate::message::{Edits, Packet};
use crate::mux::own;
use crate::supervisor::{Ended, Ladder};
use crate::{Instant, Reason};

impl Relay {
    /// Has the session go on when its server goes away and comes back within `limit`: for a server that is reached, such
    /// as a hub on a socket. The first try is at once, others follow after [`RECONNECT_BASE`], doubled each time
    /// up to [`RECONNECT_CAP`]. A connection that is lost again before it has lasted for
    /// [`RECONNECT_RESET_AFTER`] counts as one that could not be made. The very first one must have been of use:
    /// it lasted so long, or the server said something.
    ///
    /// What was asked and not answered is answered with errors at once, and what the client says meanwhile is held. The
    /// new server is told the client's handshake under an id of ours, and then the level of logs and the resources that
    /// the client had asked for; the client hears of it only what may have changed: the lists that the server announces.
    /// A handshake that was under way, and every `subscriptions/listen`, is sent again as it was, and an acknowledgement
    /// that the client has had does not come again.
    ///
    /// A server of whom nothing is heard ends the session within about the same time: within `limit` of the loss while the
    /// handshake is told, and after that, if the one before had carried LUMEN, within `limit` of the first request.
    ///
    /// A server that refuses the handshake, or agrees on another revision than the client was told, ends the session. A hub
    /// that says that it is full, or has no server for now, is tried again.
    ///
    /// [`RECONNECT_BASE`]: crate::limits::RECONNECT_BASE
    /// [`RECONNECT_CAP`]: crate::limits::RECONNECT_CAP
    /// [`RECONNECT_RESET_AFTER`]: crate::limits::RECONNECT_RESET_AFTER
    #[must_use]
    pub fn with_reconnect(mut self, limit: Duration) -> Self {
        self.link = Some(Link::new(limit));
        self
    }

    /// Takes that the server was there just now: a first connection that is of no use is made again like others.
    #[must_use]
    pub const fn with_seen_server(mut self) -> Self {
        if let Some(link) = &mut self.link {
            link.on_seen();
        }
        self
    }

    /// Takes that there is no use in trying any longer to reach a server that has gone away: if it cannot be reached now,
    /// that is the end of the session.
    pub fn give_up(&mut self, now: Instant) {
        self.advance(now);
        if let Some(link) = &mut self.link {
            link.on_hopeless(self.now);
            if let (State::Down { ended, .. }, Phase::Serving | Phase::Grace { .. }) =
                (link.state, self.phase)
            {
                self.on_server_ended(ended);
            }
        }
        self.settle();
    }

    /// Takes that the server is gone; returns whether the session may go on at the next one. What was asked of this one
    /// is answered with errors, but for what can be asked again as if nothing had happened.
    pub(super) fn try_reconnect(&mut self, ended: Ended) -> bool {
        let is_serving = matches!(self.phase, Phase::Serving | Phase::Grace { .. });
        let Some(link) = &mut self.link else { return false };
        let was_up = link.is_up();
        if !is_serving || self.client.is_deaf() || !link.on_lost(self.now, ended) {
            return false;
        }
        if was_up {
            for id in self.owed.take_all() {
                if !link.recall.is_repeatable(&id) {
                    self.client.refuse(Some(&id), &Reason::ServerGone, None);
                }
            }
            for message in link.recall.on_lost() {
                link.hold(message);
            }
        }
        // Who is asked no more need not answer. Until it has, the same id means nothing new to it.
        for id in self.asked.void() {
            if link.recall.is_confirmed()
                && let Some(message) = own::cancelled(&id, "the server is gone").and_then(into_text)
            {
                self.client.send(message);
            }
        }
        if self.client.is_eof() && link.held().is_empty() {
            return false;
        }
        self.events.push(Event::Reconnecting { port: self.server.port(), ended });
        self.follow_link();
        true
    }

    /// Makes the connection, or gives up one that nothing is heard on, if it is time.
    pub(super) fn follow_link(&mut self) {
        let Some(link) = &mut self.link else { return };
        if link.poll_timeout().is_none_or(|at| self.now < at) {
            return;
        }
        if link.is_down() {
            link.on_opening(self.now);
            let [_, ready] = &mut self.ready;
            *ready = super::Ready::default();
            self.server.start_again(link.is_lumen);
        } else {
            self.end_unresumed(Unlike::Silent);
        }
    }

    /// Takes that the connection is there.
    pub(super) fn on_opened(&mut self) {
        let Some(link) = &mut self.link else { return };
        match link.state {
            State::Up => return link.on_up(self.now),
            State::Opening => {}
            // It was closed and made anew because of a probe.
            State::Down { .. } | State::Resuming => return,
        }
        let Some(initialize) = link.recall.handshake().cloned() else { return self.go_on() };
        link.state = State::Resuming;
        let edits = Edits::put(&[&["id"]], link.ask(Private::Handshake));
        self.server.send_edited(self.now, initialize.into(), edits);
    }

    /// Takes the answer to a request of ours, or that there is none that could be read. Returns whether it was one.
    pub(super) fn on_private(&mut self, id: Option<&[u8]>, answer: Option<&Message>) -> bool {
        let (Some(link), Some(id)) = (&mut self.link, id) else { return false };
        let Some(private) = link.settle(id) else { return false };
        let is_unready = answer.is_some_and(is_unready);
        let answer = answer.filter(|answer| answer.envelope().result.is_some());
        match (private, answer) {
            // Its end counts as that of a connection that could not be made.
            (Private::Handshake, None) if is_unready => self.server.stop(self.now, Ladder::Quick),
            (Private::Handshake, None) => self.end_unresumed(Unlike::Refused),
            (Private::Handshake, Some(answer)) if !link.recall.is_same_revision(answer) => {
                self.end_unresumed(Unlike::Revision);
            }
            (Private::Handshake, Some(answer)) => self.on_greeted(answer),
            (Private::Resource(uri), None) => link.recall.on_not_subscribed(&uri),
            (Private::Resource(_) | Private::Level, _) => {}
        }
        true
    }

    /// The server has taken the handshake: it is told what the one before knew.
    fn on_greeted(&mut self, answer: &Message) {
        let Some(link) = &mut self.link else { return };
        if link.recall.is_confirmed() {
            let mut told = alloc::vec![own::notification("notifications/initialized")];
            if let Some(level) = link.recall.level() {
                told.push(own::set_level(text(&link.ask(Private::Level)), level));
            }
            for uri in link.recall.resources() {
                let id = link.ask(Private::Resource(uri.clone()));
                told.push(own::resource(text(&id), "resources/subscribe", &uri));
            }
            for message in told.into_iter().flatten().filter_map(into_text) {
                self.server.send(self.now, message);
            }
            for message in own::list_changes(answer).filter_map(into_text) {
                self.client.send(message);
            }
        }
        self.go_on();
    }

    /// Messages go through again, those first that were held.
    fn go_on(&mut self) {
        let Some(link) = &mut self.link else { return };
        link.on_up(self.now);
        let held = link.take_held();
        self.events.push(Event::Resumed(self.server.port()));
        for message in held {
            self.on_client_message(message);
        }
    }

    fn end_unresumed(&mut self, unlike: Unlike) {
        self.outcome = Outcome::NotResumed(unlike);
        self.answer_owed(Reason::ServerGone);
        self.end_server(Ladder::Polite);
    }
}

/// Returns whether this is an error of a hub's own that says that it has no place, or no server, for now.
fn is_unready(answer: &Message) -> bool {
    let for_now = [
        Reason::Busy,
        Reason::Full,
        Reason::Down { retry_after_ms: 0 },
        Reason::NoAnswer,
        Reason::NotStarted,
        Reason::ServerGone,
        Reason::ShuttingDown,
    ];
    let reason = answer.find(&["error", "data", "reason"]).map(|at| at.of(answer.bytes()));
    reason.is_some_and(|token| for_now.iter().any(|reason| text_is(token, reason.name())))
}

fn into_text(packet: Packet) -> Option<Message> {
    packet.to_text().ok()
}

fn text(token: &[u8]) -> &str {
    core::str::from_utf8(token).unwrap_or("null")
}
