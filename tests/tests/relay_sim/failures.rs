//! Children that die, never start, talk nonsense or never answer.

use std::time::Duration;

use lumen_proto::negotiate::Mode;
use lumen_proto::{Exit, OpenError, OpenErrorKind};
use lumen_tests::sim::party::Hold;
use lumen_tests::sim::scripted::{JsonClient, Manners, Witness};
use lumen_tests::sim::world::What;
use lumen_tests::sim::{Link, Spawned, World};

use crate::support::*;

const GONE: i64 = -32011;

#[test]
fn noise_never_reaches_a_client_and_ends_nothing() {
    for chop in CHOPS {
        let manners = Manners {
            before: b"Server started\n\nListening on stdio\r\n".to_vec(),
            between: b"warn: {\"x\"\n".to_vec(),
            ..Manners::default()
        };
        let run = connect(chop, Mode::Auto, session(), json(manners)).finish();
        run.assert_results(&["0", "\"list\"", "7"]);
        run.assert_count(3);
    }
}

#[test]
fn a_child_that_dies_in_the_middle_of_a_line_leaves_one_answer_for_each() {
    for chop in CHOPS {
        for mode in [Mode::Auto, Mode::Off] {
            let client = JsonClient::new()
                .at(0, INIT)
                .at(1000, call("7"))
                .at(1000, call("\"8\""))
                .at(1000, call(r#""a\u0062\"\\""#));
            let manners = Manners { die_at: Some(1), ..Manners::default() };
            let run = connect(chop, mode, client, json(manners)).finish();
            run.assert_results(&["0"]);
            run.assert_errors(&["7", "\"8\"", r#""ab\"\\""#], GONE);
            run.assert_count(4);
            assert!(
                run.got.borrow().texts().iter().any(|text| text.contains(r#""a\u0062\"\\""#)),
                "own spelling"
            );
            assert!(run.got.borrow().eof.is_some(), "and then the client's stream ends");
            assert_eq!(run.seen.borrow().starts.len(), 1, "it had answered, so it is not started again");
        }
    }
}

#[test]
fn output_that_something_else_holds_open_does_not_delay_the_answers() {
    for hold in [Hold::For(Duration::from_secs(60)), Hold::Forever] {
        let client = JsonClient::new().at(0, INIT).at(1000, call("7"));
        let manners = Manners { die_at: Some(1), hold, ..Manners::default() };
        let run = connect(CHOPS[0], Mode::Off, client, json(manners)).finish();
        run.assert_errors(&["7"], GONE);
        let got = run.got.borrow();
        assert!(got.messages[1].0.as_micros() < 2_000_000, "{:?}", got.messages);
        let child = run.child(0);
        let aborts = run.sim.log().iter().filter(|e| e.port == child && e.what == What::Abort).count();
        assert_eq!(aborts, 1, "what held it open is ended with the tree");
    }
}

#[test]
fn a_child_that_closes_its_output_and_lives_on_is_ended() {
    let client = JsonClient::new().at(0, INIT).at(1000, call("7"));
    let manners = Manners { hush_at: Some(1), ignore_eof: true, ..Manners::default() };
    let run = connect(CHOPS[0], Mode::Off, client, json(manners)).finish();
    run.assert_errors(&["7"], GONE);
    assert_eq!(run.sim.times(0, What::Exited(Exit::Signal(15))).len(), 1);
}

#[test]
fn a_command_that_is_not_there_answers_every_id() {
    for chop in CHOPS {
        let got;
        let mut sim: Sim = World::new(Link::chopped(chop), |_| {
            Spawned::Fails(OpenError { kind: OpenErrorKind::NotFound, errno: 2 })
        });
        let relay = lumen_proto::endpoint::Relay::connect(config(Mode::Auto));
        let port = relay.client_port();
        let id = sim.add(checked(relay));
        {
            let client = session();
            got = client.got();
            sim.attach(id, port, client);
        }
        sim.run_until_idle();
        let run = Run { sim, got, seen: Witness::default() };
        for id in ["0", "\"list\"", "7"] {
            let answers = run.got.borrow().answers(id);
            assert!(answers.len() == 1 && answers[0]["error"]["code"].is_i64(), "{id}: {answers:?}");
        }
        run.assert_count(3);
        assert!(run.got.borrow().eof.is_some());
    }
}

#[test]
fn a_child_that_exits_at_once_is_started_twice_at_most_and_every_id_is_answered() {
    for chop in CHOPS {
        for mode in [Mode::Auto, Mode::Off] {
            let manners = Manners { exit_at_start: Some(Exit::Code(3)), ..Manners::default() };
            let run = connect(chop, mode, session(), json(manners)).finish();
            run.assert_errors(&["0", "\"list\"", "7"], GONE);
            run.assert_count(3);
            let starts = run.seen.borrow().starts.len();
            assert_eq!(starts, if mode == Mode::Auto { 2 } else { 1 });
        }
    }
}

#[test]
fn a_child_that_never_answers_is_given_up() {
    let manners = Manners { silent: true, ..Manners::default() };
    let run = connect(CHOPS[0], Mode::Off, session(), json(manners)).finish();
    for id in ["0", "\"list\"", "7"] {
        let answers = run.got.borrow().answers(id);
        assert!(answers.len() == 1 && answers[0]["error"]["code"].is_i64(), "{id}: {answers:?}");
    }
    assert!(run.got.borrow().messages[0].0.as_micros() >= 120_000_000);
}

#[test]
fn a_cancelled_request_is_owed_nothing() {
    for chop in CHOPS {
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}"#;
        let client = JsonClient::new()
            .at(0, INIT)
            .at(1000, call("5"))
            .at(1000, call("\"5\""))
            .at(1001, cancel)
            .at(1002, call("6"));
        let manners =
            Manners { answer_after: Duration::from_millis(100), die_at: Some(3), ..Manners::default() };
        let run = connect(chop, Mode::Off, client, json(manners)).finish();
        run.assert_results(&["0"]);
        run.assert_errors(&["5", "6"], GONE);
        assert!(run.got.borrow().answers("\"5\"").is_empty(), "cancelled");
        assert_eq!(run.seen.borrow().lines.len(), 5, "the cancel is passed on");
    }
}

#[test]
fn ids_that_look_alike_are_told_apart() {
    for chop in CHOPS {
        for mode in [Mode::Auto, Mode::Off] {
            let ids = ["1", "\"1\"", "\"\"", "0", r#""a\"b\\""#, "9007199254740993", "-1"];
            let client = ids.iter().fold(JsonClient::new(), |client, id| client.at(0, call(id)));
            let run = connect(chop, mode, client, json(Manners::default())).finish();
            run.assert_results(&ids);
            run.assert_count(ids.len());
        }
    }
}

#[test]
fn an_id_that_is_null_or_no_id_is_refused_and_the_next_request_goes_on() {
    for chop in CHOPS {
        let client = JsonClient::new().at(0, call("null")).at(0, call("[1]")).at(0, call("2"));
        let run = connect(chop, Mode::Off, client, json(Manners::default())).finish();
        run.assert_results(&["2"]);
        let refused = run.got.borrow().values();
        let refused: Vec<_> = refused.iter().filter(|value| value["error"]["code"] == -32600).collect();
        assert_eq!(refused.len(), 2);
        assert_eq!(run.seen.borrow().lines.len(), 1);
    }
}
