//! What the next start of a server shall know: that a probe was too much for it.

use lumen_os::{CommandSpec, Verdicts};
use lumen_proto::Port;
use lumen_proto::endpoint::Why;
use lumen_proto::negotiate::Mode;
use tracing::{debug, info};

use crate::report::how;

/// Looks verdicts up and keeps them, as far as there is a place for them: none is no error.
#[derive(Debug)]
pub(crate) struct Memory {
    verdicts: Option<Verdicts>,
    command: CommandSpec,
    /// The port of the start without a probe, after one was written down and until it was of use.
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
    pub(crate) fn mode(&self, mode: Mode) -> Mode {
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

    /// Takes that the server is started again behind this port, without a probe.
    pub(crate) fn on_restarting(&mut self, port: Port, why: Why) {
        let Some(verdicts) = &self.verdicts else { return };
        let why = match why {
            Why::Ended(ended) => format!("it ended after the probe ({})", how(ended)),
            Why::NoAnswer => "it answered nothing after the probe".to_owned(),
        };
        match verdicts.record(&self.command, &why) {
            Ok(path) => {
                info!("the next start will not probe: {}", path.display());
                self.restarted = Some(port);
            }
            Err(error) => debug!("the next start will not know of this: {error}"),
        }
    }

    /// Takes that the server was of use behind this port: without a probe it is sound.
    pub(crate) fn on_ready(&mut self, port: Port) {
        self.restarted = self.restarted.filter(|restarted| *restarted != port);
    }

    /// Takes that the server has ended. If it never was of use without a probe, the probe was not the reason.
    pub(crate) fn on_ended(&mut self) {
        if let (Some(verdicts), Some(_)) = (&self.verdicts, self.restarted.take())
            && let Err(error) = verdicts.forget(&self.command)
        {
            debug!("what was written down of this server stays: {error}");
        }
    }

    /// Returns the port of the start without a probe, until it is known whether that was of use.
    pub(crate) const fn restarted(&self) -> Option<Port> {
        self.restarted
    }
}
