//! The states of a child, by hand.

use core::time::Duration;
use std::vec::Vec;

use super::*;
use crate::{Action, Exit, Instant, OpenError, OpenErrorKind, Port, Signal};

const P: Port = Port::new(1);
const T0: Instant = Instant::ZERO;

fn actions(s: &mut Supervisor) -> Vec<Action> {
    core::iter::from_fn(|| s.poll_action()).collect()
}

fn running(behind: Behind) -> Supervisor {
    let mut s = Supervisor::new(behind, P);
    assert_eq!(s.start(), P);
    s.handle_opened(P);
    assert_eq!(actions(&mut s), [Action::Spawn(P)]);
    s
}

#[test]
fn exit_then_eof_and_eof_then_exit_both_end_it() {
    let mut s = running(Behind::Process);
    s.handle_exited(T0, P, Exit::Code(3));
    assert_eq!(s.poll_ended(), None);
    s.handle_eof(T0, P);
    assert_eq!(s.poll_ended(), Some(Ended::Exited(Exit::Code(3))));
    assert_eq!(actions(&mut s), [Action::Abort(P)]);

    let mut s = running(Behind::Process);
    s.handle_eof(T0, P);
    assert!(s.is_stopping());
    s.handle_exited(T0, P, Exit::Code(0));
    assert_eq!(s.poll_ended(), Some(Ended::Exited(Exit::Code(0))));
}

#[test]
fn an_inherited_pipe_does_not_delay_the_end() {
    let mut s = running(Behind::Process);
    s.handle_exited(T0, P, Exit::Code(0));
    let due = s.poll_timeout().unwrap();
    assert_eq!(due, Instant::from_millis(500));
    s.handle_timeout(due);
    assert_eq!(s.poll_ended(), Some(Ended::Exited(Exit::Code(0))));
    assert_eq!(s.poll_timeout(), None);
}

#[test]
fn the_polite_ladder_takes_its_steps() {
    let mut s = running(Behind::Process);
    s.stop(T0, Ladder::Polite);
    assert_eq!(actions(&mut s), []);
    let mut t = T0;
    let mut seen = Vec::new();
    while let Some(due) = s.poll_timeout() {
        assert!(due > t);
        t = due;
        s.handle_timeout(due);
        seen.extend(actions(&mut s).into_iter().map(|a| (due.as_micros() / 1000, a)));
    }
    assert_eq!(
        seen,
        [
            (2000, Action::Signal(P, Signal::Terminate)),
            (4000, Action::Signal(P, Signal::Kill)),
            (6000, Action::Abort(P)),
        ]
    );
    assert_eq!(s.poll_ended(), Some(Ended::Closed));
}

#[test]
fn the_quick_ladder_overtakes_the_polite_one() {
    let mut s = running(Behind::Process);
    s.stop(T0, Ladder::Polite);
    s.stop(Instant::from_millis(100), Ladder::Quick);
    assert_eq!(actions(&mut s), [Action::Signal(P, Signal::Terminate)]);
    assert_eq!(s.poll_timeout(), Some(Instant::from_millis(1600)));
    // A polite child's end is taken at once.
    s.handle_exited(Instant::from_millis(200), P, Exit::Signal(15));
    s.handle_eof(Instant::from_millis(200), P);
    assert_eq!(s.poll_ended(), Some(Ended::Exited(Exit::Signal(15))));
}

#[test]
fn the_quickest_ladder_is_over_before_the_quick_one_of_the_hop_before() {
    let ends = [Ladder::Quickest, Ladder::Quick].map(|ladder| {
        let mut s = running(Behind::Process);
        s.stop(T0, ladder);
        assert_eq!(actions(&mut s), [Action::Signal(P, Signal::Terminate)]);
        s.poll_timeout()
    });
    assert_eq!(ends, [Some(Instant::from_millis(1000)), Some(Instant::from_millis(1500))]);
}

#[test]
fn quick_after_sigterm_only_shortens() {
    let mut s = running(Behind::Process);
    s.stop(T0, Ladder::Polite);
    s.handle_timeout(Instant::from_millis(2000));
    s.stop(Instant::from_millis(2100), Ladder::Quick);
    assert_eq!(s.poll_timeout(), Some(Instant::from_millis(3600)));
    assert_eq!(actions(&mut s), [Action::Signal(P, Signal::Terminate)]);
}

#[test]
fn each_generation_has_its_own_port_and_old_facts_are_ignored() {
    let mut s = running(Behind::Process);
    s.handle_exited(T0, P, Exit::Code(1));
    s.handle_eof(T0, P);
    assert!(s.poll_ended().is_some());
    let _ = actions(&mut s);
    let next = s.start();
    assert_eq!(next, P.successor());
    s.handle_exited(T0, P, Exit::Code(9));
    s.handle_eof(T0, P);
    assert!(s.is_alive() && s.poll_ended().is_none());
    assert_eq!(s.start(), next, "a second start of a live child does nothing");
    assert_eq!(actions(&mut s), [Action::Spawn(next)]);
}

#[test]
fn a_failed_start_needs_no_abort() {
    let mut s = Supervisor::new(Behind::Process, P);
    s.start();
    let error = OpenError { kind: OpenErrorKind::NotFound, errno: 2 };
    s.handle_failed(P, error);
    assert_eq!(s.poll_ended(), Some(Ended::Failed(error)));
    assert_eq!(actions(&mut s), [Action::Spawn(P)]);
    assert!(!s.is_alive());
}

#[test]
fn a_socket_has_no_signals() {
    let mut s = running(Behind::Socket);
    s.stop(T0, Ladder::Quick);
    assert_eq!(actions(&mut s), []);
    s.handle_timeout(T0 + Duration::from_millis(1500));
    assert_eq!(actions(&mut s), [Action::Abort(P)]);
    let mut s = running(Behind::Socket);
    s.handle_eof(T0, P);
    assert_eq!(s.poll_ended(), Some(Ended::Closed));
}
