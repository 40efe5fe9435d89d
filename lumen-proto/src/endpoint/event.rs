//! What endpoints tell their owner.

use alloc::collections::VecDeque;
use core::fmt;

use bytes::Bytes;

use crate::frame::Kind;
use crate::jsonrpc::Message;
use crate::supervisor::Ended;
use crate::{OpenError, Port, Reason, connection, limits};

/// What an endpoint tells its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message for the owner of a [`Peer`](super::Peer).
    Message(Message),
    /// Messages to this port leave as frames from now on.
    Upgraded(Port),
    /// The opening probe on this port was not answered in time: JSON lines from now on.
    FellBack(Port),
    /// Text that is no message; see [`connection::Event::Noise`].
    Noise {
        /// Where it was read.
        port: Port,
        /// The beginning of the first line.
        excerpt: Bytes,
        /// How many lines.
        lines: u64,
        /// How many bytes they had.
        bytes: u64,
    },
    /// A message that was not passed on. If it was a request, its sender has been answered.
    Rejected {
        /// Where it was read, or could not be sent to.
        port: Port,
        /// Its id as spelled, if one was found.
        id: Option<Bytes>,
        /// What is wrong with it.
        reason: Reason,
    },
    /// The one line with which a server answered a probe that it does not know.
    Stray(Port),
    /// An answer to nothing that was asked, or asked still; it was dropped.
    Unasked {
        /// Where it was read.
        port: Port,
        /// Its id as spelled.
        id: Bytes,
    },
    /// Frames of a type that means nothing here were skipped.
    Skipped {
        /// Where they were read.
        port: Port,
        /// Their type.
        kind: Kind,
        /// How many in a row.
        frames: u64,
    },
    /// The stream on this port cannot be followed any further, or ended inside a message.
    Lost {
        /// Which.
        port: Port,
        /// Why.
        reason: Reason,
    },
    /// The server is started again without a probe; what it was sent goes again.
    Restarting {
        /// The port of the new one.
        port: Port,
        /// Why.
        why: Why,
    },
    /// The server has gone away, or could not be reached; the connection is made again.
    Reconnecting {
        /// The port of the one that is gone.
        port: Port,
        /// How it ended.
        ended: Ended,
    },
    /// The session goes on at a server that came back.
    Resumed(Port),
    /// The client has closed its input: no more messages come, answers may still go.
    InputClosed,
    /// So many events were dropped because nobody took them.
    Dropped(u64),
    /// Nothing more will happen. Always the last event.
    Finished(Outcome),
}

/// Why a session does not go on at a server that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlike {
    /// It refused the handshake of the session.
    Refused,
    /// It agreed on another protocol revision than the client was told.
    Revision,
    /// It says nothing, or the connection is neither made nor refused.
    Silent,
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "the one that came back refuses the handshake of this session",
            Self::Revision => "the one that came back agrees on another protocol revision",
            Self::Silent => "the connection is made again, and nobody answers there",
        })
    }
}

impl Event {
    /// Returns the port that it is about.
    pub(super) const fn port_mut(&mut self) -> Option<&mut Port> {
        match self {
            Self::Upgraded(port)
            | Self::FellBack(port)
            | Self::Stray(port)
            | Self::Noise { port, .. }
            | Self::Rejected { port, .. }
            | Self::Unasked { port, .. }
            | Self::Skipped { port, .. }
            | Self::Lost { port, .. }
            | Self::Restarting { port, .. }
            | Self::Reconnecting { port, .. }
            | Self::Resumed(port) => Some(port),
            Self::Message(_) | Self::InputClosed | Self::Dropped(_) | Self::Finished(_) => None,
        }
    }
}

/// Why a server is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It ended after a probe and before its first answer.
    Ended(Ended),
    /// After a probe it answered nothing for too long.
    NoAnswer,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The client closed its side, or the owner of the peer closed it. Says how the server ended, if there was
    /// one.
    Closed(Option<Ended>),
    /// The owner was told to end.
    Terminated(Option<Ended>),
    /// The server could not be started.
    NotStarted(OpenError),
    /// The server ended while it was needed.
    ServerGone(Ended),
    /// The server never gave its first answer.
    NoAnswer,
    /// The server went away, and the one that came back does not go on with the session.
    NotResumed(Unlike),
    /// The client closed its input, and the server owed so many answers when the grace was over.
    Unanswered(usize),
}

/// Events that wait, bounded in number. Those that come once and change what the owner does always fit.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<Event>,
    dropped: u64,
}

impl Events {
    pub(super) fn push(&mut self, event: Event) {
        if self.queue.len() < limits::MAX_EVENTS || matches!(event, Event::Finished(_) | Event::InputClosed) {
            self.queue.push_back(event);
        } else {
            self.dropped += 1;
        }
    }

    /// Messages are bounded by bytes elsewhere, and never dropped.
    pub(super) fn push_message(&mut self, message: Message) {
        self.queue.push_back(Event::Message(message));
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        if self.dropped > 0 && self.queue.len() < limits::MAX_EVENTS {
            return Some(Event::Dropped(core::mem::take(&mut self.dropped)));
        }
        self.queue.pop_front()
    }

    /// Passes on what concerns the stream of `port` and no message. Gives everything else back.
    pub(super) fn pass(&mut self, port: Port, event: connection::Event) -> Option<connection::Event> {
        pass(port, event, |event| self.push(event))
    }
}

/// Makes of what concerns the stream of `port` and no message what its owner is to be told. Gives everything else back.
pub(super) fn pass(
    port: Port,
    event: connection::Event,
    tell: impl FnOnce(Event),
) -> Option<connection::Event> {
    tell(match event {
        connection::Event::Noise { excerpt, lines, bytes } => Event::Noise { port, excerpt, lines, bytes },
        connection::Event::Stray(_) => Event::Stray(port),
        connection::Event::Skipped { kind, frames } => Event::Skipped { port, kind, frames },
        connection::Event::Upgraded => Event::Upgraded(port),
        connection::Event::FellBack => Event::FellBack(port),
        connection::Event::Lost(reason) => Event::Lost { port, reason },
        other => return Some(other),
    });
    None
}
