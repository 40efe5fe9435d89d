//! What comes over the streams: LUMEN on either side, noise, odd line ends, and messages of every size.

use lumen_proto::endpoint::{Event, HubEvent, Why};
use lumen_proto::mux::SlotId;
use lumen_proto::negotiate::Mode;
use lumen_proto::{Reason, limits};
use lumen_tests::sim::scripted::{LumenClient, Nature};
use lumen_tests::sim::{Chop, wire};
use serde_json::{Value, json};

use crate::support::*;

#[test]
fn each_leg_speaks_what_it_agreed_on() {
    let session = |client: LumenClient| {
        client
            .at(0, initialize("\"init\"", r#"{"roots":{}}"#, "2025-06-18"))
            .at(600, INITIALIZED)
            .at(600, call_with("1", "echo", r#"{"n":9007199254740993}"#))
            .at(601, call("2", "wait"))
    };
    for chop in CHOPS {
        for (mode, lumen) in [
            (Mode::Off, true),
            (Mode::Auto, true),
            (Mode::Auto, false),
            (Mode::Probe, true),
            (Mode::Offer, true),
            (Mode::Offer, false),
        ] {
            let mut bench = Bench::new(chop, config_with(mode), move |_| Nature {
                lumen,
                echo_offer: lumen,
                ..Nature::default()
            });
            let framed = bench.lumen_client(session(LumenClient::new()));
            let lines = bench.legacy();
            bench.run(1000);
            bench.say(&lines, &call_with("1", "echo", "[1.0]"));
            bench.run(100);
            assert_eq!(lines.result("1"), json!([1.0]), "{mode:?}");
            assert_eq!(framed.result("1"), json!({"n": 9_007_199_254_740_993_u64}));
            assert_eq!(bench.starts().len(), 1);
            // A question, and the answer.
            let ask = request("1", "roots/list", "{}").into_bytes();
            let is_framed = lumen && mode != Mode::Off;
            let bytes =
                if is_framed { wire::frame(wire::REQUEST, 0, &ask) } else { [&ask[..], b"\n"].concat() };
            bench.tell(server(0), |out| out.send(bytes));
            let id = framed.with_method("roots/list")[0]["id"].to_string();
            let reply = wire::frame(wire::RESPONSE, 0, result(&id, "[1e2]").as_bytes());
            bench.tell(framed.port, |out| out.send(reply));
            let life = bench.life(0);
            assert!(life.texts.last().unwrap().1.ends_with(r#""id":1,"result":[1e2]}"#), "{:?}", life.texts);
            // After an offer nothing waits for the switch.
            let framed_from = if mode == Mode::Offer { 2 } else { 0 };
            for (_, text, framed) in &life.texts[framed_from..] {
                assert_eq!(*framed, is_framed, "{mode:?} {lumen}: {text}");
            }
            drop(life);
            assert!(framed.got.borrow().messages.iter().all(|(_, _, framed)| *framed));
            assert!(lines.got.borrow().messages.iter().all(|(_, _, framed)| !*framed));
            let texts = [framed.got.borrow().texts().concat(), lines.got.borrow().texts().concat()].concat();
            assert!(!texts.contains("dev.lumen"), "an offer is for one leg");
            let wire = bench.id_of("wait", 0);
            let answer = result(&wire, "{}").into_bytes();
            let bytes = if is_framed {
                wire::frame(wire::RESPONSE, 0, &answer)
            } else {
                [&answer[..], b"\n"].concat()
            };
            bench.tell(server(0), |out| out.send(bytes));
            framed.result("2");
            bench.assert_clean();
        }
    }
}

#[test]
fn a_server_that_a_probe_kills_is_started_again_at_once() {
    for chop in CHOPS {
        let mut bench =
            Bench::new(chop, config_with(Mode::Auto), |_| Nature { probe_kills: true, ..Nature::default() });
        let (a, b) = (bench.client(), bench.client());
        bench.queue(&a, &initialize("1", "{}", "2025-11-25"));
        bench.queue(&b, &initialize("1", "{}", "2025-11-25"));
        bench.queue(&a, &call_with("2", "echo", "2"));
        bench.run(100);
        a.result("1");
        b.result("1");
        assert_eq!(a.result("2"), 2);
        assert_eq!(bench.starts().len(), 2);
        assert_eq!((bench.life(0).foreign, bench.life(1).foreign), (1, 0));
        let restarting = |event: &HubEvent| {
            matches!(event, HubEvent::Stream(Event::Restarting { why: Why::Ended(_), .. }))
        };
        assert_eq!(bench.sim.events(0).filter(|(_, event)| restarting(event)).count(), 1);
        assert_eq!(bench.hub().server(SlotId::First).restarts, 0, "that was one start");
        // And is not asked so again.
        bench.say(&a, &call("3", "crash"));
        bench.run(3100);
        bench.say(&b, &call_with("4", "echo", "4"));
        assert_eq!(b.result("4"), 4);
        assert_eq!(bench.life(2).foreign, 0);
        bench.assert_clean();
    }
}

#[test]
fn o_01_text_that_is_no_message_reaches_no_client() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.client();
        bench.say(&a, &initialize("1", "{}", "2025-11-25"));
        bench.tell(server(0), |out| out.send("Server started\n\nwarn: {\"x\"\n  at line 1\n"));
        bench.say(&a, INITIALIZED);
        bench.say(&a, &call("2", "wait"));
        bench.tell(server(0), |out| out.send(&b"warn: {\"x\"\nand\xff\n"[..]));
        let wire = bench.id_of("wait", 0);
        bench.server_says(server(0), &result(&wire, "1"));
        a.result("2");
        assert_eq!(a.count(), 2);
        let noise = bench.sim.events(0).filter_map(|(_, event)| match event {
            HubEvent::Stream(Event::Noise { port, lines, .. }) if *port == server(0) => Some(*lines),
            _ => None,
        });
        assert_eq!(noise.sum::<u64>(), 5);
        assert_eq!(bench.starts().len(), 1);
        bench.assert_clean();
    }
}

#[test]
fn o_03_crlf_ends_lines_too_and_stays_out_of_what_we_send() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.tell(a.port, |out| {
            out.send(
                call_with("1", "echo", r#""a\\r""#)
                    + "\r\n\r\n"
                    + &call_with("2", "later", r#""\r""#)
                    + "\r\n",
            );
        });
        bench.tell(server(0), |out| out.send(notification("x/y", r#"["\\r\r"]"#) + "\r\n\r\n"));
        assert_eq!(a.result("1"), "a\\r");
        assert_eq!(a.with_method("x/y")[0]["params"][0], "\\r\r");
        bench.say(&a, &call("3", "flush"));
        assert_eq!(a.result("2"), "\r");
        let sent = [bench.sim.transcript(0, a.port).0, bench.sim.transcript(0, server(0)).0].concat();
        assert!(!sent.contains(&b'\r'));
        bench.assert_clean();
    }
}

#[test]
fn o_04_messages_of_every_size_pass() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    for (n, len) in [65_535, 65_536, 65_537, 1024 * 1024 + 1, 20 * 1024 * 1024].into_iter().enumerate() {
        let id = n.to_string();
        bench.say(&a, &call_with(&id, "pad", &format!(r#"{{"len":{len}}}"#)));
        bench.run(100);
        assert_eq!(a.result(&id).as_str().unwrap().len(), len);
        a.got.borrow_mut().messages.clear();
    }
    bench.assert_clean();
}

#[test]
fn o_04_an_answer_above_the_bound_costs_one_error() {
    for chop in [Chop::Whole, Chop::Seeded(1)] {
        let mut config = config();
        config.server.max_message = 300_000;
        let mut bench = Bench::new(chop, config, |_| Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        bench.say(&b, &call("7", "later"));
        bench.say(&a, &call_with("7", "pad", r#"{"len":400000}"#));
        bench.run(100);
        let error = a.error("7", -32603);
        assert_eq!(error["data"]["reason"], "too_long");
        bench.say(&a, &call("8", "flush"));
        a.result("8");
        b.result("7");
        assert_eq!((a.count(), b.count()), (3, 2));
        bench.assert_clean();
    }
}

#[test]
fn o_04_a_request_that_the_server_cannot_take_costs_one_error() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    let pad = format!("\"{}\"", "x".repeat(limits::MAX_LINE_TO_SERVER));
    bench.say(&a, &call_with("7", "echo", &pad));
    bench.run(100);
    let max = limits::MAX_LINE_TO_SERVER as u64;
    let error = a.error("7", Reason::TooLong { len: max + 1, max }.code().into());
    assert_eq!(error["data"]["reason"], "too_long");
    bench.say(&a, &call_with("8", "echo", "8"));
    assert_eq!(a.result("8"), 8);
    assert_eq!(bench.life(0).with_method("tools/call").len(), 1);
    bench.assert_clean();
}

#[test]
fn o_05_reading_does_not_wait_for_writing() {
    for chop in [Chop::Whole, Chop::Seeded(1)] {
        let mut bench = bench_by(chop, Nature::default());
        let (a, b) = (bench.legacy(), bench.legacy());
        let pad = format!("\"{}\"", "x".repeat(1024 * 1024));
        let note = notification("x/y", &format!("[{pad}]")) + "\n";
        bench.sim.tell(0, server(0), |out| {
            out.pause();
            out.send(note);
            out.resume();
        });
        bench.say(&a, &call_with("1", "echo", &pad));
        bench.say(&b, &call_with("1", "echo", &pad));
        bench.run(100);
        a.result("1");
        b.result("1");
        assert_eq!((a.with_method("x/y").len(), b.with_method("x/y").len()), (1, 1));
        bench.assert_clean();
    }
}

#[test]
fn o_05_a_hub_whose_server_does_not_read_can_be_ended() {
    let mut bench = bench(Nature::default());
    let a = bench.legacy();
    bench.sim.tell(0, server(0), lumen_tests::sim::Outbox::pause);
    bench.say(&a, &call_with("1", "echo", &format!("\"{}\"", "x".repeat(1024 * 1024))));
    bench.shut_down();
    bench.run(10_000);
    a.error("1", GONE);
    let last = bench.sim.events(0).last().unwrap().1;
    assert!(matches!(last, HubEvent::Stream(Event::Finished(_))), "{last:?}");
    assert!(a.got.borrow().eof.is_some());
}

#[test]
fn what_cannot_be_read_is_refused_and_the_next_message_goes_on() {
    for chop in CHOPS {
        let mut bench = bench_by(chop, Nature::default());
        let a = bench.legacy();
        bench.say(&a, r#"{"jsonrpc":"2.0","id":1,"method":"x",}"#);
        bench.say(&a, r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#);
        bench.tell(a.port, |out| out.send(&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n"[..]));
        bench.say(&a, &call_with("3", "echo", "3"));
        assert_eq!(a.result("3"), 3);
        let errors: Vec<Value> =
            a.got.borrow().values().iter().map(|value| value["error"]["code"].clone()).collect();
        assert_eq!(errors[1..4], [json!(-32700), json!(-32600), json!(-32700)], "{:?}", a.heads());
        assert_eq!(a.count(), 5);
        // A server's bad reply to its own request is an error to nobody but the log.
        bench.say(&a, &call("4", "wait"));
        let wire = bench.id_of("wait", 0);
        bench.server_says(server(0), &format!(r#"{{"jsonrpc":"2.0","id":{wire},"result":}}"#));
        let count = a.count();
        bench.server_says(server(0), &result(&wire, "4"));
        let answers = a.got.borrow().answers("4");
        assert_eq!(answers.len(), 1, "{answers:?} {count}");
        bench.assert_clean();
    }
}
