//! A server's output, cut without mending anything: what a machine would tolerate in silence is what a doctor is
//! asked about.

use lumen_proto::frame::{Header, Kind};
use lumen_proto::limits;

/// The largest answer to a probe.
const MAX_ACK: u64 = 4096;

/// A piece of output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A line without its line feed, or what stood after the last one at the end.
    Line(Vec<u8>),
    /// The answer to a probe.
    Ack,
    /// A line above [`limits::MAX_MESSAGE`]; nothing comes after it.
    Endless,
}

/// Cuts bytes into lines, and frees the answers to probes from between them.
///
/// # Bounds
/// One line of [`limits::MAX_MESSAGE`] and what came with its end.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    bytes: Vec<u8>,
    /// How far the first line's end was looked for.
    searched: usize,
    is_lost: bool,
}

impl Cutter {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !self.is_lost {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(super) fn next(&mut self) -> Option<Piece> {
        if self.searched == 0
            && let Ok(Some((header, len))) = Header::decode(&self.bytes)
            && header.kind == Kind::PROBE_ACK
            && header.len <= MAX_ACK
        {
            // No number from there is above the bound that was just asked for.
            let end = len + usize::try_from(header.len).unwrap_or_default();
            if self.bytes.len() < end {
                return None;
            }
            self.bytes.drain(..end);
            return Some(Piece::Ack);
        }
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        if let Some(at) = rest.iter().position(|&byte| byte == b'\n') {
            let mut line: Vec<u8> = self.bytes.drain(..=self.searched + at).collect();
            line.pop();
            self.searched = 0;
            return Some(Piece::Line(line));
        }
        self.searched = self.bytes.len();
        if self.searched > limits::MAX_MESSAGE {
            self.is_lost = true;
            self.bytes = Vec::new();
            self.searched = 0;
            return Some(Piece::Endless);
        }
        // Two bytes may yet become the head of an answer to a probe.
        if self.searched < 8 {
            self.searched = 0;
        }
        None
    }

    /// Returns what stands after the last line feed, if anything does.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        self.searched = 0;
        (!self.bytes.is_empty()).then(|| Piece::Line(std::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACK: &[u8] = b"\x2b\x10\x00{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n";

    #[test]
    fn lines_and_answers_are_told_apart_in_any_pieces() {
        let input = [b"2026 up\r\n".as_slice(), ACK, b"{}\n\n", ACK, b"[1"].concat();
        let line = |text: &str| Piece::Line(text.into());
        let expected = [line("2026 up\r"), Piece::Ack, line("{}"), line(""), Piece::Ack, line("[1")];
        for size in 1..input.len() {
            let (mut cutter, mut pieces) = (Cutter::default(), Vec::new());
            for chunk in input.chunks(size) {
                cutter.push(chunk);
                pieces.extend(std::iter::from_fn(|| cutter.next()));
            }
            pieces.extend(cutter.finish());
            assert_eq!(pieces, expected, "{size}");
            assert_eq!(cutter.finish(), None);
        }
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        let mut cutter = Cutter::default();
        cutter.push(&vec![b'x'; limits::MAX_MESSAGE + 1]);
        assert_eq!(cutter.next(), Some(Piece::Endless));
        cutter.push(b"{}\n");
        assert_eq!((cutter.next(), cutter.finish()), (None, None));
    }
}
