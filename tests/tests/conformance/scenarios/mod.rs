//! The stories.

pub mod bytes;
pub mod cancellation;
pub mod ending;
pub mod mux;
pub mod negotiation;

use std::time::Duration;

use lumen_proto::endpoint::ServerConfig;
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::{CommandSpec, Stderr, Target};
use lumen_tests::mux::Scratch;
use lumen_tests::procs::sibling;

use crate::face::{End, Face, request};
use crate::teller::Log;

/// A limit that is never met, on a machine that may be very busy.
const NEVER: Duration = Duration::from_secs(120);

/// A set-up in which no time limit plays a part.
fn config(mode: Mode) -> ServerConfig {
    let config = ServerConfig::new(Behind::Process, mode).with_probe_timeout(NEVER);
    ServerConfig { probed_answer_timeout: NEVER, ..config }
}

fn child(program: &str, arguments: &[&str]) -> Target {
    Target::Command(CommandSpec::new(sibling(program)).args(arguments).stderr(Stderr::Ignore))
}

/// A child whose input and output are kept in files.
struct Taped {
    scratch: Scratch,
}

impl Taped {
    fn new() -> Self {
        Self { scratch: Scratch::new() }
    }

    fn child(&self, program: &str, arguments: &[&str]) -> Target {
        let (read, written) = (self.scratch.path("read"), self.scratch.path("written"));
        let spec = CommandSpec::new(sibling("child_tee")).arg("--in").arg(read).arg("--out").arg(written);
        Target::Command(spec.arg("--").arg(sibling(program)).args(arguments).stderr(Stderr::Ignore))
    }

    /// Tells what went over the wire, once the child has ended.
    fn tell(&self, log: &Log) {
        log.wire("the child read", &self.tape("read"));
        log.wire("the child wrote", &self.tape("written"));
    }

    /// Tells the first line of it.
    fn tell_openings(&self, log: &Log) {
        for (what, tape) in [("the child read first", "read"), ("the child wrote first", "written")] {
            log.wire(what, self.tape(tape).split_inclusive(|&byte| byte == b'\n').next().unwrap());
        }
    }

    fn tape(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.scratch.path(name)).unwrap()
    }
}

/// Sends a request, and tells what is received next.
fn ask(client: &mut impl End, log: &Log, id: u32, method: &str, params: &str) {
    log.line(format!("asks: {method} {params}"));
    client.send(request(id, method, params)).unwrap();
    log.message(client.recv().as_ref());
}

/// Starts a client that tells what it is told.
fn connect<F: Face>(face: &F, log: &Log, target: Target, config: ServerConfig) -> F::Client {
    let mut client = face.connect(target, config);
    client.on_notice(log.on_notice());
    client
}

fn tell_carrier(client: &impl End, log: &Log) {
    log.line(if client.is_lumen() { "speaks LUMEN" } else { "speaks JSON" });
}
