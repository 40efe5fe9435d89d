//! Servers that die: when they come back, what they are told then, and what clients are told meanwhile.

use std::time::Duration;

use lumen_proto::endpoint::HubEvent;
use lumen_proto::mux::SlotId;
use lumen_proto::supervisor::State;
use lumen_proto::{Exit, Instant, OpenError, OpenErrorKind, limits};
use lumen_tests::sim::scripted::{McpServer, Nature};
use lumen_tests::sim::{Chop, Spawned};
use serde_json::Value;

use crate::support::*;

#[test]
fn o_19_a_server_that_was_started_again_is_greeted_and_set_up_as_before() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&a, &request("1", "resources/subscribe", r#"{"uri":"file:///\u00e9"}"#));
        bench.say(&a, &request("2", "logging/setLevel", r#"{"level":"warning"}"#));
        bench.say(&b, &request("2", "logging/setLevel", r#"{"level":"error"}"#));
        bench.say(&b, &call("3", "crash"));
        bench.run(2000);
        bench.say(&a, &call_with("4", "echo", "4"));
        let (had_a, had_b) = (a.count(), b.count());
        bench.run(3000);
        assert_eq!(a.result("4"), 4);
        let life = bench.life(1);
        let heard = life.values();
        let methods: Vec<&str> = heard.iter().map(|value| value["method"].as_str().unwrap()).collect();
        assert_eq!(
            methods,
            [
                "initialize",
                "notifications/initialized",
                "resources/subscribe",
                "logging/setLevel",
                "tools/call",
            ]
        );
        assert!(life.texts[2].1.contains(r#""uri":"file:///\u00e9""#), "{}", life.texts[2].1);
        assert_eq!(heard[3]["params"]["level"], "warning");
        drop(life);
        // Nothing of that reaches the clients but what they asked for and what may have changed.
        for (guest, had, answers) in [(&a, had_a, 1), (&b, had_b, 0)] {
            assert_eq!(guest.count(), had + answers + 2, "{:?}", guest.heads());
            for list in ["tools", "resources"] {
                assert_eq!(guest.with_method(&format!("notifications/{list}/list_changed")).len(), 1);
            }
        }
        let updated = notification("notifications/resources/updated", r#"{"uri":"file:///é"}"#);
        bench.server_says(server(1), &updated);
        assert_eq!(a.with_method("notifications/resources/updated").len(), 1);
        assert_eq!(b.with_method("notifications/resources/updated").len(), 0);
        bench.assert_clean();
    }
}

#[test]
fn the_wait_doubles_up_to_half_a_minute() {
    // Every life ends over its first call.
    let mut bench = bench(Nature { dies_at: Some(2), ..Nature::default() });
    let a = bench.legacy();
    bench.say(&a, &call("0", "echo"));
    let waits = [3, 6, 12, 24, 30, 30];
    for (n, wait) in (1..).zip(waits) {
        bench.say(&a, &call(&n.to_string(), "echo"));
        bench.run(wait * 1000);
    }
    let ends = bench.sim.events(0).filter(|(_, event)| matches!(event, HubEvent::Ended { .. }));
    let ends: Vec<Instant> = ends.map(|(at, _)| at).collect();
    let starts = bench.starts();
    let waited = starts[1..].iter().zip(&ends).map(|(start, end)| (*start - *end).as_secs());
    assert_eq!(waited.collect::<Vec<_>>(), waits);
    (0..=waits.len()).for_each(|n| drop(a.error(&n.to_string(), GONE)));
    bench.assert_clean();
}

#[test]
fn thirty_seconds_of_health_forget_earlier_deaths() {
    let wait_after = |health: u64| {
        let mut bench = bench(Nature::default());
        let a = bench.legacy();
        bench.say(&a, &call("1", "crash"));
        bench.run(3100 + health);
        bench.say(&a, &call("2", "crash"));
        bench.run(2);
        match bench.hub().server(SlotId::First).state {
            State::Backoff { until } => (until - bench.sim.now()).as_millis().div_ceil(1000),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(wait_after(100), 6);
    assert_eq!(wait_after(29_800), 6);
    assert_eq!(wait_after(30_000), 3);
}

#[test]
fn a_server_that_cannot_be_started_is_tried_again() {
    let mut bench = Bench::by_spawn(Chop::Whole, config(), |spawn, seen| {
        if spawn.nth < 2 {
            return Spawned::Fails(OpenError { kind: OpenErrorKind::NotFound, errno: 2 });
        }
        Spawned::Party(Box::new(McpServer::new(Nature::default(), seen)))
    });
    let a = bench.client();
    bench.say(&a, &initialize("1", "{}", "2025-11-25"));
    bench.run(8900);
    assert_eq!(a.count(), 0);
    bench.run(200);
    a.result("1");
    bench.assert_clean();
}

#[test]
fn a_server_that_never_gets_up_is_given_up_at_the_ceiling() {
    let mut config = config();
    config.backoff.ceiling = Some(3);
    let mut bench = Bench::by_spawn(Chop::Whole, config, |_, _| {
        Spawned::Fails(OpenError { kind: OpenErrorKind::NotFound, errno: 2 })
    });
    let a = bench.client();
    bench.say(&a, &initialize("1", "{}", "2025-11-25"));
    bench.say(&a, &call("2", "echo"));
    bench.run(10_000);
    for id in ["1", "2"] {
        assert_eq!(a.error(id, -32603)["data"]["reason"], "not_started");
    }
    bench.say(&a, &call("3", "echo"));
    bench.say(&a, &initialize("4", "{}", "2025-11-25"));
    a.error("3", -32603);
    a.error("4", -32603);
    assert_eq!(bench.sim.events(0).filter(|(_, event)| matches!(event, HubEvent::GaveUp(_))).count(), 1);
    assert_eq!(bench.hub().server(SlotId::First).state, State::GaveUp);
    bench.assert_clean();
}

#[test]
fn an_unanswered_handshake_is_a_failed_start_and_not_cancelled() {
    for chop in CHOPS {
        let mut bench = Bench::new(chop, config(), |nth| Nature { ignores: nth == 0, ..Nature::default() });
        let a = bench.client();
        bench.say(&a, &initialize("1", "{}", "2025-11-25"));
        bench.run(119_900);
        assert_eq!(a.count(), 0);
        bench.run(200);
        assert_eq!(a.error("1", -32603)["data"]["reason"], "no_answer");
        assert_eq!(bench.life(0).texts.len(), 1, "nothing but the handshake");
        bench.say(&a, &initialize("2", "{}", "2025-11-25"));
        bench.run(8000);
        a.result("2");
        bench.assert_clean();
    }
}

#[test]
fn what_waits_too_long_is_told_when_to_try_again() {
    for chop in CHOPS {
        // Up only once, and then not again.
        let mut bench = Bench::by_spawn(chop, config(), |spawn, seen| match spawn.nth {
            0 => Spawned::Party(Box::new(McpServer::new(Nature::default(), seen))),
            _ => Spawned::Fails(OpenError { kind: OpenErrorKind::NotFound, errno: 2 }),
        });
        let a = bench.legacy();
        bench.say(&a, &call("1", "crash"));
        bench.say(&a, &call("2", "echo"));
        bench.say(&a, &initialize("\"again\"", "{}", "2025-11-25"));
        bench.run(29_900);
        a.no_answer("2");
        bench.run(200);
        for id in ["2", "\"again\""] {
            let error = a.error(id, -32603);
            assert!(error["message"].as_str().unwrap().contains("not found"), "why it is down: {error}");
            let data = error["data"].clone();
            assert_eq!(data["reason"], "down");
            // 3, 9, 21, 45 s after the crash.
            let retry = data["retryAfterMs"].as_u64().unwrap();
            assert!((14_000..=16_000).contains(&retry), "{data}");
        }
        bench.assert_clean();
    }
}

#[test]
fn what_waits_is_bounded_in_bytes() {
    let mut bench = bench(Nature::default());
    let (a, b) = (bench.legacy(), bench.legacy());
    bench.say(&a, &call("0", "crash"));
    let len = 300_000;
    let pad = format!("\"{}\"", "x".repeat(len));
    let fit = limits::MAX_HELD / len;
    for n in 1..=fit + 3 {
        let guest = if n % 2 == 0 { &a } else { &b };
        bench.say(guest, &call_with(&n.to_string(), "echo", &pad));
    }
    bench.run(100);
    let refused: Vec<Value> = [&a, &b].iter().flat_map(|guest| guest.got.borrow().values()).collect();
    let refused: Vec<&Value> =
        refused.iter().filter(|value| value["error"]["data"]["reason"] == "down").collect();
    assert_eq!(refused.len(), 3);
    assert!(refused.iter().all(|value| value["error"]["data"]["retryAfterMs"].as_u64().unwrap() <= 3000));
    bench.run(5000);
    let answered = (1..=fit + 3).filter(|n| {
        let guest = if n % 2 == 0 { &a } else { &b };
        guest.got.borrow().answers(&n.to_string())[0].get("result").is_some()
    });
    assert_eq!(answered.count(), fit);
    bench.assert_clean();
}

#[test]
fn small_messages_that_wait_count_with_what_they_take() {
    let mut bench = Bench::by_spawn(Chop::Whole, config(), |_, seen| {
        Spawned::Slow(Duration::from_secs(10), Box::new(McpServer::new(Nature::default(), seen)))
    });
    let a = bench.client();
    bench.queue(&a, &initialize("1", "{}", "2025-11-25"));
    let text = notification("x", "[]");
    let sent = limits::MAX_HELD / text.len() / 2;
    let lines: Vec<&str> = (0..sent).map(|_| text.as_str()).collect();
    bench.queue(&a, &lines.join("\n"));
    bench.run(20_000);
    a.result("1");
    let held = bench.life(0).with_method("x").len();
    assert!(held > 1000 && held * 100 < limits::MAX_HELD, "{held} of {sent}");
    bench.assert_clean();
}

#[test]
fn what_was_sent_is_not_sent_again() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.say(&a, &call("1", "wait"));
        bench.say(&a, &call("2", "crash"));
        bench.run(10_000);
        a.error("1", GONE);
        assert!(bench.life(1).with_method("tools/call").is_empty());
        bench.assert_clean();
    }
}

/// A session of two clients with something of everything.
fn session(bench: &mut Bench) -> (Guest, Guest) {
    let (a, b) = (bench.client(), bench.client());
    bench.queue(&a, &initialize("\"init\"", r#"{"roots":{}}"#, "2025-11-25"));
    bench.queue(&b, &initialize("0", "{}", "2025-03-26"));
    bench.queue(&a, INITIALIZED);
    bench.queue(&b, INITIALIZED);
    bench.queue(&a, &request("1", "resources/subscribe", r#"{"uri":"u:1"}"#));
    bench.queue(&b, &request("1", "resources/subscribe", r#"{"uri":"u:1"}"#));
    bench.queue(&a, &request("2", "logging/setLevel", r#"{"level":"debug"}"#));
    bench.queue(&b, &call("2", "later"));
    bench.queue(&a, &call("3", "later"));
    bench.run(5);
    bench.queue(&b, &format!("[{},{}]", call("3", "echo"), call("4", "echo")));
    bench.queue(&a, &request("4", "resources/unsubscribe", r#"{"uri":"u:1"}"#));
    bench.queue(&a, &call("5", "flush"));
    bench.run(5);
    (a, b)
}

#[test]
fn a_crash_between_any_two_messages_loses_and_doubles_nothing() {
    for chop in [Chop::Whole, Chop::Seeded(5)] {
        for point in 0.. {
            let mut bench = Bench::new(chop, config(), move |nth| Nature {
                dies_at: (nth == 0).then_some(point),
                ..Nature::default()
            });
            let (a, b) = session(&mut bench);
            bench.run(40_000);
            let crashed = bench.starts().len() > 1;
            for (guest, ids) in [(&a, &["\"init\"", "1", "2", "3", "4", "5"][..]), (&b, &["0", "1", "2"])] {
                for id in ids {
                    let answer = guest.answer(id);
                    let code = &answer["error"]["code"];
                    assert!(code.is_null() || (crashed && *code == GONE), "at {point}: {answer}");
                }
            }
            let batches: Vec<Value> = b.got.borrow().values().into_iter().filter(Value::is_array).collect();
            assert_eq!(batches.len(), 1, "at {point}: {:?}", b.heads());
            let mut ids: Vec<u64> =
                batches[0].as_array().unwrap().iter().map(|value| value["id"].as_u64().unwrap()).collect();
            ids.sort_unstable();
            assert_eq!(ids, [3, 4]);
            bench.assert_clean();
            if !crashed {
                assert!(point > 8);
                break;
            }
            // Whatever came of it, both can go on.
            for guest in [&a, &b] {
                bench.say(guest, &call_with("\"on\"", "echo", "1"));
                assert_eq!(guest.result("\"on\""), 1, "at {point}");
            }
            let subscribed = bench.life(1).with_method("resources/subscribe").len();
            assert!(subscribed <= 1, "at {point}: {subscribed}");
            bench.assert_clean();
        }
    }
}

#[test]
fn a_server_that_dies_again_before_it_is_set_up_loses_no_subscription() {
    for chop in CHOPS {
        // The second life ends over the subscription.
        let mut bench = Bench::new(chop, config(), |nth| Nature {
            dies_at: (nth == 1).then_some(2),
            ..Nature::default()
        });
        let a = bench.legacy();
        bench.say(&a, &request("1", "resources/subscribe", r#"{"uri":"u:1"}"#));
        a.result("1");
        bench.say(&a, &call("2", "crash"));
        bench.run(12_000);
        assert_eq!(bench.starts().len(), 3);
        assert_eq!(bench.life(2).with_method("resources/subscribe").len(), 1);
        bench.server_says(server(2), &notification("notifications/resources/updated", r#"{"uri":"u:1"}"#));
        assert_eq!(a.with_method("notifications/resources/updated").len(), 1);
        bench.assert_clean();
    }
}

#[test]
fn a_server_that_only_closes_its_output_is_ended_and_its_requests_answered() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.say(&a, &call("1", "wait"));
        bench.tell(server(0), |out| out.close());
        bench.run(10_000);
        a.error("1", GONE);
        bench.say(&a, &call_with("2", "echo", "2"));
        bench.run(100);
        assert_eq!(a.result("2"), 2);
        bench.assert_clean();
    }
}

#[test]
fn nobody_needs_a_server_that_nobody_uses() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.cut(&a);
    bench.tell(server(0), |out| out.die(Exit::Code(0)));
    bench.run(60_000);
    assert_eq!(bench.starts().len(), 1);
    let b = bench.legacy();
    bench.run(5);
    b.result("\"init\"");
    assert_eq!(bench.starts().len(), 2);
    assert_eq!(b.count(), 1, "nothing has changed for a client that comes later: {:?}", b.heads());
    assert_eq!(bench.hub().server(SlotId::First).restarts, 1);
    bench.assert_clean();
}
