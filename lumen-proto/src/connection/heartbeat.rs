//! Echoing heartbeats.

/// Echoes a sequence number only if it is higher than any echoed before: two sides that both echo would
/// otherwise never stop. Numbers that come faster than echoes are written share the last one.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    highest: Option<u32>,
    due: bool,
}

impl Heartbeat {
    /// Takes the payload of a heartbeat; anything but four bytes is none.
    pub(super) fn handle_payload(&mut self, payload: &[u8]) {
        let Ok(bytes) = <[u8; 4]>::try_from(payload) else { return };
        let sequence = u32::from_le_bytes(bytes);
        if self.highest.is_none_or(|highest| sequence > highest) {
            self.highest = Some(sequence);
            self.due = true;
        }
    }

    /// Returns the payload to echo, once.
    pub(super) fn poll_echo(&mut self) -> Option<[u8; 4]> {
        let sequence = self.highest.filter(|_| core::mem::take(&mut self.due))?;
        Some(sequence.to_le_bytes())
    }

    pub(super) const fn is_due(&self) -> bool {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rising_sequences_are_echoed() {
        let mut heartbeat = Heartbeat::default();
        heartbeat.handle_payload(&[0, 0, 0, 0]);
        assert_eq!(heartbeat.poll_echo(), Some([0, 0, 0, 0]));
        for payload in [&[0, 0, 0, 0][..], &[1, 0, 0], &[1, 0, 0, 0, 0], &[]] {
            heartbeat.handle_payload(payload);
            assert_eq!(heartbeat.poll_echo(), None);
        }
        heartbeat.handle_payload(&[7, 0, 0, 0]);
        heartbeat.handle_payload(&[0, 1, 0, 0]);
        heartbeat.handle_payload(&[9, 0, 0, 0]);
        assert_eq!(heartbeat.poll_echo(), Some([0, 1, 0, 0]));
        assert_eq!(heartbeat.poll_echo(), None);
    }
}
