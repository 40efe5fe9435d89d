//! What people are told of a mux, on stderr.

use lumen_proto::Port;
use lumen_proto::endpoint::{HubEvent, Parted};
use lumen_proto::supervisor::Behind;
use lumen_std::{MuxEvent, Refusal};
use tracing::{debug, info, warn};

use crate::report::{Report as Streams, how};

/// Reports the events of one mux.
#[derive(Debug)]
pub(super) struct Report {
    streams: Streams,
}

impl Report {
    pub(super) fn new(command: String) -> Self {
        // No client is more than another; servers have the first two ports.
        Self { streams: Streams::new(Port::new(u32::MAX), command, Behind::Process) }
    }

    pub(super) fn event(&mut self, event: &MuxEvent) {
        match event {
            MuxEvent::Joined { port, uid, pid } => info!("client {port} joined (process {pid}, user {uid})"),
            MuxEvent::Refused { uid, pid, why: Refusal::User } => {
                warn!("process {pid} of user {uid} was sent away; --allow-uid {uid} lets that user in");
            }
            MuxEvent::Visited { pid, .. } => {
                info!("process {pid} came when there was no room; --max-clients allows more");
            }
            MuxEvent::Refused { pid, why: Refusal::Full, .. } => {
                warn!("process {pid} was sent away: too many clients; --max-clients allows more");
            }
            MuxEvent::Exhausted => warn!("no descriptor is left for another client; `ulimit -n` allows more"),
            MuxEvent::Hub(event) => self.hub_event(event),
        }
    }

    fn hub_event(&mut self, event: &HubEvent) {
        match event {
            HubEvent::Stream(event) => {
                let _ = self.streams.event(event);
            }
            HubEvent::Parted { port, why: Parted::Slow } => {
                warn!("client {port} was sent away: it does not read what it is sent");
            }
            HubEvent::Parted { port, why } => debug!("client {port} is gone ({why:?})"),
            HubEvent::Ready(port) => info!("server {port} is ready"),
            HubEvent::Ended { port, ended, again: Some(_) } => {
                warn!(
                    "server {port} ended ({}); it is started again when that is due and a client needs it",
                    how(*ended)
                );
            }
            HubEvent::Ended { port, ended, again: None } => info!("server {port} ended ({})", how(*ended)),
            HubEvent::GaveUp(port) => warn!("server {port} is not started again"),
            HubEvent::Ownerless(port) => debug!("server {port}: a notification for nobody was dropped"),
            HubEvent::Asked { .. } => {}
        }
    }
}
