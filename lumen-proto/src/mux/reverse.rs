//! Requests of servers to clients, and the replies.

use alloc::format;

use bytes::Bytes;

use super::asks::Ask;
use super::dues::Due;
use super::{ID, Mux, Out, Side, SlotId, own};
use crate::idmap::WireId;
use crate::jsonrpc::{IdKey, Token, decode_str};
use crate::mcp::{self, Era, FromServer, paths};
use crate::message::{Edits, Packet};
use crate::{Instant, Port, Reason, limits};

impl Mux {
    /// Takes a request of a server.
    pub(super) fn on_ask(&mut self, slot: SlotId, packet: Packet) {
        let id = packet.id().map(|id| Token::from(&id[..])).unwrap_or_default();
        let Ok(key) = IdKey::from_token(&id) else { return };
        if let Some(user) = self.user_of(slot)
            && !packet.method().is_some_and(|method| mcp::is_own(&method))
        {
            return match self.clients.get(user).filter(|user| user.can_reply) {
                Some(_) => self.ask(slot, user, id, key, packet),
                None => self.answer_child(slot, own::error(Some(&id), &Reason::ClientGone, None)),
            };
        }
        let class = packet.method().map(|method| mcp::from_server(&method, true));
        match class {
            Some(FromServer::Ping) => self.answer_child(slot, own::empty_result(&id)),
            Some(FromServer::Reverse(capability)) => {
                // Nothing says what it is about, so only a client that is alone at work can be meant.
                let client = self.calls.sole_client(slot).filter(|client| {
                    let known = self.clients.get(*client);
                    known.is_some_and(|known| {
                        known.era == Some(Era::Legacy) && known.can_reply && known.can(capability)
                    })
                });
                match client {
                    Some(client) => self.ask(slot, client, id, key, packet),
                    None => self.answer_child(slot, own::error(Some(&id), &Reason::NoOwner, None)),
                }
            }
            _ => self.answer_child(slot, own::error(Some(&id), &Reason::NoMethod, None)),
        }
    }

    fn ask(&mut self, slot: SlotId, client: Port, id: Token, key: IdKey, packet: Packet) {
        let is_known = self.asks.is_known(slot, &key);
        let is_full =
            self.clients.get(client).is_none_or(|known| known.asks.len() >= limits::MAX_CLIENT_CALLS);
        let due = self.config.request_timeout.map(|timeout| self.now + timeout);
        let ask = Ask { slot, client, id: id.clone(), key: key.clone(), due };
        let added = if is_known {
            Err(Reason::IdInUse)
        } else if is_full {
            Err(Reason::Busy)
        } else {
            self.asks.add(ask).ok_or(Reason::Busy)
        };
        let wire = match added {
            Ok(wire) => wire,
            Err(reason) => return self.answer_child(slot, own::error(Some(&id), &reason, None)),
        };
        if let Some(due) = due {
            self.calls.set_due(Due::Ask(wire), due);
        }
        if let Some(client) = self.clients.get_mut(client) {
            client.asks.insert(wire);
        }
        self.tell_client(client, packet, Edits::put(&[ID], self.client_id(wire)));
    }

    /// Takes a client's reply. It is taken only from the client that was asked, and once.
    pub(super) fn on_reply(&mut self, client: Port, packet: Packet) {
        let id = packet.id().map(|id| Bytes::copy_from_slice(&id)).unwrap_or_default();
        match self.take_ask(client, &id) {
            Some(ask) => self.tell_child(ask.slot, packet, Edits::put(&[ID], ask.id)),
            None => self.outs.push_back(Out::Unasked { from: Side::Client(client), id }),
        }
    }

    /// Takes a reply that could not be read, of which only the id is known. Returns whether it was one.
    pub fn handle_client_broken(&mut self, now: Instant, client: Port, id: &[u8], reason: Reason) -> bool {
        self.advance(now);
        let Some(ask) = self.take_ask(client, id) else { return false };
        let detail = Some("the client's answer");
        self.answer_child(ask.slot, own::error(Some(&ask.id), &reason, detail));
        true
    }

    /// Takes a message that this client cannot take, as it turned out.
    pub fn handle_client_unsent(
        &mut self,
        now: Instant,
        client: Port,
        packet: &Packet,
        edits: &Edits,
        reason: Reason,
    ) {
        self.advance(now);
        let Some(id) = edits.token(ID) else { return };
        if packet.envelope().method.is_some() {
            self.handle_client_broken(now, client, id, reason);
        } else if let Some(packet) = own::error(Some(id), &reason, Some("the server's answer")) {
            self.tell_client(client, packet, Edits::none());
        }
    }

    /// A server takes a request back.
    pub(super) fn on_ask_cancelled(&mut self, slot: SlotId, packet: Packet) {
        let key = packet.token(paths::CANCELLED_ID).and_then(|id| IdKey::from_token(&id).ok());
        let Some(key) = key else { return };
        let Some(wire) = self.asks.by_id(slot, key) else { return };
        if let Some(ask) = self.drop_ask(wire) {
            self.tell_client(ask.client, packet, Edits::put(&[paths::CANCELLED_ID], self.client_id(wire)));
        }
    }

    /// The client was given time enough.
    pub(super) fn on_ask_due(&mut self, wire: WireId) {
        let Some(ask) = self.drop_ask(wire) else { return };
        self.answer_child(ask.slot, own::error(Some(&ask.id), &Reason::NoAnswer, None));
        self.withdraw(wire, ask.client, "timed out");
    }

    /// Ends all that a client was asked: it is gone.
    pub(super) fn drop_asks_of_client(&mut self, asks: impl IntoIterator<Item = WireId>) {
        for wire in asks {
            if let Some(ask) = self.drop_ask(wire) {
                self.answer_child(ask.slot, own::error(Some(&ask.id), &Reason::ClientGone, None));
            }
        }
    }

    /// Ends all that a server asked: it is gone.
    pub(super) fn drop_asks_of_slot(&mut self, slot: SlotId) {
        for wire in self.asks.of_slot(slot) {
            if let Some(ask) = self.drop_ask(wire) {
                self.withdraw(wire, ask.client, "the server is gone");
            }
        }
    }

    fn take_ask(&mut self, client: Port, id: &[u8]) -> Option<Ask> {
        let wire = self.wire_id(id)?;
        if self.asks.find(wire)?.client != client {
            return None;
        }
        self.drop_ask(wire)
    }

    fn drop_ask(&mut self, wire: WireId) -> Option<Ask> {
        let ask = self.asks.take(wire)?;
        if let Some(due) = ask.due {
            self.calls.clear_due(Due::Ask(wire), due);
        }
        if let Some(client) = self.clients.get_mut(ask.client) {
            client.asks.remove(&wire);
        }
        Some(ask)
    }

    fn withdraw(&mut self, wire: WireId, client: Port, reason: &str) {
        if let Some(packet) = own::cancelled(&self.client_id(wire), reason) {
            self.tell_client(client, packet, Edits::none());
        }
    }

    /// The id under which a client is asked: a string that no client uses for itself, so that not even a log mixes
    /// them up.
    fn client_id(&self, wire: WireId) -> Bytes {
        Bytes::from(match self.config.life {
            0 => format!("\"lumen-{wire}\""),
            life => format!("\"lumen-{life}-{wire}\""),
        })
    }

    fn wire_id(&self, id: &[u8]) -> Option<WireId> {
        let key = decode_str(id)?;
        let number = key.strip_prefix("lumen-")?;
        let number = match self.config.life {
            0 => number,
            life => number.strip_prefix(&format!("{life}-"))?,
        };
        WireId::from_token(number.as_bytes())
    }
}
