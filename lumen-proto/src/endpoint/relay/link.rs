//! The connection to the server as one of several in a row: what is held while there is none, and when to try again.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use bytes::Bytes;

use super::recall::Recall;
use crate::backoff::{self, Backoff};
use crate::jsonrpc::{IdKey, Message};
use crate::supervisor::Ended;
use crate::{Instant, limits};

/// A connection that is made again.
#[derive(Debug)]
pub(super) struct Link {
    pub state: State,
    pub recall: Recall,
    /// What we asked for ourselves.
    pub private: BTreeMap<IdKey, Private>,
    /// How many such requests there have been.
    asked: u64,
    held: VecDeque<Message>,
    held_bytes: usize,
    /// How long it may take to be made again.
    limit: Duration,
    /// When it is given up: set when it was lost, and kept while each one is lost too soon.
    until: Option<Instant>,
    backoff: Backoff,
    /// Messages go through since then.
    up: Option<Instant>,
    /// The server has said something on this one.
    is_heard: bool,
    /// When something must have been heard on this one, if nothing was and something is due.
    silent_until: Option<Instant>,
    /// One was of use once.
    is_proven: bool,
    /// The last one that was of use came to carry LUMEN.
    pub is_lumen: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Messages go through.
    Up,
    /// It is made again at that time.
    Down { at: Instant, ended: Ended },
    /// It is being made.
    Opening,
    /// The handshake is being told again.
    Resuming,
}

/// What an answer to a request of ours is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Private {
    Handshake,
    Level,
    /// The resource's URI, as a JSON token.
    Resource(Bytes),
}

impl Link {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            state: State::Up,
            recall: Recall::default(),
            private: BTreeMap::new(),
            asked: 0,
            held: VecDeque::new(),
            held_bytes: 0,
            limit,
            until: None,
            backoff: backoff(),
            up: None,
            is_heard: false,
            silent_until: None,
            is_proven: false,
            is_lumen: true,
        }
    }

    /// Takes that messages go through.
    pub(super) fn on_up(&mut self, now: Instant) {
        self.state = State::Up;
        self.up = Some(now);
    }

    /// Takes that the server has said something.
    pub(super) fn on_heard(&mut self, is_lumen: bool) {
        self.is_heard = true;
        self.is_lumen = is_lumen;
        self.silent_until = None;
    }

    /// Takes that the connection is being made again. Whoever is there must say something within the time that all tries
    /// have.
    pub(super) fn on_opening(&mut self, now: Instant) {
        self.state = State::Opening;
        self.silent_until = Some(self.until.unwrap_or(now).max(now + limits::RECONNECT_PATIENCE));
    }

    /// Takes whether answers are waited for. Once messages go through, a server that acknowledged LUMEN the last time would
    /// at least do that; of any other it cannot be told whether it is there or still at work.
    pub(super) fn handle_awaited(&mut self, now: Instant, is_awaited: bool) {
        if self.is_up() && !self.is_heard {
            let is_due = is_awaited && self.is_lumen && self.until.is_some();
            let until = now + self.limit.max(limits::RECONNECT_PATIENCE);
            self.silent_until = is_due.then(|| self.silent_until.unwrap_or(until));
        }
    }

    /// Takes that the connection is lost, or could not be made. Returns whether it is to be made again.
    pub(super) fn on_lost(&mut self, now: Instant, ended: Ended) -> bool {
        let up = self.up.take();
        self.silent_until = None;
        let has_lasted = up.is_some_and(|since| now - since >= limits::RECONNECT_RESET_AFTER);
        let was_heard = core::mem::take(&mut self.is_heard);
        self.is_proven |= has_lasted || was_heard;
        if !self.is_proven {
            return false;
        }
        self.private.clear();
        let at = match self.until.filter(|_| !has_lasted) {
            Some(until) if now >= until => return false,
            Some(until) => {
                let wait = self.backoff.handle_ended(now).unwrap_or(limits::RECONNECT_CAP);
                (now + wait).min(until)
            }
            None => {
                self.until = Some(now + self.limit);
                self.backoff = backoff();
                now
            }
        };
        self.state = State::Down { at, ended };
        true
    }

    /// Takes that a server was there before there was a connection.
    pub(super) const fn on_seen(&mut self) {
        self.is_proven = true;
    }

    /// Takes that nobody will be there again: this try is the last.
    pub(super) const fn on_hopeless(&mut self, now: Instant) {
        self.until = Some(now);
    }

    /// Returns an id for a request of ours, as a JSON token.
    pub(super) fn ask(&mut self, what: Private) -> Bytes {
        self.asked += 1;
        let token = Bytes::from(alloc::format!("\"lumen/{}\"", self.asked));
        // Any string is an id.
        if let Ok(key) = IdKey::from_token(&token) {
            self.private.insert(key, what);
        }
        token
    }

    /// Returns what the request with this id was about, once, if it was ours.
    pub(super) fn settle(&mut self, id: &[u8]) -> Option<Private> {
        if self.private.is_empty() {
            return None;
        }
        self.private.remove(&IdKey::from_token(id).ok()?)
    }

    /// Returns whether we have asked under this id.
    pub(super) fn is_private(&self, id: &[u8]) -> bool {
        !self.private.is_empty() && IdKey::from_token(id).is_ok_and(|key| self.private.contains_key(&key))
    }

    /// Returns whether a connection was of use once.
    pub(super) const fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// Returns whether messages go through.
    pub(super) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Returns whether it waits for its time to be made again.
    pub(super) const fn is_down(&self) -> bool {
        matches!(self.state, State::Down { .. })
    }

    /// Keeps a message for when they do.
    pub(super) fn hold(&mut self, message: Message) {
        self.held_bytes += cost(&message);
        self.held.push_back(message);
    }

    /// Returns what was kept, in order.
    pub(super) fn take_held(&mut self) -> VecDeque<Message> {
        self.held_bytes = 0;
        core::mem::take(&mut self.held)
    }

    pub(super) const fn held(&self) -> &VecDeque<Message> {
        &self.held
    }

    /// Returns whether no more should be read for it.
    pub(super) const fn is_full(&self) -> bool {
        self.held_bytes >= limits::MAX_QUEUE
    }

    /// Returns when something is to be done.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Down { at, .. } => Some(at),
            _ => self.silent_until,
        }
    }
}

fn cost(message: &Message) -> usize {
    size_of::<Message>() + message.len()
}

const fn backoff() -> Backoff {
    Backoff::new(backoff::Config {
        base: limits::RECONNECT_BASE,
        cap: limits::RECONNECT_CAP,
        reset_after: limits::RECONNECT_RESET_AFTER,
        ceiling: None,
    })
}
