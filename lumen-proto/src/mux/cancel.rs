//! Notifications of clients, and requests that are given up.

use super::call::{Stage, What};
use super::dues::Due;
use super::slot::Phase;
use super::{Mux, own};
use crate::mcp::{self, Era, FromClient, paths};
use crate::message::{Edits, Packet};
use crate::{Port, Reason};

impl Mux {
    /// Takes a notification of a client.
    pub(super) fn on_client_notification(&mut self, client: Port, packet: Packet) {
        let class = packet.method().map_or(FromClient::Forward, |method| mcp::from_client(&method, false));
        let Some(known) = self.clients.get(client) else { return };
        let class = match class {
            FromClient::Drop | FromClient::Progress if self.config.private => FromClient::Forward,
            class => class,
        };
        match class {
            FromClient::Initialized if self.config.private => self.on_initialized(client, packet),
            // The server has been told by us; the others are for nobody.
            FromClient::Initialized | FromClient::Own | FromClient::Drop => {}
            FromClient::Cancelled => self.on_cancelled(client, packet),
            // About something that it was asked: the token is the server's own.
            FromClient::Progress if known.asks.is_empty() => {}
            _ => {
                let Some(slot) = known.slot else { return };
                match self.slot(slot).phase {
                    Phase::Ready => self.tell_child(slot, packet, Edits::none()),
                    Phase::Starting | Phase::Greeting(_) => self.hold(slot, None, packet),
                    // Its next start knows nothing of what this is about.
                    Phase::Idle | Phase::Ending | Phase::Down { .. } | Phase::Gone(_) => {}
                }
            }
        }
    }

    /// A client does not want an answer any more. What it never asked is not cancelled at the server.
    fn on_cancelled(&mut self, client: Port, packet: Packet) {
        let Some(id) = packet.token(paths::CANCELLED_ID) else { return };
        let Some(wire) = self.call_of(client, &id) else { return };
        drop(id);
        // A handshake is not to be cancelled.
        if self.calls.find(wire).is_none_or(|call| matches!(call.what, What::Greeting)) {
            return;
        }
        let Some(call) = self.drop_call(wire) else { return };
        if call.stage == Stage::Sent {
            let edits = Edits::put(&[paths::CANCELLED_ID], &wire.token()[..]);
            self.tell_child(call.slot, packet, edits);
        }
    }

    /// Gives up all whose time is over.
    pub(super) fn on_due(&mut self) {
        while let Some(due) = self.calls.pop_due(self.now) {
            match due {
                Due::Ask(ask) => self.on_ask_due(ask),
                Due::Call(wire) => {
                    let Some(call) = self.calls.take(wire) else { continue };
                    let slot = call.slot;
                    // A handshake is not to be cancelled; that server is ended instead.
                    if !matches!(call.what, What::Initialize) {
                        self.cancel_at_child(slot, wire, "timed out");
                    }
                    self.fail(slot, wire, call, Reason::NoAnswer, None);
                }
            }
        }
    }

    /// Tells a server not to go on with a request.
    pub(super) fn cancel_at_child(&mut self, slot: super::SlotId, wire: crate::idmap::WireId, reason: &str) {
        let is_mcp = matches!(self.slot(slot).era, Some(Era::Legacy | Era::Modern));
        if is_mcp && self.slot(slot).is_ready() {
            self.tell_child_own(slot, own::cancelled(&wire.token(), reason));
        }
    }
}
