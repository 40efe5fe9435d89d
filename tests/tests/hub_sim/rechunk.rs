//! Rule 10: however the same bytes are cut, the same comes out.

use lumen_proto::negotiate::Mode;
use lumen_tests::sim::Chop;
use lumen_tests::sim::scripted::Nature;
use proptest::prelude::*;

use crate::support::*;

#[derive(Clone, Debug)]
struct Case {
    /// Who says it, when, and what.
    said: Vec<(usize, u64, String)>,
    mode: Mode,
    lumen: bool,
    probe_kills: bool,
    modern: bool,
    dies_at: Option<usize>,
}

/// Everything that can be seen from outside.
fn outcome(chop: Chop, case: &Case) -> (Vec<Vec<u8>>, Vec<String>) {
    let nature = Nature {
        modern: case.modern,
        lumen: case.lumen,
        probe_kills: case.probe_kills && !case.lumen,
        echo_offer: case.lumen,
        ..Nature::default()
    };
    let dies_at = case.dies_at;
    let mut bench = Bench::new(chop, config_with(case.mode), move |nth| Nature {
        dies_at: dies_at.filter(|_| nth < 2),
        ..nature.clone()
    });
    let guests: Vec<Guest> = (0..3).map(|_| bench.client()).collect();
    for (who, at, text) in &case.said {
        let until = lumen_proto::Instant::from_millis(*at);
        bench.sim.run_for(until.saturating_since(bench.sim.now()));
        bench.queue(&guests[*who], text);
    }
    bench.run(40_000);
    for guest in &guests {
        bench.sim.tell(0, guest.port, |out| out.close());
    }
    bench.run(40_000);
    bench.shut_down();
    bench.run(20_000);
    let mut bytes: Vec<Vec<u8>> =
        guests.iter().map(|guest| bench.sim.transcript(0, guest.port).0.to_vec()).collect();
    let opened = bench.sim.log().iter().filter(|entry| entry.what == lumen_tests::sim::world::What::Spawn);
    for entry in opened {
        bytes.push(bench.sim.transcript(0, entry.port).0.to_vec());
    }
    assert!(bench.hub().mux().is_empty());
    (bytes, bench.sim.events(0).map(|(at, event)| format!("{at:?} {event:?}")).collect())
}

fn text() -> impl Strategy<Value = String> {
    let id =
        || prop_oneof![Just("1"), Just("\"1\""), Just("2"), Just("\"\\u00e9\""), Just("null"), Just("1.5")];
    let tool =
        prop_oneof![Just("echo"), Just("wait"), Just("later"), Just("flush"), Just("crash"), Just("half")];
    let revision = prop_oneof![Just("2025-11-25"), Just("2025-03-26")];
    let level = prop_oneof![Just("debug"), Just("error")];
    prop_oneof![
        3 => (id(), revision).prop_map(|(id, revision)| initialize(id, r#"{"roots":{}}"#, revision)),
        1 => Just(INITIALIZED.to_owned()),
        6 => (id(), tool).prop_map(|(id, tool)| call(id, tool)),
        1 => id().prop_map(|id| modern(id, "server/discover", "")),
        1 => id().prop_map(|id| modern_call(id, "echo")),
        1 => id().prop_map(|id| modern(id, "subscriptions/listen", "")),
        1 => id().prop_map(cancel),
        1 => id().prop_map(|id| request(id, "resources/subscribe", r#"{"uri":"u:1"}"#)),
        1 => id().prop_map(|id| request(id, "resources/unsubscribe", r#"{"uri":"u:1"}"#)),
        1 => (id(), level).prop_map(|(id, level)| request(id, "logging/setLevel", &format!(r#"{{"level":"{level}"}}"#))),
        1 => (id(), id()).prop_map(|(a, b)| format!("[{},{}]", call(a, "echo"), call(b, "later"))),
        1 => (id(), 1usize..20_000).prop_map(|(id, len)| call_with(id, "echo", &format!("\"{}\"", "é".repeat(len)))),
        1 => Just("noise {\r".to_owned()),
        1 => Just("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\",}".to_owned()),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let said = proptest::collection::vec((0usize..3, 0u64..8000, text()), 0..16);
    let mode = prop_oneof![Just(Mode::Auto), Just(Mode::Offer), Just(Mode::Off)];
    let dies_at = prop_oneof![2 => Just(None), 1 => (0usize..8).prop_map(Some)];
    (said, mode, any::<bool>(), any::<bool>(), any::<bool>(), dies_at).prop_map(
        |(mut said, mode, lumen, probe_kills, modern, dies_at)| {
            said.sort_by_key(|(_, at, _)| *at);
            Case { said, mode, lumen, probe_kills, modern, dies_at }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_comes_out_however_bytes_are_cut(case in case(), seed in any::<u64>()) {
        let whole = outcome(Chop::Whole, &case);
        prop_assert_eq!(&outcome(Chop::Seeded(seed), &case), &whole);
        prop_assert_eq!(&outcome(Chop::OneByte, &case), &whole);
    }
}
