//! Notifications of servers: each goes to whom it belongs, or nowhere.

use super::{Mux, Out, SlotId};
use crate::idmap::WireId;
use crate::jsonrpc::decode_str;
use crate::mcp::{self, Era, FromServer, Level, paths};
use crate::message::{Edits, Packet};

/// What a client sees that never said what it wants, as soon as another has said so.
const DEFAULT_LEVEL: Level = Level::Info;

impl Mux {
    /// Takes a notification of a server.
    pub(super) fn on_notification(&mut self, slot: SlotId, packet: Packet) {
        if let Some(wire) = self.subscription_of(slot, &packet) {
            return self.on_subscription_notice(wire, packet);
        }
        let class = packet.method().map(|method| mcp::from_server(&method, false));
        if let Some(user) = self.user_of(slot)
            && !names_a_request(class, &packet)
            && !packet.method().is_some_and(|method| mcp::is_own(&method))
        {
            return self.tell_client(user, packet, Edits::none());
        }
        match class {
            Some(FromServer::Log) => self.on_log(slot, &packet),
            Some(FromServer::Progress) => self.on_progress(slot, packet),
            Some(FromServer::Cancelled) => self.on_ask_cancelled(slot, packet),
            Some(FromServer::Updated) => self.on_updated(slot, &packet),
            Some(FromServer::ToDeclared(capability)) => {
                self.broadcast(slot, &packet, |client| client.can(capability));
            }
            // A modern server says nothing outside of subscriptions that is for everybody.
            Some(FromServer::ListChanged) if self.slot(slot).era != Some(Era::Modern) => {
                self.broadcast(slot, &packet, |_| true);
            }
            Some(FromServer::ToAll) | None if packet.has(paths::PROGRESS_TOKEN) => {
                self.on_progress(slot, packet);
            }
            Some(FromServer::ToAll) | None if self.slot(slot).era != Some(Era::Modern) => {
                self.broadcast(slot, &packet, |_| true);
            }
            _ => self.outs.push_back(Out::Ownerless(slot)),
        }
    }

    /// Progress goes to the owner of the request it belongs to, and gives that request more time.
    fn on_progress(&mut self, slot: SlotId, packet: Packet) {
        let wire = packet.token(paths::PROGRESS_TOKEN).and_then(|token| WireId::from_token(&token));
        let call = wire.and_then(|wire| self.calls.find(wire)).filter(|call| call.slot == slot);
        let (Some(wire), Some(call)) = (wire, call) else {
            return self.outs.push_back(Out::Ownerless(slot));
        };
        let (Some(owner), Some(token)) = (&call.owner, &call.token) else {
            return self.outs.push_back(Out::Ownerless(slot));
        };
        let (client, token) = (owner.client, token.clone());
        if let Some(timeout) = self.config.request_timeout {
            self.calls.extend(wire, self.now + timeout);
        }
        self.tell_client(client, packet, Edits::put(&[paths::PROGRESS_TOKEN], token));
    }

    /// A log message goes to those who want to know this much.
    fn on_log(&mut self, slot: SlotId, packet: &Packet) {
        if self.slot(slot).era == Some(Era::Modern) {
            // Nothing says which request it belongs to.
            return match self.calls.sole_logger(slot) {
                Some(client) => self.tell_client(client, packet.clone(), Edits::none()),
                None => self.outs.push_back(Out::Ownerless(slot)),
            };
        }
        let level = packet.token(paths::LEVEL);
        let level = level.and_then(|token| decode_str(&token).and_then(|level| Level::parse(&level)));
        let is_asked = self.slot(slot).level.is_some();
        self.broadcast(slot, packet, |client| {
            let wanted = client.level.or(is_asked.then_some(DEFAULT_LEVEL));
            wanted.is_none_or(|wanted| level.is_none_or(|level| level >= wanted))
        });
    }

    /// Returns the subscription that a modern server's notification names, if somebody listens to that.
    fn subscription_of(&self, slot: SlotId, packet: &Packet) -> Option<WireId> {
        if self.slot(slot).era == Some(Era::Legacy) {
            return None;
        }
        let named = packet.token(paths::SUBSCRIPTION);
        let named = named.or_else(|| packet.token(paths::CANCELLED_ID))?;
        let wire = WireId::from_token(&named)?;
        let call = self.calls.find(wire)?;
        (call.slot == slot && call.is_listen()).then_some(wire)
    }

    /// What a server says on a subscription belongs to whoever listens.
    fn on_subscription_notice(&mut self, wire: WireId, packet: Packet) {
        let Some(owner) = self.calls.find(wire).and_then(|call| call.owner.clone()) else { return };
        let is_news =
            !packet.method_is("notifications/subscriptions/acknowledged") || self.calls.acknowledge(wire);
        // What is acknowledged again was sent again after a restart, and the client knows.
        if !is_news {
            return;
        }
        let edits = if packet.method_is("notifications/cancelled") {
            self.drop_call(wire);
            Edits::put(&[paths::SUBSCRIPTION, paths::CANCELLED_ID], owner.id)
        } else {
            Edits::put(&[paths::SUBSCRIPTION], owner.id)
        };
        self.tell_client(owner.client, packet, edits);
    }
}

/// Returns whether a notification of this class is about a request that its server knows by another id.
fn names_a_request(class: Option<FromServer>, packet: &Packet) -> bool {
    match class {
        Some(FromServer::Progress | FromServer::Cancelled) => true,
        Some(FromServer::ToAll) | None => packet.has(paths::PROGRESS_TOKEN),
        Some(_) => false,
    }
}
