//! The handshake of the revisions that have one: once with each server, and answered from that for each client.

use alloc::borrow::Cow;
use alloc::format;

use super::call::{Call, Owner, Stage, What};
use super::request::edits_up;
use super::slot::{Hello, Phase};
use super::{Mux, Out, SlotId, own};
use crate::jsonrpc::{
    IdKey, Message, Patch, Patches, Span, Token, decode_str, find, members, remove_member, text_is,
};
use crate::mcp::{Era, Revision, paths};
use crate::message::{Edits, Packet};
use crate::{Port, Reason, limits};

impl Mux {
    /// Takes a client's `initialize`.
    pub(super) fn on_initialize(
        &mut self,
        client: Port,
        slot: SlotId,
        id: Token,
        key: IdKey,
        packet: &Packet,
        batch: Option<u64>,
    ) {
        if batch.is_some() {
            let reason = Reason::NotJsonRpc("initialize in a batch");
            return self.refuse_request(client, &id, batch, reason);
        }
        let call = Call {
            slot,
            owner: Some(Owner { client, id: id.clone(), key: key.clone() }),
            what: What::Greeting,
            stage: Stage::Held,
            method: "initialize".into(),
            since: self.now,
            due: None,
            latest: None,
            token: None,
            wants_log: false,
            batch: None,
        };
        let Some(wire) = self.calls.add(call) else {
            return self.refuse_client(client, Some(&id), Reason::Busy);
        };
        let wanted = packet
            .token(&["params", "protocolVersion"])
            .and_then(|token| decode_str(&token).map(Cow::into_owned));
        if let Some(client) = self.clients.get_mut(client) {
            client.declare(packet);
            client.revision = wanted.as_deref().and_then(Revision::parse);
            client.calls.insert(key, wire);
        }
        match self.slot(slot).phase {
            Phase::Ready => self.greet(slot, wire),
            Phase::Gone(reason) => self.refuse_call(wire, reason, None),
            _ => {
                let until = self.now + self.config.hold_timeout;
                self.slot_mut(slot).greeting.insert(wire, until);
            }
        }
    }

    /// Sends our handshake.
    pub(super) fn begin_greeting(&mut self, slot: SlotId) {
        let due = self.config.start_timeout.map(|timeout| self.now + timeout);
        let call = Call {
            slot,
            owner: None,
            what: What::Initialize,
            stage: Stage::Sent,
            method: "initialize".into(),
            since: self.now,
            due,
            latest: due,
            token: None,
            wants_log: false,
            batch: None,
        };
        // With all wire ids in use the server's next start is as good as this one.
        let Some(wire) = self.calls.add(call) else { return self.outs.push_back(Out::Refused(slot)) };
        self.slot_mut(slot).phase = Phase::Greeting(wire);
        match self.user_of(slot).and_then(|user| self.clients.get(user)?.hello.clone()) {
            Some(hello) => {
                let edits = edits_up(wire, hello.has(paths::ASKED_PROGRESS));
                self.tell_child(slot, hello, edits);
            }
            None => self.tell_child_own(slot, own::initialize(wire)),
        }
    }

    /// Takes the server's answer to our handshake.
    pub(super) fn on_greeted(&mut self, slot: SlotId, packet: &Packet) {
        let answer = packet.to_text().ok().filter(|answer| answer.envelope().result.is_some());
        let Some(answer) = answer else { return self.on_refused(slot, Some(packet), Reason::NotStarted) };
        let revision = member(&answer, &["protocolVersion"]);
        let revision = revision.and_then(decode_str).and_then(|revision| Revision::parse(&revision));
        self.slot_mut(slot).hello = Some(Hello { answer, revision });
        self.not_modern |= self.ended_by_discover;
        // A client whose session is its own says so itself, the first time.
        let user = self.user_of(slot).and_then(|user| self.clients.get(user));
        if !self.config.private || user.is_some_and(|user| user.is_initialized) {
            self.tell_child_own(slot, own::notification("notifications/initialized"));
        }
        self.on_ready(slot);
    }

    /// Keeps what a client says of itself, until it has been answered and for each start of its server.
    pub(super) fn keep_hello(&mut self, client: Port, packet: &Packet) -> Result<(), Reason> {
        let Some(known) = self.clients.get_mut(client).filter(|known| !known.is_live) else { return Ok(()) };
        let kept = known.kept.saturating_sub(known.hello.as_ref().map_or(0, Packet::len));
        if kept.saturating_add(packet.len()) > limits::MAX_CLIENT_KEPT {
            return Err(Reason::Busy);
        }
        known.kept = kept + packet.len();
        known.hello = Some(packet.clone());
        Ok(())
    }

    /// A client has taken note of the answer to its handshake.
    pub(super) fn on_initialized(&mut self, client: Port, packet: Packet) {
        let Some(known) = self.clients.get_mut(client) else { return };
        known.is_initialized = true;
        if let Some(slot) = known.slot.filter(|slot| self.slot(*slot).is_ready()) {
            self.tell_child(slot, packet, Edits::none());
        }
    }

    /// Returns the client whose own session that of this server is.
    pub(super) fn user_of(&self, slot: SlotId) -> Option<Port> {
        self.slot(slot).users.first().copied().filter(|_| self.config.private)
    }

    /// The server refused our handshake. Its refusal goes to all who wait, and is not kept.
    pub(super) fn on_refused(&mut self, slot: SlotId, packet: Option<&Packet>, reason: Reason) {
        let waiting = core::mem::take(&mut self.slot_mut(slot).greeting);
        for (wire, _) in waiting {
            match packet {
                Some(packet) => self.answer_waiters([wire], packet),
                None => self.refuse_call(wire, reason, None),
            }
        }
        self.slot_mut(slot).phase = Phase::Ending;
        self.outs.push_back(Out::Refused(slot));
    }

    /// Answers all who waited for the handshake.
    pub(super) fn greet_all(&mut self, slot: SlotId) {
        let waiting = core::mem::take(&mut self.slot_mut(slot).greeting);
        for (wire, _) in waiting {
            self.greet(slot, wire);
        }
    }

    /// Tells those who were greeted before a restart that lists may have changed.
    pub(super) fn announce_changes(&mut self, slot: SlotId) {
        let Some(hello) = &self.slot(slot).hello else { return };
        let answer = hello.answer.clone();
        for packet in own::list_changes(&answer) {
            self.broadcast(slot, &packet, |client| client.era == Some(Era::Legacy));
        }
    }

    /// Answers a client's `initialize` with what the server said to ours.
    fn greet(&mut self, slot: SlotId, wire: crate::idmap::WireId) {
        let Some(owner) = self.calls.find(wire).and_then(|call| call.owner.clone()) else { return };
        let Some(hello) = &self.slot(slot).hello else { return };
        let wanted = self.clients.get(owner.client).and_then(|client| client.revision);
        let (revision, answer) = if self.config.private {
            (hello.revision, Packet::from(hello.answer.clone()))
        } else {
            let revision = hello.revision.map(|revision| revision.answer_for(wanted));
            (revision, adapt(&hello.answer, revision))
        };
        if let Some(client) = self.clients.get_mut(owner.client) {
            client.revision = revision;
            client.is_live = true;
        }
        self.answer_waiters([wire], &answer);
    }

    /// Decides the era of a server that had none.
    pub(super) fn on_era(&mut self, slot: SlotId, era: Option<Era>) {
        let place = self.slot_mut(slot);
        place.era = era;
        if era == Some(Era::Legacy) && place.phase == Phase::Ready {
            self.begin_greeting(slot);
        }
    }

    /// Sends the same to all clients of a server that were greeted and are meant. A modern one is told only what it
    /// listens to, also by a server that turned out not to be modern.
    pub(super) fn broadcast(
        &mut self,
        slot: SlotId,
        packet: &Packet,
        is_meant: impl Fn(&super::client::Client) -> bool,
    ) {
        let [first, second] = &self.slots;
        let place = if slot == SlotId::First { first } else { second };
        for client in &place.users {
            let is_meant = |known: &&super::client::Client| {
                known.is_live && known.era != Some(Era::Modern) && is_meant(known)
            };
            if self.clients.get(*client).filter(is_meant).is_some() {
                let (client, packet) = (*client, packet.clone());
                self.outs.push_back(Out::Client { client, packet, edits: Edits::none(), own: false });
            }
        }
    }
}

/// Returns the token at the end of a path in the result.
fn member<'a>(answer: &'a Message, keys: &[&str]) -> Option<&'a [u8]> {
    let result = answer.envelope().result?;
    find(answer.bytes(), result, keys).map(|at| at.of(answer.bytes()))
}

/// Makes of the server's answer the one for a client of this revision: with that revision, and without what cannot
/// be shared.
fn adapt(answer: &Message, revision: Option<Revision>) -> Packet {
    let text = answer.bytes();
    let mut patches = Patches::new();
    let result = answer.envelope().result.unwrap_or_default();
    if let (Some(revision), Some(at)) = (revision, find(text, result, &["protocolVersion"])) {
        let with = Token::from(&*format!("\"{}\"", revision.as_str()));
        // Neither overlaps the other: they are two members' values.
        let _ = patches.try_add(Patch { at, with });
    }
    // Tasks live longer than requests, and nothing says whose they are.
    if let Some(capabilities) = find(text, result, &["capabilities"])
        && let Some(tasks) = tasks(text, capabilities)
    {
        let _ = patches.try_add(tasks);
    }
    if patches.is_empty() {
        return Packet::from(answer.clone());
    }
    let mut adapted = bytes::BytesMut::new();
    answer.write_text(&patches, &mut adapted);
    let adapted = Message::parse(adapted.freeze());
    Packet::from(adapted.unwrap_or_else(|_| answer.clone()))
}

fn tasks(text: &[u8], capabilities: Span) -> Option<Patch> {
    let member = members(text, capabilities).find(|member| text_is(member.key.of(text), "tasks"))?;
    Some(remove_member(text, capabilities, &member))
}
