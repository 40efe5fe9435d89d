//! `connect` and `wrap`: one relay between own stdio and a server.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use lumen_os::{CommandSpec, Stderr, Target};
use lumen_proto::endpoint::{Event, Outcome, Relay, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::{Loop, Stream};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::{Connect, Server, Wrap};
use crate::exit::Exit;
use crate::report::{Report, say};

pub(crate) fn connect(connect: Connect) -> Exit {
    let config = ServerConfig::new(Behind::Process, connect.negotiate.into())
        .with_probe_timeout(connect.probe_timeout())
        .with_start_timeout(connect.server.start_timeout());
    run(Relay::connect(config), connect.server)
}

pub(crate) fn wrap(wrap: Wrap) -> Exit {
    let config =
        ServerConfig::new(Behind::Process, Mode::Off).with_start_timeout(wrap.server.start_timeout());
    run(Relay::wrap(config), wrap.server)
}

fn run(relay: Relay, server: Server) -> Exit {
    match try_run(relay, server) {
        Ok(exit) => exit,
        Err(error) => {
            say(&format!("{error}; check that stdin and stdout are open, and the limits on descriptors"));
            Exit::Failed
        }
    }
}

fn try_run(relay: Relay, server: Server) -> io::Result<Exit> {
    let client = relay.client_port();
    let mut report = Report::new(client, words(&server));
    let mut relay = Loop::new(relay, Some(Target::Command(spec(server))));
    relay.watch(signals()?);
    relay.attach(client, Stream::stdio()?);
    let mut exit = None;
    relay.run_until(|relay| {
        if relay.take_woken() {
            let now = relay.now();
            relay.with(|relay| relay.terminate(now));
        }
        while let Some(event) = relay.poll_event() {
            if let (Event::Finished(Outcome::NotStarted(_)), Some(why)) = (&event, relay.open_error()) {
                report.not_started(why);
            }
            exit = report.event(&event).or(exit);
        }
        exit.filter(|_| relay.is_settled())
    })?;
    match relay.write_error() {
        Some(kind) if exit == Some(Exit::Ok) => {
            say(&format!("cannot write to stdout: {kind}; is there room where it goes?"));
            Ok(Exit::Failed)
        }
        _ => Ok(exit.unwrap_or(Exit::Failed)),
    }
}

fn spec(server: Server) -> CommandSpec {
    let variables: Vec<_> = server.env().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut words = server.command.into_iter();
    let mut spec = CommandSpec::new(words.next().unwrap_or_default()).args(words).stderr(Stderr::Inherit);
    for (name, value) in variables {
        spec = spec.env(name, value);
    }
    match server.cwd {
        Some(dir) => spec.cwd(dir),
        None => spec,
    }
}

fn words(server: &Server) -> String {
    let words: Vec<_> = server.command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Returns a descriptor that can be read when somebody wants this process to end.
pub(crate) fn signals() -> io::Result<OwnedFd> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read.into())
}
