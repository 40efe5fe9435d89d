//! Scripted parties: whatever a machine may have at the other end of a port.

use std::collections::BTreeMap;
use std::time::Duration;

use lumen_proto::{Exit, Instant};

/// A peer or a child process, told what happens to it and answering through its [`Outbox`].
pub trait Party {
    /// Its port is open.
    fn on_open(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// Bytes arrived.
    fn on_data(&mut self, now: Instant, data: &[u8], out: &mut Outbox);

    /// The machine will send nothing more. A process ends by default.
    fn on_eof(&mut self, _now: Instant, out: &mut Outbox) {
        out.exit(Exit::Code(0));
    }

    /// The time asked for by [`Outbox::wake_after`] has come.
    fn on_tick(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// The machine does not read any more.
    fn on_broken(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// A signal that can be caught. Not catching it ends the process by default.
    fn on_terminate(&mut self, _now: Instant, out: &mut Outbox) {
        out.die(Exit::Signal(15));
    }

    /// What it is called in messages about a world that does not come to rest.
    fn name(&self) -> &str {
        "party"
    }
}

/// One thing a party does, in its turn.
#[derive(Debug)]
pub(super) enum Deed {
    Write(Vec<u8>),
    Close,
    Exit(Exit, Hold),
    Resume,
}

/// What becomes of a process's output when it exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It ends.
    No,
    /// Something the process started keeps it open for so long.
    For(Duration),
    /// Something the process started keeps it open until it is killed.
    Forever,
}

/// What a party wants to do. Deeds happen in order of their time, and a write that does not fit holds up all
/// that follow it, as in a process that blocks.
#[derive(Debug)]
pub struct Outbox {
    pub(super) now: Instant,
    pub(super) deeds: BTreeMap<(Instant, u64), Deed>,
    pub(super) wake: Option<Instant>,
    pub(super) paused: bool,
    pub(super) deaf: bool,
    pub(super) dead: Option<Exit>,
    count: u64,
}

impl Outbox {
    pub(super) fn new(now: Instant) -> Self {
        Self { now, deeds: BTreeMap::new(), wake: None, paused: false, deaf: false, dead: None, count: 0 }
    }

    /// Writes these bytes.
    pub fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        self.send_after(Duration::ZERO, bytes);
    }

    /// Writes these bytes so much later.
    pub fn send_after(&mut self, delay: Duration, bytes: impl Into<Vec<u8>>) {
        self.push(delay, Deed::Write(bytes.into()));
    }

    /// Closes its output once what came before is written; it lives on and reads on.
    pub fn close(&mut self) {
        self.close_after(Duration::ZERO);
    }

    /// Closes its output so much later.
    pub fn close_after(&mut self, delay: Duration) {
        self.push(delay, Deed::Close);
    }

    /// Exits once what came before is written.
    pub fn exit(&mut self, exit: Exit) {
        self.exit_after(Duration::ZERO, exit, Hold::No);
    }

    /// Exits so much later, with its output held open or not.
    pub fn exit_after(&mut self, delay: Duration, exit: Exit, hold: Hold) {
        self.push(delay, Deed::Exit(exit, hold));
    }

    /// Exits at once, whatever is still to be written.
    pub fn die(&mut self, exit: Exit) {
        self.dead = Some(exit);
    }

    /// Reads nothing until [`resume`](Self::resume) has its turn, or [`unpause`](Self::unpause) is called.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Reads again once what came before is written.
    pub fn resume(&mut self) {
        self.resume_after(Duration::ZERO);
    }

    /// Reads again so much later.
    pub fn resume_after(&mut self, delay: Duration) {
        self.push(delay, Deed::Resume);
    }

    /// Reads again at once.
    pub fn unpause(&mut self) {
        self.paused = false;
    }

    /// Closes its input: the machine's writes fail from now on.
    pub fn stop_reading(&mut self) {
        self.deaf = true;
    }

    /// Asks for [`Party::on_tick`] so much later, in place of what was asked before.
    pub fn wake_after(&mut self, delay: Duration) {
        self.wake = Some(self.now + delay);
    }

    fn push(&mut self, delay: Duration, deed: Deed) {
        self.count += 1;
        self.deeds.insert((self.now + delay, self.count), deed);
    }
}
