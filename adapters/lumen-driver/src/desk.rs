//! What a multiplexer does with its hub besides driving it: lets clients in, answers what is asked of itself, and tells
//! its owner. The same on every runtime.

use std::collections::VecDeque;
use std::io;

use lumen_proto::endpoint::{Hub, HubEvent};
use lumen_proto::{Instant, Port};

use crate::door::{Door, EXHAUSTED_PAUSE, MuxEvent};
use crate::status::{Process, describe};

/// A driver of a hub, as it is used here.
pub trait Drive {
    /// The stream of a client.
    type Stream;

    /// Returns the driver's time.
    fn now(&self) -> Instant;

    /// Returns the hub, to look at it.
    fn hub(&self) -> &Hub;

    /// Gives the hub a command.
    fn with<R>(&mut self, command: impl FnOnce(&mut Hub) -> R) -> R;

    /// Gives the hub a client's stream.
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
    events: VecDeque<MuxEvent>,
    is_over: bool,
}

impl Desk {
    /// Makes one that lets in whom `door` does.
    pub const fn new(door: Door) -> Self {
        Self { door, events: VecDeque::new(), is_over: false }
    }

    /// Takes what came of accepting a client: the client, or why there is none, of which `OutOfMemory` means that the
    /// system has no room for one, and anything else that it has gone again.
    pub fn on_knock<D: Drive>(&mut self, driver: &mut D, knock: io::Result<Knock<D::Stream>>) {
        let Knock { stream, uid, pid } = match knock {
            Ok(knock) => knock,
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                let until = driver.now() + EXHAUSTED_PAUSE;
                driver.with(|hub| hub.hold_clients(until));
                return self.events.push_back(MuxEvent::Exhausted);
            }
            Err(_) => return,
        };
        self.events.push_back(match driver.with(|hub| self.door.try_admit(hub, uid)) {
            Ok(port) => {
                driver.attach(port, stream);
                MuxEvent::Joined { port, uid, pid }
            }
            Err(why) => MuxEvent::Refused { uid, pid, why },
        });
    }

    /// Takes what the hub says, and answers what is asked of us.
    pub fn on_event<D: Drive>(&mut self, driver: &mut D, event: HubEvent) {
        if let HubEvent::Asked { request, .. } = event {
            let now = driver.now();
            let text = describe(driver.hub(), now, |port| driver.process(port));
            return driver.with(|hub| hub.answer(now, request, &text));
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

/// Starts the server now, as [`Hub::start`].
pub fn start(driver: &mut impl Drive) {
    let now = driver.now();
    driver.with(|hub| hub.start(now));
}

/// Ends the hub, as [`Hub::shut_down`].
pub fn shut_down(driver: &mut impl Drive) {
    let now = driver.now();
    driver.with(|hub| hub.shut_down(now));
}
