//! The world: machines and parties on one virtual clock, joined by pipes.
//!
//! A machine is drained as the real driver drains it: actions, ready ports, output while there is room,
//! events, until nothing is left. Besides, every machine gets a timeout that is too early just before anything
//! happens.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use lumen_proto::{
    Action, ChildEvent, Exit, Input, Instant, Machine, OpenError, Port, Signal, Transmit, limits,
};

use super::Clock;
use super::party::{Deed, Hold, Outbox, Party};
use super::pipe::{Link, Pipe, Read};

/// Steps without coming to rest before the world calls it spinning.
const MAX_STEPS: usize = 100_000;

/// A machine asks for a child.
#[derive(Clone, Copy, Debug)]
pub struct Spawn {
    /// Which machine.
    pub machine: usize,
    /// The port the child gets.
    pub port: Port,
    /// How many children this machine has asked for before.
    pub nth: usize,
    /// When.
    pub now: Instant,
}

/// What comes of it.
pub enum Spawned<M> {
    /// A scripted child.
    Party(Box<dyn Party>),
    /// A scripted child that takes so long to open.
    Slow(Duration, Box<dyn Party>),
    /// Another machine under test, whose own port toward its parent is this.
    Machine(M, Port),
    /// Nothing: it could not be started.
    Fails(OpenError),
}

/// What happened on a port of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The machine asked for a child.
    Spawn,
    /// It opened.
    Opened,
    /// It could not be opened.
    Failed,
    /// The machine sent a signal.
    Signal(Signal),
    /// The machine dropped the port.
    Abort,
    /// The machine closed its writing half.
    Finish,
    /// The machine was told of the end of the stream.
    Eof,
    /// The machine was told that nothing can be delivered any more.
    Lost,
    /// The machine was told that its output is written and closed.
    Finished,
    /// The machine was told how the child ended.
    Exited(Exit),
}

/// One line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Instant,
    /// Which machine.
    pub machine: usize,
    /// Which of its ports.
    pub port: Port,
    /// What.
    pub what: What,
}

/// Machines of one type, scripted parties, and everything between them.
pub struct World<M: Machine> {
    clock: Clock,
    link: Link,
    nodes: Vec<Node<M>>,
    actors: Vec<Actor>,
    pipes: Vec<Pipe>,
    agenda: BTreeMap<(Instant, usize), Due<M>>,
    count: usize,
    spawn: Box<dyn FnMut(Spawn) -> Spawned<M>>,
    exit: OnEvent<M>,
    terminate: OnTerminate<M>,
    events: Vec<(Instant, usize, M::Event)>,
    log: Vec<Entry>,
    wakes: BTreeMap<String, usize>,
}

type OnEvent<M> = Box<dyn Fn(&<M as Machine>::Event) -> Option<Exit>>;
type OnTerminate<M> = Box<dyn Fn(&mut M, Instant)>;

struct Node<M> {
    machine: M,
    slots: BTreeMap<Port, Slot>,
    spawned: usize,
    parent: Option<(usize, Port)>,
    ending: Option<Exit>,
    ended: bool,
}

/// One open port of a machine.
struct Slot {
    peer: Peer,
    read: usize,
    write: usize,
    pending: BytesMut,
    ready: bool,
    stalled: bool,
    eof: bool,
    shut: bool,
}

#[derive(Clone, Copy)]
enum Peer {
    Actor(usize),
    Node(usize),
}

/// A party and its place.
struct Actor {
    party: Box<dyn Party>,
    outbox: Outbox,
    read: usize,
    write: usize,
    owner: (usize, Port),
    partial: BytesMut,
    eof: bool,
    broken: bool,
    closed: bool,
    gone: bool,
}

enum Due<M> {
    Open(usize, Port, Spawned<M>),
    Exited(usize, Port, Exit),
    Release(usize),
}

impl<M: Machine> World<M>
where
    M::Event: Debug,
{
    /// Makes an empty world in which `spawn` answers every [`Action::Spawn`].
    pub fn new(link: Link, spawn: impl FnMut(Spawn) -> Spawned<M> + 'static) -> Self {
        Self {
            clock: Clock::default(),
            link,
            nodes: Vec::new(),
            actors: Vec::new(),
            pipes: Vec::new(),
            agenda: BTreeMap::new(),
            count: 0,
            spawn: Box::new(spawn),
            exit: Box::new(|_| None),
            terminate: Box::new(|_, _| {}),
            events: Vec::new(),
            log: Vec::new(),
            wakes: BTreeMap::new(),
        }
    }

    /// Tells which event is a machine's last, and with what its process then exits.
    #[must_use]
    pub fn with_exit(mut self, exit: impl Fn(&M::Event) -> Option<Exit> + 'static) -> Self {
        self.exit = Box::new(exit);
        self
    }

    /// Tells what SIGTERM means to a machine that is another one's child.
    #[must_use]
    pub fn with_terminate(mut self, terminate: impl Fn(&mut M, Instant) + 'static) -> Self {
        self.terminate = Box::new(terminate);
        self
    }

    /// Puts a machine into the world; the first is 0.
    pub fn add(&mut self, machine: M) -> usize {
        self.nodes.push(Node {
            machine,
            slots: BTreeMap::new(),
            spawned: 0,
            parent: None,
            ending: None,
            ended: false,
        });
        let id = self.nodes.len() - 1;
        self.drain(id);
        id
    }

    /// Opens `port` of a machine with a scripted party at its other end, joined by the world's link.
    pub fn attach(&mut self, machine: usize, port: Port, party: impl Party + 'static) {
        self.attach_by(self.link, machine, port, Box::new(party));
    }

    /// The same with a link of its own.
    pub fn attach_by(&mut self, link: Link, machine: usize, port: Port, party: Box<dyn Party>) {
        let now = self.now();
        let (down, up) = (self.pipe(link), self.pipe(link));
        let id = self.actors.len();
        self.actors.push(Actor {
            party,
            outbox: Outbox::new(now),
            read: down,
            write: up,
            owner: (machine, port),
            partial: BytesMut::new(),
            eof: false,
            broken: false,
            closed: false,
            gone: false,
        });
        self.open_slot(machine, port, Peer::Actor(id), up, down);
        let actor = &mut self.actors[id];
        actor.party.on_open(now, &mut actor.outbox);
    }

    /// Runs a command of the machine's own, and drains it.
    pub fn with<R>(&mut self, machine: usize, command: impl FnOnce(&mut M, Instant) -> R) -> R {
        let now = self.now();
        let result = command(&mut self.nodes[machine].machine, now);
        self.drain(machine);
        result
    }

    /// Has the party at the other end of a port do something, as its own doing.
    ///
    /// # Panics
    /// If no party was ever there.
    pub fn tell(&mut self, machine: usize, port: Port, what: impl FnOnce(&mut Outbox)) {
        let now = self.now();
        let actor = self.actors.iter_mut().find(|actor| actor.owner == (machine, port)).expect("a party");
        actor.outbox.now = now;
        what(&mut actor.outbox);
    }

    /// Ends a port from its other end, both ways, as the reset of a connection does: its machine is told that nothing
    /// can be delivered, without having tried to.
    ///
    /// # Panics
    /// If the port was never open.
    pub fn cut(&mut self, machine: usize, port: Port) {
        let actor = self.actors.iter_mut().find(|actor| actor.owner == (machine, port)).expect("a party");
        actor.gone = true;
        let (read, write) = (actor.read, actor.write);
        self.pipes[read].break_off();
        self.pipes[write].close(self.clock.now());
        let slot = self.nodes[machine].slots.get_mut(&port).expect("a port");
        if !std::mem::replace(&mut slot.shut, true) {
            slot.pending.clear();
            self.note(machine, port, What::Lost);
            self.input(machine, Input::Lost(port));
        }
    }

    /// Runs until nothing is left to happen.
    ///
    /// # Panics
    /// If that takes more than 100,000 steps; the message names what kept it awake.
    pub fn run_until_idle(&mut self) {
        self.run(None);
    }

    /// Runs for so long and leaves the clock there.
    pub fn run_for(&mut self, time: Duration) {
        let until = self.now() + time;
        self.run(Some(until));
        self.clock.advance_to(until);
    }

    /// Does everything that is due now, then moves the clock to the next thing; `false` if there is none
    /// before `until`.
    pub fn step(&mut self, until: Option<Instant>) -> bool {
        self.settle();
        let Some((at, who)) = self.next_wake() else {
            self.disturb();
            return false;
        };
        if until.is_some_and(|until| at > until) {
            return false;
        }
        *self.wakes.entry(who).or_default() += 1;
        let just_before = Instant::from_micros(at.as_micros().saturating_sub(1));
        if just_before > self.now() {
            self.clock.advance_to(just_before);
            self.disturb();
        }
        self.clock.advance_to(at.max(self.now()));
        true
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns a machine.
    pub fn machine(&self, machine: usize) -> &M {
        &self.nodes[machine].machine
    }

    /// Returns how many machines there are.
    pub fn machines(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the machine's last event has come and everything it had to write is written.
    pub fn has_ended(&self, machine: usize) -> bool {
        self.nodes[machine].ended
    }

    /// Returns the events of one machine with their times.
    pub fn events(&self, machine: usize) -> impl Iterator<Item = (Instant, &M::Event)> {
        self.events.iter().filter(move |(_, who, _)| *who == machine).map(|(at, _, event)| (*at, event))
    }

    /// Returns what happened on the ports, in order.
    pub fn log(&self) -> &[Entry] {
        &self.log
    }

    /// Returns the times at which this happened on any port of the machine.
    pub fn times(&self, machine: usize, what: What) -> Vec<Instant> {
        self.log.iter().filter(|e| e.machine == machine && e.what == what).map(|e| e.at).collect()
    }

    /// Returns all bytes written so far on an open or closed port: by the machine, and to it.
    pub fn transcript(&self, machine: usize, port: Port) -> (&[u8], &[u8]) {
        let slot = &self.nodes[machine].slots[&port];
        (self.pipes[slot.write].transcript(), self.pipes[slot.read].transcript())
    }

    fn run(&mut self, until: Option<Instant>) {
        self.wakes.clear();
        for _ in 0..MAX_STEPS {
            if !self.step(until) {
                return;
            }
        }
        let mut wakes: Vec<_> = self.wakes.iter().collect();
        wakes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        panic!("no rest after {MAX_STEPS} steps, at {:?}; kept awake by {:?}", self.now(), wakes);
    }

    fn pipe(&mut self, link: Link) -> usize {
        self.pipes.push(Pipe::new(link));
        self.pipes.len() - 1
    }

    fn push(&mut self, delay: Duration, due: Due<M>) {
        self.count += 1;
        self.agenda.insert((self.now() + delay, self.count), due);
    }

    fn note(&mut self, machine: usize, port: Port, what: What) {
        self.log.push(Entry { at: self.clock.now(), machine, port, what });
    }

    fn open_slot(&mut self, machine: usize, port: Port, peer: Peer, read: usize, write: usize) {
        let slot = Slot {
            peer,
            read,
            write,
            pending: BytesMut::new(),
            ready: true,
            stalled: false,
            eof: false,
            shut: false,
        };
        self.nodes[machine].slots.insert(port, slot);
        self.note(machine, port, What::Opened);
        self.input(machine, Input::Opened(port));
    }

    fn input(&mut self, machine: usize, input: Input<'_>) {
        self.nodes[machine].machine.handle_input(self.clock.now(), input);
        self.drain(machine);
    }
}

mod turn;

#[cfg(test)]
mod tests;
