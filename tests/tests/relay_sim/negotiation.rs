//! Who switches when, and that nothing is lost on the way.

use std::time::Duration;

use lumen_proto::endpoint::Relay;
use lumen_proto::negotiate::Mode;
use lumen_proto::{Exit, Instant};
use lumen_tests::sim::scripted::{JsonClient, LumenClient, Manners, OFFER, OPENING_PROBE};
use lumen_tests::sim::world::What;
use lumen_tests::sim::{Link, Spawned, World, wire};

use crate::support::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The probe as a reader of lines sees it.
fn probe_line() -> &'static [u8] {
    OPENING_PROBE.strip_suffix(b"\n").unwrap()
}

#[test]
fn a_lumen_server_is_spoken_to_in_frames() {
    for chop in CHOPS {
        let run = connect(chop, Mode::Auto, session(), lumen(|server| server)).finish();
        run.assert_results(&["0", "\"list\"", "7"]);
        run.assert_count(3);
        let seen = run.seen.borrow();
        assert_eq!(seen.messages(), session_texts());
        assert_eq!((seen.probes.len(), seen.lines.len(), seen.foreign.len()), (1, 0, 0));
        assert!(run.sim.transcript(0, run.child(0)).0.starts_with(OPENING_PROBE));
    }
}

#[test]
fn an_ack_just_in_time_is_enough() {
    let run = connect(CHOPS[0], Mode::Auto, session(), lumen(|s| s.ack_after(Some(ms(499))))).finish();
    run.assert_results(&["0", "\"list\"", "7"]);
    assert_eq!(run.seen.borrow().frames.len(), 4);
}

#[test]
fn a_json_server_gets_everything_after_half_a_second() {
    for chop in CHOPS {
        let run = connect(chop, Mode::Auto, session(), json(Manners::default())).finish();
        run.assert_results(&["0", "\"list\"", "7"]);
        run.assert_count(3);
        let seen = run.seen.borrow();
        assert_eq!(seen.foreign, [probe_line()]);
        assert!(seen.lines.iter().all(|(at, _)| at_least(*at, seen.starts[0], ms(500))));
        assert_eq!(without_offer(seen.messages()[0]), value(INIT));
        assert_eq!(seen.messages()[1..], session_texts()[1..]);
    }
}

#[test]
fn a_late_ack_is_dropped() {
    for chop in CHOPS {
        let client = session().at(1000, call("8"));
        let run = connect(chop, Mode::Auto, client, lumen(|s| s.ack_after(Some(ms(600))))).finish();
        run.assert_results(&["0", "\"list\"", "7", "8"]);
        run.assert_count(4);
        let seen = run.seen.borrow();
        assert_eq!((seen.probes.len(), seen.frames.len(), seen.lines.len()), (1, 0, 5));
    }
}

#[test]
fn an_offer_that_is_echoed_leads_to_frames() {
    for chop in CHOPS {
        let client = JsonClient::new().at(0, INIT).at(10, INITIALIZED).at(10, call("7"));
        let run =
            connect(chop, Mode::Offer, client, lumen(|s| s.echo_offer().ack_after(Some(ms(1))))).finish();
        run.assert_results(&["0", "7"]);
        run.assert_count(2);
        let seen = run.seen.borrow();
        assert_eq!((seen.probes.len(), seen.lines.len(), seen.frames.len()), (1, 1, 2));
        assert!(seen.lines[0].0 < seen.probes[0]);
        assert_eq!(without_offer(&seen.lines[0].1), value(INIT));
        assert!(!run.got.borrow().texts().concat().contains(OFFER), "an echo is for this hop only");
    }
}

#[test]
fn nothing_waits_for_the_ack_of_a_probe_that_follows_an_echo() {
    let client = JsonClient::new().at(0, INIT).at(10, call("7")).at(900, call("8"));
    let run =
        connect(CHOPS[0], Mode::Offer, client, lumen(|s| s.echo_offer().ack_after(Some(ms(800))))).finish();
    run.assert_results(&["0", "7", "8"]);
    let seen = run.seen.borrow();
    assert_eq!((seen.lines.len(), seen.frames.len()), (2, 1));
    assert!(seen.lines[1].0 < Instant::from_millis(11));
}

#[test]
fn an_echo_without_lumen_behind_it_costs_one_ignored_line() {
    for chop in CHOPS {
        let manners = Manners { echo_offer: true, ..Manners::default() };
        let client = JsonClient::new().at(0, INIT).at(10, INITIALIZED).at(10, call("7"));
        let run = connect(chop, Mode::Offer, client, json(manners)).finish();
        run.assert_results(&["0", "7"]);
        assert_eq!(run.seen.borrow().foreign, [probe_line()]);
    }
}

#[test]
fn a_server_that_starts_slowly_still_upgrades() {
    for chop in CHOPS {
        let client = JsonClient::new().at(0, INIT).at(4000, call("7"));
        let run = connect(chop, Mode::Auto, client, lumen(|s| s.echo_offer().slow_start(ms(3000)))).finish();
        run.assert_results(&["0", "7"]);
        let seen = run.seen.borrow();
        assert_eq!((seen.probes.len(), seen.lines.len(), seen.frames.len()), (2, 1, 1));
    }
}

#[test]
fn off_sends_the_clients_lines_and_nothing_else() {
    for chop in CHOPS {
        let run = connect(chop, Mode::Off, session(), lumen(|s| s.echo_offer())).finish();
        run.assert_results(&["0", "\"list\"", "7"]);
        assert_eq!(run.sim.transcript(0, run.child(0)).0, (session_texts().join("\n") + "\n").as_bytes());
    }
}

#[test]
fn a_child_that_a_probe_ends_is_started_again_without_one() {
    for chop in CHOPS {
        let manners = Manners { exit_at_foreign: Some(Exit::Code(1)), ..Manners::default() };
        let run = connect(chop, Mode::Auto, session(), json(manners)).finish();
        run.assert_results(&["0", "\"list\"", "7"]);
        run.assert_count(3);
        let seen = run.seen.borrow();
        assert_eq!((seen.starts.len(), seen.foreign.len(), seen.lines.len()), (2, 1, 4));
        assert_eq!(run.sim.times(0, What::Spawn).len(), 2);
    }
}

#[test]
fn a_child_that_a_probe_deafens_is_started_again_after_20_seconds() {
    for chop in CHOPS {
        let manners = Manners { deaf_after_foreign: true, ..Manners::default() };
        let run = connect(chop, Mode::Auto, session(), json_once(manners)).finish();
        run.assert_results(&["0", "\"list\"", "7"]);
        run.assert_count(3);
        let seen = run.seen.borrow();
        assert_eq!((seen.starts.len(), seen.foreign.len(), seen.lines.len()), (2, 1, 4));
        let waited = seen.starts[1] - seen.starts[0];
        assert!(waited >= ms(20_000) && waited < ms(25_000), "{waited:?}");
    }
}

#[test]
fn one_stray_line_is_swallowed_and_no_second() {
    for chop in CHOPS {
        for strays in [1, 2] {
            let manners = Manners { strays, ..Manners::default() };
            let run = connect(chop, Mode::Auto, session(), json(manners)).finish();
            run.assert_results(&["0", "\"list\"", "7"]);
            run.assert_count(3 + strays - 1);
        }
    }
}

#[test]
fn a_lumen_client_of_wrap_is_spoken_to_in_frames() {
    for chop in CHOPS {
        let client = LumenClient::new().at(0, INIT).at(0, INITIALIZED).at(0, LIST).at(0, call("7"));
        let got = client.got();
        let (mut sim, seen) =
            world(Link::chopped(chop), Relay::wrap(config(Mode::Off)), client, json(Manners::default()));
        sim.run_until_idle();
        let got = got.borrow();
        assert_eq!(got.messages.iter().map(|(_, _, framed)| *framed).collect::<Vec<_>>(), [true; 3]);
        assert!(["0", "\"list\"", "7"].iter().all(|id| got.answers(id).len() == 1));
        let seen = seen.borrow();
        assert_eq!(seen.messages(), session_texts());
        assert!(seen.foreign.is_empty(), "a child behind wrap is never probed");
    }
}

#[test]
fn a_json_client_of_wrap_gets_lines() {
    for chop in CHOPS {
        let relay = Relay::wrap(config(Mode::Off));
        let run = run(Link::chopped(chop), relay, session(), json(Manners::default())).finish();
        run.assert_results(&["0", "\"list\"", "7"]);
        assert_eq!(run.seen.borrow().messages(), session_texts());
        assert_eq!(run.sim.transcript(0, run.child(0)).0, (session_texts().join("\n") + "\n").as_bytes());
    }
}

#[test]
fn connect_and_wrap_speak_frames_with_each_other() {
    for chop in CHOPS {
        for mode in [Mode::Auto, Mode::Offer, Mode::Off] {
            let seen = lumen_tests::sim::scripted::Witness::default();
            let witness = seen.clone();
            let mut sim: Sim = World::new(Link::chopped(chop), move |spawn| {
                if spawn.machine == 0 {
                    let wrap = Relay::wrap(config(Mode::Off));
                    let port = wrap.client_port();
                    Spawned::Machine(checked(wrap), port)
                } else {
                    Spawned::Party(json(Manners::default())(spawn.nth, &witness))
                }
            })
            .with_exit(exit_of);
            let relay = Relay::connect(config(mode));
            let client = JsonClient::new()
                .at(0, INIT)
                .at(10, INITIALIZED)
                .at(10, LIST)
                .at(10, call("7"))
                .close_at(3000);
            let got = client.got();
            let port = relay.client_port();
            let id = sim.add(checked(relay));
            sim.attach(id, port, client);
            sim.run_until_idle();

            let run = Run { sim, got, seen };
            run.assert_results(&["0", "\"list\"", "7"]);
            run.assert_count(3);
            assert!(run.got.borrow().eof.is_some());
            let first = run.seen.borrow().messages()[0].to_owned();
            assert_eq!(first, INIT, "offers stay on their hop");
            // The same documents; of another carrier they need not be the same texts.
            let values = |texts: &[&str]| texts.iter().map(|text| value(text)).collect::<Vec<_>>();
            let sent = session_texts();
            let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
            assert_eq!(values(&run.seen.borrow().messages()[1..]), values(&sent[1..]));
            let (down, up) = run.sim.transcript(0, run.child(0));
            match mode {
                Mode::Auto => {
                    // The second probe tells what a peer that knows "exact" may be sent; it asks for nothing.
                    let probes = [wire::PROBE, wire::PROBE];
                    let kinds = [wire::REQUEST, wire::NOTIFY, wire::REQUEST, wire::REQUEST];
                    let kinds = [&probes[..], &kinds].concat();
                    assert_eq!(all_frames(down), kinds);
                    assert_eq!(
                        all_frames(up),
                        [wire::PROBE_ACK, wire::PROBE_ACK, wire::RESPONSE, wire::RESPONSE, wire::RESPONSE]
                    );
                }
                Mode::Offer => {
                    let lines = down.iter().position(|&byte| byte == b'\n').unwrap() + 1;
                    assert_eq!(all_frames(&down[lines..]).len(), 5);
                }
                _ => assert_eq!(down, (session_texts().join("\n") + "\n").as_bytes()),
            }
        }
    }
}

/// Asserts that bytes are frames from end to end, and returns their types.
fn all_frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while !bytes.is_empty() {
        let frame = wire::parse(bytes).expect("whole frames");
        kinds.push(frame.kind);
        bytes = &bytes[frame.total..];
    }
    kinds
}
