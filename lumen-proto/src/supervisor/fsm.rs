//! The states of a child and what moves between them.

use core::time::Duration;

use crate::limits::{DRAIN_TIMEOUT, INNER_TERMINATE_STEP, STOP_STEP, TERMINATE_STEP};
use crate::{Action, Exit, Instant, OpenError, Port, Signal};

/// What stands behind a port that was asked for with [`Action::Spawn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// A process of ours: it has an exit, and takes signals.
    Process,
    /// A connection: its end is the end of its stream.
    Socket,
}

/// How a child is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ladder {
    /// Its input is closed by the caller; after 2 s SIGTERM, after 2 s more SIGKILL.
    Polite,
    /// SIGTERM now, SIGKILL after 1.5 s: we were told to end ourselves, and whoever told us waits 2 s.
    Quick,
    /// SIGTERM now, SIGKILL after 1 s: we were told to end, perhaps by another hop that is on the quick ladder.
    Quickest,
}

impl Ladder {
    /// Returns how long SIGTERM has, if it is sent at once.
    const fn terminate_step(self) -> Option<Duration> {
        match self {
            Self::Polite => None,
            Self::Quick => Some(TERMINATE_STEP),
            Self::Quickest => Some(INNER_TERMINATE_STEP),
        }
    }
}

/// How a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It never began.
    Failed(OpenError),
    /// The process ended, by itself or by our signals.
    Exited(Exit),
    /// The connection ended, or a process did not even end by SIGKILL in time.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Starting,
    Running,
    /// Exited, but its output is still open. Its time does not run while the output is not read.
    Draining {
        exit: Exit,
        until: Option<Instant>,
    },
    Stopping {
        step: Step,
        until: Instant,
    },
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    InputClosed,
    Terminated,
    Killed,
}

/// The life of one child, one generation at a time.
///
/// Every input names a port; one that is not of the running generation is ignored. Backoff and repeated starts
/// belong to whoever owns it: `start` may be called again when a generation is over.
#[derive(Debug)]
pub struct Supervisor {
    behind: Behind,
    state: State,
    port: Port,
    exit: Option<Exit>,
    eof: bool,
    /// At most a signal and an abort wait here; the owner takes them after every input.
    actions: [Option<Action>; 3],
    ended: Option<Ended>,
}

impl Supervisor {
    /// Makes a supervisor whose first generation will be `port`.
    pub const fn new(behind: Behind, port: Port) -> Self {
        Self { behind, state: State::Idle, port, exit: None, eof: false, actions: [None; 3], ended: None }
    }

    /// Starts the next generation and returns its port; does nothing while one is alive.
    pub fn start(&mut self) -> Port {
        match self.state {
            State::Idle => {}
            State::Over => self.port = self.port.successor(),
            _ => return self.port,
        }
        self.exit = None;
        self.eof = false;
        self.ended = None;
        self.act(Action::Spawn(self.port));
        self.enter(State::Starting);
        self.port
    }

    /// Takes the fact that the process runs, or the connection is made.
    pub fn handle_opened(&mut self, port: Port) {
        if port == self.port && self.state == State::Starting {
            self.enter(State::Running);
        }
    }

    /// Takes the fact that it could not be started.
    pub fn handle_failed(&mut self, port: Port, error: OpenError) {
        if port == self.port && matches!(self.state, State::Starting | State::Stopping { .. }) {
            self.enter(State::Over);
            self.ended = Some(Ended::Failed(error));
        }
    }

    /// Takes the end of its output.
    pub fn handle_eof(&mut self, now: Instant, port: Port) {
        if port != self.port || !self.is_alive() {
            return;
        }
        self.eof = true;
        match (self.behind, self.state) {
            (Behind::Socket, _) => self.end(Ended::Closed),
            (Behind::Process, State::Draining { exit, .. }) => self.end(Ended::Exited(exit)),
            (Behind::Process, State::Stopping { .. }) => {
                if let Some(exit) = self.exit {
                    self.end(Ended::Exited(exit));
                }
            }
            // It has closed its output and lives on: nothing more can come of it.
            (Behind::Process, _) => self.stop(now, Ladder::Polite),
        }
    }

    /// Takes its exit.
    pub fn handle_exited(&mut self, now: Instant, port: Port, exit: Exit) {
        if port != self.port || !self.is_alive() {
            return;
        }
        self.exit = Some(exit);
        if self.eof {
            self.end(Ended::Exited(exit));
        } else {
            self.enter(State::Draining { exit, until: Some(now + DRAIN_TIMEOUT) });
        }
    }

    /// Takes the fact that its output is read, or that whoever it is for has no room. What a process has written
    /// before it exited must not be lost for that.
    pub fn handle_reading(&mut self, now: Instant, is_read: bool) {
        if let State::Draining { exit, until } = self.state
            && until.is_some() != is_read
        {
            self.enter(State::Draining { exit, until: is_read.then(|| now + DRAIN_TIMEOUT) });
        }
    }

    /// Begins to end it. The caller closes its input. A quicker ladder overtakes a slower one.
    pub fn stop(&mut self, now: Instant, ladder: Ladder) {
        match self.state {
            State::Idle => {
                self.enter(State::Over);
                self.ended = Some(Ended::Closed);
            }
            State::Over | State::Draining { .. } => {}
            State::Stopping { step: Step::InputClosed, .. } | State::Starting | State::Running => {
                if let Some(wait) = ladder.terminate_step() {
                    self.climb(now, Step::Terminated, wait);
                } else if !self.is_stopping() {
                    self.climb(now, Step::InputClosed, STOP_STEP);
                }
            }
            State::Stopping { step, until } => {
                if let (Some(wait), Step::Terminated) = (ladder.terminate_step(), step) {
                    self.enter(State::Stopping { step, until: until.min(now + wait) });
                }
            }
        }
    }

    /// Takes the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Draining { exit, until: Some(until) } if now >= until => self.end(Ended::Exited(exit)),
            State::Stopping { step, until } if now >= until => match (self.behind, step) {
                (Behind::Socket, _) | (_, Step::Killed) => self.end(Ended::Closed),
                (Behind::Process, Step::InputClosed) => self.climb(now, Step::Terminated, STOP_STEP),
                (Behind::Process, Step::Terminated) => self.climb(now, Step::Killed, STOP_STEP),
            },
            _ => {}
        }
    }

    /// Returns when the next step is due.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Draining { until, .. } => until,
            State::Stopping { until, .. } => Some(until),
            _ => None,
        }
    }

    /// Returns the next action.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.iter_mut().find_map(Option::take)
    }

    /// Returns, once per generation, how it ended.
    #[must_use]
    pub fn poll_ended(&mut self) -> Option<Ended> {
        self.ended.take()
    }

    /// Returns the port of this generation.
    pub const fn port(&self) -> Port {
        self.port
    }

    /// Returns whether a generation has been asked for and is not over.
    pub const fn is_alive(&self) -> bool {
        !matches!(self.state, State::Idle | State::Over)
    }

    /// Returns whether it has been told to end.
    pub const fn is_stopping(&self) -> bool {
        matches!(self.state, State::Stopping { .. })
    }

    fn climb(&mut self, now: Instant, step: Step, wait: Duration) {
        if self.behind == Behind::Process {
            match step {
                Step::InputClosed => {}
                Step::Terminated => self.act(Action::Signal(self.port, Signal::Terminate)),
                Step::Killed => self.act(Action::Signal(self.port, Signal::Kill)),
            }
        }
        self.enter(State::Stopping { step, until: now + wait });
    }

    /// Ends the generation. `Abort` also ends whatever it started and left behind.
    fn end(&mut self, ended: Ended) {
        self.act(Action::Abort(self.port));
        self.enter(State::Over);
        self.ended = Some(ended);
    }

    fn act(&mut self, action: Action) {
        let free = self.actions.iter_mut().find(|slot| slot.is_none());
        debug_assert!(free.is_some(), "the owner takes actions after every input");
        if let Some(slot) = free {
            *slot = Some(action);
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
    }
}
