//! Messages keep their bytes both ways (O-02, O-03, O-04, O-13), ids are what they are (O-11, O-12), and nobody waits for
//! who does not read (O-05).

use serde_json::json;

use crate::server::{EVENTS, JSON, Server};
use crate::support::{ping, pong};

/// Odd texts, the same in every run.
struct Words(u64);

const PARTS: [&str; 16] = [
    "9007199254740993",
    "1e400",
    "1.0",
    "-0",
    "-0.0",
    "\"\\u0061\\/\\ud83d\\ude00\"",
    "\"é—漢😀\\u0000\"",
    "{\"a\":1,\"a\":2}",
    "[ ]",
    "{ \"x\" : [ null,true , false] }",
    "\"\\r\\n\\t\"",
    "12345678901234567890123",
    "{\"id\":7,\"method\":\"x\",\"jsonrpc\":\"1.0\"}",
    "\"\u{2028}\u{feff}\"",
    "0.10e+1",
    "\"data: x\\n\\nevent: y\"",
];

impl Words {
    fn new() -> Self {
        Self(1)
    }

    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as usize % limit
    }

    /// A value in odd spelling.
    fn value(&mut self) -> String {
        let mut value = PARTS[self.below(PARTS.len())].to_owned();
        for _ in 0..self.below(3) {
            let other = PARTS[self.below(PARTS.len())];
            value = match self.below(3) {
                0 => format!("[{value} ,{other}]"),
                1 => format!("{{\"k\" :{value},\"k\":{other}}}"),
                _ => format!("\t{value} "),
            };
        }
        value
    }
}

/// Cuts bytes into pieces of all lengths up to `most`.
fn pieces(words: &mut Words, mut bytes: &[u8], most: usize) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at((1 + words.below(most)).min(bytes.len()));
        pieces.push(piece.to_vec());
        bytes = rest;
    }
    pieces
}

#[test]
fn o_13_odd_messages_keep_their_bytes_both_ways() {
    let server = Server::start();
    let mut session = server.connected();
    let mut words = Words::new();
    for round in 0..250 {
        let requests: Vec<_> = (0..4)
            .map(|at| {
                let (id, value) = (round * 4 + at, words.value());
                format!(
                    " {{\"params\":{{ \"v\":{value}}},\"id\" : {id},\"method\":\"m\",\"jsonrpc\":\"2.0\" }}"
                )
            })
            .collect();
        session.send(&requests);
        let mut wanted = Vec::new();
        for _ in 0..4 {
            // Not parsed: not every number in it is one to everybody.
            let request = server.next();
            let at = requests.iter().position(|sent| sent.trim().as_bytes() == request.body.trim_ascii());
            let at = at.expect("one of those that were sent");
            let answer =
                format!("{{ \"result\" :{},\"id\":{},\"jsonrpc\":\"2.0\"}}", words.value(), round * 4 + at);
            wanted.push(answer.clone().into_bytes());
            let mut stream = match words.below(2) {
                0 => {
                    let mut stream = request.begin(200, &[JSON]);
                    pieces(&mut words, answer.as_bytes(), 40)
                        .into_iter()
                        .for_each(|piece| stream.send(piece));
                    stream
                }
                _ => {
                    let mut stream = request.begin(200, &[EVENTS]);
                    let events = format!("event: message\ndata: {answer}\n\n");
                    pieces(&mut words, events.as_bytes(), 40)
                        .into_iter()
                        .for_each(|piece| stream.send(piece));
                    stream
                }
            };
            stream.send("");
            stream.end();
        }
        let mut found: Vec<_> = (0..4).map(|_| session.line()).collect();
        found.sort();
        wanted.sort();
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(String::from_utf8_lossy(found.trim_ascii()), String::from_utf8_lossy(wanted));
        }
    }
}

#[test]
fn o_02_characters_cut_between_reads() {
    let server = Server::start();
    let mut session = server.connected();
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"t":"é—漢😀"}}"#;
    for headers in [JSON, EVENTS] {
        session.send(&[ping(1)]);
        let text = if headers == JSON { answer.to_owned() } else { format!("data: {answer}\n\n") };
        let mut stream = server.post("ping").begin(200, &[headers]);
        text.bytes().for_each(|byte| stream.send(vec![byte]));
        stream.end();
        assert_eq!(session.line(), answer.as_bytes());
    }
}

#[test]
fn o_03_crlf_and_blank_lines_of_the_agent() {
    let server = Server::start();
    let mut session = server.connected();
    let odd = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"t":"a\r\n\rb"}}"#;
    session.send(&[format!("{odd}\r"), "\r".to_owned(), String::new(), format!("{}\r", ping(2))]);
    let mut bodies: Vec<_> = (0..2)
        .map(|_| {
            let request = server.post("ping");
            let body = request.body.clone();
            request.result();
            body
        })
        .collect();
    bodies.sort_by_key(Vec::len);
    assert_eq!(bodies, [ping(2).into_bytes(), odd.as_bytes().to_vec()]);
    let answers = [session.line(), session.line()];
    assert!(answers.contains(&pong(1)) && answers.contains(&pong(2)));
    // A body that ends in CRLF is one message all the same.
    session.send(&[ping(3)]);
    server.post("ping").json_answer([pong(3), b"\r\n".to_vec()].concat());
    assert_eq!(session.line().trim_ascii(), pong(3));
}

#[test]
fn o_04_large_messages_both_ways() {
    let server = Server::start();
    let mut session = server.connected();
    for size in [65_535, 65_536, 65_537, (1 << 20) + 1, 20 << 20] {
        let text = "x".repeat(size);
        for headers in [JSON, EVENTS] {
            let sent = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":"{text}"}}"#);
            session.send(&[&sent]);
            let request = server.post("m");
            assert!(request.body == sent.as_bytes(), "{size}");
            let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{text}"}}"#);
            let body = if headers == JSON { answer.clone() } else { format!("data: {answer}\n\n") };
            request.answer(200, &[headers], body);
            assert!(session.line() == answer.as_bytes(), "{size} {headers:?}");
        }
    }
}

#[test]
fn o_04_an_answer_above_the_limit_is_one_error_and_the_rest_goes_on() {
    let server = Server::start();
    let mut session = server.connected();
    let block = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    for headers in [JSON, EVENTS] {
        session.send(&[ping(1)]);
        let mut stream = server.post("ping").begin(200, &[headers]);
        if headers == EVENTS {
            stream.send("data: ");
        }
        stream.send(r#"{"jsonrpc":"2.0","id":1,"result":""#);
        for _ in 0..70 {
            stream.send(block.clone());
        }
        stream.send("\"}\n\n");
        stream.end();
        let answer = session.json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)));
        session.send(&[ping(2)]);
        server.post("ping").result();
        assert_eq!(session.line(), pong(2));
    }
}

/// An agent that writes one large message while another is on its way to it, and reads only when it has written.
#[test]
fn o_05_both_pipes_full() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let mut stream = server.post("ping").stream();
    let note = format!(r#"{{"jsonrpc":"2.0","method":"note","params":"{}"}}"#, "n".repeat(1 << 20));
    stream.event(&note);
    // The beginning of it is there: the pipe is full, and the rest waits in the bridge.
    session.wait_bytes(1);
    let large = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"m","params":"{}"}}"#, "x".repeat(1 << 20));
    session.send_deaf(&[&large]);
    let request = server.next();
    assert!(request.body == large.as_bytes());
    assert!(session.line() == note.as_bytes());
    request.result();
    assert_eq!(session.line(), pong(2));
    stream.event(String::from_utf8(pong(1)).unwrap());
    assert_eq!(session.line(), pong(1));
}

#[test]
fn o_05_an_agent_that_reads_slowly_gets_everything() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let mut stream = server.post("ping").stream();
    let note = format!(r#"{{"jsonrpc":"2.0","method":"note","params":"{}"}}"#, "n".repeat(1 << 20));
    for _ in 0..100 {
        stream.event(&note);
    }
    stream.event(String::from_utf8(pong(1)).unwrap());
    stream.end();
    for _ in 0..100 {
        assert!(session.line() == note.as_bytes());
    }
    assert_eq!(session.line(), pong(1));
}

#[test]
fn o_05_a_server_that_does_not_answer_stops_only_who_waits_for_it() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[ping(1)]);
    let unanswered = server.post("ping");
    for id in 2..20 {
        session.send(&[ping(id)]);
        server.post("ping").result();
        assert_eq!(session.line(), pong(id));
    }
    unanswered.result();
    assert_eq!(session.line(), pong(1));
}

#[test]
fn o_11_ids_0_and_empty_are_ids() {
    let server = Server::start();
    let mut session = server.connected();
    for id in [json!(0), json!(""), json!("0"), json!(-1)] {
        session.send(&[ping(id.clone())]);
        server.post("ping").result();
        assert_eq!(session.json(), json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        session.send(&[ping(id.clone())]);
        server.post("ping").answer(500, &[], "broken");
        let answer = session.json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32603)));
    }
}

#[test]
fn o_12_id_null_is_refused_and_the_next_is_not() {
    let server = Server::start();
    let mut session = server.connected();
    session.send(&[r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#.to_owned(), ping(1)]);
    let answer = session.json();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32600)));
    server.post("ping").result();
    assert_eq!(session.line(), pong(1));
}

#[test]
fn o_13_an_id_comes_back_as_it_was_spelled() {
    let server = Server::start();
    let mut session = server.connected();
    let sent = r#"{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}"#;
    session.send(&[sent]);
    server.post("ping").answer(502, &[("content-type", "text/html")], "<html>");
    let line = session.line();
    let line = String::from_utf8_lossy(&line);
    assert!(
        line.contains("\"id\":12345678901234567890,") || line.contains("\"id\":12345678901234567890}"),
        "{line}"
    );
    session.send(&[sent]);
    let answer = r#"{"jsonrpc":"2.0","id":12345678901234567890,"result":[9007199254740993,1.0,-0,1e400]}"#;
    server.post("ping").json_answer(answer);
    assert_eq!(session.line(), answer.as_bytes());
}
