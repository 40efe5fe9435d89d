//! What a session tells its owner.

use alloc::collections::VecDeque;
use alloc::string::String;

use bytes::Bytes;

use super::Failure;
use crate::limits;

/// What a session tells its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request was answered with an error of ours.
    Failed {
        /// Its id as spelled.
        id: Bytes,
        /// Why.
        failure: Failure,
    },
    /// A notification, or an answer of the agent's, was not delivered. Nobody is told but the owner.
    Undelivered {
        /// The notification's method; `None` for an answer.
        method: Option<String>,
        /// Why.
        failure: Failure,
    },
    /// An answer that nobody waits for; it was dropped. One of the server's, or of the agent's.
    Unasked {
        /// Its id as spelled.
        id: Bytes,
    },
    /// Something in a response that is no message, or none that can be taken; it was dropped.
    Noise {
        /// The beginning of it.
        excerpt: Bytes,
        /// Its length in bytes.
        len: u64,
    },
    /// The session had ended at the server and was made anew.
    Renewed,
    /// The session had ended at the server and could not be made anew. Who waited for it has been answered.
    NotRenewed(Failure),
    /// The server has no stream of its own, which its status 405 says, or it cannot be had.
    NoStream(Failure),
    /// So many events were dropped because nobody took them.
    Dropped(u64),
}

/// Events that wait, bounded in number.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<Event>,
    dropped: u64,
}

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        if self.queue.len() < limits::MAX_EVENTS {
            self.queue.push_back(event);
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.queue.pop_front();
        event.or_else(|| match core::mem::take(&mut self.dropped) {
            0 => None,
            dropped => Some(Event::Dropped(dropped)),
        })
    }
}
