//! What the next start of a server shall know: that a probe was too much for it.

use lumen_os::{CommandSpec, Verdicts};
use lumen_proto::Port;
use lumen_proto::endpoint::{Event, Why};
use lumen_proto::negotiate::Mode;
use tracing::{debug, info};

use crate::args::Negotiate;
use crate::report::how;

/// Looks verdicts up and keeps them, as far as there is a place for them: none is no error.
#[derive(Debug)]
pub(crate) struct Memory {
    verdicts: Option<Verdicts>,
    command: CommandSpec,
    /// The port of the start without a probe, after one was written down.
    restarted: Option<Port>,
}

impl Memory {
    pub(crate) fn new(command: CommandSpec) -> Self {
        let verdicts = Verdicts::of_user();
        if verdicts.is_none() {
            debug!("no cache directory: neither XDG_CACHE_HOME nor HOME is an absolute path");
        }
        Self { verdicts, command, restarted: None }
    }

    /// Returns how the server is asked: it is not probed if the choice is ours and it is known to mind.
    pub(crate) fn mode(&self, negotiate: Negotiate) -> Mode {
        let mode = Mode::from(negotiate);
        let Some(verdicts) = self.verdicts.as_ref().filter(|_| mode == Mode::Auto) else { return mode };
        match verdicts.find(&self.command) {
            Ok(Some(path)) => {
                debug!("not probed: {} says why", path.display());
                Mode::Offer
            }
            Ok(None) => mode,
            Err(error) => {
                debug!("what was learned of servers is not used: {error}");
                mode
            }
        }
    }

    /// Takes an event. `is_heard`: the server behind this port has said something.
    pub(crate) fn on_event(&mut self, event: &Event, is_heard: impl FnOnce(Port) -> bool) {
        let Some(verdicts) = &self.verdicts else { return };
        match event {
            Event::Restarting { port, why } => {
                let why = match why {
                    Why::Ended(ended) => format!("it ended after the probe ({})", how(*ended)),
                    Why::NoAnswer => "it answered nothing after the probe".to_owned(),
                };
                match verdicts.record(&self.command, &why) {
                    Ok(path) => {
                        info!("the next start will not probe: {}", path.display());
                        self.restarted = Some(*port);
                    }
                    Err(error) => debug!("the next start will not know of this: {error}"),
                }
            }
            // Without a probe it said nothing either: that was not the reason.
            Event::Finished(_) if self.restarted.is_some_and(|port| !is_heard(port)) => {
                if let Err(error) = verdicts.forget(&self.command) {
                    debug!("what was written down of this server stays: {error}");
                }
            }
            _ => {}
        }
    }
}
