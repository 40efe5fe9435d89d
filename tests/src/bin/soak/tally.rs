//! What is counted, and the verdict.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::say;

/// Violations that are told in full; of further ones only the number.
const TOLD: u64 = 20;

/// Counters that all clients share.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) kills: AtomicU64,
    pub(crate) sessions: AtomicU64,
    pub(crate) vanished: AtomicU64,
    pub(crate) stalled: AtomicU64,
    /// Stalled clients that the mux has sent away.
    pub(crate) parted: AtomicU64,
    /// Lines that were no messages.
    pub(crate) garbage: AtomicU64,
    /// Requests of clients that stayed.
    pub(crate) asked: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) results: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) doubled: AtomicU64,
    pub(crate) misrouted: AtomicU64,
    errors: Mutex<BTreeMap<i64, u64>>,
    other: AtomicU64,
}

impl Tally {
    #[expect(clippy::unused_self, reason = "the counter is one of its own")]
    pub(crate) fn add(&self, counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn error(&self, code: i64) {
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += 1;
    }

    /// Counts one of the three that must stay 0, and says what it was.
    pub(crate) fn fault(&self, counter: &AtomicU64, what: &str) {
        if counter.fetch_add(1, Ordering::Relaxed) < TOLD {
            say(what);
        }
    }

    /// Something else that must not be.
    pub(crate) fn violation(&self, what: &str) {
        self.fault(&self.other, &format!("violation: {what}"));
    }

    /// Prints all of it, and returns whether it is as it should be.
    pub(crate) fn judge(&self, kills: u64) -> bool {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if of(&self.kills) != kills {
            self.violation(&format!("{} of {kills} kills", of(&self.kills)));
        }
        let failed: u64 = errors.values().sum();
        if of(&self.results) <= failed
            || of(&self.cancelled) == 0
            || of(&self.vanished) == 0
            || of(&self.stalled) == 0
        {
            self.violation("it was too quiet, or too little went well, to show anything");
        }
        say(&format!(
            "{} sessions ({} vanished, {} stalled, {} of them sent away), {} lines of garbage, {} kills",
            of(&self.sessions),
            of(&self.vanished),
            of(&self.stalled),
            of(&self.parted),
            of(&self.garbage),
            of(&self.kills),
        ));
        say(&format!(
            "{} requests: {} results, {} cancelled, errors by code {errors:?}",
            of(&self.asked),
            of(&self.results),
            of(&self.cancelled),
        ));
        let [lost, doubled, misrouted, other] =
            [&self.lost, &self.doubled, &self.misrouted, &self.other].map(of);
        let is_well = lost + doubled + misrouted + other == 0;
        let verdict = if is_well { "passed" } else { "FAILED" };
        say(&format!(
            "{verdict}: {lost} lost, {doubled} doubled, {misrouted} misrouted, {other} other violations"
        ));
        is_well
    }
}
