//! Bytes that come one at a time, in great numbers, or not at all.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread;

use lumen_proto::endpoint::ServerConfig;
use lumen_proto::limits::MAX_MESSAGE;
use lumen_proto::negotiate::Mode;
use lumen_std::{Error, Target};
use lumen_tests::mux::Scratch;
use lumen_tests::procs::sibling;

use super::{ask, child, config, connect, tell_carrier};
use crate::face::{End as _, Face, message, request};
use crate::teller::Log;

/// Passes on each byte by itself; dropping `to` ends it.
fn byte_by_byte(mut from: impl Read, mut to: impl Write) {
    let mut byte = [0];
    while matches!(from.read(&mut byte), Ok(1)) {
        if to.write_all(&byte).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

pub fn one_byte_at_a_time<F: Face>(face: &F, log: &Log) {
    let scratch = Scratch::new();
    let listener = UnixListener::bind(scratch.path("s")).unwrap();
    let between = thread::spawn(move || {
        for _ in 0..2 {
            let stream = listener.accept().unwrap().0;
            let mut command = Command::new(sibling("child_peer"));
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let (into, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let there = stream.try_clone().unwrap();
            let toward = thread::spawn(move || byte_by_byte(there, into));
            byte_by_byte(out, &stream);
            assert!(child.wait().unwrap().success());
            drop(stream);
            toward.join().unwrap();
        }
    });
    for mode in [Mode::Auto, Mode::Off] {
        let mut client = connect(face, log, Target::Unix(scratch.path("s")), config(mode));
        ask(&mut client, log, 1, "echo", r#"["ä😀",{"k":[true,1e400]}]"#);
        for id in 2..5 {
            client.send(request(id, "echo", &format!(r#""{}""#, "é".repeat(700)))).unwrap();
        }
        for _ in 2..5 {
            log.message(client.recv().as_ref());
        }
        tell_carrier(&client, log);
        log.closed(&client.close());
    }
    between.join().unwrap();
}

/// 20 MiB there, and back again.
fn large<F: Face>(face: &F, log: &Log, mode: Mode) {
    let config = ServerConfig { max_line: MAX_MESSAGE, ..config(mode) };
    let mut client = connect(face, log, child("child_peer", &[]), config);
    let text = format!("\"{}\"", "0123456789abcdef".repeat(20 * 65_536));
    let large = request(1, "echo", &text);
    client.send(large).unwrap();
    let answer = client.recv().unwrap();
    let result = answer.envelope().result.unwrap().of(answer.bytes());
    log.line(format!("an answer of {} bytes, {}", answer.len(), result == text.as_bytes()));
    tell_carrier(&client, log);
    log.closed(&client.close());
}

pub fn large_messages_in_lumen<F: Face>(face: &F, log: &Log) {
    large(face, log, Mode::Auto);
}

pub fn large_messages_in_json<F: Face>(face: &F, log: &Log) {
    large(face, log, Mode::Off);
}

/// A client that closes its input still gets what is owed; a server that closes its output does not hold up the rest.
pub fn half_close<F: Face>(face: &F, log: &Log) {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut server = face.serve(theirs);
    server.on_notice(log.on_notice());
    ours.write_all(b"{\"id\":1,\"method\":\"a\"}\n{\"id\":2,\"method\":\"b\"}\n").unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    for _ in 0..3 {
        log.message(server.recv().as_ref());
    }
    let large = format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(1 << 20));
    log.sent(server.send(message(&large)));
    log.sent(server.send(message(r#"{"id":2,"result":{}}"#)));
    let reader = thread::spawn(move || {
        let mut read = Vec::new();
        ours.read_to_end(&mut read).unwrap();
        read
    });
    log.closed(&server.close());
    log.wire("the client read", &reader.join().unwrap());

    let scratch = Scratch::new();
    let listener = UnixListener::bind(scratch.path("s")).unwrap();
    let peer = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.write_all(b"{\"id\":1,\"result\":1}\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut read = Vec::new();
        // The client may go while we read, which is all the same.
        let _ = stream.read_to_end(&mut read);
        read
    });
    let mut client = connect(face, log, Target::Unix(scratch.path("s")), config(Mode::Off));
    ask(&mut client, log, 1, "ping", "{}");
    log.message(client.recv().as_ref());
    log.sent(client.send(request(2, "ping", "{}")));
    log.closed(&client.close());
    log.wire("the server read", &peer.join().unwrap());

    let scratch = Scratch::new();
    let listener = UnixListener::bind(scratch.path("s")).unwrap();
    let peer = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut read = Vec::new();
        // It says nothing before its client has closed its side.
        stream.read_to_end(&mut read).unwrap();
        stream.write_all(b"{\"id\":1,\"result\":\"late\"}\n").unwrap();
    });
    let mut client = connect(face, log, Target::Unix(scratch.path("s")), config(Mode::Off));
    log.sent(client.send(request(1, "ping", "{}")));
    log.closed(&client.close());
    peer.join().unwrap();
}

/// Neither side reads: whoever sends is told to, and nothing is lost by it.
pub fn both_pipes_full<F: Face>(face: &F, log: &Log) {
    let mut client = connect(face, log, child("child_peer", &[]), config(Mode::Auto));
    let params = format!("\"{}\"", "x".repeat(100_000));
    let (mut sent, mut received, mut was_told) = (0, 0, false);
    let mut take = |client: &mut F::Client| {
        let answer = client.recv().expect("an answer");
        assert_eq!(answer.id(), Some(received.to_string().as_bytes()));
        received += 1;
        received
    };
    // More than all queues and the system hold.
    while sent < 80 {
        match client.send(request(sent, "echo", &params)) {
            Ok(()) => sent += 1,
            Err(Error::Unread(_)) => {
                was_told = true;
                take(&mut client);
            }
            Err(error) => panic!("{error}"),
        }
    }
    while take(&mut client) < sent {}
    log.line(format!("told to read: {was_told}; {sent} answers in order"));
    log.line(format!("all is written: {}", client.flush()));
    log.closed(&client.close());
}

/// Pipes and sockets, which others may share, and files, which never say that they are ready.
pub fn own_standard_streams<F: Face>(_: &F, log: &Log) {
    let scratch = Scratch::new();
    let asked = "{\"id\":1,\"method\":\"a\",\"params\":[1]}\nnoise\n{\"id\":2,\"method\":\"b\"}\n";
    let (read, mut into) = std::io::pipe().unwrap();
    let (mut out, write) = std::io::pipe().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    std::fs::write(scratch.path("in"), asked).unwrap();
    let from_file = std::fs::File::open(scratch.path("in")).unwrap();
    let to_file = std::fs::File::create(scratch.path("out")).unwrap();
    let streams: [(OwnedFd, OwnedFd); 3] = [
        (read.into(), write.into()),
        (theirs.try_clone().unwrap().into(), theirs.into()),
        (from_file.into(), to_file.into()),
    ];
    into.write_all(asked.as_bytes()).unwrap();
    drop(into);
    ours.write_all(asked.as_bytes()).unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    for (read, write) in streams {
        let mut command = Command::new(sibling("child_peer"));
        let status = command.arg(F::PEER).stdin(read).stdout(write).status().unwrap();
        log.line(format!("it ends with {:?}", status.code()));
    }
    let mut written = Vec::new();
    out.read_to_end(&mut written).unwrap();
    log.wire("the pipe", &written);
    written.clear();
    ours.read_to_end(&mut written).unwrap();
    log.wire("the socket", &written);
    log.wire("the file", &std::fs::read(scratch.path("out")).unwrap());
}

pub fn over_tcp<F: Face>(face: &F, log: &Log) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::Tcp(listener.local_addr().unwrap().to_string());
    let peer = thread::spawn(move || {
        let face = F::new();
        let mut server = face.serve_tcp(listener.accept().unwrap().0);
        while let Some(asked) = server.recv() {
            let (id, params) = (asked.id().unwrap(), asked.params().unwrap());
            let (id, params) = (String::from_utf8_lossy(id), String::from_utf8_lossy(params));
            server.send(message(&format!(r#"{{"id":{id},"result":{params}}}"#))).unwrap();
        }
        format!("the server: {:?}", server.close().outcome)
    });
    let mut client = connect(face, log, target, config(Mode::Auto));
    ask(&mut client, log, 1, "echo", r#"["ä"]"#);
    tell_carrier(&client, log);
    client.send(request(2, "echo", &format!("\"{}\"", "t".repeat(1 << 20)))).unwrap();
    log.message(client.recv().as_ref());
    log.closed(&client.close());
    log.line(peer.join().unwrap());
}
