//! Clients that come when there is no room for one.

use lumen_proto::endpoint::{HubConfig, HubEvent};
use lumen_proto::limits;
use lumen_tests::sim::Chop;
use lumen_tests::sim::scripted::Nature;

use crate::support::*;

fn full(chop: Chop) -> (Bench, Guest) {
    let config = HubConfig { max_clients: 1, ..config() };
    let mut bench = Bench::new(chop, config, |_| Nature::default());
    let first = bench.legacy();
    (bench, first)
}

#[test]
fn a_client_too_many_is_told_so_and_let_go() {
    for chop in CHOPS {
        let (mut bench, first) = full(chop);
        for _ in 0..2 * limits::MAX_VISITORS {
            let late = bench.client();
            bench.say(&late, &initialize("1", "{}", "2025-11-25"));
            let error = late.error("1", -32603);
            assert_eq!(error["data"]["reason"], "full");
            assert!(error["message"].as_str().unwrap().contains("--max-clients"), "{error}");
            assert!(late.got.borrow().eof.is_some());
        }
        bench.say(&first, &call_with("1", "echo", "1"));
        assert_eq!(first.result("1"), 1);
        assert_eq!(bench.life(0).with_method("initialize").len(), 1);
        assert_eq!(bench.hub().clients(), 1);
        bench.assert_clean();
    }
}

#[test]
fn it_may_ask_how_things_stand() {
    let (mut bench, _first) = full(Chop::OneByte);
    let visitor = bench.client();
    bench.say(&visitor, &request("1", "lumen/status", "{}"));
    let asked = bench.sim.events(0).find_map(|(_, event)| match event {
        HubEvent::Asked { request, client } => Some((*request, *client)),
        _ => None,
    });
    let (asked, client) = asked.expect("it is asked");
    assert_eq!(client, visitor.port);
    bench.sim.with(0, |pool, now| pool.with(now, |pool| pool.answer(now, client, asked, "{\"x\":1}")));
    bench.run(1);
    assert_eq!(visitor.result("1")["x"], 1);
    assert!(visitor.got.borrow().eof.is_some());
    bench.assert_clean();
}

#[test]
fn one_that_says_nothing_has_a_few_seconds() {
    let (mut bench, _first) = full(Chop::Whole);
    let silent = bench.client();
    bench.run(4_900);
    assert!(silent.got.borrow().eof.is_none());
    bench.run(200);
    assert!(silent.got.borrow().eof.is_some());
    assert_eq!(bench.hub().clients(), 1);
}

#[test]
fn its_notifications_and_replies_reach_nobody() {
    let (mut bench, _first) = full(Chop::Whole);
    let visitor = bench.client();
    bench.queue(&visitor, &notification("x/y", "{}"));
    bench.say(&visitor, &result("1", "{}"));
    assert_eq!(bench.life(0).values().len(), 2);
    assert!(visitor.got.borrow().eof.is_none());
}
