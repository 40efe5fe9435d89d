//! The clients of a hub: their legs, by port.

use alloc::vec::Vec;

use crate::connection::{Config, Event, Role};
use crate::endpoint::client_leg::ClientLeg;
use crate::endpoint::ready::Ready;
use crate::{Instant, Port};

/// One client.
#[derive(Debug)]
pub(super) struct Guest {
    pub leg: ClientLeg,
    /// An event of its leg that was looked at and not taken.
    seen: Option<Event>,
    pub ready: Ready,
    /// Its stream is there.
    pub opened: bool,
    pub leaving: Leaving,
    /// There was no room for it: it is heard once, and let go.
    pub is_visitor: bool,
    /// It was told something.
    pub is_told: bool,
    /// What follows of what it was told is not done yet.
    pub in_told: bool,
    /// It stands in the line of those who wait for room at a server.
    pub in_line: bool,
    /// Bytes read while something that it sent was not taken yet.
    pub ahead: usize,
    /// Bytes that wait for it, as counted in the hub's total.
    pub counted: usize,
}

impl Guest {
    /// Returns whether something that it sent is not taken yet.
    pub(super) fn has_event(&self) -> bool {
        self.seen.is_some() || self.leg.has_event()
    }

    /// Returns the next of that without taking it.
    pub(super) fn peek_event(&mut self) -> Option<&Event> {
        self.seen = self.poll_event();
        self.seen.as_ref()
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.seen.take().or_else(|| self.leg.poll_event())
    }
}

/// How far a client's farewell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    No,
    /// Its input has ended while answers are owed.
    Owed {
        until: Instant,
    },
    /// The last output is on its way.
    Flushing {
        until: Instant,
    },
}

impl Leaving {
    pub(super) const fn until(self) -> Option<Instant> {
        match self {
            Self::No => None,
            Self::Owed { until } | Self::Flushing { until } => Some(until),
        }
    }
}

/// All clients.
///
/// # Bounds
/// One place for each client that was ever there at the same time.
#[derive(Debug, Default)]
pub(super) struct Guests {
    places: Vec<Place>,
    free: Vec<usize>,
    count: usize,
    visitors: usize,
}

#[derive(Debug)]
struct Place {
    /// The port of whoever is there, or will be there next.
    port: Port,
    guest: Option<Guest>,
}

/// Ports below this belong to servers.
const FIRST_PORT: u32 = 2;

impl Guests {
    /// Makes room for one more and returns its port. `None` with more clients than ports.
    pub(super) fn add(&mut self, is_visitor: bool) -> Option<Port> {
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                let index = u32::try_from(self.places.len()).ok()?.checked_add(FIRST_PORT)?;
                self.places.push(Place { port: Port::new(index), guest: None });
                self.places.len() - 1
            }
        };
        let place = self.places.get_mut(at)?;
        let config = Config { keep_values: true, ..Config::new(Role::Server) };
        place.guest = Some(Guest {
            leg: ClientLeg::new(config, place.port),
            seen: None,
            ready: Ready::default(),
            opened: false,
            leaving: Leaving::No,
            is_visitor,
            is_told: false,
            in_told: false,
            in_line: false,
            ahead: 0,
            counted: 0,
        });
        self.count += 1;
        self.visitors += usize::from(is_visitor);
        Some(place.port)
    }

    pub(super) fn remove(&mut self, port: Port) -> Option<Guest> {
        let at = index(port)?;
        let place = self.places.get_mut(at).filter(|place| place.port == port)?;
        let guest = place.guest.take()?;
        self.count -= 1;
        self.visitors -= usize::from(guest.is_visitor);
        place.port = port.successor();
        // A place whose generations are used up stays empty.
        if place.port != port {
            self.free.push(at);
        }
        Some(guest)
    }

    pub(super) fn find(&self, port: Port) -> Option<&Guest> {
        let place = self.places.get(index(port)?)?;
        place.guest.as_ref().filter(|_| place.port == port)
    }

    pub(super) fn find_mut(&mut self, port: Port) -> Option<&mut Guest> {
        let place = self.places.get_mut(index(port)?)?;
        place.guest.as_mut().filter(|_| place.port == port)
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = Port> {
        self.places.iter().filter(|place| place.guest.is_some()).map(|place| place.port)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Port, &Guest)> {
        self.places.iter().filter_map(|place| Some((place.port, place.guest.as_ref()?)))
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) const fn visitors(&self) -> usize {
        self.visitors
    }
}

fn index(port: Port) -> Option<usize> {
    port.index().checked_sub(FIRST_PORT).and_then(|index| usize::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_but_never_a_port() {
        let mut guests = Guests::default();
        let (one, two) = (guests.add(false).unwrap(), guests.add(true).unwrap());
        assert_ne!(one, two);
        assert!(guests.remove(one).is_some() && guests.remove(one).is_none());
        let three = guests.add(false).unwrap();
        assert_eq!(three.index(), one.index());
        assert_ne!(three, one);
        assert!(guests.find(one).is_none() && guests.find(three).is_some());
        assert_eq!((guests.len(), guests.visitors()), (2, 1));
        assert!(guests.find(Port::new(0)).is_none() && guests.find(Port::new(99)).is_none());
    }
}
