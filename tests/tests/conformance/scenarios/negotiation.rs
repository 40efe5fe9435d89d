//! How the two ends come to agree on LUMEN, or not.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use lumen_proto::endpoint::ServerConfig;
use lumen_proto::negotiate::Mode;
use lumen_std::Target;
use lumen_tests::mux::Scratch;

use super::{Taped, ask, child, config, connect, tell_carrier};
use crate::face::{End as _, Face, request};
use crate::teller::Log;

const GREETING: &str =
    r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;

/// So long that it is compressed where that was agreed on; a number is then spelled as the receiver does.
const DOCUMENT: &str = r#"[1,-2.5e3,"ä😀",{"a":null,"text":"as long as a message has to be to leave as a value and not as it is"}]"#;

fn with_a_peer<F: Face>(face: &F, log: &Log, mode: Mode) {
    let taped = Taped::new();
    let mut client = connect(face, log, taped.child("child_peer", &[]), config(mode));
    ask(&mut client, log, 1, "initialize", GREETING);
    tell_carrier(&client, log);
    ask(&mut client, log, 2, "echo", DOCUMENT);
    log.closed(&client.close());
    taped.tell(log);
}

pub fn auto<F: Face>(face: &F, log: &Log) {
    with_a_peer(face, log, Mode::Auto);
}

/// Until the peer has answered what follows the offer, messages leave as JSON. How many do is a matter of time.
pub fn offer<F: Face>(face: &F, log: &Log) {
    let taped = Taped::new();
    let mut client = face.connect(taped.child("child_peer", &[]), config(Mode::Offer));
    ask(&mut client, log, 1, "initialize", GREETING);
    let mut id = 2;
    while !client.is_lumen() {
        client.send(request(id, "echo", "[]")).unwrap();
        client.recv().unwrap();
        id += 1;
    }
    tell_carrier(&client, log);
    ask(&mut client, log, 1, "echo", DOCUMENT);
    log.closed(&client.close());
    taped.tell_openings(log);
}

pub fn off<F: Face>(face: &F, log: &Log) {
    with_a_peer(face, log, Mode::Off);
}

/// The probe is answered when it was given up already.
pub fn late_acknowledgement<F: Face>(face: &F, log: &Log) {
    let scratch = Scratch::new();
    let listener = UnixListener::bind(scratch.path("s")).unwrap();
    let peer = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut read = Vec::new();
        // The probe is a line to whoever reads lines.
        lines.read_until(b'\n', &mut read).unwrap();
        let probe = read.len();
        lines.read_until(b'\n', &mut read).unwrap();
        assert!(read.len() > probe, "the request comes without an answer to the probe");
        stream.write_all(b"\x2b\x10\x00{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n").unwrap();
        stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n").unwrap();
        lines.read_until(b'\n', &mut read).unwrap();
        stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n").unwrap();
        drop(stream);
        lines.read_until(b'\n', &mut read).unwrap();
        read
    });
    let config = config(Mode::Auto).with_probe_timeout(Duration::from_millis(100));
    let mut client = connect(face, log, Target::Unix(scratch.path("s")), config);
    ask(&mut client, log, 1, "ping", "{}");
    tell_carrier(&client, log);
    ask(&mut client, log, 2, "ping", "{}");
    log.closed(&client.close());
    log.wire("the peer read", &peer.join().unwrap());
}

fn started_again<F: Face>(face: &F, log: &Log, fault: &str, config: ServerConfig) {
    let scratch = Scratch::new();
    let record = scratch.text("record");
    let target = child("child_server", &[fault, "--record", &record]);
    let mut client = connect(face, log, target, config);
    for id in 1..3 {
        client.send(request(id, "ping", "{}")).unwrap();
    }
    log.message(client.recv().as_ref());
    log.message(client.recv().as_ref());
    tell_carrier(&client, log);
    log.closed(&client.close());
    log.wire("what was started and read", &std::fs::read(record).unwrap());
}

pub fn killed_by_the_probe<F: Face>(face: &F, log: &Log) {
    started_again(face, log, "--exit-on-probe", config(Mode::Auto));
}

pub fn deaf_after_the_probe<F: Face>(face: &F, log: &Log) {
    let config = config(Mode::Auto).with_probe_timeout(Duration::from_millis(50));
    let config = ServerConfig { probed_answer_timeout: Duration::from_millis(300), ..config };
    started_again(face, log, "--deaf-on-probe", config);
}
