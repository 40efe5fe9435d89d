//! What a multiplexer does with its hub besides driving it: lets clients in, answers what is asked of itself, and tells
//! its owner. The same on every runtime.

use std::collections::VecDeque;
use std::io;

use lumen_proto::endpoint::{HubEvent, Pool};
use lumen_proto::{Instant, Port};

use crate::door::{Door, EXHAUSTED_PAUSE, MuxEvent};
use crate::status::{About, Process, describe};

/// A driver of a [`Pool`], as it is used here.
pub trait Drive {
    /// The stream of a client.
    type Stream;

    /// Returns the driver's time.
    fn now(&self) -> Instant;

    /// Returns the machine, to look at it.
    fn pool(&self) -> &Pool;

    /// Gives the machine a command.
    fn with<R>(&mut self, command: impl FnOnce(&mut Pool) -> R) -> R;

    /// Gives the machine a client's stream.
    fn attach(&mut self, port: Port, stream: Self::Stream);

    /// Returns what is known of the process behind a server's port.
    fn process(&self, port: Port) -> Process;
}

/// A client that has connected.
#[derive(Debug)]
pub struct Knock<S> {
    /// Its stream.
    pub stream: S,
    /// The user that it runs as.
    pub uid: u32,
    /// Its process id, 0 if that cannot be told.
    pub pid: i32,
}

/// Where a multiplexer receives its clients, and keeps what its owner is to be told.
///
/// # Bounds
/// One event for each call that may make one; take them with [`poll_event`](Self::poll_event) in between.
#[derive(Debug)]
pub struct Desk {
    door: Door,
    about: About,
    events: VecDeque<MuxEvent>,
    is_over: bool,
}

impl Desk {
    /// Makes one that lets in whom `door` does, and has those told of `about` who ask.
    pub const fn new(door: Door, about: About) -> Self {
        Self { door, about, events: VecDeque::new(), is_over: false }
    }

    /// Takes what came of accepting a client: the client, or why there is none, of which `OutOfMemory` means that the
    /// system has no room for one, and anything else that it has gone again.
    pub fn on_knock<D: Drive>(&mut self, driver: &mut D, knock: io::Result<Knock<D::Stream>>) {
        let Knock { stream, uid, pid } = match knock {
            Ok(knock) => knock,
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                let until = driver.now() + EXHAUSTED_PAUSE;
                driver.with(|pool| pool.hold_clients(until));
                return self.events.push_back(MuxEvent::Exhausted);
            }
            Err(_) => return,
        };
        self.events.push_back(match driver.with(|pool| self.door.try_admit(pool, uid)) {
            Ok(port) => {
                driver.attach(port, stream);
                match driver.pool().is_visitor(port) {
                    true => MuxEvent::Visited { port, uid, pid },
                    false => MuxEvent::Joined { port, uid, pid },
                }
            }
            Err(why) => MuxEvent::Refused { uid, pid, why },
        });
    }

    /// Takes what the hub says, and answers what is asked of us.
    pub fn on_event<D: Drive>(&mut self, driver: &mut D, event: HubEvent) {
        if let HubEvent::Asked { request, client } = event {
            let now = driver.now();
            let text = describe(driver.pool(), now, &self.about, |port| driver.process(port));
            return driver.with(|pool| pool.answer(now, client, request, &text));
        }
        self.events.push_back(MuxEvent::Hub(event));
    }

    /// Returns the next event for the owner.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<MuxEvent> {
        let event = self.events.pop_front()?;
        self.is_over |= event.is_last();
        Some(event)
    }

    /// Returns whether the last event was taken.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Starts the server now, as [`Pool::start`].
pub fn start(driver: &mut impl Drive) {
    let now = driver.now();
    driver.with(|pool| pool.start(now));
}

/// Ends the hub, as [`Pool::shut_down`].
pub fn shut_down(driver: &mut impl Drive) {
    let now = driver.now();
    driver.with(|pool| pool.shut_down(now));
}
