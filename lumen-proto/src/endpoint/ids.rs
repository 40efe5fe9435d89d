//! Ids of requests that went one way and await their answers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::jsonrpc::{IdKey, Kind, Message, Token, batch, find, text_is};
use crate::{Reason, limits};

/// Requests in flight in one direction, by id.
///
/// # Bounds
/// [`limits::MAX_OWED`] bytes: those of the ids as spelled, and [`COST`] for each.
#[derive(Debug, Default)]
pub(super) struct Ids {
    waiting: BTreeMap<IdKey, Waiting>,
    bytes: usize,
    /// How many answers somebody waits for.
    awaited: usize,
}

/// What the map around an id takes, and the error that may have to answer it.
const COST: usize = 64;

#[derive(Debug)]
struct Waiting {
    spelling: Token,
    /// More than one if the same id was used again meanwhile: each use is answered.
    count: usize,
    patience: Patience,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Ordinary,
    /// Must not be cancelled.
    Handshake,
    /// Is answered only when it ends, so nobody waits for the answer.
    Subscription,
    /// Whoever asked is gone: the answer, if it still comes, is not taken for one to somebody else.
    Void,
}

impl Patience {
    const fn is_awaited(self) -> bool {
        matches!(self, Self::Ordinary | Self::Handshake)
    }
}

impl Ids {
    /// Remembers the requests in `message`.
    ///
    /// # Errors
    /// [`Reason::Busy`] when too many are in flight, or what is wrong with an id; nothing is remembered then.
    pub(super) fn try_add(&mut self, message: &Message) -> Result<(), Reason> {
        // Nearly all are of one request, for which nothing has to be gathered.
        if message.kind() != Kind::Batch {
            return requests(message).try_for_each(|(id, patience)| {
                let key = self.check(&id)?;
                self.room_for(id.len() + COST)?;
                self.add(key, id, patience);
                Ok(())
            });
        }
        let mut new = Vec::new();
        let mut bytes = 0;
        for (id, patience) in requests(message) {
            bytes += id.len() + COST;
            new.push((self.check(&id)?, id, patience));
        }
        self.room_for(bytes)?;
        for (key, spelling, patience) in new {
            self.add(key, spelling, patience);
        }
        Ok(())
    }

    fn check(&self, id: &[u8]) -> Result<IdKey, Reason> {
        let key = IdKey::from_token(id)?;
        let is_void = self.waiting.get(&key).is_some_and(|waiting| waiting.patience == Patience::Void);
        if is_void { Err(Reason::IdInUse) } else { Ok(key) }
    }

    const fn room_for(&self, more: usize) -> Result<(), Reason> {
        if self.bytes + more > limits::MAX_OWED { Err(Reason::Busy) } else { Ok(()) }
    }

    fn add(&mut self, key: IdKey, spelling: Token, patience: Patience) {
        let waiting = self.waiting.entry(key).or_insert(Waiting { spelling, count: 0, patience });
        waiting.count += 1;
        self.bytes += waiting.spelling.len() + COST;
        self.awaited += usize::from(waiting.patience.is_awaited());
    }

    /// Returns whether [`try_add`](Self::try_add) would find room.
    pub(super) fn has_room_for(&self, message: &Message) -> bool {
        self.bytes + request_ids(message).map(|id| id.len() + COST).sum::<usize>() <= limits::MAX_OWED
    }

    /// Returns whether nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Settles one use of `id`; returns whether it was waited for.
    pub(super) fn settle(&mut self, id: &[u8]) -> bool {
        let Ok(key) = IdKey::from_token(id) else { return false };
        let Some(waiting) = self.waiting.get_mut(&key) else { return false };
        self.bytes -= waiting.spelling.len() + COST;
        self.awaited -= usize::from(waiting.patience.is_awaited());
        waiting.count -= 1;
        let was_awaited = waiting.patience != Patience::Void;
        if waiting.count == 0 {
            self.waiting.remove(&key);
        }
        was_awaited
    }

    /// Takes that all who asked are gone, and returns their ids as spelled. Until a late answer has come to it, an id is
    /// not taken again.
    pub(super) fn void(&mut self) -> Vec<Bytes> {
        let live = self.waiting.values_mut().filter(|waiting| waiting.patience != Patience::Void);
        let void = live.map(|waiting| {
            waiting.patience = Patience::Void;
            waiting.spelling.clone().into()
        });
        self.awaited = 0;
        void.collect()
    }

    /// Forgets all but what is void.
    pub(super) fn forget(&mut self) {
        self.waiting.retain(|_, waiting| waiting.patience == Patience::Void);
        self.bytes =
            self.waiting.values().map(|waiting| (waiting.spelling.len() + COST) * waiting.count).sum();
        self.awaited = 0;
    }

    /// Settles what `message`, an answer or a batch, answers. Returns what of it may be passed on: of a batch
    /// without the answers that nobody waits for. Tells `unasked` their ids.
    pub(super) fn settle_message(
        &mut self,
        message: Message,
        mut unasked: impl FnMut(Bytes),
    ) -> Option<Message> {
        let text = message.bytes();
        let mut answers = |id: Option<&[u8]>| match id {
            // An error without an id answers nothing in particular.
            None | Some(b"null") => true,
            Some(id) => {
                self.settle(id) || {
                    unasked(Bytes::copy_from_slice(id));
                    false
                }
            }
        };
        match message.kind() {
            Kind::Request | Kind::Notification => return Some(message),
            Kind::Response => return answers(message.id()).then_some(message),
            Kind::Batch => {}
        }
        let mut rest = Vec::from(*b"[");
        let mut is_whole = true;
        for element in batch(text) {
            if element.kind != Kind::Response || answers(element.id.map(|id| id.of(text))) {
                if rest.len() > 1 {
                    rest.push(b',');
                }
                rest.extend_from_slice(element.body.of(text));
            } else {
                is_whole = false;
            }
        }
        if is_whole {
            return Some(message);
        }
        rest.push(b']');
        // Of an empty array it makes none.
        Message::parse(rest.into()).ok()
    }

    /// Forgets what a `notifications/cancelled`, also in a batch, names: it need not be answered any more.
    pub(super) fn handle_cancelled(&mut self, message: &Message) {
        let text = message.bytes();
        let whole = core::iter::once(*message.envelope());
        for envelope in whole.chain(batch(text)).filter(|one| one.kind == Kind::Notification) {
            if envelope.method.is_none_or(|method| !text_is(method.of(text), "notifications/cancelled")) {
                continue;
            }
            let Some(id) = envelope.params.and_then(|params| find(text, params, &["requestId"])) else {
                continue;
            };
            let id = id.of(text);
            let Ok(key) = IdKey::from_token(id) else { continue };
            if self.waiting.get(&key).is_some_and(|waiting| waiting.patience != Patience::Handshake) {
                self.settle(id);
            }
        }
    }

    /// Forgets everything and returns the ids as spelled, one for each answer that is due.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        self.bytes = 0;
        self.awaited = 0;
        core::mem::take(&mut self.waiting)
            .into_values()
            .filter(|waiting| waiting.patience != Patience::Void)
            .flat_map(|waiting| core::iter::repeat_n(Bytes::from(waiting.spelling), waiting.count))
    }

    /// Returns how many answers somebody waits for.
    pub(super) const fn awaited(&self) -> usize {
        self.awaited
    }

    /// Returns whether nobody waits for an answer.
    pub(super) const fn is_quiet(&self) -> bool {
        self.awaited == 0
    }
}

/// Returns the ids of the requests in a message, be it one or a batch.
pub(super) fn request_ids(message: &Message) -> impl Iterator<Item = Bytes> {
    requests(message).map(|(id, _)| id.into())
}

/// Returns the ids of the answers in a message, be it one or a batch.
pub(super) fn response_ids(message: &Message) -> impl Iterator<Item = &[u8]> {
    let text = message.bytes();
    let whole = core::iter::once(*message.envelope());
    let answers = whole.chain(batch(text)).filter(|one| one.kind == Kind::Response);
    answers.filter_map(|one| one.id).map(|id| id.of(text)).filter(|id| *id != b"null")
}

fn requests(message: &Message) -> impl Iterator<Item = (Token, Patience)> {
    let whole = (message.kind() == Kind::Request).then(|| {
        let patience = if message.method_is("initialize") {
            Patience::Handshake
        } else if message.method_is("subscriptions/listen") {
            Patience::Subscription
        } else {
            Patience::Ordinary
        };
        (Token::from(message.id().unwrap_or_default()), patience)
    });
    let is_batch = message.kind() == Kind::Batch;
    let elements = is_batch.then(|| batch(message.bytes())).into_iter().flatten();
    let elements = elements.filter(|element| element.kind == Kind::Request);
    let elements = elements.map(|element| {
        let id = element.id.map(|id| id.of(message.bytes())).unwrap_or_default();
        (Token::from(id), Patience::Ordinary)
    });
    whole.into_iter().chain(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::copy_from(text.as_bytes()).unwrap()
    }

    fn all(ids: &mut Ids) -> Vec<Bytes> {
        ids.take_all().collect()
    }

    #[test]
    fn ids_are_equal_by_value_and_come_back_as_spelled() {
        let mut ids = Ids::default();
        for text in [
            r#"{"id":1,"method":"a"}"#,
            r#"{"id":"1","method":"a"}"#,
            r#"{"id":"\u0061","method":"a"}"#,
            r#"{"id":12345678901234567890,"method":"a"}"#,
        ] {
            ids.try_add(&message(text)).unwrap();
        }
        assert!(ids.settle(b"\"a\"") && !ids.settle(b"\"a\""));
        assert!(ids.settle(b"1.0"));
        assert_eq!(all(&mut ids), [&b"12345678901234567890"[..], b"\"1\""]);
        assert!(ids.is_quiet() && ids.bytes == 0);
    }

    #[test]
    fn an_id_used_twice_is_answered_twice() {
        let mut ids = Ids::default();
        let request = message(r#"{"id":1,"method":"a"}"#);
        ids.try_add(&request).unwrap();
        ids.try_add(&request).unwrap();
        ids.try_add(&message(r#"{"id":1.000,"method":"a"}"#)).unwrap();
        assert_eq!(ids.awaited(), 3);
        assert!(ids.settle(b"1") && ids.settle(b"1"));
        assert_eq!(ids.awaited(), 1);
        assert!(ids.settle(b"1") && ids.bytes == 0, "no room is lost to another spelling");
        ids.try_add(&request).unwrap();
        assert_eq!(all(&mut ids), [&b"1"[..]]);
    }

    #[test]
    fn batches_count_by_element() {
        let mut ids = Ids::default();
        ids.try_add(&message(r#"[{"id":1,"method":"a"},{"method":"n"},{"id":2,"method":"b"}]"#)).unwrap();
        assert_eq!(ids.awaited(), 2);
        let both = message(r#"[{"id":2,"result":1},{"id":1,"result":1}]"#);
        assert_eq!(ids.settle_message(both.clone(), |_| panic!()), Some(both.clone()));
        assert!(ids.is_quiet());
        let mut unasked = Vec::new();
        assert_eq!(ids.settle_message(both, |id| unasked.push(id)), None);
        assert_eq!(unasked, [&b"2"[..], b"1"]);
    }

    #[test]
    fn a_cancel_ends_the_wait_but_not_of_a_handshake_or_a_stranger() {
        let mut ids = Ids::default();
        ids.try_add(&message(r#"{"id":0,"method":"initialize"}"#)).unwrap();
        ids.try_add(&message(r#"{"id":1,"method":"a"}"#)).unwrap();
        for id in ["0", "1", "2", "{}"] {
            let text =
                alloc::format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
            ids.handle_cancelled(&message(&text));
        }
        assert_eq!(all(&mut ids), [&b"0"[..]]);
    }

    #[test]
    fn nobody_waits_for_the_end_of_a_subscription_but_it_is_answered() {
        let mut ids = Ids::default();
        ids.try_add(&message(r#"{"id":5,"method":"subscriptions/listen"}"#)).unwrap();
        assert!(ids.is_quiet());
        assert_eq!(all(&mut ids), [&b"5"[..]]);
    }

    #[test]
    fn an_answer_to_whom_is_gone_is_none_and_frees_the_id() {
        let mut ids = Ids::default();
        let request = message(r#"{"id":1,"method":"a"}"#);
        ids.try_add(&request).unwrap();
        ids.try_add(&request).unwrap();
        ids.try_add(&message(r#"{"id":2,"method":"a"}"#)).unwrap();
        assert_eq!(ids.void(), [&b"1"[..], b"2"]);
        assert!(ids.is_quiet() && ids.void().is_empty());
        assert_eq!(ids.try_add(&request), Err(Reason::IdInUse));
        assert!(!ids.settle(b"2") && !ids.settle(b"1"));
        assert_eq!(ids.try_add(&request), Err(Reason::IdInUse));
        assert!(!ids.settle(b"1"));
        ids.try_add(&request).unwrap();
        ids.void();
        ids.try_add(&message(r#"{"id":3,"method":"a"}"#)).unwrap();
        ids.forget();
        assert!(!ids.settle(b"3") && !ids.is_empty() && all(&mut ids).is_empty());
        assert_eq!(ids.bytes, 0);
    }

    #[test]
    fn too_many_are_refused_and_room_comes_back() {
        let mut ids = Ids::default();
        let long = "x".repeat(1000);
        let text = |n: usize| message(&alloc::format!(r#"{{"id":"{long}{n}","method":"a"}}"#));
        let mut n = 0;
        while ids.try_add(&text(n)).is_ok() {
            n += 1;
        }
        assert_eq!(ids.try_add(&text(n)), Err(Reason::Busy));
        assert!(!ids.has_room_for(&text(n)));
        assert!(ids.settle(alloc::format!("\"{long}0\"").as_bytes()));
        assert!(ids.has_room_for(&text(0)));
        ids.try_add(&text(0)).unwrap();
    }
}
