//! An in-memory pipe: one direction, finite, with latency, and unkind about where it cuts.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use lumen_proto::Instant;

/// How reads cut what has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chop {
    /// Everything that has arrived, in one piece.
    Whole,
    /// One byte at a time.
    OneByte,
    /// Pieces of pseudo-random length, many of them short; the same for the same seed.
    Seeded(u64),
}

/// How both pipes of a link behave.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Bytes a pipe holds before writes fall short.
    pub capacity: usize,
    /// Microseconds from write to read. At least 1, so that no loop can run on without time passing.
    pub latency: u64,
    /// How reads cut.
    pub chop: Chop,
}

impl Default for Link {
    fn default() -> Self {
        Self { capacity: 64 * 1024, latency: 10, chop: Chop::Whole }
    }
}

impl Link {
    /// Makes the usual link with this chopping mode.
    pub fn chopped(chop: Chop) -> Self {
        Self { chop, ..Self::default() }
    }
}

/// The reader has gone: EPIPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// What a read found.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// These bytes.
    Data(Vec<u8>),
    /// Nothing yet.
    Pending,
    /// The end.
    Eof,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Pipe {
    link: Link,
    random: u64,
    chunks: VecDeque<(Instant, BytesMut)>,
    used: usize,
    closed: Option<Instant>,
    broken: bool,
    transcript: Vec<u8>,
}

impl Pipe {
    /// Makes an empty pipe.
    pub fn new(link: Link) -> Self {
        let random = if let Chop::Seeded(seed) = link.chop { seed } else { 0 };
        Self {
            link,
            random,
            chunks: VecDeque::new(),
            used: 0,
            closed: None,
            broken: false,
            transcript: Vec::new(),
        }
    }

    /// Writes what fits and returns how much that was.
    ///
    /// # Errors
    /// [`Broken`] if nobody will read.
    pub fn write(&mut self, now: Instant, bytes: &[u8]) -> Result<usize, Broken> {
        if self.broken {
            return Err(Broken);
        }
        assert!(self.closed.is_none(), "a write into a pipe whose writer has closed it");
        let fit = bytes.len().min(self.room());
        let bytes = &bytes[..fit];
        if fit > 0 {
            self.used += fit;
            self.transcript.extend_from_slice(bytes);
            self.chunks.push_back((self.arrival(now), BytesMut::from(bytes)));
        }
        Ok(fit)
    }

    /// Ends the writing side; what was written still arrives. Repeating it does nothing.
    pub fn close(&mut self, now: Instant) {
        if self.closed.is_none() {
            self.closed = Some(self.arrival(now));
        }
    }

    /// Ends the reading side: what is under way is lost, and writes fail.
    pub fn break_off(&mut self) {
        self.broken = true;
        self.chunks.clear();
        self.used = 0;
    }

    /// Reads at most `max` bytes of what has arrived, cut by the chopping mode.
    pub fn read(&mut self, now: Instant, max: usize) -> Read {
        let max = max.min(self.cut());
        let mut data = Vec::new();
        while let Some((due, chunk)) = self.chunks.front_mut() {
            let take = chunk.len().min(max - data.len());
            if *due > now || take == 0 {
                break;
            }
            data.extend_from_slice(&chunk[..take]);
            chunk.advance(take);
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
        }
        self.used -= data.len();
        if !data.is_empty() {
            Read::Data(data)
        } else if self.chunks.is_empty() && (self.broken || self.closed.is_some_and(|due| due <= now)) {
            Read::Eof
        } else {
            Read::Pending
        }
    }

    /// Returns how much a write may hold now.
    pub fn room(&self) -> usize {
        self.link.capacity.saturating_sub(self.used)
    }

    /// Returns when a reader has something to do next: bytes or the end.
    pub fn next_due(&self) -> Option<Instant> {
        self.chunks.front().map(|(due, _)| *due).or(self.closed)
    }

    /// Returns whether the reading side has ended.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Returns every byte that was ever written.
    pub fn transcript(&self) -> &[u8] {
        &self.transcript
    }

    fn arrival(&self, now: Instant) -> Instant {
        now + Duration::from_micros(self.link.latency.max(1))
    }

    fn cut(&mut self) -> usize {
        match self.link.chop {
            Chop::Whole => usize::MAX,
            Chop::OneByte => 1,
            Chop::Seeded(_) => {
                let roll = self.roll();
                let bound = [1, 4, 40, 5000][(roll >> 60) as usize & 3];
                1 + (roll & 0xffff) as usize % bound
            }
        }
    }

    /// SplitMix64.
    fn roll(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn read_all(pipe: &mut Pipe) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        while let Read::Data(piece) = pipe.read(at(1_000_000), usize::MAX) {
            pieces.push(piece);
        }
        pieces
    }

    #[test]
    fn a_full_pipe_takes_what_fits_and_bytes_need_their_time() {
        let mut pipe = Pipe::new(Link { capacity: 4, latency: 10, chop: Chop::Whole });
        assert_eq!(pipe.write(at(0), b"abcdef"), Ok(4));
        assert_eq!(pipe.write(at(1), b"ef"), Ok(0));
        assert_eq!(pipe.read(at(9), 100), Read::Pending);
        assert_eq!(pipe.next_due(), Some(at(10)));
        assert_eq!(pipe.read(at(10), 3), Read::Data(b"abc".to_vec()));
        assert_eq!(pipe.write(at(10), b"ef"), Ok(2));
        pipe.close(at(10));
        assert_eq!(pipe.read(at(10), 100), Read::Data(b"d".to_vec()));
        assert_eq!(pipe.read(at(10), 100), Read::Pending);
        assert_eq!(pipe.read(at(20), 100), Read::Data(b"ef".to_vec()));
        assert_eq!(pipe.read(at(20), 100), Read::Eof);
        assert_eq!(pipe.transcript(), b"abcdef");
    }

    #[test]
    fn a_broken_pipe_refuses() {
        let mut pipe = Pipe::new(Link::default());
        assert_eq!(pipe.write(at(0), b"x"), Ok(1));
        pipe.break_off();
        assert_eq!(pipe.write(at(0), b"x"), Err(Broken));
    }

    #[test]
    fn chopping_cuts_and_loses_nothing() {
        let text: Vec<u8> = (0..20_000u32).map(|i| i as u8).collect();
        let pieces = |chop| {
            let mut pipe = Pipe::new(Link::chopped(chop));
            assert_eq!(pipe.write(at(0), &text), Ok(text.len()));
            let pieces = read_all(&mut pipe);
            assert_eq!(pieces.concat(), text);
            pieces
        };
        assert_eq!(pieces(Chop::Whole).len(), 1);
        assert_eq!(pieces(Chop::OneByte).len(), text.len());
        let seeded = pieces(Chop::Seeded(1));
        assert!(seeded.iter().any(|piece| piece.len() == 1) && seeded.iter().any(|piece| piece.len() > 1000));
        assert_eq!(seeded, pieces(Chop::Seeded(1)));
        assert_ne!(seeded, pieces(Chop::Seeded(2)));
    }
}
