//! The ways a session ends, on the virtual clock.

use std::time::Duration;

use lumen_proto::negotiate::Mode;
use lumen_proto::{Exit, Instant, Signal};
use lumen_tests::sim::scripted::{JsonClient, Manners};
use lumen_tests::sim::world::What;

use crate::support::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn the_end_of_input_waits_for_what_is_owed() {
    for chop in CHOPS {
        for mode in [Mode::Auto, Mode::Off] {
            let manners = Manners { answer_after: ms(5000), ..Manners::default() };
            let run = connect(chop, mode, session().close_at(1), json(manners)).finish();
            run.assert_results(&["0", "\"list\"", "7"]);
            run.assert_count(3);
            assert_eq!(run.seen.borrow().eofs.len(), 1);
            assert!(run.got.borrow().eof.is_some());
            assert_eq!(run.sim.times(0, What::Exited(Exit::Code(0))).len(), 1);
        }
    }
}

#[test]
fn the_end_of_input_with_nothing_owed_ends_the_child_at_once() {
    let client = JsonClient::new().at(0, INIT).close_at(1000);
    let run = connect(CHOPS[0], Mode::Off, client, json(Manners::default())).finish();
    assert!(at_least(run.seen.borrow().eofs[0], Instant::ZERO, ms(1000)));
    assert!(run.got.borrow().eof.unwrap() < Instant::from_millis(1001));
}

#[test]
fn what_is_still_owed_after_30_seconds_is_answered_with_errors() {
    let manners = Manners { answer_after: ms(40_000), ..Manners::default() };
    let client = session().close_at(1);
    let run = connect(CHOPS[0], Mode::Off, client, json(manners)).finish();
    for id in ["0", "\"list\"", "7"] {
        assert_eq!(run.got.borrow().answers(id).len(), 1);
    }
    assert!(run.got.borrow().texts().iter().all(|text| text.contains("\"error\"")));
    assert!(at_least(run.sim.times(0, What::Finish)[0], Instant::from_millis(1), ms(30_000)));
}

#[test]
fn the_polite_ladder_is_input_2_s_term_2_s_kill() {
    for chop in CHOPS {
        let manners = Manners { ignore_eof: true, ignore_term: true, ..Manners::default() };
        let client = JsonClient::new().at(0, INIT).close_at(1000);
        let run = connect(chop, Mode::Off, client, json(manners)).finish();
        let finished = run.sim.times(0, What::Finish)[0];
        let term = run.sim.times(0, What::Signal(Signal::Terminate));
        let kill = run.sim.times(0, What::Signal(Signal::Kill));
        assert_eq!((term.len(), kill.len()), (1, 1));
        assert!(at_least(term[0], finished, ms(2000)), "{term:?}");
        assert!(at_least(kill[0], term[0], ms(2000)), "{kill:?}");
        assert_eq!(run.sim.times(0, What::Exited(Exit::Signal(9))).len(), 1);
        assert!(run.sim.machine(0).has_ended());
    }
}

#[test]
fn a_polite_child_is_never_signalled() {
    let client = JsonClient::new().at(0, INIT).close_at(1000);
    let manners = Manners { exit_after: ms(1900), ..Manners::default() };
    let run = connect(CHOPS[0], Mode::Off, client, json(manners)).finish();
    assert!(run.sim.log().iter().all(|e| !matches!(e.what, What::Signal(_))));
}

#[test]
fn told_to_end_it_terms_at_once_and_kills_after_a_second_and_a_half() {
    let manners = Manners { ignore_eof: true, ignore_term: true, ..Manners::default() };
    let mut run = connect(CHOPS[0], Mode::Off, JsonClient::new().at(0, INIT), json(manners));
    run.sim.run_for(ms(3000));
    let now = run.sim.now();
    run.sim.with(0, |relay, now| relay.with(now, |relay| relay.terminate(now)));
    run.sim.run_until_idle();
    assert_eq!(run.sim.times(0, What::Signal(Signal::Terminate)), [now]);
    let kill = run.sim.times(0, What::Signal(Signal::Kill));
    assert!(kill.len() == 1 && at_least(kill[0], now, ms(1500)), "{kill:?}");
    assert!(run.sim.machine(0).has_ended());
}
