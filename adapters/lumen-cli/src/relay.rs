//! `connect` and `wrap`: one relay between own stdio and a server.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use lumen_os::engine::{Engine, Loop};
use lumen_os::{CommandSpec, Stderr, Target, guard};
use lumen_proto::Port;
use lumen_proto::endpoint::{Event, Outcome, Relay, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::{Behind, Ended};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::{Connect, Server, Socket, Wrap};
use crate::exit::Exit;
use crate::guard::guarded;
use crate::memory::Memory;
use crate::report::{Report, say, unserved};
use crate::runtime::{Runs, Runtime, Spin, has_ring};
use crate::start::{Starter, There};

pub(crate) fn connect(connect: Connect) -> Exit {
    let (behind, memory) = match connect.socket {
        // What a probe did to a server is remembered by its command.
        Some(_) => (Behind::Socket, None),
        None => (Behind::Process, Some(Memory::new(spec(&connect.server)))),
    };
    let mode = connect.negotiate.into();
    let mode = memory.as_ref().map_or(mode, |memory| memory.mode(mode));
    let config = ServerConfig::new(behind, mode)
        .with_probe_timeout(connect.probe_timeout())
        .with_start_timeout(connect.server.start_timeout());
    let config = ServerConfig { probed_answer_timeout: connect.probed_timeout(), ..config };
    let (target, words) = match &connect.socket {
        Some(Socket::Unix(path)) => (Target::Unix(path.clone()), path.display().to_string()),
        Some(Socket::Tcp(address)) => (Target::Tcp(address.clone()), address.clone()),
        None => (Target::Command(spec(&connect.server)), words(&connect.server)),
    };
    let mut relay = Relay::connect(config);
    relay.set_advice(match &connect.socket {
        Some(_) => unserved(&words),
        None => unstarted(&connect.server),
    });
    let relay = match connect.reconnect() {
        Some(limit) => relay.with_reconnect(limit),
        None => relay,
    };
    run(connect.runs, relay, target, (words, behind), memory, |signals| starter(&connect, signals))
}

/// Returns what starts a mux, if that is wanted.
fn starter(connect: &Connect, signals: &OwnedFd) -> io::Result<Option<Starter>> {
    match &connect.socket {
        Some(Socket::Unix(path)) if connect.start => {
            Ok(Some(Starter::new(connect, path, signals.try_clone()?)))
        }
        _ => Ok(None),
    }
}

pub(crate) fn wrap(wrap: Wrap) -> Exit {
    let config =
        ServerConfig::new(Behind::Process, Mode::Off).with_start_timeout(wrap.server.start_timeout());
    let words = (words(&wrap.server), Behind::Process);
    let mut relay = Relay::wrap(config);
    relay.set_advice(unstarted(&wrap.server));
    run(wrap.runs, relay, Target::Command(spec(&wrap.server)), words, None, |_| Ok(None))
}

/// Runs a relay; `server` is what people call the other side, and what it is.
fn run(
    runs: Runs,
    relay: Relay,
    target: Target,
    server: (String, Behind),
    memory: Option<Memory>,
    starter: impl FnOnce(&OwnedFd) -> io::Result<Option<Starter>>,
) -> Exit {
    let result = match runs.runtime {
        Runtime::Std => try_run::<lumen_std::Engine>(runs.spin, relay, target, server, memory, starter),
        Runtime::Uring if !has_ring() => return Exit::Failed,
        Runtime::Uring => try_run::<lumen_uring::Engine>(runs.spin, relay, target, server, memory, starter),
    };
    match result {
        Ok(exit) => exit,
        Err(error) => {
            say(&format!("{error}; check that stdin and stdout are open, and the limits on descriptors"));
            Exit::Failed
        }
    }
}

fn try_run<E: Engine>(
    spin: Spin,
    mut relay: Relay,
    target: Target,
    (words, behind): (String, Behind),
    mut memory: Option<Memory>,
    starter: impl FnOnce(&OwnedFd) -> io::Result<Option<Starter>>,
) -> io::Result<Exit> {
    let client = relay.client_port();
    let mut report = Report::new(client, words, behind);
    let signals = signals()?;
    let mut starter = starter(&signals)?;
    let relay = match starter.as_mut().map(Starter::ensure) {
        Some(Err(why)) => {
            relay.set_advice(why.lines().next().unwrap_or_default());
            report.not_served(why);
            relay
        }
        Some(Ok(There::ToldToEnd)) => return Ok(Exit::Ok),
        // It may be just about to end for want of clients.
        Some(Ok(There::Served)) => relay.with_seen_server(),
        Some(Ok(There::Unready)) | None => relay,
    };
    let mut relay = Loop::<_, E>::try_new(relay, Some(target))?;
    relay.set_spin(spin.bound());
    relay.watch(signals);
    relay.attach(client, E::stdio()?);
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
            if let (Event::Reconnecting { ended: Ended::Failed(_), .. }, Some(starter)) =
                (&event, &mut starter)
                && let Err(why) = starter.ensure()
            {
                let now = relay.now();
                relay.with(|relay| {
                    relay.set_advice(why.lines().next().unwrap_or_default());
                    relay.give_up(now);
                });
                report.not_served(why);
            }
            if let Some(memory) = &mut memory {
                remember(memory, &event, |port| relay.counters(port).bytes_read > 0);
            }
            exit = report.event(&event).or(exit);
        }
        exit.filter(|_| relay.is_settled())
    })?;
    Ok(written(exit.unwrap_or(Exit::Failed), relay.write_error()))
}

/// Returns how a session has ended whose output could perhaps not be written.
pub(crate) fn written(exit: Exit, write_error: Option<io::ErrorKind>) -> Exit {
    match write_error {
        Some(kind) if exit == Exit::Ok => {
            say(&format!("cannot write to stdout: {kind}; is there room where it goes?"));
            Exit::Failed
        }
        _ => exit,
    }
}

/// Takes what a session shows of its server's dislike of probes.
fn remember(memory: &mut Memory, event: &Event, is_heard: impl FnOnce(Port) -> bool) {
    match event {
        Event::Restarting { port, why } => memory.on_restarting(*port, *why),
        Event::Finished(_) => {
            if let Some(port) = memory.restarted().filter(|port| is_heard(*port)) {
                memory.on_ready(port);
            }
            memory.on_ended();
        }
        _ => {}
    }
}

/// Returns the command, under a guard.
pub(crate) fn spec(server: &Server) -> CommandSpec {
    guarded(bare_spec(server))
}

/// Returns the command as it was given; it has this process's own standard error.
pub(crate) fn bare_spec(server: &Server) -> CommandSpec {
    let mut words = server.command.iter();
    let program = words.next().cloned().unwrap_or_default();
    let mut spec = CommandSpec::new(program).args(words).stderr(Stderr::Inherit);
    for (name, value) in server.env() {
        spec = spec.env(name, value);
    }
    match &server.cwd {
        Some(dir) => spec.cwd(dir),
        None => spec,
    }
}

/// Returns what to try when this server cannot be started. Its arguments may be secrets.
fn unstarted(server: &Server) -> String {
    let program = server.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    format!("is {program} there, executable, and on this PATH?")
}

pub(crate) fn words(server: &Server) -> String {
    let words: Vec<_> = server.command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Returns a descriptor that can be read when somebody wants this process to end.
pub(crate) fn signals() -> io::Result<OwnedFd> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    // That of `nohup`; the others are there to end this command, also when a shell has started it in the background.
    let is_kept = guard::ignored_signals()? & (1 << (SIGHUP - 1)) != 0;
    let hangup = (!is_kept).then_some(SIGHUP);
    for signal in [SIGTERM, SIGINT].into_iter().chain(hangup) {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read.into())
}
