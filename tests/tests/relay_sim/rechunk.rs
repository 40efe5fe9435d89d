//! Rule 10: however the same bytes are cut, the same comes out.

use lumen_proto::endpoint::Relay;
use lumen_proto::negotiate::Mode;
use lumen_tests::sim::scripted::{JsonClient, Manners};
use lumen_tests::sim::{Chop, Link};
use proptest::prelude::*;

use crate::support::*;

/// Everything that can be seen from outside: bytes to the client, bytes to each child, events.
fn outcome(chop: Chop, case: &Case) -> (Vec<Vec<u8>>, Vec<String>) {
    let client = case.sent.iter().fold(JsonClient::new(), |client, (at, text)| client.at(*at, text));
    let client = client.close_at(case.close);
    let relay = if case.wrap { Relay::wrap(config(Mode::Off)) } else { Relay::connect(config(case.mode)) };
    let port = relay.client_port();
    let child: Box<dyn Fn(usize, &_) -> _> = if case.lumen {
        Box::new(lumen(|server| server.echo_offer()))
    } else {
        Box::new(json(case.manners.clone()))
    };
    let run = run(Link::chopped(chop), relay, client, child).finish();
    let mut bytes = vec![run.sim.transcript(0, port).0.to_vec()];
    for nth in 0..run.seen.borrow().starts.len() {
        bytes.push(run.sim.transcript(0, run.child(nth)).0.to_vec());
    }
    (bytes, run.sim.events(0).map(|(at, event)| format!("{at:?} {event:?}")).collect())
}

#[derive(Clone, Debug)]
struct Case {
    sent: Vec<(u64, Vec<u8>)>,
    close: u64,
    mode: Mode,
    wrap: bool,
    lumen: bool,
    manners: Manners,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![Just("1"), Just("\"1\""), Just("2"), Just("\"\\u00e9\""), Just("null"), Just("1.5")];
    prop_oneof![
        4 => id.prop_map(|id| call(id).into_bytes()),
        1 => Just(INIT.as_bytes().to_vec()),
        1 => Just(INITIALIZED.as_bytes().to_vec()),
        1 => Just(b"noise: \xff\x7f {".to_vec()),
        1 => Just(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\",}".to_vec()),
        1 => Just(b"[{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}]\r".to_vec()),
        1 => (0usize..20_000).prop_map(|len| format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"arguments":"{}"}}}}"#,
            "é".repeat(len)
        ).into_bytes()),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let mode = prop_oneof![Just(Mode::Auto), Just(Mode::Probe), Just(Mode::Offer), Just(Mode::Off)];
    let manners = (any::<bool>(), 0usize..3, prop_oneof![Just(None), (0usize..4).prop_map(Some)]).prop_map(
        |(noisy, strays, die_at)| Manners {
            between: if noisy { b"LOG: \xfe\n".to_vec() } else { Vec::new() },
            strays,
            die_at,
            ..Manners::default()
        },
    );
    let sent = proptest::collection::vec((0u64..1000, text()), 0..8);
    (sent, 0u64..1500, mode, any::<bool>(), any::<bool>(), manners).prop_map(
        |(mut sent, close, mode, wrap, lumen, manners)| {
            sent.sort_by_key(|(at, _)| *at);
            Case { sent, close, mode, wrap, lumen: lumen && !wrap, manners }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_comes_out_however_bytes_are_cut(case in case(), seed in any::<u64>()) {
        let whole = outcome(Chop::Whole, &case);
        prop_assert_eq!(&outcome(Chop::Seeded(seed), &case), &whole);
        prop_assert_eq!(&outcome(Chop::OneByte, &case), &whole);
    }
}
