//! What the pump knows of one port.

use bytes::BytesMut;
use lumen_proto::{Instant, Machine, Port, Transmit};

use super::{Op, TURN_FRAMES, WRITE_GATHER};

/// A write buffer that grew beyond this is given back once it is written. Worst case: this, on each port.
const KEEP_BUFFER: usize = 256 * 1024;

/// What went through a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Reads that brought bytes.
    pub reads: u64,
    /// Writes that took bytes.
    pub writes: u64,
}

/// Where a port is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Opening,
    Open,
    /// A `Close` was asked for; the machine hears no more of it.
    Closing,
}

/// What the machine has for a port, as far as the pump knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Nothing, until the machine names the port again.
    Idle,
    /// Perhaps something.
    Waiting,
    /// Nothing more: close the writing half after the bytes that are there.
    Finish,
    /// The writing half is closed or lost: never ask again.
    Ended,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Stands in the pump's ready queue.
    pub(super) queued: bool,
    pub(super) opening: bool,
    pub(super) reading: bool,
    pub(super) writing: bool,
    pub(super) finishing: bool,
    /// The reading half is at its end.
    pub(super) ended: bool,
    pub(super) output: Output,
    pub(super) counters: Counters,
    buffer: BytesMut,
    /// How much of the buffer is written.
    written: usize,
}

impl State {
    pub(super) fn new(phase: Phase) -> Self {
        Self {
            phase,
            queued: false,
            opening: phase == Phase::Opening,
            reading: false,
            writing: false,
            finishing: false,
            ended: false,
            output: Output::Waiting,
            counters: Counters::default(),
            buffer: BytesMut::new(),
            written: 0,
        }
    }

    /// Gathers frames until the machine has no more, or a write or a turn is full.
    pub(super) fn fill<M: Machine>(&mut self, machine: &mut M, now: Instant, port: Port) {
        for _ in 0..TURN_FRAMES {
            match machine.poll_transmit(now, port, &mut self.buffer) {
                Transmit::Idle => {
                    self.output = Output::Idle;
                    return;
                }
                Transmit::Finish => {
                    self.output = Output::Finish;
                    return;
                }
                Transmit::More if self.buffer.len() >= WRITE_GATHER => return,
                Transmit::More => {}
            }
        }
    }

    /// Starts a write, or closes the writing half, if it is time for that.
    pub(super) fn try_output(&mut self, port: Port) -> Option<Op> {
        if self.writing || self.finishing {
            None
        } else if !self.unwritten().is_empty() {
            self.writing = true;
            Some(Op::Write(port))
        } else if self.output == Output::Finish {
            self.output = Output::Ended;
            self.finishing = true;
            Some(Op::Finish(port))
        } else {
            None
        }
    }

    /// Starts a read, if there is room and something may come.
    pub(super) fn try_read(&mut self, port: Port, wanted: usize) -> Option<Op> {
        if self.reading || self.ended || wanted == 0 {
            return None;
        }
        self.reading = true;
        Some(Op::Read(port, wanted))
    }

    pub(super) fn on_written(&mut self, count: usize) {
        let count = count.min(self.unwritten().len());
        self.counters.writes += 1;
        self.counters.bytes_written += count as u64;
        self.written += count;
        if self.unwritten().is_empty() {
            self.reset_buffer();
        }
    }

    /// Throws away what is unsent and asks for no more. Not while a write is in flight: it reads the buffer.
    pub(super) fn drop_output(&mut self) {
        self.output = Output::Ended;
        self.reset_buffer();
    }

    pub(super) fn close(&mut self) {
        self.phase = Phase::Closing;
        if !self.writing {
            self.drop_output();
        }
    }

    /// Not while a write is in flight: its bytes may be lent.
    pub(super) fn wants_fill(&self) -> bool {
        self.output == Output::Waiting && !self.writing && self.unwritten().is_empty()
    }

    pub(super) fn lend(&mut self) -> (BytesMut, usize) {
        if self.writing { (std::mem::take(&mut self.buffer), self.written) } else { Default::default() }
    }

    pub(super) fn give_back(&mut self, buffer: BytesMut) {
        if self.writing {
            self.buffer = buffer;
        }
    }

    pub(super) fn unwritten(&self) -> &[u8] {
        self.buffer.get(self.written..).unwrap_or(&[])
    }

    /// Returns whether nothing more is written unless the machine names the port again.
    pub(super) fn is_written(&self) -> bool {
        let is_idle = matches!(self.output, Output::Idle | Output::Ended);
        is_idle && !self.writing && !self.finishing && self.unwritten().is_empty()
    }

    /// Returns how many operations count until the port is closed, its `Close` among them.
    pub(super) fn outstanding(&self) -> usize {
        let close = self.phase == Phase::Closing;
        [self.opening, self.reading, self.writing, self.finishing, close].map(usize::from).iter().sum()
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    fn reset_buffer(&mut self) {
        self.written = 0;
        self.buffer.clear();
        if self.buffer.capacity() > KEEP_BUFFER {
            self.buffer = BytesMut::new();
        }
    }
}
