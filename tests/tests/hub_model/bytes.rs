//! What a hub does not have to change leaves as it came, in either encoding.

use bytes::BytesMut;
use lumen_proto::endpoint::{Hub, HubConfig, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::value::transcode::Transcoder;
use lumen_proto::{Action, Input, Instant, Machine, Port, Transmit};
use lumen_tests::sim::Checked;
use lumen_tests::sim::wire::{self, REQUEST, RESPONSE};
use serde_json::Value;

use super::rng::Rng;
use super::stream::decode;

const PROBE: &[u8] = b"{\"v\":1,\"caps\":[\"compression\",\"exact\"]}\n";

/// A hub with one client and one server, and what each has got and not read.
struct Rig {
    hub: Checked<Hub>,
    client: Port,
    server: Option<Port>,
    at_client: Vec<u8>,
    at_server: Vec<u8>,
}

impl Rig {
    fn new(client_is_lumen: bool, server_is_lumen: bool) -> Self {
        let mode = if server_is_lumen { Mode::Probe } else { Mode::Off };
        let mut hub = Checked::new(Hub::new(HubConfig::new(ServerConfig::new(Behind::Process, mode))));
        let client = hub.with(Instant::ZERO, Hub::try_accept).unwrap();
        let (at_client, at_server) = (Vec::new(), Vec::new());
        let mut rig = Self { hub, client, server: None, at_client, at_server };
        rig.input(Input::Opened(client));
        if client_is_lumen {
            rig.input(Input::Data(client, &wire::frame(wire::PROBE, 0, PROBE)));
            assert_eq!(wire::parse(&rig.at_client).unwrap().kind, wire::PROBE_ACK);
            rig.at_client.clear();
        }
        // The first request starts the server, and its first answer shows that there is one.
        rig.input(Input::Data(client, b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"x/start\"}\n"));
        let server = rig.server.unwrap();
        if server_is_lumen {
            assert_eq!(wire::parse(&rig.at_server).unwrap().kind, wire::PROBE);
            rig.at_server.clear();
            rig.input(Input::Data(server, &wire::frame(wire::PROBE_ACK, 0, PROBE)));
        }
        rig.input(Input::Data(server, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":0}\n"));
        rig.at_client.clear();
        rig.at_server.clear();
        rig
    }

    fn input(&mut self, input: Input<'_>) {
        self.hub.handle_input(Instant::ZERO, input);
        loop {
            let mut any = false;
            while let Some(action) = self.hub.poll_action() {
                any = true;
                if let Action::Spawn(port) = action {
                    self.server = Some(port);
                    self.hub.handle_input(Instant::ZERO, Input::Opened(port));
                }
            }
            while let Some(port) = self.hub.poll_ready() {
                let mut out = BytesMut::new();
                while self.hub.poll_transmit(Instant::ZERO, port, &mut out) == Transmit::More {
                    any = true;
                }
                let at = if port == self.client { &mut self.at_client } else { &mut self.at_server };
                at.extend_from_slice(&out);
            }
            while self.hub.poll_event().is_some() {
                any = true;
            }
            if !any {
                return;
            }
        }
    }
}

/// A message around the tokens that are exchanged in it.
struct Sample {
    before: String,
    between: String,
    after: String,
    has_token: bool,
}

impl Sample {
    fn text(&self, id: &str, token: &str) -> String {
        let token = if self.has_token { token } else { "" };
        [&*self.before, id, &*self.between, token, &*self.after].concat()
    }
}

const ODD: [&str; 30] = [
    "0",
    "-0",
    "1.0",
    "1e0",
    "1E+2",
    "-1.50",
    "0.1000",
    "1e-7",
    "123456789012345678901234567890",
    "1e400",
    "5e-324",
    "9007199254740993",
    "-9223372036854775808",
    "18446744073709551616",
    "true",
    "null",
    "[]",
    "{}",
    "[ 1 , 2 ]",
    "{ \"a\" : 1 , \"a\" : 2 }",
    "\"\"",
    "\"\\u0061\\/\"",
    "\"\u{2028}\u{2029}\"",
    "\"\\u2028\"",
    "\"\\ud83d\\ude00\"",
    "\"\u{1f600}\"",
    "\"\\ud800\"",
    "\"\\n\\t\\\\\\\"\"",
    "\"\u{7f}\"",
    "\"content\"",
];

const KEYS: [&str; 7] = ["a", "a", "id", "\\u0069d", "method", "\u{2028}", "arguments"];

fn odd(rng: &mut Rng, depth: usize) -> String {
    let count = rng.below(4);
    let space = *rng.pick(&["", "", " "]);
    match rng.below(if depth == 0 { 2 } else { 6 }) {
        0..=3 => (*rng.pick(&ODD)).to_owned(),
        4 => {
            let all: Vec<String> = (0..count).map(|_| odd(rng, depth - 1)).collect();
            format!("[{space}{}]", all.join(","))
        }
        _ => {
            let all: Vec<String> = (0..count)
                .map(|_| format!("{space}\"{}\":{}", *rng.pick(&KEYS), odd(rng, depth - 1)))
                .collect();
            format!("{{{}{space}}}", all.join(","))
        }
    }
}

fn request(rng: &mut Rng) -> Sample {
    let space = *rng.pick(&["", "", " ", "\t"]);
    let has_token = rng.percent(50);
    let (first, second) = (odd(rng, 3), odd(rng, 2));
    let meta = if has_token { ",\"_meta\":{\"progressToken\":" } else { "" };
    Sample {
        before: format!("{{\"jsonrpc\":\"2.0\",{space}\"id\":"),
        between: format!(",{space}\"method\":\"x/y\",\"params\":{{\"x\":{first}{meta}"),
        after: format!("{}{space}}},\"extra\":{second}}}", if has_token { "}" } else { "" }),
        has_token,
    }
}

fn answer(rng: &mut Rng) -> Sample {
    let part = *rng.pick(&["result", "error"]);
    let value = odd(rng, 3);
    Sample {
        before: "{\"jsonrpc\":\"2.0\",\"id\":".to_owned(),
        between: format!(",\"{part}\":{value}}}"),
        after: String::new(),
        has_token: false,
    }
}

/// Writes a message as its sender does. A value has a line feed behind it, which is legal, and which nobody who writes
/// a value anew would write.
fn encode(text: &str, is_lumen: bool, kind: u8) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut value = Vec::new();
    if !is_lumen {
        return (format!("{text}\n").into_bytes(), None);
    }
    if Transcoder::new().encode(text.as_bytes(), &mut value).is_err() {
        return (wire::frame(kind, 0, text.as_bytes()), None);
    }
    value.push(b'\n');
    (wire::frame(kind, 1, &value), Some(value))
}

/// Checks what became of a message, when `expected` is its text with what had to be exchanged.
fn check(got: &[u8], expected: &str, sent_value: bool, is_lumen: bool, kind: u8) {
    let document = |text: &str| serde_json::from_str::<Value>(text).ok();
    if !is_lumen {
        let text = std::str::from_utf8(got).unwrap().strip_suffix('\n').unwrap();
        if sent_value {
            assert_eq!(document(text), document(expected), "{text}\n{expected}");
        } else {
            assert_eq!(text, expected);
        }
        return;
    }
    let frame = wire::parse(got).unwrap();
    assert_eq!((frame.kind, frame.total), (kind, got.len()));
    match (frame.flags, sent_value) {
        (1, true) => {
            let (_, value) = encode(expected, true, kind);
            assert_eq!(frame.payload, value.unwrap(), "not the bytes that came: {expected}");
        }
        (1, false) => assert_eq!(document(&decode(frame.payload)), document(expected)),
        (0, false) => assert_eq!(std::str::from_utf8(frame.payload).unwrap(), expected),
        (flags, _) => panic!("a value became a frame with flags {flags}: {expected}"),
    }
}

fn run(client_is_lumen: bool, server_is_lumen: bool) {
    let mut rng = Rng::new(7);
    let mut rig = Rig::new(client_is_lumen, server_is_lumen);
    let server = rig.server.unwrap();
    let mut values = 0;
    for nth in 2..1252 {
        let wire_id = nth.to_string();
        let id = *rng.pick(&["7", "-7", "\"7\"", "\"a b\"", "\"\u{2028}\"", "123456789012345"]);
        let token = *rng.pick(&["7", "\"t\"", "1.5"]);
        let sample = request(&mut rng);
        let (bytes, value) = encode(&sample.text(id, token), client_is_lumen, REQUEST);
        rig.input(Input::Data(rig.client, &bytes));
        let got = std::mem::take(&mut rig.at_server);
        check(&got, &sample.text(&wire_id, &wire_id), value.is_some(), server_is_lumen, REQUEST);
        values += usize::from(value.is_some());

        let sample = answer(&mut rng);
        let (bytes, value) = encode(&sample.text(&wire_id, ""), server_is_lumen, RESPONSE);
        rig.input(Input::Data(server, &bytes));
        let got = std::mem::take(&mut rig.at_client);
        check(&got, &sample.text(id, ""), value.is_some(), client_is_lumen, RESPONSE);
        values += usize::from(value.is_some());
    }
    assert!(rig.hub.inner().mux().is_empty());
    let most = 1250 * (usize::from(client_is_lumen) + usize::from(server_is_lumen));
    assert!(values * 5 >= most * 2, "only {values} values");
}

#[test]
fn lines_stay_as_they_came_outside_of_what_is_exchanged() {
    run(false, false);
}

#[test]
fn values_stay_as_they_came_outside_of_what_is_exchanged() {
    run(true, true);
}

#[test]
fn between_lines_and_values_the_document_stays_the_same() {
    run(true, false);
    run(false, true);
}
