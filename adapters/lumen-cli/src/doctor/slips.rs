//! What a server does against the protocol, counted and quoted.

use std::collections::BTreeMap;

use lumen_proto::limits::MAX_EXCERPT;

/// Lines that are quoted of each kind; further ones are only counted.
const QUOTED: usize = 8;

/// A kind of slip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slip {
    /// A line that is no message.
    Noise,
    /// A line that ends in CR LF.
    Cr,
    /// A message that is not UTF-8.
    InvalidUtf8,
    /// An answer that does not say to what.
    NoId,
    /// A second answer to one request.
    Twice,
    /// An answer to nothing that was asked.
    UnknownId,
    /// Progress for a token that was not given, or whose request is answered.
    UnknownProgress,
}

/// The lines of one kind.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) count: u64,
    /// The first of them, each cut to [`MAX_EXCERPT`].
    pub(super) quoted: Vec<String>,
}

/// All slips of a server, over all its starts.
#[derive(Debug, Default)]
pub(super) struct Slips(BTreeMap<Slip, Lines>);

impl Slips {
    pub(super) fn add(&mut self, slip: Slip, line: &[u8]) {
        let lines = self.0.entry(slip).or_default();
        lines.count += 1;
        let text = excerpt(line);
        if lines.quoted.len() < QUOTED && !lines.quoted.contains(&text) {
            lines.quoted.push(text);
        }
    }

    pub(super) fn of(&self, slip: Slip) -> Option<&Lines> {
        self.0.get(&slip)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Slip, &Lines)> {
        self.0.iter().map(|(slip, lines)| (*slip, lines))
    }

    /// Returns whether it has said this before.
    pub(super) fn is_known(&self, slip: Slip, line: &[u8]) -> bool {
        self.of(slip).is_some_and(|lines| lines.quoted.contains(&excerpt(line)))
    }
}

/// Returns the beginning of a line, as text.
pub(super) fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(line.get(..MAX_EXCERPT).unwrap_or(line)).into_owned()
}
