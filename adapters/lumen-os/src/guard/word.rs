//! What a guard says: one packet each.

use lumen_proto::Exit;

/// Bytes of a packet: what it is, and a number with the low byte first.
pub(super) const LEN: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The command runs, as this process.
    Started(i32),
    /// The system refused to start it, for this reason.
    NotStarted(i32),
    /// The command has ended.
    Ended(Exit),
}

impl Word {
    pub(super) fn encode(self) -> [u8; LEN] {
        let (kind, number) = match self {
            Self::Started(pid) => (0, pid),
            Self::NotStarted(errno) => (1, errno),
            Self::Ended(Exit::Code(code)) => (2, code),
            Self::Ended(Exit::Signal(signal)) => (3, signal),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub(super) fn decode([kind, a, b, c, d]: [u8; LEN]) -> Option<Self> {
        let number = i32::from_le_bytes([a, b, c, d]);
        match kind {
            0 => Some(Self::Started(number)),
            1 => Some(Self::NotStarted(number)),
            2 => Some(Self::Ended(Exit::Code(number))),
            3 => Some(Self::Ended(Exit::Signal(number))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back() {
        for word in [
            Word::Started(4_194_304),
            Word::NotStarted(2),
            Word::Ended(Exit::Code(255)),
            Word::Ended(Exit::Code(-1)),
            Word::Ended(Exit::Signal(9)),
        ] {
            assert_eq!(Word::decode(word.encode()), Some(word));
        }
        assert_eq!(Word::decode([9; LEN]), None);
    }
}
