//! What is remembered of processes whose ports are closed, in bindings of both kinds.

use std::collections::VecDeque;

use lumen_proto::{Exit, Port};

use crate::StderrTail;

/// Closed ports of which the exit and the tail of standard error are still known. Worst case: one [`StderrTail`] each.
pub const MAX_ENDED: usize = 8;

/// How a process ended, and what it said last.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub exit: Option<Exit>,
    pub tail: StderrTail,
}

/// The last ports that were closed.
#[derive(Debug, Default)]
pub(crate) struct Remembered(VecDeque<(Port, Ended)>);

impl Remembered {
    /// Keeps one more, and forgets the oldest beyond the bound.
    pub(crate) fn push(&mut self, port: Port, ended: Ended) {
        if self.0.len() == MAX_ENDED {
            self.0.pop_front();
        }
        self.0.push_back((port, ended));
    }

    /// Finds a port that is among them.
    pub(crate) fn find(&self, port: Port) -> Option<&Ended> {
        self.0.iter().find_map(|(ended, what)| (*ended == port).then_some(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_known_and_no_more() {
        let mut remembered = Remembered::default();
        for code in 0..10 {
            let ended = Ended { exit: Some(Exit::Code(code)), ..Ended::default() };
            remembered.push(Port::new(code.unsigned_abs()), ended);
        }
        assert!(remembered.find(Port::new(1)).is_none());
        assert_eq!(remembered.find(Port::new(2)).and_then(|ended| ended.exit), Some(Exit::Code(2)));
        assert_eq!(remembered.0.len(), MAX_ENDED);
    }
}
