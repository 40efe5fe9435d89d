//! One server of a hub: its leg, and when it is started again.

use super::config::{HubConfig, ServerStatus};
use crate::endpoint::ready::Ready;
use crate::endpoint::server_leg::ServerLeg;
use crate::mcp::Era;
use crate::mux::{Next, SlotId};
use crate::supervisor::{Ended, Keeper, Ladder};
use crate::{Instant, Port, Reason, backoff, supervisor};

/// One server.
#[derive(Debug)]
pub(super) struct Child {
    pub leg: ServerLeg,
    pub ready: Ready,
    keeper: Keeper,
    backoff: backoff::Config,
    /// The port of the generation as the keeper knows it: a second start without a probe is part of the first.
    generation: Port,
    /// It is being ended because nobody needs it.
    unneeded: bool,
}

impl Child {
    pub(super) fn new(config: &HubConfig, slot: SlotId) -> Self {
        let port = Port::new(if slot == SlotId::First { 0 } else { 1 });
        Self {
            leg: ServerLeg::new(config.server, port),
            ready: Ready::default(),
            keeper: Keeper::new(config.backoff),
            backoff: config.backoff,
            generation: port,
            unneeded: false,
        }
    }

    pub(super) fn start(&mut self) {
        self.leg.start();
        self.generation = self.leg.port();
        self.keeper.handle_started(self.generation);
    }

    pub(super) fn handle_ready(&mut self, now: Instant) {
        self.keeper.handle_ready(now, self.generation);
    }

    /// Ends it, because of its handshake: that counts as a failed start.
    pub(super) fn refuse(&mut self, now: Instant) {
        self.keeper.handle_stopping(self.generation);
        self.leg.stop(now, Ladder::Quick);
    }

    /// Ends it, because nobody needs it now.
    pub(super) fn dismiss(&mut self, now: Instant) {
        self.unneeded = true;
        self.leg.stop(now, Ladder::Polite);
    }

    /// Ends it for good.
    pub(super) fn stop(&mut self, now: Instant, ladder: Ladder) {
        self.keeper.stop();
        if self.is_alive() {
            self.leg.stop(now, ladder);
        }
    }

    /// Takes its end and returns what follows.
    pub(super) fn handle_ended(&mut self, now: Instant, ended: Ended) -> Next {
        if core::mem::take(&mut self.unneeded) && self.keeper.state() != STOPPING {
            self.keeper = Keeper::new(self.backoff);
            return Next::OnDemand;
        }
        match self.keeper.handle_ended(now, self.generation, ended) {
            Some(supervisor::Next::At(at)) => Next::At(at),
            Some(supervisor::Next::GaveUp) => Next::Never(match ended {
                Ended::Failed(_) => Reason::NotStarted,
                _ => Reason::ServerGone,
            }),
            Some(supervisor::Next::Stopped) | None => Next::Never(Reason::ShuttingDown),
        }
    }

    /// Returns, once, whether it is to be started again now.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        self.leg.handle_timeout(now, true);
        self.keeper.handle_timeout(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.leg.poll_timeout(), self.keeper.poll_timeout()].into_iter().flatten().min()
    }

    /// Returns whether there is a generation that has not ended.
    pub(super) const fn is_alive(&self) -> bool {
        self.keeper.is_alive()
    }

    /// Says how things stand; `held` bytes wait for it elsewhere.
    pub(super) fn status(&self, era: Option<Era>, held: usize) -> ServerStatus {
        ServerStatus {
            port: self.leg.port(),
            state: self.keeper.state(),
            restarts: self.keeper.restarts(),
            era,
            last_end: self.keeper.last_end(),
            client: None,
            is_lumen: self.leg.is_lumen(),
            queued: self.leg.queued() + held,
            tally: self.leg.tally(),
        }
    }
}

const STOPPING: supervisor::State = supervisor::State::Stopping { for_good: true };
