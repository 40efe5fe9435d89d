//! The side that is asked: it answers every probe and switches when it has read the first frame.

/// The server's half of the negotiation, for one stream.
#[derive(Debug, Default)]
pub struct Server {
    ack_due: bool,
    lumen: bool,
}

impl Server {
    /// Makes the machine for one stream.
    pub const fn new() -> Self {
        Self { ack_due: false, lumen: false }
    }

    /// Takes a probe; it may come at any time. Probes that come faster than ACKs are written share one.
    pub fn handle_probe(&mut self) {
        self.ack_due = true;
    }

    /// Takes the fact that a frame with a message was read: the client has seen the ACK and sends frames for
    /// good, so answers may be frames too. Returns whether that was the first.
    pub fn handle_message_frame(&mut self) -> bool {
        !core::mem::replace(&mut self.lumen, true)
    }

    /// Returns, once per probe, that an ACK is to be sent now.
    #[must_use]
    pub fn poll_ack(&mut self) -> bool {
        core::mem::take(&mut self.ack_due)
    }

    /// Returns whether [`poll_ack`](Self::poll_ack) would return true.
    pub const fn is_ack_due(&self) -> bool {
        self.ack_due
    }

    /// Returns whether messages go out as frames.
    pub const fn is_lumen(&self) -> bool {
        self.lumen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_alone_does_not_switch() {
        let mut server = Server::new();
        server.handle_probe();
        assert!(server.poll_ack() && !server.poll_ack() && !server.is_lumen());
        assert!(server.handle_message_frame() && !server.handle_message_frame() && server.is_lumen());
        server.handle_probe();
        assert!(server.poll_ack());
    }
}
