//! The words of one session: ids 80 to FE.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::tag::{FIRST_SESSION_ID, INLINE_KEY};

/// How many words a session can have.
pub const SLOTS: usize = (INLINE_KEY - FIRST_SESSION_ID) as usize;

/// The words of one connection beside the static ones.
///
/// Nothing on the wire tells a peer of them: both sides have to be set up alike. A word has one id and an id
/// one word. A word that is static may be registered too, but its static id is the one that is sent.
///
/// A word's last use is the latest of its registration, a successful [`id`](Self::id) (so each time it is
/// encoded) and [`touch`](Self::touch). Decoding does not count.
///
/// # Bounds
/// At most [`SLOTS`] words. Their lengths are the owner's affair: no word comes from a peer.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// By id; shorter than [`SLOTS`] as long as the last ids were never taken.
    slots: Vec<Option<Slot>>,
    /// The indices of taken slots, ordered by word.
    by_word: Vec<u8>,
    /// Rises with each use.
    clock: u64,
}

#[derive(Clone, Debug)]
struct Slot {
    word: String,
    used: u64,
}

impl Table {
    /// Makes a table without words.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), by_word: Vec::new(), clock: 0 }
    }

    /// Gives `word` the id, taking both from whatever had them. Returns false, and does nothing, if the id is
    /// not one of 80 to FE.
    pub fn register(&mut self, word: &str, id: u8) -> bool {
        let Some(index) = index(id) else { return false };
        if let Ok(place) = self.place(word) {
            let old = self.by_word[place];
            self.unregister(FIRST_SESSION_ID + old);
        }
        self.unregister(id);
        if self.slots.len() <= index as usize {
            self.slots.resize_with(index as usize + 1, || None);
        }
        let place = self.place(word).unwrap_or_else(|free| free);
        self.by_word.insert(place, index);
        self.clock += 1;
        self.slots[index as usize] = Some(Slot { word: word.to_owned(), used: self.clock });
        true
    }

    /// Gives `word` an id and returns it: the one it has, else the first that is free, else that of the word
    /// which was not used for longest, which is forgotten.
    pub fn register_lru(&mut self, word: &str) -> u8 {
        if let Some(id) = self.id(word) {
            return id;
        }
        if self.len() == SLOTS {
            self.evict();
        }
        let free = (FIRST_SESSION_ID..INLINE_KEY).find(|&id| self.word(id).is_none());
        // One is free, because the table is not full any more.
        let id = free.unwrap_or(FIRST_SESSION_ID);
        self.register(word, id);
        id
    }

    /// Frees an id. Returns whether it was taken.
    pub fn unregister(&mut self, id: u8) -> bool {
        let Some(slot) = index(id).and_then(|index| self.slots.get_mut(index as usize)) else { return false };
        let taken = slot.take().is_some();
        if taken {
            self.by_word.retain(|&index| FIRST_SESSION_ID + index != id);
        }
        taken
    }

    /// Frees the id whose word was not used for longest, and returns it.
    pub fn evict(&mut self) -> Option<u8> {
        let used = |&index: &u8| self.slots[index as usize].as_ref().map(|slot| slot.used);
        let id = FIRST_SESSION_ID + self.by_word.iter().copied().min_by_key(used)?;
        self.unregister(id);
        Some(id)
    }

    /// Forgets all words, then registers these pairs of word and id. Returns false if an id was not one of 80
    /// to FE; the others are registered all the same.
    pub fn init<'w>(&mut self, pairs: impl IntoIterator<Item = (&'w str, u8)>) -> bool {
        self.clear();
        pairs.into_iter().fold(true, |all, (word, id)| self.register(word, id) && all)
    }

    /// Forgets all words.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Returns the id of a word. Counts as a use of it.
    pub fn id(&mut self, word: &str) -> Option<u8> {
        let index = *self.by_word.get(self.place(word).ok()?)?;
        self.touch(FIRST_SESSION_ID + index);
        Some(FIRST_SESSION_ID + index)
    }

    /// Counts a use of an id's word; does nothing if the id has none.
    pub fn touch(&mut self, id: u8) {
        self.clock += 1;
        let slot = index(id).and_then(|index| self.slots.get_mut(index as usize)?.as_mut());
        if let Some(slot) = slot {
            slot.used = self.clock;
        }
    }

    /// Returns the word of an id. Does not count as a use.
    pub fn word(&self, id: u8) -> Option<&str> {
        let slot = self.slots.get(index(id)? as usize)?.as_ref()?;
        Some(&slot.word)
    }

    /// Returns how many words there are.
    pub fn len(&self) -> usize {
        self.by_word.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_word.is_empty()
    }

    /// Where a word stands in the order, or would.
    fn place(&self, word: &str) -> Result<usize, usize> {
        self.by_word.binary_search_by(|&index| {
            self.slots[index as usize].as_ref().map_or("", |slot| slot.word.as_str()).cmp(word)
        })
    }
}

fn index(id: u8) -> Option<u8> {
    (FIRST_SESSION_ID..INLINE_KEY).contains(&id).then(|| id - FIRST_SESSION_ID)
}
