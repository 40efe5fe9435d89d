//! Tests of the bridge: the agent's port by its bytes, the exchanges by hand.

use alloc::vec::Vec;
use core::time::Duration;
use std::string::String;

use super::*;
use crate::http::Method;
use crate::negotiate::hello::OPENING_PROBE;

const PORT: Port = Port::new(0);
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const SSE: &[(&str, &str)] = &[("content-type", "text/event-stream")];

struct Rig {
    bridge: Bridge,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        let mut rig = Self { bridge: Bridge::new(http::Config::new("u".into())), now: Instant::ZERO };
        rig.input(Input::Opened(PORT));
        rig
    }

    fn input(&mut self, input: Input<'_>) {
        self.bridge.handle_input(self.now, input);
    }

    fn say(&mut self, text: &str) {
        self.input(Input::Data(PORT, text.as_bytes()));
    }

    #[track_caller]
    fn next(&mut self) -> Request {
        self.bridge.poll_request().expect("a request")
    }

    fn answer(&mut self, id: ExchangeId, headers: &[(&str, &str)], text: &str) {
        self.bridge.handle_head(self.now, id, 200, headers);
        self.bridge.handle_chunk(self.now, id, text.as_bytes());
        self.bridge.handle_end(self.now, id, Ok(()));
    }

    /// Everything that goes to the agent, and whether it ends.
    fn output(&mut self) -> (Vec<u8>, bool) {
        let mut out = BytesMut::new();
        loop {
            match self.bridge.poll_transmit(self.now, PORT, &mut out) {
                Transmit::More => {}
                Transmit::Idle => return (out.to_vec(), false),
                Transmit::Finish => return (out.to_vec(), true),
            }
        }
    }

    fn lines(&mut self) -> String {
        String::from_utf8(self.output().0).unwrap()
    }

    fn events(&mut self) -> Vec<BridgeEvent> {
        core::iter::from_fn(|| self.bridge.poll_event()).collect()
    }

    fn outcome(&mut self) -> Option<Outcome> {
        match self.events().pop() {
            Some(BridgeEvent::Client(Event::Finished(outcome))) => Some(outcome),
            _ => None,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.bridge.handle_timeout(self.now);
        assert!(self.bridge.poll_timeout().is_none_or(|due| due > self.now));
    }
}

#[test]
fn a_line_goes_out_as_a_body_and_comes_back_as_a_line() {
    let mut rig = Rig::new();
    rig.say("{\"id\":1,\"method\":\"a\"}\r\n{\"id\":2,\"meth");
    let first = rig.next();
    assert_eq!((first.method, &first.body[..]), (Method::Post, &br#"{"id":1,"method":"a"}"#[..]));
    rig.answer(first.id, JSON, "{\r\n\"result\": 1.0,\n\"id\":1}\n");
    assert_eq!(rig.bridge.poll_ready(), Some(PORT));
    assert_eq!(rig.lines(), "{  \"result\": 1.0, \"id\":1} \n", "only white space between tokens");
    assert_eq!(rig.bridge.poll_request(), None);
    rig.say("od\":\"b\"}\n");
    assert_eq!(rig.next().body, r#"{"id":2,"method":"b"}"#);
}

#[test]
fn o12_a_null_id_is_refused_and_the_next_request_goes() {
    let mut rig = Rig::new();
    rig.say(
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/list\"}\nnoise\n{\"id\":2,\"method\":\"b\"}\n",
    );
    assert_eq!(rig.next().body, r#"{"id":2,"method":"b"}"#);
    assert_eq!(rig.bridge.poll_request(), None);
    let refused = rig.lines();
    assert!(refused.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#), "{refused}");
    assert_eq!(refused.matches('\n').count(), 1);
}

#[test]
fn an_agent_that_asks_for_lumen_gets_frames() {
    let mut rig = Rig::new();
    rig.input(Input::Data(PORT, OPENING_PROBE));
    assert!(!rig.output().0.is_empty());
    let request = br#"{"id":1,"method":"a"}"#;
    let mut frame = BytesMut::new();
    crate::frame::encode(crate::frame::Kind::REQUEST, crate::frame::Flags::NONE, request, &mut frame);
    rig.input(Input::Data(PORT, &frame));
    let made = rig.next();
    assert_eq!(&made.body[..], request);
    rig.answer(made.id, JSON, r#"{"id":1,"result":[]}"#);
    let (output, _) = rig.output();
    assert!(output.first().is_some_and(|byte| !b"{[".contains(byte)), "a frame, not a line");
    assert!(rig.events().contains(&BridgeEvent::Client(Event::Upgraded(PORT))));
}

#[test]
fn o21_the_end_of_the_input_is_not_the_end_of_the_answers() {
    let mut rig = Rig::new();
    rig.say("{\"id\":1,\"method\":\"a\"}\n{\"id\":2,\"method\":\"b\"}\n{\"id\":3,\"method\":\"c\"}");
    rig.input(Input::Eof(PORT));
    let made = [rig.next(), rig.next(), rig.next()];
    assert_eq!(rig.output(), (Vec::new(), false));
    for (request, id) in made.iter().zip(["1", "2", "3"]) {
        rig.answer(request.id, JSON, &alloc::format!("{{\"id\":{id},\"result\":0}}"));
    }
    let (output, is_end) = rig.output();
    assert_eq!(output.iter().filter(|&&byte| byte == b'\n').count(), 3);
    assert!(is_end);
    assert_eq!(rig.outcome(), None, "not before it is written");
    rig.input(Input::Finished(PORT));
    assert_eq!(rig.outcome(), Some(Outcome::Closed(None)));
    assert_eq!((rig.bridge.poll_action(), rig.bridge.poll_action()), (Some(Action::Abort(PORT)), None));
    rig.input(Input::Lost(PORT));
    rig.pass(Duration::from_secs(1000));
    assert_eq!((rig.events().len(), rig.bridge.poll_timeout()), (0, None));
}

#[test]
fn o21_after_the_grace_the_outcome_says_how_many_were_not_answered() {
    let mut rig = Rig::new();
    rig.say("{\"id\":1,\"method\":\"a\"}\n{\"id\":2,\"method\":\"b\"}\n");
    let [first, _] = [rig.next(), rig.next()];
    rig.input(Input::Eof(PORT));
    rig.answer(first.id, JSON, "{\"id\":1,\"result\":0}");
    rig.pass(limits::EOF_GRACE);
    let lines = rig.lines();
    assert!(lines.contains("\"id\":2,\"error\"") && lines.matches('\n').count() == 2, "{lines}");
    rig.input(Input::Finished(PORT));
    assert_eq!(rig.outcome(), Some(Outcome::Unanswered(1)));
}

#[test]
fn o22_nothing_pending_is_a_prompt_end() {
    let mut rig = Rig::new();
    rig.input(Input::Eof(PORT));
    assert_eq!(rig.output(), (Vec::new(), true));
    rig.input(Input::Finished(PORT));
    assert_eq!(rig.outcome(), Some(Outcome::Closed(None)));
}

#[test]
fn o20_an_agent_that_is_gone_ends_the_session_quietly() {
    let mut rig = Rig::new();
    rig.say("{\"id\":1,\"method\":\"a\"}\n");
    let made = rig.next();
    rig.bridge.handle_head(rig.now, made.id, 200, SSE);
    rig.input(Input::Lost(PORT));
    for n in 0..10 {
        let text = alloc::format!(
            "data: {{\"method\":\"n\",\"params\":\"{}\"}}\n\n",
            "x".repeat(limits::MAX_QUEUE / 2)
        );
        assert!(rig.bridge.wants_chunks(made.id), "{n}");
        rig.bridge.handle_chunk(rig.now, made.id, text.as_bytes());
    }
    rig.pass(limits::INNER_TERMINATE_STEP);
    assert_eq!(rig.bridge.poll_abort(), Some(made.id));
    assert_eq!(rig.outcome(), Some(Outcome::Closed(None)));
}

#[test]
fn told_to_end_answers_what_is_owed_and_does_not_wait_for_a_reader() {
    let mut rig = Rig::new();
    rig.say("{\"id\":1,\"method\":\"a\"}\n");
    let _made = rig.next();
    rig.bridge.terminate(rig.now);
    assert_eq!(rig.bridge.wants_input(PORT), 0);
    rig.pass(limits::INNER_TERMINATE_STEP);
    rig.pass(limits::STOP_STEP);
    assert_eq!(rig.outcome(), Some(Outcome::Terminated(None)));
    assert_eq!(rig.bridge.poll_action(), Some(Action::Abort(PORT)));
}

#[test]
fn an_agent_that_does_not_read_stops_the_streams_but_may_say_all_it_has_to_say() {
    let mut rig = Rig::new();
    rig.say("{\"id\":1,\"method\":\"a\"}\n");
    let made = rig.next();
    rig.bridge.handle_head(rig.now, made.id, 200, SSE);
    let text =
        alloc::format!("data: {{\"method\":\"n\",\"params\":\"{}\"}}\n\n", "x".repeat(limits::MAX_QUEUE / 4));
    let mut count = 0;
    while rig.bridge.wants_chunks(made.id) {
        rig.bridge.handle_chunk(rig.now, made.id, text.as_bytes());
        count += 1;
        assert!(count < 20);
    }
    // It may read only then.
    assert!(rig.bridge.wants_input(PORT) > 0);
    assert_eq!(rig.lines().matches('\n').count(), count);
    assert!(rig.bridge.wants_chunks(made.id));
}

#[test]
fn any_cut_of_the_input_gives_the_same() {
    let input = "{\"id\":1,\"method\":\"a\"}\r\n\nnoise\n[{\"id\":2,\"method\":\"é漢\"}]\n{\"id\":null,\"method\":\"x\"}\n{\"method\":\"n\"}";
    let play = |chunk: usize| {
        let mut rig = Rig::new();
        let mut bodies = Vec::new();
        for piece in input.as_bytes().chunks(chunk) {
            rig.input(Input::Data(PORT, piece));
        }
        rig.input(Input::Eof(PORT));
        while let Some(made) = rig.bridge.poll_request() {
            rig.bridge.handle_written(rig.now, made.id);
            bodies.push(made.body);
        }
        (bodies, rig.lines(), rig.events())
    };
    let whole = play(input.len());
    assert_eq!(whole.0.len(), 3);
    for chunk in 1..20 {
        assert_eq!(play(chunk), whole);
    }
}
