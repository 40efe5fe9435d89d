//! Heads of containers whose number of members was not known, or not as announced, when they were written.

use alloc::vec::Vec;

use crate::varint;

/// Counts to be put right when the whole value has been written.
///
/// A count that has got another length would move all that follows it, once for each container around it. So
/// such counts are kept and put right together, with one copy of the bytes behind the first.
#[derive(Debug, Default)]
pub(super) struct Heads(Vec<Fix>);

#[derive(Debug)]
struct Fix {
    /// Where the count starts in the buffer, and how long it is there.
    at: usize,
    len: usize,
    count: usize,
}

impl Heads {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Puts the count at `at` right, now if its length does not change, else in [`finish`](Self::finish).
    pub(super) fn fix(&mut self, at: usize, announced: usize, count: usize, out: &mut [u8]) {
        let len = varint::encoded_len(announced as u64);
        let mut body = [0; varint::MAX_LEN];
        if varint::encode(count as u64, &mut body) == len {
            out[at..at + len].copy_from_slice(&body[..len]);
        } else {
            self.0.push(Fix { at, len, count });
        }
    }

    /// Puts the other counts right.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) {
        // Containers end inside out, but their heads stand in the order of their beginning.
        self.0.sort_unstable_by_key(|fix| fix.at);
        let Some(first) = self.0.first().map(|fix| fix.at) else { return };
        let old = out.split_off(first);
        out.reserve(old.len() + self.0.len() * varint::MAX_LEN);
        let mut copied = 0;
        for Fix { at, len, count } in self.0 {
            out.extend_from_slice(&old[copied..at - first]);
            let mut body = [0; varint::MAX_LEN];
            let new = varint::encode(count as u64, &mut body);
            out.extend_from_slice(&body[..new]);
            copied = at - first + len;
        }
        out.extend_from_slice(&old[copied..]);
    }
}
