//! Counting what goes through a stream.

use core::ops::AddAssign;

/// What went through a stream, or through several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// What arrived.
    pub received: Amount,
    /// What left.
    pub sent: Amount,
    /// What was turned from JSON into values, or back, on its way in or out.
    pub converted: Converted,
}

/// So much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Whole messages; a batch is one.
    pub messages: u64,
    /// Bytes as they travelled: lines or frames, with what is no message, such as a probe.
    pub bytes: u64,
}

/// Messages of which both lengths are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Converted {
    /// How many.
    pub messages: u64,
    /// Their bytes as JSON, without line feeds.
    pub json: u64,
    /// Their bytes as values, without frame headers.
    pub values: u64,
}

impl Converted {
    pub(super) fn add(&mut self, json: usize, value: usize) {
        *self += Self { messages: 1, json: json as u64, values: value as u64 };
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.converted += other.converted;
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

impl AddAssign for Converted {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.json += other.json;
        self.values += other.values;
    }
}
