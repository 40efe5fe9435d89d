//! What legacy clients of one server share: subscriptions to resources, and the log level.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

use super::call::{Call, Stage, What};
use super::request::edits_up;
use super::slot::Subscription;
use super::{Mux, SlotId, own};
use crate::idmap::WireId;
use crate::jsonrpc::decode_str;
use crate::mcp::{Level, paths};
use crate::message::Packet;
use crate::{Port, Reason, limits};

impl Mux {
    /// A client subscribes to a resource: the server is asked once, for all.
    pub(super) fn on_subscribe(&mut self, wire: WireId, packet: Packet) {
        let Some((slot, client)) = self.owner_of(wire) else { return };
        let Some((token, uri)) = resource(&packet) else { return self.send_call(wire, packet) };
        let Some(known) = self.clients.get_mut(client) else { return };
        if !known.subscriptions.contains(&uri)
            && known.kept.saturating_add(uri.len()) > limits::MAX_CLIENT_KEPT
        {
            return self.refuse_call(wire, Reason::Busy, None);
        }
        if known.subscriptions.insert(uri.clone()) {
            known.kept += uri.len();
        }
        let private = self.config.private;
        let place = self.slot_mut(slot);
        if let Some(subscription) = place.subscriptions.get_mut(&uri).filter(|_| !private) {
            subscription.clients.insert(client);
            match subscription.asking {
                Some(asking) => self.wait_for(asking, wire),
                None => self.answer_empty(wire),
            }
            return;
        }
        let subscription = Subscription { token, clients: BTreeSet::from([client]), asking: None };
        place.subscriptions.insert(uri.clone(), subscription);
        let waiters = alloc::vec![wire];
        if let Some(asking) =
            self.ask_server(slot, wire, What::Subscribe { uri: uri.clone(), waiters }, packet)
        {
            self.set_asking(slot, &uri, Some(asking));
        } else {
            self.on_not_subscribed(slot, wire, &uri);
        }
    }

    /// The server has answered a subscription of ours.
    pub(super) fn on_subscribed(&mut self, slot: SlotId, wire: WireId, call: Call, packet: &Packet) {
        let What::Subscribe { uri, waiters } = call.what else { return };
        if packet.envelope().error.is_some() {
            self.on_not_subscribed(slot, wire, &uri);
        } else {
            self.on_asked(slot, wire, &uri);
        }
        self.answer_waiters(waiters, packet);
    }

    /// Nobody is subscribed to this after all.
    pub(super) fn on_not_subscribed(&mut self, slot: SlotId, asking: WireId, uri: &str) {
        let place = self.slot_mut(slot);
        if place.subscriptions.get(uri).is_none_or(|known| known.asking.is_some_and(|other| other != asking))
        {
            return;
        }
        let gone = place.subscriptions.remove(uri);
        for client in gone.into_iter().flat_map(|gone| gone.clients) {
            self.forget_subscription(client, uri);
        }
    }

    /// A subscription of ours came to nothing, because the server is gone or does not answer. Those who waited for it
    /// are told; whoever was subscribed before stays so, and will be again at the next start.
    pub(super) fn on_subscribing_failed(
        &mut self,
        slot: SlotId,
        wire: WireId,
        uri: &str,
        waiters: &[WireId],
    ) {
        self.on_asked(slot, wire, uri);
        for (_, client) in waiters.iter().filter_map(|waiter| self.owner_of(*waiter)).collect::<Vec<_>>() {
            self.forget_subscription(client, uri);
            if let Some(known) = self.slot_mut(slot).subscriptions.get_mut(uri) {
                known.clients.remove(&client);
            }
        }
        let subscriptions = &mut self.slot_mut(slot).subscriptions;
        if subscriptions.get(uri).is_some_and(|known| known.clients.is_empty()) {
            subscriptions.remove(uri);
        }
    }

    /// A client ends its subscription: the server is told by the last one.
    pub(super) fn on_unsubscribe(&mut self, wire: WireId, packet: Packet) {
        let Some((slot, client)) = self.owner_of(wire) else { return };
        let Some((_, uri)) = resource(&packet) else { return self.send_call(wire, packet) };
        self.forget_subscription(client, &uri);
        let place = self.slot_mut(slot);
        let Some(subscription) = place.subscriptions.get_mut(&uri) else {
            return self.send_call(wire, packet);
        };
        subscription.clients.remove(&client);
        if subscription.clients.is_empty() {
            place.subscriptions.remove(&uri);
            self.send_call(wire, packet);
        } else {
            self.answer_empty(wire);
        }
    }

    /// A client that is gone is subscribed to nothing.
    pub(super) fn drop_subscriptions(&mut self, slot: SlotId, client: Port, uris: BTreeSet<String>) {
        for uri in uris {
            let place = self.slot_mut(slot);
            let Some(subscription) = place.subscriptions.get_mut(&uri) else { continue };
            subscription.clients.remove(&client);
            if !subscription.clients.is_empty() {
                continue;
            }
            if let Some(gone) = place.subscriptions.remove(&uri)
                && place.is_ready()
            {
                self.tell_server(slot, What::Nobody, |id| {
                    own::resource(id, "resources/unsubscribe", &gone.token)
                });
            }
        }
    }

    /// A resource has changed: those who are subscribed to it are told once, and those who are subscribed to one that it
    /// is a part of.
    pub(super) fn on_updated(&mut self, slot: SlotId, packet: &Packet) {
        let Some((_, uri)) = resource(packet) else { return };
        let subscriptions = &self.slot(slot).subscriptions;
        let known = with_parents(&uri).filter_map(|uri| subscriptions.get(uri));
        let clients: BTreeSet<Port> = known.flat_map(|known| known.clients.iter().copied()).collect();
        for client in clients {
            self.tell_client(client, packet.clone(), crate::message::Edits::none());
        }
    }

    /// A client says how much it wants to know.
    pub(super) fn on_set_level(&mut self, wire: WireId, packet: Packet) {
        let Some((slot, client)) = self.owner_of(wire) else { return };
        let level = packet.token(paths::LEVEL);
        let level = level.and_then(|token| decode_str(&token).and_then(|level| Level::parse(&level)));
        // What we do not know, the server may.
        let Some(level) = level else { return self.send_call(wire, packet) };
        if let Some(client) = self.clients.get_mut(client) {
            client.level = Some(level);
        }
        let wanted = self.wanted_level(slot).unwrap_or(level);
        if self.slot(slot).level == Some(wanted) && !self.config.private {
            return match self.slot(slot).level_asking {
                Some(asking) => self.wait_for(asking, wire),
                None => self.answer_empty(wire),
            };
        }
        let what = What::Level { waiters: alloc::vec![wire] };
        let asking = if wanted == level {
            self.ask_server(slot, wire, what, packet)
        } else {
            self.update_waiter(wire);
            self.tell_server(slot, what, |id| own::set_level(id, wanted))
        };
        if asking.is_none() {
            self.refuse_call(wire, Reason::Busy, None);
        }
        self.on_level_asked(slot, wanted, asking);
    }

    /// The server has answered a level of ours.
    pub(super) fn on_level_set(&mut self, slot: SlotId, wire: WireId, call: Call, packet: &Packet) {
        let What::Level { waiters } = call.what else { return };
        if packet.envelope().error.is_some() {
            self.on_level_failed(slot, wire);
        } else if self.slot(slot).level_asking == Some(wire) {
            self.slot_mut(slot).level_asking = None;
        }
        self.answer_waiters(waiters, packet);
    }

    /// A level of ours was not set. If there is no later one, nothing is known of what the server logs.
    pub(super) fn on_level_failed(&mut self, slot: SlotId, wire: WireId) {
        let place = self.slot_mut(slot);
        if place.level_asking == Some(wire) {
            place.level = None;
            place.level_asking = None;
        }
    }

    /// Tells the server the level that its clients want together, if that is another one now.
    pub(super) fn sync_level(&mut self, slot: SlotId) {
        let Some(wanted) = self.wanted_level(slot) else { return };
        if self.slot(slot).is_ready() && self.slot(slot).level != Some(wanted) {
            let what = What::Level { waiters: Vec::new() };
            let asking = self.tell_server(slot, what, |id| own::set_level(id, wanted));
            self.on_level_asked(slot, wanted, asking);
        }
    }

    fn on_level_asked(&mut self, slot: SlotId, level: Level, asking: Option<WireId>) {
        if asking.is_some() {
            let place = self.slot_mut(slot);
            place.level = Some(level);
            place.level_asking = asking;
        }
    }

    /// Subscribes anew to all that somebody is subscribed to: the server was started again.
    pub(super) fn resubscribe(&mut self, slot: SlotId) {
        let all = self.slot(slot).subscriptions.iter();
        let all: Vec<_> = all.map(|(uri, known)| (uri.clone(), known.token.clone())).collect();
        for (uri, token) in all {
            let what = What::Subscribe { uri: uri.clone(), waiters: Vec::new() };
            let asking = self.tell_server(slot, what, |id| own::resource(id, "resources/subscribe", &token));
            self.set_asking(slot, &uri, asking);
        }
    }

    fn wanted_level(&self, slot: SlotId) -> Option<Level> {
        let users = self.slot(slot).users.iter();
        users.filter_map(|client| self.clients.get(*client)?.level).min()
    }

    fn owner_of(&self, wire: WireId) -> Option<(SlotId, Port)> {
        let call = self.calls.find(wire)?;
        Some((call.slot, call.owner.as_ref()?.client))
    }

    /// Sends a client's request as one of ours, for whose answer it and others wait.
    fn ask_server(&mut self, slot: SlotId, waiter: WireId, what: What, packet: Packet) -> Option<WireId> {
        let has_token = self.calls.find(waiter)?.token.is_some();
        let Some(wire) = self.add_own(slot, what) else {
            self.refuse_call(waiter, Reason::Busy, None);
            return None;
        };
        self.update_waiter(waiter);
        self.tell_child(slot, packet, edits_up(wire, has_token));
        Some(wire)
    }

    /// Sends a request that was made here.
    fn tell_server(
        &mut self,
        slot: SlotId,
        what: What,
        make: impl FnOnce(WireId) -> Option<Packet>,
    ) -> Option<WireId> {
        let wire = self.add_own(slot, what)?;
        self.tell_child_own(slot, make(wire));
        Some(wire)
    }

    fn add_own(&mut self, slot: SlotId, what: What) -> Option<WireId> {
        let due = self.config.request_timeout.map(|timeout| self.now + timeout);
        let call = Call {
            slot,
            owner: None,
            what,
            stage: Stage::Sent,
            method: "".into(),
            since: self.now,
            due,
            latest: due,
            token: None,
            wants_log: false,
            batch: None,
        };
        self.calls.add(call)
    }

    fn wait_for(&mut self, asking: WireId, waiter: WireId) {
        self.update_waiter(waiter);
        self.calls.add_waiter(asking, waiter);
    }

    fn update_waiter(&mut self, waiter: WireId) {
        self.calls.update(waiter, |call| call.what = What::Waiter);
    }

    fn set_asking(&mut self, slot: SlotId, uri: &str, asking: Option<WireId>) {
        if let Some(subscription) = self.slot_mut(slot).subscriptions.get_mut(uri) {
            subscription.asking = asking;
        }
    }

    /// This request for a subscription is over. There may be a later one.
    fn on_asked(&mut self, slot: SlotId, wire: WireId, uri: &str) {
        if let Some(subscription) = self.slot_mut(slot).subscriptions.get_mut(uri)
            && subscription.asking == Some(wire)
        {
            subscription.asking = None;
        }
    }

    fn forget_subscription(&mut self, client: Port, uri: &str) {
        if let Some(client) = self.clients.get_mut(client)
            && client.subscriptions.remove(uri)
        {
            client.kept = client.kept.saturating_sub(uri.len());
        }
    }
}

/// Returns the resource that a message is about: its URI as a JSON token, and what that says.
fn resource(packet: &Packet) -> Option<(Bytes, String)> {
    let token = packet.token(paths::RESOURCE)?;
    let uri = String::from(decode_str(&token)?);
    Some((Bytes::copy_from_slice(&token), uri))
}

/// Returns a URI, and everything before one of the characters that end a part of it, with that character and without.
fn with_parents(uri: &str) -> impl Iterator<Item = &str> {
    let ends = uri.match_indices(['/', '?', '#']).flat_map(|(at, _)| [at, at + 1]);
    let parents = ends.filter(|end| *end < uri.len()).filter_map(|end| uri.get(..end));
    parents.chain(core::iter::once(uri))
}
