//! How a hub is set up, and what it tells its owner.

use core::time::Duration;

use crate::connection::Tally;
use crate::endpoint::{Event, ServerConfig};
use crate::idmap::WireId;
use crate::mcp::Era;
use crate::supervisor::{self, Ended};
use crate::{Instant, Port, backoff, limits, mux};

/// How a hub is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubConfig {
    /// How its servers are started and asked for LUMEN.
    pub server: ServerConfig,
    /// How its clients share them.
    pub mux: mux::Config,
    /// When they are started again.
    pub backoff: backoff::Config,
    /// The most clients at a time.
    pub max_clients: usize,
    /// How long it goes on without a client that uses a server before it ends by itself; who only asks how things stand is
    /// none. `None` is for ever.
    pub idle_exit: Option<Duration>,
}

impl HubConfig {
    /// Makes the usual set-up for servers started and asked like this.
    pub fn new(server: ServerConfig) -> Self {
        Self {
            server: ServerConfig { keep_values: true, start_timeout: None, ..server },
            mux: mux::Config::default(),
            backoff: backoff::Config::default(),
            max_clients: limits::MAX_CLIENTS,
            idle_exit: None,
        }
    }
}

/// What a hub tells its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubEvent {
    /// What concerns one stream. [`Event::Finished`] is always the last event of a hub.
    Stream(Event),
    /// A client is gone, or was sent away.
    Parted {
        /// Its port; nothing more comes of it.
        port: Port,
        /// Why.
        why: Parted,
    },
    /// A server is in order: it has answered the handshake, or needs none.
    Ready(Port),
    /// A server has ended.
    Ended {
        /// Its port.
        port: Port,
        /// How.
        ended: Ended,
        /// When it is started again, if somebody needs it by then. `None`: when somebody needs it, or never.
        again: Option<Instant>,
    },
    /// So many servers in a row have ended too soon that this one is not started again.
    GaveUp(Port),
    /// A notification of this server that belongs to no client was dropped.
    Ownerless(Port),
    /// A client asks how things stand (`lumen/status`): to be answered by [`Hub::answer`](super::Hub::answer) within
    /// [`limits::OWN_TIMEOUT`], else it gets an error.
    Asked {
        /// What to answer.
        request: WireId,
        /// Who asks.
        client: Port,
    },
}

impl HubEvent {
    /// Returns the port that it is about.
    pub(in crate::endpoint) const fn port_mut(&mut self) -> Option<&mut Port> {
        match self {
            Self::Stream(event) => event.port_mut(),
            Self::Parted { port, .. }
            | Self::Ready(port)
            | Self::Ended { port, .. }
            | Self::GaveUp(port)
            | Self::Ownerless(port)
            | Self::Asked { client: port, .. } => Some(port),
        }
    }
}

/// Why a client is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parted {
    /// It closed its side.
    Left,
    /// It did not read: more than [`limits::MAX_CLIENT_QUEUE`] waited for it, or most of
    /// [`limits::MAX_HUB_QUEUE`].
    Slow,
    /// It had closed its input, and the rest was not answered or not read within [`limits::EOF_GRACE`].
    Unanswered,
    /// The hub ends.
    ShutDown,
}

/// How things stand with one server of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its port; the generation grows with each start.
    pub port: Port,
    /// Whether it runs, or when it is started again.
    pub state: supervisor::State,
    /// How often it was started after the first time.
    pub restarts: u64,
    /// Which of MCP's eras it serves, once that is decided.
    pub era: Option<Era>,
    /// How the last generation ended that has.
    pub last_end: Option<Ended>,
    /// The client that it works for, if only for one.
    pub client: Option<Port>,
    /// Whether messages to it leave as frames.
    pub is_lumen: bool,
    /// Bytes that wait for it, or until it is ready.
    pub queued: usize,
    /// What went to it and came from it, in all generations.
    pub tally: Tally,
}

/// How things stand with one client of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientStatus {
    /// Its port.
    pub port: Port,
    /// Whether messages to it leave as frames.
    pub is_lumen: bool,
    /// Bytes that wait for it.
    pub queued: usize,
    /// What came from it and went to it.
    pub tally: Tally,
}

/// One request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending<'a> {
    /// Who asked; `None` if it is a request of ours.
    pub client: Option<Port>,
    /// The place of the server that was asked: the index of its port.
    pub server: u32,
    /// What; the first characters of it, empty for some of ours.
    pub method: &'a str,
    /// When.
    pub since: Instant,
}
