//! Who is let in to a hub, and what its owner is told: the same on every runtime.

use std::collections::BTreeSet;
use std::time::Duration;

use lumen_proto::Port;
use lumen_proto::endpoint::{Event, HubEvent, Pool};

/// How long no client is accepted after the system had no descriptor for one.
pub const EXHAUSTED_PAUSE: Duration = Duration::from_millis(500);

/// What the owner of a multiplexer is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MuxEvent {
    /// A client was let in.
    Joined {
        /// Its port.
        port: Port,
        /// The user that it runs as.
        uid: u32,
        /// Its process id, 0 if that cannot be told.
        pid: i32,
    },
    /// A client came when there was no room for one: it may ask how things stand, is told that there is no room, and is
    /// let go.
    Visited {
        /// Its port.
        port: Port,
        /// The user that it runs as.
        uid: u32,
        /// Its process id, 0 if that cannot be told.
        pid: i32,
    },
    /// A client was sent away before it said anything.
    Refused {
        /// The user that it runs as.
        uid: u32,
        /// Its process id, 0 if that cannot be told.
        pid: i32,
        /// Why.
        why: Refusal,
    },
    /// The system has no descriptor or memory for another client; those who come wait for [`EXHAUSTED_PAUSE`] and longer.
    Exhausted,
    /// What the hub says.
    Hub(HubEvent),
}

impl MuxEvent {
    /// Returns whether it is the last event there is.
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Hub(HubEvent::Stream(Event::Finished(_))))
    }
}

/// Why a client was sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It runs as a user that is not allowed here.
    User,
    /// There are as many clients and visitors as may be, or the hub is ending.
    Full,
}

/// Decides who is let in.
#[derive(Clone, Debug)]
pub struct Door {
    allowed: BTreeSet<u32>,
}

impl Door {
    /// Lets in these users, by number.
    pub const fn new(allowed: BTreeSet<u32>) -> Self {
        Self { allowed }
    }

    /// Finds a port for a client that has connected.
    ///
    /// # Errors
    /// It is to be sent away.
    pub fn try_admit(&self, pool: &mut Pool, uid: u32) -> Result<Port, Refusal> {
        if !self.allowed.contains(&uid) {
            return Err(Refusal::User);
        }
        pool.try_accept().ok_or(Refusal::Full)
    }
}

#[cfg(test)]
mod tests {
    use lumen_proto::endpoint::{HubConfig, ServerConfig};
    use lumen_proto::limits::MAX_VISITORS;
    use lumen_proto::negotiate::Mode;
    use lumen_proto::supervisor::Behind;

    use super::*;

    #[test]
    fn only_named_users_come_in_and_not_too_many() {
        let server = ServerConfig::new(Behind::Process, Mode::Offer);
        let mut pool = Pool::new(HubConfig { max_clients: 3, ..HubConfig::new(server) });
        let door = Door::new([1000, 33, 0].into());
        assert_eq!(door.try_admit(&mut pool, 1001), Err(Refusal::User));
        for uid in [1000, 0, 33] {
            door.try_admit(&mut pool, uid).unwrap();
        }
        for _ in 0..MAX_VISITORS {
            let visitor = door.try_admit(&mut pool, 1000).unwrap();
            assert!(pool.is_visitor(visitor));
        }
        assert_eq!(door.try_admit(&mut pool, 1000), Err(Refusal::Full));
    }
}
