//! The side that asks: when it probes, how long it waits, and when it may send frames.

use core::time::Duration;

use crate::Instant;

/// Whether and how a client asks its server for LUMEN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Probe first; if no ACK comes in time, speak JSON and let the first request carry the offer.
    #[default]
    Auto,
    /// Probe first; if no ACK comes in time, speak JSON for good.
    Probe,
    /// Never probe first; the first request carries the offer.
    Offer,
    /// Never ask: JSON for good.
    Off,
}

/// What an ACK meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// It answers the open probe: from now on this side sends frames.
    Upgraded,
    /// It came after the probe was given up, or without one; nothing changes.
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// The opening probe is out and holds everything back.
    Probing {
        until: Instant,
    },
    Json,
    /// A probe is out that the server has invited; JSON goes on meanwhile.
    Invited,
    Lumen,
}

/// The client's half of the negotiation, for one stream.
#[derive(Debug)]
pub struct Client {
    mode: Mode,
    timeout: Duration,
    state: State,
    probe_due: bool,
    stray_due: bool,
}

impl Client {
    /// Makes the machine for one stream; the opening probe holds back at most `timeout`.
    pub const fn new(mode: Mode, timeout: Duration) -> Self {
        Self { mode, timeout, state: State::Closed, probe_due: false, stray_due: false }
    }

    /// Takes the fact that the stream is open.
    pub fn handle_opened(&mut self, now: Instant) {
        if self.state != State::Closed {
            return;
        }
        if matches!(self.mode, Mode::Auto | Mode::Probe) {
            self.probe_due = true;
            self.stray_due = true;
            self.enter(State::Probing { until: now + self.timeout });
        } else {
            self.enter(State::Json);
        }
    }

    /// Takes an ACK.
    pub fn handle_ack(&mut self) -> Ack {
        match self.state {
            State::Probing { .. } | State::Invited => {
                self.stray_due = false;
                self.enter(State::Lumen);
                Ack::Upgraded
            }
            State::Closed | State::Json | State::Lumen => Ack::Ignored,
        }
    }

    /// Takes the fact that the server echoed the offer: it may be probed.
    pub fn handle_echo(&mut self) {
        if self.state == State::Json && self.is_offering() {
            self.probe_due = true;
            self.enter(State::Invited);
        }
    }

    /// Takes the first answer that is no stray line: the server has got over the probe.
    pub fn handle_answer(&mut self) {
        self.stray_due = false;
    }

    /// Takes the passing of time; returns whether the opening probe was just given up.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        match self.state {
            State::Probing { until } if now >= until => {
                self.enter(State::Json);
                true
            }
            _ => false,
        }
    }

    /// Returns when the opening probe is given up.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Probing { until } => Some(until),
            _ => None,
        }
    }

    /// Returns, once, that a probe is to be sent now.
    #[must_use]
    pub fn poll_probe(&mut self) -> bool {
        core::mem::take(&mut self.probe_due)
    }

    /// Returns, once after a probe, that a stray line may be swallowed: servers that do not know the probe
    /// answer it with one error without an id, or log it with one notification.
    #[must_use]
    pub fn poll_stray(&mut self) -> bool {
        core::mem::take(&mut self.stray_due)
    }

    /// Returns whether [`poll_probe`](Self::poll_probe) would return true.
    pub const fn is_probe_due(&self) -> bool {
        self.probe_due
    }

    /// Returns whether messages wait for the opening probe.
    pub const fn is_holding(&self) -> bool {
        matches!(self.state, State::Closed | State::Probing { .. })
    }

    /// Returns whether messages go out as frames.
    pub const fn is_lumen(&self) -> bool {
        matches!(self.state, State::Lumen)
    }

    /// Returns whether handshake requests carry the offer.
    pub const fn is_offering(&self) -> bool {
        matches!((self.mode, self.state), (Mode::Auto | Mode::Offer, State::Json))
    }

    fn enter(&mut self, state: State) {
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(500);

    fn opened(mode: Mode) -> Client {
        let mut client = Client::new(mode, LIMIT);
        assert!(client.is_holding());
        client.handle_opened(Instant::ZERO);
        client
    }

    #[test]
    fn an_ack_in_time_upgrades_and_a_late_one_does_not() {
        let mut client = opened(Mode::Auto);
        assert!(client.poll_probe() && !client.poll_probe() && client.is_holding());
        assert!(!client.handle_timeout(Instant::from_micros(499_999)));
        assert_eq!(client.handle_ack(), Ack::Upgraded);
        assert!(client.is_lumen() && !client.is_holding());

        let mut client = opened(Mode::Auto);
        assert_eq!(client.poll_timeout(), Some(Instant::from_millis(500)));
        assert!(client.handle_timeout(Instant::from_millis(500)));
        assert_eq!(client.poll_timeout(), None);
        assert_eq!(client.handle_ack(), Ack::Ignored);
        assert!(!client.is_lumen() && client.is_offering());
    }

    #[test]
    fn an_echo_permits_one_probe_that_holds_nothing() {
        for mode in [Mode::Auto, Mode::Offer] {
            let mut client = opened(mode);
            client.handle_timeout(Instant::from_millis(500));
            let _opening = client.poll_probe();
            client.handle_echo();
            assert!(client.poll_probe() && !client.is_holding() && client.poll_timeout().is_none());
            client.handle_echo();
            assert!(!client.poll_probe());
            assert_eq!(client.handle_ack(), Ack::Upgraded);
        }
    }

    #[test]
    fn off_and_probe_never_offer() {
        for mode in [Mode::Off, Mode::Probe] {
            let mut client = opened(mode);
            assert_eq!(client.poll_probe(), mode == Mode::Probe);
            client.handle_timeout(Instant::from_millis(500));
            assert!(!client.is_offering());
            client.handle_echo();
            assert!(!client.poll_probe());
            assert_eq!(client.handle_ack(), Ack::Ignored);
        }
    }

    #[test]
    fn one_stray_line_after_a_probe_and_none_after_an_answer() {
        let mut client = opened(Mode::Auto);
        assert!(client.poll_stray() && !client.poll_stray());
        let mut client = opened(Mode::Auto);
        client.handle_answer();
        assert!(!client.poll_stray());
        let mut client = opened(Mode::Auto);
        client.handle_ack();
        assert!(!client.poll_stray(), "who sends an ACK took the probe for one");
        assert!(!opened(Mode::Offer).poll_stray());
    }
}
