//! How servers end, and what is left.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use lumen_proto::endpoint::{HubConfig, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::{CommandSpec, MuxSpec, Stderr, Target};
use lumen_tests::mux::{PATIENCE, Scratch};
use lumen_tests::procs::{children, descriptors, sibling, wait_exit};

use super::{child, config, connect};
use crate::agent::greeted;
use crate::alone::alone;
use crate::face::{End as _, Face, Served as _, request};
use crate::teller::Log;

pub fn death_of_the_child<F: Face>(face: &F, log: &Log) {
    let shell = |script: &str| {
        Target::Command(CommandSpec::new("/bin/sh").args(["-c", script]).stderr(Stderr::Ignore))
    };
    let deaths = [
        ("in the middle of an answer", child("child_server", &["--die-mid-line-at", "2"])),
        ("instead of an answer", child("child_server", &["--crash-after", "1"])),
        ("by a signal", shell("read line; echo $$ >&2; kill -9 $$")),
        ("after it has closed its output", shell("read line; exec >&-; read line; exit 7")),
    ];
    for (how, target) in deaths {
        log.line(format!("a server dies {how}"));
        let mut client = connect(face, log, target, config(Mode::Off));
        for id in 1..4 {
            client.send(request(id, "ping", "{}")).unwrap();
        }
        while let Some(message) = client.recv() {
            log.message(Some(&message));
        }
        log.message(None);
        match F::stderr(&client).trim().parse::<u32>() {
            // Its last words, and that it is buried, are known by the time its end is.
            Ok(pid) => log.line(format!("it is there: {}", Path::new(&format!("/proc/{pid}")).exists())),
            Err(_) => log.line("it said nothing"),
        }
        log.sent(client.send(request(4, "ping", "{}")));
        log.line(format!("all is written: {}", client.flush()));
        log.closed(&client.close());
    }
}

pub fn what_cannot_be_started<F: Face>(face: &F, log: &Log) {
    let scratch = Scratch::new();
    let stale = scratch.path("stale");
    drop(UnixListener::bind(&stale).unwrap());
    let long = format!("/{}", "x".repeat(200));
    let targets = [
        Target::Command(CommandSpec::new("/no/such/program")),
        Target::Command(CommandSpec::new("/bin/true").cwd("/no/such/folder").stderr(Stderr::Ignore)),
        Target::Command(CommandSpec::new("/etc/passwd")),
        Target::Unix("/no/such/socket".into()),
        Target::Unix(stale.clone()),
        Target::Unix(long.into()),
        Target::Tcp("127.0.0.1:1".to_owned()),
        Target::Tcp("no address".to_owned()),
    ];
    for target in targets {
        let mut client = connect(face, log, target, config(Mode::Auto));
        log.sent(client.send(request(1, "ping", "{}")));
        while let Some(message) = client.recv() {
            log.message(Some(&message));
        }
        let words = F::open_error(&client).unwrap();
        log.line(format!("why: {}", words.replace(stale.to_str().unwrap(), "(a stale socket)")));
        log.closed(&client.close());
    }
}

pub fn escalation<F: Face>(_: &F, log: &Log) {
    type Story = (&'static str, &'static [&'static str]);
    const STORIES: [Story; 4] = [
        ("ends at the end of its input", &["--on-eof"]),
        ("ends at SIGTERM", &["--on-term"]),
        ("has to be killed", &["--ignore-term", "--on-eof"]),
        ("leaves a process behind", &["--linger-grandchild"]),
    ];
    // Most of it is waiting, so they are all lived through at a time.
    let told = STORIES.map(|(what, options)| {
        thread::spawn(move || {
            let log = Log::new("");
            log.line(format!("a server {what}"));
            let scratch = Scratch::new();
            let said = scratch.text("said");
            let options: Vec<&str> = options.iter().copied().chain([said.as_str()]).collect();
            let mut client = connect(&F::new(), &log, child("child_server", &options), config(Mode::Off));
            client.send(request(1, "ping", "{}")).unwrap();
            log.message(client.recv().as_ref());
            log.closed(&client.close());
            match std::fs::read_to_string(said).unwrap().parse() {
                Ok(pid) => log.line(format!("that is ended too: {}", wait_exit(pid, PATIENCE))),
                Err(_) => log.line("it was told"),
            }
            log.text()
        })
    });
    for told in told {
        log.line(told.join().unwrap().trim_end());
    }
}

pub fn descriptors_stay_flat<F: Face>(face: &F, log: &Log) {
    alone(log, |log| {
        let me = std::process::id();
        let mut before = None;
        for _ in 0..6 {
            let scratch = Scratch::new();
            everything(face, &scratch);
            assert_eq!(children(me), []);
            let now = descriptors(me).unwrap();
            // What a runtime opens once stays open.
            assert_eq!(*before.get_or_insert(now), now);
        }
        log.line("sessions of every kind, and as many open descriptors after them");
    });
}

/// A session of every kind, those that fail too.
fn everything<F: Face>(face: &F, scratch: &Scratch) {
    let socket = scratch.path("s");
    let command = CommandSpec::new(sibling("child_server")).stderr(Stderr::Lines(Box::new(|_| {})));
    let server = ServerConfig::new(Behind::Process, Mode::Offer);
    let mux = face.mux(MuxSpec::new(&socket, command).hub(HubConfig::new(server)), |_| {});
    let (_agent, _) = greeted(&socket);
    let targets = [
        child("child_peer", &[]),
        child("child_server", &["--exit-on-probe"]),
        Target::Command(CommandSpec::new("/no/such/program").stderr(Stderr::Ignore)),
        Target::Command(CommandSpec::new("/bin/false").stderr(Stderr::Ignore)),
        Target::Unix("/no/such/socket".into()),
        Target::Unix(socket.clone()),
    ];
    for target in targets {
        let config = config(Mode::Auto).with_probe_timeout(Duration::from_secs(10));
        let mut client = face.connect(target, config);
        client.send(request(1, "ping", "{}")).unwrap();
        client.recv().unwrap();
        client.close();
    }
    mux.close();
}
