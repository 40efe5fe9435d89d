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

#[cfg(test)]
mod tests {
    use std::format;

    use super::*;

    fn full() -> Table {
        let mut table = Table::new();
        for id in FIRST_SESSION_ID..INLINE_KEY {
            assert!(table.register(&format!("word{id}"), id));
        }
        table
    }

    /// Each word finds its id and each id its word.
    fn check(table: &Table) {
        let mut table = table.clone();
        let words: Vec<_> = (0..=u8::MAX).filter_map(|id| Some((table.word(id)?.to_owned(), id))).collect();
        assert_eq!(words.len(), table.len());
        assert_eq!(table.is_empty(), words.is_empty());
        for (word, id) in words {
            assert_eq!(table.id(&word), Some(id), "{word}");
        }
    }

    #[test]
    fn registers_between_80_and_fe_only() {
        let mut table = Table::new();
        for id in (0..FIRST_SESSION_ID).chain([INLINE_KEY]) {
            assert!(!table.register("foo", id));
            assert!(!table.unregister(id));
            assert_eq!(table.word(id), None);
            table.touch(id);
        }
        assert!(table.is_empty());
        assert!(table.register("foo", 0xfe) && table.register("bar", 0x80));
        assert_eq!((table.id("foo"), table.id("bar"), table.id("baz")), (Some(0xfe), Some(0x80), None));
        assert_eq!((table.word(0xfe), table.word(0x80), table.word(0x81)), (Some("foo"), Some("bar"), None));
        check(&table);
        check(&full());
        assert_eq!(full().len(), 127);
    }

    #[test]
    fn a_word_has_one_id_and_an_id_one_word() {
        let mut table = Table::new();
        table.register("foo", 0x81);
        table.register("bar", 0x81);
        assert_eq!((table.id("foo"), table.word(0x81), table.len()), (None, Some("bar"), 1));
        table.register("bar", 0x90);
        assert_eq!((table.id("bar"), table.word(0x81), table.len()), (Some(0x90), None, 1));
        table.register("bar", 0x90);
        check(&table);
        assert!(table.unregister(0x90) && !table.unregister(0x90));
        assert!(table.is_empty() && table.id("bar").is_none());
    }

    #[test]
    fn init_forgets_what_was() {
        let mut table = full();
        assert!(table.init([("a", 0x85), ("b", 0x80)]));
        assert_eq!((table.len(), table.id("a"), table.id("word129")), (2, Some(0x85), None));
        assert!(!table.init([("c", 0x7f), ("d", 0x80)]));
        assert_eq!((table.len(), table.id("d")), (1, Some(0x80)));
        table.clear();
        assert!(table.is_empty() && table.word(0x80).is_none());
        check(&table);
    }

    #[test]
    fn a_new_word_takes_the_first_free_id_and_then_the_least_used() {
        let mut table = Table::new();
        assert_eq!(
            (table.register_lru("a"), table.register_lru("b"), table.register_lru("a")),
            (0x80, 0x81, 0x80)
        );
        table.unregister(0x80);
        assert_eq!(table.register_lru("c"), 0x80);

        let mut table = full();
        // Looking a word up by itself is a use, and so is a touch; looking an id up is none.
        assert_eq!(table.id("word128"), Some(0x80));
        table.touch(0x81);
        assert_eq!(table.word(0x82), Some("word130"));
        assert_eq!(table.register_lru("new"), 0x82);
        assert_eq!(table.register_lru("word131"), 0x83);
        assert_eq!(table.register_lru("newer"), 0x84);
        assert_eq!((table.len(), table.id("word130"), table.id("word132")), (127, None, None));
        check(&table);
    }

    #[test]
    fn evicts_the_least_used() {
        let mut table = full();
        assert_eq!(table.evict(), Some(0x80));
        assert_eq!((table.len(), table.word(0x80)), (126, None));
        assert_eq!(Table::new().evict(), None);
    }
}
