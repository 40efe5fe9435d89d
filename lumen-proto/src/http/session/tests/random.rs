//! Anything in any order: each request is answered exactly once, nothing else is, and the bounds are kept.

use std::collections::BTreeSet;
use std::vec;

use proptest::prelude::*;

use super::*;

/// What happens, with numbers that choose among what there is.
#[derive(Clone, Debug)]
enum Op {
    Call {
        modern: bool,
    },
    Note,
    Cancel(usize),
    Answer(usize),
    Again,
    Written(usize),
    Head {
        at: usize,
        status: u16,
        kind: usize,
    },
    /// A part of an answer, right or wrong.
    Chunk {
        at: usize,
        what: usize,
    },
    End {
        at: usize,
        ok: bool,
    },
    Wait(u32),
    Take,
}

fn op() -> impl Strategy<Value = Op> {
    let at = any::<u8>().prop_map(usize::from);
    prop_oneof![
        3 => any::<bool>().prop_map(|modern| Op::Call { modern }),
        1 => Just(Op::Note),
        1 => at.clone().prop_map(Op::Cancel),
        1 => at.clone().prop_map(Op::Answer),
        1 => Just(Op::Again),
        2 => at.clone().prop_map(Op::Written),
        6 => (at.clone(), prop::sample::select(vec![200_u16, 200, 200, 202, 400, 404, 404, 405, 500]), 0_usize..4)
            .prop_map(|(at, status, kind)| Op::Head { at, status, kind }),
        8 => (at.clone(), 0_usize..12).prop_map(|(at, what)| Op::Chunk { at, what }),
        5 => (at, any::<bool>()).prop_map(|(at, ok)| Op::End { at, ok }),
        1 => (0_u32..20_000).prop_map(Op::Wait),
        1 => Just(Op::Take),
    ]
}

/// What the agent knows.
#[derive(Default)]
struct Agent {
    /// What it waits for.
    owed: BTreeSet<u64>,
    asked: Vec<u64>,
}

impl Agent {
    fn take(&mut self, rig: &mut Rig) {
        for text in rig.told() {
            let message: Value = serde_json::from_str(&text).unwrap();
            let id = message.get("id").and_then(Value::as_u64);
            match (message.get("method"), id) {
                (Some(_), Some(id)) => self.asked.push(id),
                (Some(_), None) => {}
                (None, Some(id)) => assert!(self.owed.remove(&id), "not owed: {text}"),
                (None, None) => panic!("an answer to nothing: {text}"),
            }
        }
    }
}

fn pick<T>(all: &[T], at: usize) -> Option<&T> {
    all.get(at.checked_rem(all.len())?)
}

fn play(ops: Vec<Op>, timeout: Option<Duration>) {
    let mut rig = Rig::with(Config::new("u".into()).with_timeout(timeout));
    let mut agent = Agent::default();
    let mut made: Vec<Request> = Vec::new();
    let mut next = 1_u64;
    rig.say(INITIALIZE);
    agent.owed.insert(0);
    for op in ops {
        match op {
            Op::Call { modern } => {
                let meta = if modern {
                    r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#
                } else {
                    ""
                };
                rig.say(&std::format!(
                    r#"{{"jsonrpc":"2.0","id":{next},"method":"tools/call","params":{{"name":"x"{meta}}}}}"#
                ));
                agent.owed.insert(next);
                next += 1;
            }
            Op::Note => rig.say(INITIALIZED),
            Op::Cancel(at) => {
                let ids: Vec<u64> = agent.owed.iter().copied().filter(|id| *id > 0).collect();
                if let Some(id) = pick(&ids, at) {
                    rig.say(&std::format!(
                        r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                    ));
                    // An answer may be on its way already.
                    agent.take(&mut rig);
                    agent.owed.remove(id);
                }
            }
            Op::Answer(at) => {
                if let Some(id) = pick(&agent.asked, at) {
                    rig.say(&std::format!(r#"{{"id":{id},"result":{{}}}}"#));
                }
            }
            Op::Again => {
                if agent.owed.insert(0) {
                    rig.say(INITIALIZE);
                }
            }
            Op::Written(at) => {
                if let Some(request) = pick(&made, at) {
                    rig.session.handle_written(rig.now, request.id);
                }
            }
            Op::Head { at, status, kind } => {
                if let Some(request) = pick(&made, at) {
                    let types = [JSON, SSE, ("content-type", "text/html"), ("x", "y")];
                    rig.head(request.id, status, &[types[kind], ("mcp-session-id", "s")]);
                }
            }
            Op::Chunk { at, what } => {
                if let Some(request) = pick(&made, at) {
                    let id = serde_json::from_slice::<Value>(&request.body)
                        .ok()
                        .and_then(|body| body["id"].as_u64());
                    let id = id.unwrap_or(next);
                    let answer =
                        std::format!(r#"{{"id":{id},"result":{{"protocolVersion":"1","tools":[]}}}}"#);
                    let text = match what {
                        0 => answer,
                        1..=3 => data(&answer),
                        4 => std::format!("id: {id}\ndata: {answer}\n\n"),
                        5 => "id: 1\ndata:\n\n".into(),
                        6 => data(&result(u32::try_from(next / 2).unwrap())),
                        7 => data(r#"{"id":4000000,"method":"roots/list"}"#),
                        8 => std::format!(r#"{{"id":{id},"error":{{"code":-32020}}}}"#),
                        9 => r#"{"id":null,"error":{"code":-32601}}"#.into(),
                        10 => data(r#"{"method":"n"}"#),
                        _ => "\u{1}{[".into(),
                    };
                    rig.chunk(request.id, &text);
                }
            }
            Op::End { at, ok } => {
                if let Some(request) = pick(&made, at) {
                    if ok { rig.end(request.id) } else { rig.fail(request.id, TransportErrorKind::Reset) }
                }
            }
            Op::Wait(millis) => rig.pass(Duration::from_millis(millis.into())),
            Op::Take => agent.take(&mut rig),
        }
        rig.aborted();
        made.extend(core::iter::from_fn(|| rig.session.poll_request()));
        let session = &rig.session;
        assert!(session.flights.len() <= limits::MAX_POSTS + 5 && session.parked.len() <= limits::MAX_POSTS);
        let kept = session.flights.values().filter_map(|flight| flight.response.as_ref());
        assert_eq!(session.collected, kept.map(Response::pending).sum::<usize>());
        let lens = session.messages.iter().map(|(message, _)| message.len());
        assert_eq!(session.outgoing, lens.sum::<usize>());
        let queued = session.queue.iter().chain(&session.waiting).map(|post| post.message.len());
        assert_eq!(session.queued, queued.sum::<usize>());
    }
    rig.session.handle_eof(rig.now);
    for _ in 0..1000 {
        let Some(due) = rig.session.poll_timeout() else { break };
        rig.pass(due.saturating_since(rig.now));
    }
    assert!(rig.session.is_over());
    agent.take(&mut rig);
    assert_eq!(agent.owed, BTreeSet::new(), "never answered");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn each_request_is_answered_exactly_once(ops in prop::collection::vec(op(), 0..200), timeout in any::<Option<u16>>()) {
        play(ops, timeout.map(|seconds| Duration::from_secs(u64::from(seconds) + 1)));
    }
}
