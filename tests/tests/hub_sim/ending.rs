//! Clients that leave, politely and not, and the end of the hub.

use lumen_proto::endpoint::{Event, HubEvent, Outcome, Parted};
use lumen_proto::{Exit, Instant, Signal};
use lumen_tests::sim::Outbox;
use lumen_tests::sim::scripted::Nature;
use lumen_tests::sim::world::What;

use crate::support::*;

/// When the last event came, which must be the end.
#[track_caller]
fn end(bench: &Bench) -> Instant {
    let (at, last) = bench.sim.events(0).last().unwrap();
    assert_eq!(*last, HubEvent::Stream(Event::Finished(Outcome::Terminated(None))));
    at
}

#[test]
fn a_client_that_closes_its_input_gets_what_it_asked_for_and_then_the_end() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.queue(&a, &call_with("1", "later", "1"));
        bench.tell(a.port, Outbox::close);
        bench.run(10_000);
        assert!(a.got.borrow().eof.is_none());
        bench.say(&b, &call("1", "flush"));
        assert_eq!(a.result("1"), 1);
        assert!(a.got.borrow().eof.is_some());
        assert_eq!(bench.parted(&a), Some(Parted::Left));
        assert_eq!(bench.hub().clients(), 1);
        bench.assert_clean();
    }
}

#[test]
fn it_waits_only_so_long() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.queue(&a, &call("1", "wait"));
    bench.tell(a.port, Outbox::close);
    bench.run(29_900);
    a.no_answer("1");
    bench.run(200);
    a.error("1", -32603);
    assert!(a.got.borrow().eof.is_some());
    assert_eq!(bench.life(0).with_method("notifications/cancelled").len(), 1);
    assert_eq!(bench.hub().clients(), 0);
    bench.assert_clean();
}

#[test]
fn a_client_that_closes_its_input_can_be_asked_nothing() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.say(&a, &call("1", "wait"));
    bench.server_says(server(0), &request("1", "roots/list", "{}"));
    bench.tell(a.port, Outbox::close);
    bench.server_says(server(0), &request("2", "roots/list", "{}"));
    let errors = bench.life(0).values();
    let errors: Vec<_> = errors.iter().filter(|value| value.get("error").is_some()).collect();
    assert_eq!(errors.len(), 2);
    assert_eq!(a.with_method("roots/list").len(), 1);
    let wire = bench.id_of("wait", 0);
    bench.server_says(server(0), &result(&wire, "1"));
    a.result("1");
    bench.assert_clean();
}

#[test]
fn a_client_that_leaves_does_not_wait_for_its_subscriptions() {
    let mut bench = bench(Nature::modern());
    let a = bench.client();
    bench.say(&a, &modern("1", "subscriptions/listen", ""));
    bench.tell(a.port, Outbox::close);
    bench.run(5);
    assert!(a.got.borrow().eof.is_some());
    assert_eq!(bench.life(0).with_method("notifications/cancelled").len(), 1);
    bench.assert_clean();
}

#[test]
fn a_hub_that_ends_lets_answers_come_and_takes_nothing_new() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &call_with("1", "wait", "1"));
        bench.shut_down();
        assert!(bench.sim.with(0, |hub, now| hub.with(now, |hub| hub.try_accept())).is_none());
        bench.say(&b, &call("1", "echo"));
        assert_eq!(b.error("1", -32603)["data"]["reason"], "shutting_down");
        bench.run(3000);
        let wire = bench.id_of("wait", 0);
        bench.server_says(server(0), &result(&wire, "1"));
        bench.run(10);
        assert_eq!(a.result("1"), 1);
        for guest in [&a, &b] {
            assert!(guest.got.borrow().eof.is_some());
            assert_eq!(bench.parted(guest), Some(Parted::ShutDown));
        }
        assert!(end(&bench) < Instant::from_millis(3100));
        assert_eq!(bench.hub().clients(), 0);
        bench.assert_clean();
    }
}

#[test]
fn a_hub_that_ends_waits_five_seconds_and_the_second_time_not_at_all() {
    for twice in [false, true] {
        let mut bench = bench(Nature::default());
        let a = bench.legacy();
        bench.say(&a, &call("1", "wait"));
        bench.shut_down();
        bench.run(100);
        a.no_answer("1");
        if twice {
            bench.shut_down();
            bench.run(10);
        } else {
            bench.run(4890);
            a.no_answer("1");
            bench.run(100);
        }
        a.error("1", GONE);
        assert!(a.got.borrow().eof.is_some());
        assert_eq!(bench.sim.times(0, What::Signal(Signal::Terminate)).len(), 1);
        assert_eq!(bench.sim.times(0, What::Exited(Exit::Signal(15))).len(), 1);
        let _ = end(&bench);
        bench.assert_clean();
    }
}

#[test]
fn a_hub_without_anybody_ends_at_once() {
    let mut bench = bench(Nature::default());
    bench.shut_down();
    assert_eq!(end(&bench), Instant::ZERO);
    bench.run(100_000);
    assert_eq!(bench.sim.events(0).count(), 1);
}

#[test]
fn a_hub_ends_while_its_server_is_down_or_starting() {
    for wait in [1, 3001] {
        let mut bench = bench(Nature { ignores: true, dies_at: Some(1), ..Nature::default() });
        let a = bench.client();
        bench.say(&a, &initialize("1", "{}", "2025-11-25"));
        bench.say(&a, &call("2", "echo"));
        bench.run(wait);
        bench.tell(server(0), |out| out.die(Exit::Code(1)));
        bench.run(wait);
        bench.shut_down();
        bench.run(8000);
        for id in ["1", "2"] {
            assert!(a.answer(id).get("error").is_some());
        }
        assert!(a.got.borrow().eof.is_some());
        let at = end(&bench);
        assert!(at <= bench.sim.now());
        let starts = bench.starts().len();
        bench.run(100_000);
        assert_eq!(bench.starts().len(), starts);
        bench.assert_clean();
    }
}

#[test]
fn a_client_that_does_not_read_holds_up_no_end() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.sim.tell(0, a.port, Outbox::pause);
    bench.say(&a, &call_with("1", "pad", r#"{"len":1000000}"#));
    bench.shut_down();
    bench.run(3000);
    let _ = end(&bench);
    assert_eq!(bench.sim.times(0, What::Abort).len(), 2);
}

#[test]
fn a_client_that_came_and_never_spoke_costs_nothing() {
    let mut bench = bench(Nature::default());
    let a = bench.client();
    bench.tell(a.port, Outbox::close);
    assert!(a.got.borrow().eof.is_some());
    let b = bench.client();
    bench.cut(&b);
    assert_eq!(bench.hub().clients(), 0);
    assert!(bench.starts().is_empty());
    bench.shut_down();
    let _ = end(&bench);
}

#[test]
fn a_client_that_ends_inside_a_message_is_let_go() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.tell(a.port, |out| {
            out.send(call("1", "echo") + "\n{\"jsonrpc\":\"2.0\",\"id\":2,\"meth");
            out.close();
        });
        bench.run(5);
        a.result("1");
        assert_eq!(a.count(), 2, "{:?}", a.heads());
        assert!(a.got.borrow().eof.is_some());
        bench.assert_clean();
    }
}

#[test]
fn a_client_that_was_let_in_and_never_opened_holds_up_no_end() {
    let mut bench = bench(Nature::default());
    let port = bench.sim.with(0, |hub, now| hub.with(now, |hub| hub.try_accept())).unwrap();
    bench.shut_down();
    bench.run(3000);
    let _ = end(&bench);
    assert!(bench.sim.log().iter().all(|entry| entry.port != port));
}
