//! `mux`: one server shared by all who connect to a socket, and `status`: how it does.

pub(crate) mod args;
mod report;
pub(crate) mod status;

use std::io::{self, Write as _};

use lumen_os::engine::{self, Engine};
use lumen_os::{CommandSpec, MuxSpec, Stderr};
use lumen_proto::endpoint::{Event, HubEvent, Pool};
use lumen_proto::supervisor::Ended;
use lumen_proto::{OpenErrorKind, limits};
use lumen_std::MuxEvent;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::Interest;
use tokio::net::UnixStream;

use self::args::{Mux, Runtime};
use self::report::Report;
use crate::exit::Exit;
use crate::log;
use crate::memory::Memory;
use crate::relay::{signals, spec, words};
use crate::report::say;
use crate::runtime::has_ring;

pub(crate) use self::status::run as status;

/// Descriptors besides those of clients: the server's, the runtime's, and some to spare.
const OTHER_DESCRIPTORS: u64 = 64;

/// Those of one server: its three streams, the process, its guard's two, and what its start takes for a moment.
const SERVER_DESCRIPTORS: u64 = 8;

pub(crate) fn run(mux: Mux) -> Exit {
    raise_descriptors(mux.max_clients, mux.child_per_session);
    let result = match mux.runtime {
        Runtime::Std => on_engine::<lumen_std::Engine>(&mux),
        Runtime::Uring if !has_ring() => return Exit::Failed,
        Runtime::Uring => on_engine::<lumen_uring::Engine>(&mux),
        Runtime::Tokio if !mux.spin.bound().is_zero() => {
            say("--spin is for --runtime std and --runtime uring");
            return Exit::Usage;
        }
        Runtime::Tokio => on_tokio(&mux),
    };
    result.unwrap_or_else(|error| {
        say(&format!("{error}"));
        Exit::Failed
    })
}

fn on_engine<E: Engine>(mux: &Mux) -> io::Result<Exit> {
    let (memory, spec) = asked(mux);
    let mut serving = match engine::Mux::<E>::bind(spec) {
        Ok(serving) => serving,
        Err(error) => return Ok(refused(&error)),
    };
    serving.set_spin(mux.spin.bound());
    let mut session = Session::new(mux, memory);
    serving.watch(signals()?);
    if !mux.is_lazy() {
        serving.start();
    }
    loop {
        match serving.next_event()? {
            Some(event) => {
                if let Some(exit) = session.on_event(&event, || serving.open_error().map(str::to_owned)) {
                    return Ok(exit);
                }
            }
            None => {
                session.on_told_to_end(serving.pool());
                serving.shut_down();
            }
        }
    }
}

fn on_tokio(mux: &Mux) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let (memory, spec) = asked(mux);
        let mut serving = match lumen_tokio::Mux::bind(spec) {
            Ok(serving) => serving,
            Err(error) => return Ok(refused(&error)),
        };
        let mut session = Session::new(mux, memory);
        let signals = UnixStream::from_std(signals()?.into())?;
        if !mux.is_lazy() {
            serving.start();
        }
        loop {
            tokio::select! {
                event = serving.next_event() => {
                    let Some(event) = event else { return Ok(Exit::Failed) };
                    if let Some(exit) = session.on_event(&event, || serving.open_error().map(str::to_owned)) {
                        return Ok(exit);
                    }
                }
                readable = signals.ready(Interest::READABLE) => {
                    readable?;
                    if signals.try_read(&mut [0; 64]).is_ok() {
                        session.on_told_to_end(serving.pool());
                        serving.shut_down();
                    }
                }
            }
        }
    })
}

/// Returns what is known of the server, and what to share how, by that.
fn asked(mux: &Mux) -> (Memory, MuxSpec) {
    let memory = Memory::new(spec(&mux.server));
    let shared = mux.spec(command(mux), memory.mode(mux.mode()));
    let shared = match &mux.log {
        Some(log) => shared.log(std::path::absolute(log).unwrap_or_else(|_| log.clone())),
        None => shared,
    };
    (memory, shared)
}

/// Returns the server's command. What it writes to its standard error is passed on, and its end kept for `status`.
fn command(mux: &Mux) -> CommandSpec {
    let pass_on = |line: &[u8]| {
        // It never waits, and what it cannot write is lost.
        let _ = log::Stderr.write_all(&[line, b"\n"].concat());
    };
    spec(&mux.server).stderr(Stderr::Lines(Box::new(pass_on)))
}

/// What happens to a mux, whatever it runs on.
struct Session {
    report: Report,
    memory: Memory,
    /// What is said when it serves.
    ready: Option<String>,
    /// A server has once been in order: from then on a failed start is one of many.
    was_ready: bool,
    is_ending: bool,
    /// There is a server for each client, who is told of it by its answer: it is no reason to leave the others alone.
    is_private: bool,
}

impl Session {
    fn new(mux: &Mux, memory: Memory) -> Self {
        let ready = format!("ready, serving {} for {}", mux.socket.display(), words(&mux.server));
        let report = Report::new(words(&mux.server));
        let mut session = Self {
            report,
            memory,
            ready: Some(ready),
            was_ready: false,
            is_ending: false,
            is_private: mux.child_per_session,
        };
        if mux.is_lazy() {
            session.say_ready();
        }
        session
    }

    /// Says once that it serves: when its server has been started, if it is not to wait with that.
    fn say_ready(&mut self) {
        if let Some(ready) = self.ready.take() {
            say(&ready);
        }
    }

    /// Says what it waits for, the first time that it is told to end. The second time it waits for nothing more.
    fn on_told_to_end(&mut self, pool: &Pool) {
        if !std::mem::replace(&mut self.is_ending, true) && pool.owed() > 0 {
            say(&format!(
                "told to end; waiting for {} requests in flight, {} s at most (told again: not at all)",
                pool.owed(),
                limits::DRAIN_GRACE.as_secs()
            ));
        }
    }

    /// Takes what happened; returns how to end, when it is time.
    fn on_event(&mut self, event: &MuxEvent, open_error: impl FnOnce() -> Option<String>) -> Option<Exit> {
        let MuxEvent::Hub(hub) = event else {
            self.report.event(event);
            return None;
        };
        match hub {
            HubEvent::Stream(Event::Restarting { port, why }) => self.memory.on_restarting(*port, *why),
            HubEvent::Ended { port, .. } if self.memory.restarted() == Some(*port) => self.memory.on_ended(),
            _ => {}
        }
        match hub {
            HubEvent::Ready(port) => {
                self.memory.on_ready(*port);
                self.was_ready = true;
                self.say_ready();
            }
            HubEvent::Ended { ended: Ended::Failed(error), .. }
                if !self.was_ready
                    && !self.is_private
                    && matches!(error.kind, OpenErrorKind::NotFound | OpenErrorKind::PermissionDenied) =>
            {
                let why = open_error().unwrap_or_else(|| error.to_string());
                say(&format!("cannot start the server: {why}; is it there, executable, and on this PATH?"));
                return Some(Exit::NotStarted);
            }
            _ => {}
        }
        self.report.event(event);
        event.is_last().then_some(Exit::Ok)
    }
}

fn refused(error: &lumen_std::ListenError) -> Exit {
    say(&error.to_string());
    Exit::NotStarted
}

/// Each client takes a descriptor, and a server of its own some more; the usual limit is low for the sake of programs that
/// we are none of.
fn raise_descriptors(clients: u32, is_private: bool) {
    let each = if is_private { 1 + SERVER_DESCRIPTORS } else { 1 };
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Not as many as there may be: the server inherits it, and old programs do not stand many.
    let wanted = u64::from(clients) * each + OTHER_DESCRIPTORS;
    let wanted = wanted.min(maximum.unwrap_or(u64::MAX));
    if current.is_some_and(|current| current < wanted) {
        // If it is refused fewer clients fit, and those who come are told to wait.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}
