//! Noting when a port has to be reported to the driver.

/// What was last known of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ready {
    due: bool,
    wanted: bool,
    output: bool,
}

impl Ready {
    /// Notes how the port stands now: it is due when it gains output, and when it wants input again. Returns whether
    /// it has become due.
    pub(super) fn note(&mut self, wanted: bool, output: bool) -> bool {
        let gained = (output && !self.output) || (wanted && !self.wanted);
        self.wanted = wanted;
        self.output = output;
        gained && !core::mem::replace(&mut self.due, true)
    }

    /// Notes that the driver was just told that there is no output: what there is at the next note is new.
    pub(super) fn note_idle(&mut self) {
        self.output = false;
    }

    /// Returns whether it is due, once.
    pub(super) fn take(&mut self) -> bool {
        core::mem::take(&mut self.due)
    }
}
