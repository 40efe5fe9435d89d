//! Time that runs out, and the end.

use alloc::vec::Vec;

use bytes::Bytes;

use super::super::flight::{Flight, Gate, Parked, Purpose, Until};
use super::super::headers::Headers;
use super::super::post::Post;
use super::super::{Cause, ExchangeId, Failure, Method};
use super::{Phase, Session};
use crate::{Instant, Reason, limits};

impl Session {
    /// Takes that the agent says no more.
    pub(super) fn on_eof(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        self.phase = Phase::Grace { until: self.now + self.config.eof_grace };
        self.asked_bytes = 0;
        for (_, id) in core::mem::take(&mut self.asked) {
            self.refuse_server(&id, &Reason::ClientGone);
        }
    }

    /// Takes that we are to end.
    pub(super) fn on_told(&mut self) {
        self.told = true;
        self.on_eof();
        match &mut self.phase {
            Phase::Grace { until } => *until = (*until).min(self.now + limits::INNER_TERMINATE_STEP),
            Phase::Deleting => {
                let due = self.now + limits::QUICK_DELETE_PATIENCE;
                for flight in self.flights.values_mut() {
                    flight.due = Some(flight.due.map_or(due, |old| old.min(due)));
                }
            }
            Phase::Serving | Phase::Over => {}
        }
    }

    /// Takes the passing of time.
    pub(super) fn on_time(&mut self) {
        let now = self.now;
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let due = self.flights.iter().filter(|(_, flight)| is_due(flight.due)).map(|(id, _)| *id);
        for id in due.collect::<Vec<_>>() {
            self.on_due(id);
        }
        let late: Vec<Parked> = self.parked.extract_if(.., |parked| is_due(parked.post.due)).collect();
        for parked in late {
            self.fail(parked.post, &Failure::new(Cause::Timeout));
        }
        self.on_resume_time();
        if let Phase::Grace { until } = self.phase
            && until <= now
        {
            self.unanswered = self.posts().map(Post::awaited).sum();
            self.finish();
        }
    }

    fn on_due(&mut self, id: ExchangeId) {
        let Some(Flight { purpose, response, .. }) = self.abort(id) else { return };
        let failure = Failure::new(Cause::Timeout);
        match purpose {
            Purpose::Post(post) if post.is_owing() || (!post.is_asking && response.is_none()) => {
                self.fail(*post, &failure);
            }
            // It was answered, or taken; it just goes on.
            Purpose::Post(_) | Purpose::Stream => {}
            Purpose::Confirm if response.is_some() => {}
            Purpose::Renew | Purpose::Confirm => self.on_not_renewed(failure),
            Purpose::Refresh => self.on_refreshed(),
            Purpose::Delete => self.on_deleted(),
        }
    }

    /// Ends the session when the agent says no more and nothing is owed to it.
    pub(super) fn on_phase(&mut self) {
        if matches!(self.phase, Phase::Grace { .. }) && self.is_quiet() {
            self.finish();
        }
    }

    pub(super) fn on_deleted(&mut self) {
        self.phase = Phase::Over;
    }

    /// Returns when something is due.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Grace { until } => Some(until),
            Phase::Serving | Phase::Deleting => None,
            Phase::Over => return None,
        };
        let flights = self.flights.values().filter_map(|flight| flight.due);
        let parked = self.parked.iter().filter_map(|parked| {
            let time = if let Until::Time(time) = parked.until { Some(time) } else { None };
            [time, parked.post.due].into_iter().flatten().min()
        });
        flights.chain(parked).chain(self.stream.again).chain(phase).min()
    }

    /// Answers what is owed with errors, drops what is under way, and ends the session at the server.
    fn finish(&mut self) {
        self.phase = Phase::Deleting;
        self.gate = Gate::Open;
        self.stream.again = None;
        let failure = Failure::new(Cause::Ending);
        let ids: Vec<ExchangeId> = self.flights.keys().copied().collect();
        for id in ids {
            if let Some(Flight { purpose: Purpose::Post(post), response, .. }) = self.abort(id)
                && (post.is_owing() || (!post.is_asking && response.is_none()))
            {
                self.fail(*post, &failure);
            }
        }
        let parked = core::mem::take(&mut self.parked).into_iter().map(|parked| parked.post);
        let queued = core::mem::take(&mut self.waiting).into_iter().chain(core::mem::take(&mut self.queue));
        self.queued = 0;
        for post in parked.chain(queued).collect::<Vec<_>>() {
            self.fail(post, &failure);
        }
        if self.link.session.is_none() {
            self.phase = Phase::Over;
            return;
        }
        let mut headers = Headers::new();
        self.link.add_to(&mut headers);
        self.open(Method::Delete, headers, Bytes::new(), Purpose::Delete);
    }

    /// Returns whether everything the agent said has been delivered and answered, as far as it waits for that.
    fn is_quiet(&self) -> bool {
        let is_busy = |flight: &Flight| match &flight.purpose {
            Purpose::Post(post) => post.awaited() > 0 || (!post.is_asking && flight.response.is_none()),
            Purpose::Confirm => flight.response.is_none(),
            Purpose::Renew | Purpose::Refresh => true,
            Purpose::Stream | Purpose::Delete => false,
        };
        self.queue.is_empty()
            && self.waiting.is_empty()
            && self.parked.iter().all(|parked| parked.post.awaited() == 0 && parked.post.is_asking)
            && !self.flights.values().any(is_busy)
    }

    fn posts(&self) -> impl Iterator<Item = &Post> {
        let flying = self.flights.values().filter_map(|flight| flight.purpose.post());
        let parked = self.parked.iter().map(|parked| &parked.post);
        let queued = self.waiting.iter().chain(&self.queue);
        flying.chain(parked).chain(queued)
    }
}
