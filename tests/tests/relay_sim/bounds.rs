//! Full pipes, long lines, clients that go away.

use std::time::Duration;

use lumen_proto::endpoint::Relay;
use lumen_proto::limits;
use lumen_proto::negotiate::Mode;
use lumen_tests::sim::scripted::{JsonClient, Manners};
use lumen_tests::sim::{Chop, Link};

use crate::support::*;

fn long(id: &str, len: usize) -> String {
    let pad = "x".repeat(len);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"arguments":"{pad}"}}}}"#)
}

#[test]
fn both_pipes_full_is_no_deadlock() {
    for chop in [Chop::Whole, Chop::Seeded(3)] {
        for mode in [Mode::Auto, Mode::Off] {
            // The client does not read for two seconds, the child does not before it has written its megabyte.
            let client = (0..4).fold(JsonClient::new().read_at(2000), |client, id| {
                client.at(0, long(&id.to_string(), 1 << 20))
            });
            let manners = Manners { chatter: 1 << 20, ..Manners::default() };
            let link = Link { capacity: 4096, latency: 10, chop };
            let run = run(link, Relay::connect(config(mode)), client, json(manners)).finish();
            run.assert_results(&["0", "1", "2", "3"]);
            run.assert_count(5);
        }
    }
}

#[test]
fn what_a_json_server_cannot_take_is_answered_and_the_rest_goes_on() {
    let client = JsonClient::new().at(0, long("1", 10 << 20)).at(1, call("2"));
    let run = connect(Chop::Whole, Mode::Off, client, json(Manners::default())).finish();
    run.assert_errors(&["1"], -32603);
    run.assert_results(&["2"]);
    run.assert_count(2);
    assert_eq!(run.seen.borrow().lines.len(), 1);
}

#[test]
fn a_client_that_vanishes_ends_the_child() {
    for chop in CHOPS {
        let client = session().at(1000, call("8")).vanish_at(1001);
        let manners = Manners { pad: 3000, ..Manners::default() };
        let link = Link { capacity: 500, latency: 10, chop };
        let run = run(link, Relay::connect(config(Mode::Off)), client, json(manners)).finish();
        assert_eq!(run.seen.borrow().eofs.len(), 1);
        assert!(run.sim.machine(0).has_ended());
    }
}

/// The most a relay may have read of one side while the other takes nothing: its queue and one message more,
/// what one read holds, and what lies in the pipes.
const BOUND: usize = limits::MAX_QUEUE + (1 << 20) + limits::READ_CHUNK + 3 * (64 << 10);

#[test]
fn a_server_that_does_not_read_stops_its_client() {
    let ids = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let client = ids.iter().fold(JsonClient::new(), |client, id| client.at(0, long(id, 1 << 20)));
    let relay = Relay::connect(config(Mode::Off));
    let port = relay.client_port();
    let server = lumen(|server| server.slow_start(Duration::from_secs(10)));
    let mut run = run(Link::default(), relay, client, server);
    run.sim.run_for(Duration::from_secs(5));
    let taken = run.sim.transcript(0, port).1.len();
    assert!(taken > 1 << 20 && taken <= BOUND, "{taken}");
    run.finish().assert_results(&ids);
}

#[test]
fn a_client_that_does_not_read_stops_its_server() {
    let ids = ["0", "1", "2", "3", "4", "5", "6", "7"];
    let client = ids.iter().fold(JsonClient::new().read_at(10_000), |client, id| client.at(0, call(id)));
    let manners = Manners { pad: 1 << 20, ..Manners::default() };
    let mut run = connect(Chop::Whole, Mode::Off, client, json(manners));
    run.sim.run_for(Duration::from_secs(5));
    let taken = run.sim.transcript(0, run.child(0)).1.len();
    assert!(taken > 1 << 20 && taken <= BOUND, "{taken}");
    run.finish().assert_results(&ids);
}
