//! Ids of requests that went one way and await their answers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::jsonrpc::{IdKey, Kind, Message, batch, find};
use crate::{Reason, limits};

/// Requests in flight in one direction, by id.
///
/// # Bounds
/// [`limits::MAX_OWED`] bytes of ids; about four times that with the map around them.
#[derive(Debug, Default)]
pub(super) struct Ids {
    waiting: BTreeMap<IdKey, Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    spelling: Bytes,
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
}

impl Ids {
    /// Remembers the requests in `message`.
    ///
    /// # Errors
    /// [`Reason::Busy`] when too many are in flight, or what is wrong with an id; nothing is remembered then.
    pub(super) fn try_add(&mut self, message: &Message) -> Result<(), Reason> {
        let mut new = Vec::new();
        let mut bytes = self.bytes;
        for (id, patience) in requests(message) {
            let key = IdKey::from_token(&id)?;
            bytes += id.len();
            new.push((key, id, patience));
        }
        if bytes > limits::MAX_OWED {
            return Err(Reason::Busy);
        }
        self.bytes = bytes;
        for (key, spelling, patience) in new {
            self.waiting.entry(key).or_insert(Waiting { spelling, count: 0, patience }).count += 1;
        }
        Ok(())
    }

    /// Returns whether [`try_add`](Self::try_add) would find room.
    pub(super) fn has_room_for(&self, message: &Message) -> bool {
        self.bytes + request_ids(message).map(|id| id.len()).sum::<usize>() <= limits::MAX_OWED
    }

    /// Returns whether nothing is remembered.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Settles one use of `id`; returns whether it was waited for.
    pub(super) fn settle(&mut self, id: &[u8]) -> bool {
        let Ok(key) = IdKey::from_token(id) else { return false };
        let Some(waiting) = self.waiting.get_mut(&key) else { return false };
        self.bytes = self.bytes.saturating_sub(waiting.spelling.len());
        waiting.count -= 1;
        if waiting.count == 0 {
            self.waiting.remove(&key);
        }
        true
    }

    /// Settles what `message`, an answer or a batch of them, answers. Returns whether any was waited for, or it
    /// answers nothing in particular (a batch of other things, an error without an id).
    pub(super) fn settle_message(&mut self, message: &Message) -> bool {
        if message.kind() != Kind::Batch {
            return match message.id() {
                None | Some(b"null") => true,
                Some(id) => self.settle(id),
            };
        }
        let mut wanted = true;
        for element in batch(message.bytes()).filter(|element| element.kind == Kind::Response) {
            wanted &= element.id.is_none_or(|id| self.settle(id.of(message.bytes())));
        }
        wanted
    }

    /// Forgets what a `notifications/cancelled` names: it need not be answered any more.
    pub(super) fn handle_cancelled(&mut self, message: &Message) {
        if !message.method_is("notifications/cancelled") {
            return;
        }
        let params = message.envelope().params;
        let Some(id) = params.and_then(|params| find(message.bytes(), params, &["requestId"])) else {
            return;
        };
        let Ok(key) = IdKey::from_token(id.of(message.bytes())) else { return };
        if self.waiting.get(&key).is_some_and(|waiting| waiting.patience != Patience::Handshake) {
            self.settle(id.of(message.bytes()));
        }
    }

    /// Forgets everything and returns the ids as spelled, one for each answer that is due.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Bytes> + use<> {
        self.bytes = 0;
        core::mem::take(&mut self.waiting)
            .into_values()
            .flat_map(|waiting| core::iter::repeat_n(waiting.spelling, waiting.count))
    }

    /// Returns how many answers somebody waits for.
    pub(super) fn awaited(&self) -> usize {
        let awaited = self.waiting.values().filter(|waiting| waiting.patience != Patience::Subscription);
        awaited.map(|waiting| waiting.count).sum()
    }

    /// Returns whether somebody waits for an answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.waiting.values().all(|waiting| waiting.patience == Patience::Subscription)
    }
}

/// Returns the ids of the requests in a message, be it one or a batch.
pub(super) fn request_ids(message: &Message) -> impl Iterator<Item = Bytes> {
    requests(message).map(|(id, _)| id)
}

fn requests(message: &Message) -> impl Iterator<Item = (Bytes, Patience)> {
    let whole = (message.kind() == Kind::Request).then(|| {
        let patience = if message.method_is("initialize") {
            Patience::Handshake
        } else if message.method_is("subscriptions/listen") {
            Patience::Subscription
        } else {
            Patience::Ordinary
        };
        (Bytes::copy_from_slice(message.id().unwrap_or_default()), patience)
    });
    let is_batch = message.kind() == Kind::Batch;
    let elements = is_batch.then(|| batch(message.bytes())).into_iter().flatten();
    let elements = elements.filter(|element| element.kind == Kind::Request);
    let elements = elements.map(|element| {
        let id = element.id.map(|id| id.of(message.bytes())).unwrap_or_default();
        (Bytes::copy_from_slice(id), Patience::Ordinary)
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
        assert_eq!(ids.awaited(), 2);
        assert!(ids.settle(b"1"));
        assert_eq!(all(&mut ids), [&b"1"[..]]);
    }

    #[test]
    fn batches_count_by_element() {
        let mut ids = Ids::default();
        ids.try_add(&message(r#"[{"id":1,"method":"a"},{"method":"n"},{"id":2,"method":"b"}]"#)).unwrap();
        assert_eq!(ids.awaited(), 2);
        assert!(ids.settle_message(&message(r#"[{"id":2,"result":1},{"id":1,"result":1}]"#)));
        assert!(ids.is_quiet());
        assert!(!ids.settle_message(&message(r#"[{"id":2,"result":1}]"#)));
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
