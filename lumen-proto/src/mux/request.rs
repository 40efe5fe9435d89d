//! Requests of clients on their way to a server.

use alloc::borrow::Cow;

use super::call::{Call, Owner, Stage, What};
use super::slot::Phase;
use super::waiting::Held;
use super::{ID, Mux, SlotId};
use crate::idmap::WireId;
use crate::jsonrpc::{IdKey, Kind, Token};
use crate::mcp::{self, Era, FromClient, paths};
use crate::message::{Edits, Packet, Path};
use crate::{Port, Reason, limits};

/// What is read of a request once, for all that has to know it.
struct Asked<'a> {
    /// Empty if no text can hold it: then it is none that we know.
    method: Cow<'a, str>,
    class: FromClient,
    /// Its progress token.
    token: Option<Cow<'a, [u8]>>,
}

impl<'a> Asked<'a> {
    fn of(packet: &'a Packet) -> Self {
        let method = packet.method().unwrap_or_default();
        let class = mcp::from_client(&method, true);
        Self { method, class, token: packet.token(paths::ASKED_PROGRESS) }
    }
}

impl Mux {
    /// Takes a request. In a batch its answer is gathered.
    pub(super) fn on_request(&mut self, client: Port, packet: Packet, batch: Option<u64>) {
        let id = packet.id().map(|id| Token::from(&id[..])).unwrap_or_default();
        let key = match IdKey::from_token(&id) {
            Ok(key) if id.first() == Some(&b'"') || key.is_integer() => key,
            _ => return self.refuse_request(client, &id, batch, Reason::BadId),
        };
        let asked = Asked::of(&packet);
        let class = asked.class;
        if class == FromClient::Own {
            return self.on_own(client, id, key, &packet, batch);
        }
        let slot = match self.admit(client, &packet, &key, &asked) {
            Ok(slot) => slot,
            Err(reason) => return self.refuse_request(client, &id, batch, reason),
        };
        let is_modern = self.slot(slot).era == Some(Era::Modern);
        let what = match class {
            FromClient::Initialize => return self.on_initialize(client, slot, id, key, &packet, batch),
            FromClient::Discover if is_modern => What::Discover,
            FromClient::Listen if is_modern => What::Listen { packet: packet.clone(), acknowledged: false },
            _ => What::Request,
        };
        let call = Call {
            slot,
            owner: Some(Owner { client, id: id.clone(), key: key.clone() }),
            what,
            stage: Stage::Held,
            method: excerpt(&asked.method).into(),
            since: self.now,
            due: None,
            latest: None,
            token: asked.token.as_deref().map(Token::from),
            wants_log: packet.has(paths::ASKED_LEVEL),
            batch,
        };
        let Some(wire) = self.calls.add(call) else {
            return self.refuse_request(client, &id, batch, Reason::Busy);
        };
        let is_listen = self.calls.find(wire).is_some_and(Call::is_listen);
        if let Some(client) = self.clients.get_mut(client) {
            client.calls.insert(key, wire);
            client.kept += if is_listen { packet.len() } else { 0 };
        }
        if self.slot(slot).is_ready() {
            self.dispatch(wire, class, packet);
        } else {
            self.hold(slot, Some(wire), packet);
        }
    }

    /// Takes a batch: element by element, and only from a client whose revision has them.
    pub(super) fn on_batch(&mut self, client: Port, packet: &Packet) {
        let revision = self.clients.get(client).and_then(|client| client.revision);
        let may = revision.is_some_and(mcp::Revision::may_batch);
        let requests = packet.batch().filter(|element| element.kind() == Kind::Request).count();
        if !may {
            let reason = Reason::NotJsonRpc("a batch, which this session's revision does not have");
            for element in packet.batch().filter(|element| element.kind() == Kind::Request) {
                self.refuse_client(client, element.id().as_deref(), reason);
            }
            if requests == 0 {
                self.refuse_client(client, None, reason);
            }
            return;
        }
        let batch = (requests > 0).then(|| self.batches.open(client, requests));
        for element in packet.batch() {
            match element.kind() {
                Kind::Request => self.on_request(client, element, batch),
                Kind::Notification => self.on_client_notification(client, element),
                Kind::Response => self.on_reply(client, element),
                // There is no array in an array.
                Kind::Batch => {}
            }
        }
    }

    /// Decides whether a request is taken, and which server is to answer it.
    fn admit(
        &mut self,
        client: Port,
        packet: &Packet,
        key: &IdKey,
        asked: &Asked<'_>,
    ) -> Result<SlotId, Reason> {
        let known = self.clients.get(client).ok_or(Reason::ClientGone)?;
        if known.is_visitor {
            return Err(Reason::Full);
        }
        if known.calls.contains_key(key) {
            return Err(Reason::IdInUse);
        }
        if self.closing {
            return Err(Reason::ShuttingDown);
        }
        if known.calls.len() >= limits::MAX_CLIENT_CALLS {
            return Err(Reason::Busy);
        }
        if asked.token.as_ref().is_some_and(|token| token.len() > limits::MAX_ID) {
            return Err(Reason::LongId);
        }
        let class = asked.class;
        if class == FromClient::Listen && known.kept.saturating_add(packet.len()) > limits::MAX_CLIENT_KEPT {
            return Err(Reason::Busy);
        }
        // Who was greeted stays.
        let is_greeted = known.era == Some(Era::Legacy);
        let opens = || Era::of_opening(&asked.method, packet.has(paths::PROTOCOL_VERSION));
        let opening = if is_greeted { None } else { opens() };
        let (slot, era) = self.place(client, opening, class)?;
        let is_there =
            self.clients.get(client).is_some_and(|known| (known.slot, known.era) == (Some(slot), era));
        if !is_there || (era.is_some() && self.slot(slot).era != era) {
            self.move_to(client, slot, era);
        }
        if self.config.private && class == FromClient::Initialize {
            self.keep_hello(client, packet)?;
        }
        if era.is_some() && self.slot(slot).era.is_none() {
            self.on_era(slot, era);
        }
        self.start(slot);
        Ok(slot)
    }

    /// Returns the server that a message of this client would go to; `None` if to none.
    pub fn goes_to(&self, client: Port, packet: &Packet) -> Option<SlotId> {
        if packet.kind() != Kind::Request {
            return self.slot_of(client);
        }
        let method = packet.method().unwrap_or_default();
        let class = mcp::from_client(&method, true);
        if class == FromClient::Own || self.clients.get(client).is_some_and(|client| client.is_visitor) {
            return None;
        }
        let opening = Era::of_opening(&method, packet.has(paths::PROTOCOL_VERSION));
        self.place(client, opening, class).ok().map(|(slot, _)| slot)
    }

    /// Finds the server for a client that opens like this, or goes on, and the era in which it does.
    fn place(
        &self,
        client: Port,
        opening: Option<Era>,
        class: FromClient,
    ) -> Result<(SlotId, Option<Era>), Reason> {
        let known = self.clients.get(client).ok_or(Reason::ClientGone)?;
        // Who was greeted stays; a modern client that begins anew with a handshake was told to.
        let era = match (known.era, opening) {
            (Some(Era::Legacy), _) => Some(Era::Legacy),
            (_, Some(opening)) => Some(opening),
            (era, None) => era,
        };
        // Whoever had not said so far how it uses MCP is placed anew, if only to note that.
        if let Some(slot) = known.slot
            && known.era == era
            && (era.is_none() || self.slot(slot).era == era)
        {
            return Ok((slot, era));
        }
        let slot = match era {
            Some(Era::Modern) if self.not_modern => Err(match class {
                FromClient::Discover => Reason::NoMethod,
                _ => Reason::WrongEra,
            }),
            Some(era) => self.slot_for(era).ok_or(match class {
                FromClient::Discover => Reason::NoMethod,
                _ => Reason::WrongEra,
            }),
            None if self.slot(SlotId::First).phase == Phase::Idle
                && self.slot(SlotId::Second).phase != Phase::Idle =>
            {
                Ok(SlotId::Second)
            }
            None => Ok(SlotId::First),
        }?;
        Ok((slot, era))
    }

    /// Returns the server that serves this era, or may begin to.
    fn slot_for(&self, era: Era) -> Option<SlotId> {
        let allowed = SlotId::ALL.into_iter().filter(|slot| *slot == SlotId::First || !self.config.one_child);
        let mut undecided = allowed.clone().filter(|slot| self.slot(*slot).era.is_none());
        let mut serving = allowed.filter(|slot| self.slot(*slot).era == Some(era));
        serving.next().or_else(|| {
            // Rather one that can be started at once than one that has just failed.
            let is_down = |slot: &SlotId| matches!(self.slot(*slot).phase, Phase::Down { .. });
            undecided.clone().find(|slot| !is_down(slot)).or_else(|| undecided.next())
        })
    }

    fn move_to(&mut self, client: Port, slot: SlotId, era: Option<Era>) {
        for other in SlotId::ALL.into_iter().filter(|other| *other != slot) {
            self.leave(client, other);
        }
        self.slot_mut(slot).users.insert(client);
        if let Some(client) = self.clients.get_mut(client) {
            client.slot = Some(slot);
            client.era = era;
            // The others are greeted only when their handshake is answered.
            client.is_live = era != Some(Era::Legacy);
        }
    }

    /// Keeps a message until its server is ready.
    pub(super) fn hold(&mut self, slot: SlotId, wire: Option<WireId>, packet: Packet) {
        let until = self.now + self.config.hold_timeout;
        let place = self.slot_mut(slot);
        let is_full = place.held.bytes() + packet.len() > limits::MAX_HELD && !place.held.is_empty();
        let refused = match place.phase {
            Phase::Gone(reason) => Some(reason),
            _ if is_full => Some(self.down(slot)),
            _ => None,
        };
        match (refused, wire) {
            (Some(reason), Some(wire)) => self.refuse_call(wire, reason, None),
            (Some(_), None) => {}
            (None, _) => self.slot_mut(slot).held.push(Held { wire, packet, until }),
        }
    }

    /// Says that a server is down, and until when.
    pub(super) fn down(&self, slot: SlotId) -> Reason {
        let wait = match self.slot(slot).phase {
            Phase::Down { until } => until.saturating_since(self.now),
            _ => limits::RETRY_AFTER,
        };
        Reason::Down { retry_after_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }
    }

    /// Sends a request to its server, or answers it without.
    pub(super) fn dispatch(&mut self, wire: WireId, class: FromClient, packet: Packet) {
        let Some(call) = self.calls.find(wire) else { return };
        let is_legacy = self.slot(call.slot).era == Some(Era::Legacy);
        let class = if is_legacy { class } else { FromClient::Forward };
        match class {
            FromClient::SetLevel => self.on_set_level(wire, packet),
            FromClient::Subscribe => self.on_subscribe(wire, packet),
            FromClient::Unsubscribe => self.on_unsubscribe(wire, packet),
            // The last two may be the end of a server that does not know them.
            FromClient::Tasks | FromClient::Discover | FromClient::Listen if !self.config.private => {
                self.refuse_call(wire, Reason::NoMethod, None);
            }
            _ => self.send_call(wire, packet),
        }
    }

    /// Sends a request under its wire id.
    pub(super) fn send_call(&mut self, wire: WireId, packet: Packet) {
        let Some(call) = self.calls.find(wire) else { return };
        let (slot, has_token) = (call.slot, call.token.is_some());
        let timeout = self.config.request_timeout.filter(|_| !call.is_listen());
        let (due, latest) = (timeout.map(|timeout| self.now + timeout), self.now + self.config.request_cap);
        self.calls.update(wire, |call| {
            call.stage = Stage::Sent;
            call.due = due;
            call.latest = Some(latest);
        });
        self.tell_child(slot, packet, edits_up(wire, has_token));
    }
}

/// What is exchanged in a request on its way to a server: the wire id is also the progress token.
pub(super) fn edits_up(wire: WireId, has_token: bool) -> Edits {
    let places: &[Path] = if has_token { &[ID, paths::ASKED_PROGRESS] } else { &[ID] };
    Edits::put(places, &wire.token()[..])
}

/// Returns the first characters of a method.
fn excerpt(method: &str) -> &str {
    if method.len() <= limits::MAX_EXCERPT {
        return method;
    }
    let end = method.char_indices().nth(limits::MAX_EXCERPT).map_or(method.len(), |(end, _)| end);
    method.get(..end).unwrap_or(method)
}
