//! Whether and when a child that has ended is started again.

use super::Ended;
use crate::backoff::{Backoff, Config};
use crate::{Instant, Port};

/// Where a child stands, over all its generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// None is there. It may be started.
    Idle,
    /// A generation was asked for; it cannot be used yet.
    Starting,
    /// Its generation can be used, since then.
    Running {
        /// When it became ready.
        since: Instant,
    },
    /// Its generation is being ended.
    Stopping {
        /// Whether none follows.
        for_good: bool,
    },
    /// The last generation ended; the next one waits.
    Backoff {
        /// When the next one is due.
        until: Instant,
    },
    /// Too many generations in a row ended too soon. Nothing moves it any more.
    GaveUp,
    /// It was stopped for good. Nothing moves it any more.
    Stopped,
}

/// What follows the end of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another one, then.
    At(Instant),
    /// None: too many have ended too soon.
    GaveUp,
    /// None: it was stopped for good.
    Stopped,
}

/// Decides what happens between the generations of one child; [`Supervisor`](super::Supervisor) is the life of one.
///
/// Every input names the generation's port; one of another generation changes nothing. Whatever ends a generation
/// counts as a death: a start that failed, a handshake that was refused or not answered, an exit. Only a run of
/// health from [`handle_ready`](Self::handle_ready) to the end makes it forget earlier deaths.
#[derive(Debug)]
pub struct Keeper {
    backoff: Backoff,
    state: State,
    port: Option<Port>,
    starts: u64,
    last_end: Option<Ended>,
}

impl Keeper {
    /// Makes one for a child that was never started.
    pub const fn new(config: Config) -> Self {
        Self { backoff: Backoff::new(config), state: State::Idle, port: None, starts: 0, last_end: None }
    }

    /// Takes the fact that a generation was asked for, under a port that no earlier one had. It need not wait for a
    /// backoff to pass.
    pub fn handle_started(&mut self, port: Port) {
        if self.port != Some(port) && matches!(self.state, State::Idle | State::Backoff { .. }) {
            self.port = Some(port);
            self.starts += 1;
            self.enter(State::Starting);
        }
    }

    /// Takes the fact that it can be used: its handshake was answered, or it needs none.
    pub fn handle_ready(&mut self, now: Instant, port: Port) {
        if self.port == Some(port) && self.state == State::Starting {
            self.backoff.handle_ready(now);
            self.enter(State::Running { since: now });
        }
    }

    /// Takes the fact that it is being ended, because its handshake failed or it can be used no more. Another one
    /// follows.
    pub fn handle_stopping(&mut self, port: Port) {
        if self.port == Some(port) && matches!(self.state, State::Starting | State::Running { .. }) {
            self.enter(State::Stopping { for_good: false });
        }
    }

    /// Takes the end of a generation and returns what follows; `None` if that had been told before, or the port is
    /// of another one.
    pub fn handle_ended(&mut self, now: Instant, port: Port, how: Ended) -> Option<Next> {
        if self.port != Some(port) || !self.is_alive() {
            return None;
        }
        self.last_end = Some(how);
        if self.state == (State::Stopping { for_good: true }) {
            self.enter(State::Stopped);
            return Some(Next::Stopped);
        }
        let Some(wait) = self.backoff.handle_ended(now) else {
            self.enter(State::GaveUp);
            return Some(Next::GaveUp);
        };
        let until = now + wait;
        self.enter(State::Backoff { until });
        Some(Next::At(until))
    }

    /// Stops it for good: at once if no generation is alive, else when the one that is has ended.
    pub fn stop(&mut self) {
        match self.state {
            State::Idle | State::Backoff { .. } => self.enter(State::Stopped),
            State::Starting | State::Running { .. } | State::Stopping { .. } => {
                self.enter(State::Stopping { for_good: true });
            }
            State::GaveUp | State::Stopped => {}
        }
    }

    /// Takes the passing of time and returns, once, whether the next generation is to be started now.
    #[must_use]
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        let due = matches!(self.state, State::Backoff { until } if now >= until);
        if due {
            self.enter(State::Idle);
        }
        due
    }

    /// Returns when the next generation is due.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Backoff { until } => Some(until),
            _ => None,
        }
    }

    /// Returns where it stands.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns whether a generation has been asked for and has not ended.
    pub const fn is_alive(&self) -> bool {
        matches!(self.state, State::Starting | State::Running { .. } | State::Stopping { .. })
    }

    /// Returns how many generations there have been after the first.
    pub const fn restarts(&self) -> u64 {
        self.starts.saturating_sub(1)
    }

    /// Returns how the last generation ended that has.
    pub const fn last_end(&self) -> Option<Ended> {
        self.last_end
    }

    fn enter(&mut self, state: State) {
        self.state = state;
    }
}

#[cfg(test)]
mod tests;
