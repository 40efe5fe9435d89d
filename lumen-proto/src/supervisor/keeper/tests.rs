//! Generations one after another, on a virtual clock.

use core::time::Duration;
use std::vec::Vec;

use super::*;
use crate::{Exit, OpenError, OpenErrorKind};

const P: Port = Port::new(1);
const T0: Instant = Instant::ZERO;
const CRASH: Ended = Ended::Exited(Exit::Code(1));

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A keeper, its clock, and the port of its youngest generation.
struct World {
    keeper: Keeper,
    now: Instant,
    port: Port,
}

impl World {
    fn new(config: Config) -> Self {
        let mut keeper = Keeper::new(config);
        keeper.handle_started(P);
        Self { keeper, now: T0, port: P }
    }

    fn running() -> Self {
        let mut world = Self::new(Config::default());
        world.keeper.handle_ready(T0, P);
        world
    }

    fn end(&mut self) -> Option<Next> {
        self.keeper.handle_ended(self.now, self.port, CRASH)
    }

    /// Goes on to the deadline, starts the next generation there, and returns how many seconds that took.
    fn restart(&mut self) -> u64 {
        let due = self.keeper.poll_timeout().unwrap();
        let before = Instant::from_micros(due.as_micros() - 1);
        assert!(!self.keeper.handle_timeout(before), "early");
        assert!(self.keeper.handle_timeout(due));
        assert_eq!((self.keeper.poll_timeout(), self.keeper.handle_timeout(due)), (None, false), "told once");
        let waited = due - self.now;
        self.now = due;
        self.port = self.port.successor();
        self.keeper.handle_started(self.port);
        assert_eq!(self.keeper.state(), State::Starting);
        waited.as_secs()
    }
}

#[test]
fn a_life_passes_through_all_states() {
    let mut keeper = Keeper::new(Config::default());
    assert_eq!((keeper.state(), keeper.is_alive(), keeper.last_end()), (State::Idle, false, None));
    keeper.handle_started(P);
    assert_eq!((keeper.state(), keeper.is_alive()), (State::Starting, true));
    keeper.handle_ready(T0 + seconds(1), P);
    keeper.handle_ready(T0 + seconds(2), P);
    assert_eq!(keeper.state(), State::Running { since: T0 + seconds(1) });
    assert_eq!(keeper.handle_ended(T0 + seconds(5), P, CRASH), Some(Next::At(T0 + seconds(8))));
    assert_eq!(keeper.state(), State::Backoff { until: T0 + seconds(8) });
    assert_eq!((keeper.is_alive(), keeper.restarts(), keeper.last_end()), (false, 0, Some(CRASH)));
    assert!(keeper.handle_timeout(T0 + seconds(8)));
    assert_eq!(keeper.state(), State::Idle);
    keeper.handle_started(P.successor());
    assert_eq!((keeper.state(), keeper.restarts()), (State::Starting, 1));
    keeper.stop();
    assert_eq!((keeper.state(), keeper.is_alive()), (State::Stopping { for_good: true }, true));
    assert_eq!(keeper.handle_ended(T0 + seconds(9), P.successor(), Ended::Closed), Some(Next::Stopped));
    assert_eq!((keeper.state(), keeper.last_end()), (State::Stopped, Some(Ended::Closed)));
}

#[test]
fn waits_grow_whatever_the_death() {
    let not_found = Ended::Failed(OpenError { kind: OpenErrorKind::NotFound, errno: 2 });
    let mut world = World::new(Config::default());
    let mut waits = Vec::new();
    for round in 0..7 {
        let how = match round % 4 {
            // It could not be started.
            0 => not_found,
            // It exited before its handshake.
            1 => CRASH,
            // Its handshake was refused or not answered, so it was ended.
            2 => {
                world.keeper.handle_stopping(world.port);
                assert_eq!(world.keeper.state(), State::Stopping { for_good: false });
                Ended::Closed
            }
            // It was ready and died too soon.
            _ => {
                world.keeper.handle_ready(world.now, world.port);
                world.now = world.now + seconds(29);
                CRASH
            }
        };
        let next = world.keeper.handle_ended(world.now, world.port, how);
        assert_eq!(next, world.keeper.poll_timeout().map(Next::At));
        assert_eq!(world.keeper.last_end(), Some(how));
        waits.push(world.restart());
    }
    assert_eq!(waits, [3, 6, 12, 24, 30, 30, 30]);
    assert_eq!(world.keeper.restarts(), 7);
}

#[test]
fn only_health_resets_the_wait() {
    let mut world = World::running();
    world.end();
    assert_eq!(world.restart(), 3);
    // A start that takes long is not health.
    world.now = world.now + seconds(1000);
    world.end();
    assert_eq!(world.restart(), 6);
    // Health until it is told to end, and while it ends.
    world.keeper.handle_ready(world.now, world.port);
    world.now = world.now + seconds(30);
    world.keeper.handle_stopping(world.port);
    world.end();
    assert_eq!(world.restart(), 3);
    world.end();
    assert_eq!(world.restart(), 6);
}

#[test]
fn it_gives_up_at_the_ceiling_and_stays_there() {
    let mut world = World::new(Config { ceiling: Some(2), ..Config::default() });
    assert!(matches!(world.end(), Some(Next::At(_))));
    world.restart();
    assert_eq!(world.end(), Some(Next::GaveUp));
    assert_stays(world, State::GaveUp);
}

#[test]
fn stopping_is_for_good_from_every_state() {
    let idle = World { keeper: Keeper::new(Config::default()), now: T0, port: P };
    let mut waiting = World::running();
    waiting.end();
    for mut world in [idle, waiting] {
        world.keeper.stop();
        assert_stays(world, State::Stopped);
    }
    let mut failing = World::running();
    failing.keeper.handle_stopping(P);
    for mut world in [World::new(Config::default()), World::running(), failing] {
        world.keeper.stop();
        world.keeper.stop();
        world.keeper.handle_stopping(P);
        world.keeper.handle_ready(T0, P);
        assert_eq!(world.keeper.state(), State::Stopping { for_good: true });
        assert_eq!(world.end(), Some(Next::Stopped));
        assert_stays(world, State::Stopped);
    }
}

/// No input moves it out of `state`.
fn assert_stays(mut world: World, state: State) {
    let restarts = world.keeper.restarts();
    for port in [world.port, world.port.successor()] {
        world.keeper.handle_started(port);
        world.keeper.handle_ready(world.now, port);
        world.keeper.handle_stopping(port);
        assert_eq!(world.keeper.handle_ended(world.now, port, Ended::Closed), None);
        assert!(!world.keeper.handle_timeout(world.now + seconds(3600)));
        world.keeper.stop();
        assert_eq!((world.keeper.state(), world.keeper.poll_timeout()), (state, None));
    }
    assert_eq!((world.keeper.restarts(), world.keeper.is_alive()), (restarts, false));
}

#[test]
fn nothing_of_another_generation_counts() {
    let mut world = World::running();
    world.end();
    assert_eq!(world.end(), None, "an end is told once");
    world.keeper.handle_started(P);
    assert!(matches!(world.keeper.state(), State::Backoff { .. }), "a port is not used again");
    world.restart();
    for stale in [P, world.port.successor(), Port::new(9)] {
        world.keeper.handle_ready(world.now, stale);
        world.keeper.handle_stopping(stale);
        world.keeper.handle_started(stale);
        assert_eq!(world.keeper.handle_ended(world.now, stale, Ended::Closed), None);
        assert_eq!((world.keeper.state(), world.keeper.last_end()), (State::Starting, Some(CRASH)));
    }
    assert_eq!(world.keeper.restarts(), 1);
    world.keeper.handle_ready(world.now, world.port);
    assert_eq!(world.keeper.state(), State::Running { since: world.now });
}

#[test]
fn a_start_need_not_wait() {
    let mut world = World::running();
    world.end();
    let next = P.successor();
    world.keeper.handle_started(next);
    assert_eq!((world.keeper.state(), world.keeper.poll_timeout()), (State::Starting, None));
    assert_eq!(world.keeper.handle_ended(T0, next, CRASH), Some(Next::At(T0 + seconds(6))));
}
