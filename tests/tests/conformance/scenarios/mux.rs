//! One server, and clients of every kind.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use lumen_proto::endpoint::{HubConfig, HubEvent, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::{CommandSpec, MuxEvent, MuxSpec, Stderr, Target};
use lumen_tests::mux::{Client, PATIENCE, Scratch, call};
use lumen_tests::procs::{Mark, sibling};

use super::{ask, config, connect};
use crate::agent::{greeted, heard, settle};
use crate::face::{End as _, Face, Served as _, request};
use crate::teller::Log;

/// Serves `child_server` with these options.
fn serve<F: Face>(face: &F, path: &Path, mark: &Mark, options: &[&str]) -> (F::Served, Receiver<MuxEvent>) {
    let (name, value) = mark.pair();
    let command = CommandSpec::new(sibling("child_server")).args(options).env(name, value);
    let hub = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Offer));
    let (tell, events) = channel();
    let spec = MuxSpec::new(path, command.stderr(Stderr::Ignore)).hub(hub);
    // Nobody listens any more when a story is over.
    (face.mux(spec, move |event| drop(tell.send(event.clone()))), events)
}

/// Waits for an event.
fn wait_for<T>(events: &Receiver<MuxEvent>, mut is_meant: impl FnMut(MuxEvent) -> Option<T>) -> T {
    loop {
        if let Some(found) = is_meant(events.recv_timeout(PATIENCE).expect("the event comes")) {
            return found;
        }
    }
}

pub fn many_clients<F: Face>(face: &F, log: &Log) {
    const CLIENTS: usize = 256;
    let (scratch, mark) = (Scratch::new(), Mark::new());
    let path = scratch.path("s");
    let (served, events) = serve(face, &path, &mark, &[]);
    let mut agents: Vec<Client> = (0..CLIENTS)
        .map(|at| {
            let (agent, greeting) = greeted(&path);
            if at == 0 {
                log.line(format!("the first is greeted: {greeting}"));
            }
            agent
        })
        .collect();
    for (at, agent) in agents.iter_mut().enumerate() {
        // The same id for all: what is told apart is the client.
        agent.say(&call("1", "echo", &format!(r#"{{"text":"first of {at}"}}"#)));
        agent.say(&call(r#""1""#, "echo", &format!(r#"{{"text":"second of {at}"}}"#)));
    }
    let mut right = 0;
    for (at, agent) in agents.iter_mut().enumerate() {
        for (id, which) in [("1", "first"), (r#""1""#, "second")] {
            let answer = heard(agent).expect("an answer");
            let wanted = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"text":"{which} of {at}","type":"text"}}],"structuredContent":{{"text":"{which} of {at}"}}}}}}"#
            );
            right += usize::from(answer == wanted);
        }
    }
    log.line(format!("{right} answers of {} are right, and with the right client", 2 * CLIENTS));
    drop(agents);
    let mut parted = 0;
    wait_for(&events, |event| {
        parted += usize::from(matches!(event, MuxEvent::Hub(HubEvent::Parted { .. })));
        (parted == CLIENTS).then_some(())
    });
    log.line(format!("{parted} parted"));
    served.close();
    log.line(format!("the socket is removed: {}", !path.exists()));
    log.line(format!("processes left: {}", mark.processes().len()));
}

pub fn a_stalled_client<F: Face>(face: &F, log: &Log) {
    let (scratch, mark) = (Scratch::new(), Mark::new());
    let path = scratch.path("s");
    let (served, events) = serve(face, &path, &mark, &[]);
    let (mut stalled, _) = greeted(&path);
    let (mut other, _) = greeted(&path);
    // More than is kept for one client.
    for id in 1..20 {
        stalled.say(&call(&id.to_string(), "big", r#"{"bytes":1000000}"#));
    }
    let why = wait_for(&events, |event| match event {
        MuxEvent::Hub(HubEvent::Parted { why, .. }) => Some(why),
        _ => None,
    });
    log.line(format!("the one that does not read is sent away: {why:?}"));
    other.say(&call("1", "echo", r#"{"text":"here"}"#));
    log.line(format!("the other hears: {}", heard(&mut other).unwrap()));
    served.close();
    log.line(format!("the other hears nothing more: {:?}", heard(&mut other)));
    log.line(format!("processes left: {}", mark.processes().len()));
}

/// Its queue is full for a while, so that whoever connects has to wait.
pub fn a_busy_listener<F: Face>(face: &F, log: &Log) {
    let scratch = Scratch::new();
    let listener = UnixListener::bind(scratch.path("s")).unwrap();
    // Room for one connection that nobody has accepted yet.
    rustix::net::listen(&listener, 0).unwrap();
    let first = Client::connect(&scratch.path("s")).unwrap();
    let (begin, begun) = channel();
    let path = scratch.path("s");
    let peer = thread::spawn(move || {
        begun.recv().unwrap();
        // Whether the client has found it full by now is for the client to say: it must not matter.
        drop(listener.accept().unwrap());
        let mut peer = lumen_std::Server::socket(listener.accept().unwrap().0).unwrap();
        while let Some(message) = peer.recv() {
            let id = String::from_utf8_lossy(message.id().unwrap()).into_owned();
            peer.send(crate::face::message(&format!(r#"{{"id":{id},"result":[]}}"#))).unwrap();
        }
        peer.close();
    });
    let mut client = connect(face, log, Target::Unix(path), config(Mode::Auto));
    client.send(request(1, "ping", "{}")).unwrap();
    thread::spawn(move || begin.send(()));
    log.message(client.recv().as_ref());
    ask(&mut client, log, 2, "ping", "{}");
    log.closed(&client.close());
    peer.join().unwrap();
    drop(first);
}

pub fn teardown_in_flight<F: Face>(face: &F, log: &Log) {
    let (scratch, mark) = (Scratch::new(), Mark::new());
    let path = scratch.path("s");
    let (served, events) = serve(face, &path, &mark, &["--ignore-eof", "--unanswered", "tools/call"]);
    let mut agents: Vec<Client> = (0..8).map(|_| greeted(&path).0).collect();
    for agent in &mut agents {
        for id in 0..3 {
            agent.say(&call(&id.to_string(), "echo", "{}"));
        }
        settle(agent);
    }
    let closing = thread::spawn(move || {
        let mut told = Vec::new();
        while let Ok(event) = events.recv_timeout(PATIENCE) {
            let is_last = event.is_last();
            told.push(event);
            if is_last {
                break;
            }
        }
        told
    });
    served.close();
    let told = closing.join().unwrap();
    log.line(format!("the last event: {:?}", told.last()));
    for agent in &mut agents {
        while let Some(line) = heard(agent) {
            log.line(format!("a client hears: {line}"));
        }
    }
    log.line(format!("the socket is removed: {}", !path.exists()));
    log.line(format!("processes left: {}", mark.processes().len()));
}
