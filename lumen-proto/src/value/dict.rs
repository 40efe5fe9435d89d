//! The 128 words that every LUMEN peer knows, and their perfect hash.
//!
//! A word is at most 17 bytes long. Its first and its last eight bytes (four, or two, when it is shorter) and
//! its length tell it from every other byte string of up to 16 bytes, so a look-up is two loads, one
//! multiplication, one probe of a table made at compile time, and two comparisons of integers.

/// The words by id, eight a line.
#[rustfmt::skip]
const WORDS: [&str; 128] = [
    "tool", "arguments", "result", "error", "id", "name", "description", "content",
    "text", "type", "method", "params", "jsonrpc", "data", "code", "message",
    "input", "output", "stream", "uri", "mimeType", "encoding", "language", "title",
    "value", "key", "path", "version", "schema", "default", "required", "properties",
    "resources", "tools", "prompts", "resource", "prompt", "handler", "capabilities", "permissions",
    "scope", "tags", "category", "icon", "metadata", "timestamp", "status", "progress",
    "severity", "details", "cause", "stack", "line", "column", "source", "retry",
    "timeout", "limit", "offset", "count", "total", "page", "cursor", "next",
    "model", "provider", "temperature", "max_tokens", "stop", "frequency_penalty", "presence_penalty", "top_p",
    "logprobs", "user", "system", "assistant", "function", "tool_calls", "finish_reason", "usage",
    "url", "http_method", "headers", "body", "query", "http_status", "cookie", "session",
    "token", "auth", "redirect", "host", "port", "origin", "referrer", "agent",
    "filename", "directory", "extension", "size", "modified", "created", "accessed", "mode",
    "owner", "group", "symlink", "binary", "base64", "hash", "algorithm", "chunk",
    "execute", "read", "write", "delete", "update", "create", "search", "list",
    "get", "set", "watch", "subscribe", "notify", "cancel", "pause", "resume",
];

/// Found by search: with it no two words share one of the [`SLOTS`], which the compiler proves again below.
const MULTIPLIER: u64 = 0xf1fc_feaa_9cc6_de9b;

const SLOT_BITS: u32 = 9;
const SLOTS: usize = 1 << SLOT_BITS;

/// What a byte string is recognised by. Two strings of 2 to 16 bytes are equal exactly if theirs are.
#[derive(Clone, Copy)]
struct Print {
    head: u64,
    tail: u64,
    len: u64,
}

/// What the words are recognised by, by id.
static PRINTS: [Print; WORDS.len()] = {
    // No word has this one, as none of its length has one.
    let mut prints = [Print { head: 0, tail: 0, len: 0 }; WORDS.len()];
    let mut id = 0;
    while id < WORDS.len() {
        match Print::of(WORDS[id].as_bytes()) {
            Some(print) => prints[id] = print,
            None => panic!("a word of a length that none has"),
        }
        id += 1;
    }
    prints
};

/// The id of the one word that may be meant, by slot. An empty slot says 0: comparing with any word will do.
static IDS: [u8; SLOTS] = {
    let mut ids = [0; SLOTS];
    let mut taken = [false; SLOTS];
    let mut id = 0u8;
    while (id as usize) < WORDS.len() {
        let slot = PRINTS[id as usize].slot();
        assert!(!taken[slot], "two words in one slot");
        taken[slot] = true;
        ids[slot] = id;
        id += 1;
    }
    ids
};

impl Print {
    /// Returns what `bytes` are recognised by, or `None` if no word has their length.
    #[inline]
    const fn of(bytes: &[u8]) -> Option<Self> {
        let len = bytes.len() as u64;
        let (head, tail) = match bytes.len() {
            8..=17 => match (bytes.first_chunk(), bytes.last_chunk()) {
                (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
                _ => return None,
            },
            4..=7 => match (bytes.first_chunk(), bytes.last_chunk()) {
                (Some(head), Some(tail)) => {
                    (u32::from_le_bytes(*head) as u64, u32::from_le_bytes(*tail) as u64)
                }
                _ => return None,
            },
            2..=3 => match (bytes.first_chunk(), bytes.last_chunk()) {
                (Some(head), Some(tail)) => {
                    (u16::from_le_bytes(*head) as u64, u16::from_le_bytes(*tail) as u64)
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Self { head, tail, len })
    }

    #[inline]
    const fn slot(self) -> usize {
        let mixed = self.head.wrapping_add(self.tail.rotate_left(29)) ^ self.len;
        (mixed.wrapping_mul(MULTIPLIER) >> (u64::BITS - SLOT_BITS)) as usize
    }
}

/// Returns the id of a static word.
#[inline]
pub fn static_id(word: &[u8]) -> Option<u8> {
    let print = Print::of(word)?;
    let id = IDS[print.slot() & (SLOTS - 1)];
    let found = PRINTS[id as usize & (WORDS.len() - 1)];
    let same = print.head == found.head && print.tail == found.tail && print.len == found.len;
    // The longest has one byte that its print does not hold.
    (same && (print.len < 17 || word == b"frequency_penalty")).then_some(id)
}

/// Returns the static word of an id, or `None` above 7F.
#[inline]
pub fn static_word(id: u8) -> Option<&'static str> {
    WORDS.get(id as usize).copied()
}

/// A static word as JSON writes it as a key, with its quotes and a colon: none has anything to escape. As a string it is
/// the same without the last byte.
#[derive(Clone, Copy)]
pub(super) struct Quoted {
    /// The text, and bytes of no meaning: copying so many is quicker than counting them.
    pub(super) padded: [u8; QUOTED],
    /// How long the text is.
    pub(super) len: u8,
}

/// Room for the longest word, its quotes and a colon.
const QUOTED: usize = 24;

static QUOTED_WORDS: [Quoted; WORDS.len()] = {
    let mut all = [Quoted { padded: [0; QUOTED], len: 0 }; WORDS.len()];
    let mut id = 0;
    while id < WORDS.len() {
        let word = WORDS[id].as_bytes();
        let padded = &mut all[id].padded;
        padded[0] = b'"';
        let mut at = 0;
        while at < word.len() {
            assert!(word[at] >= b' ' && word[at] != b'"' && word[at] != b'\\', "a word to be escaped");
            padded[1 + at] = word[at];
            at += 1;
        }
        padded[1 + at] = b'"';
        padded[2 + at] = b':';
        #[expect(clippy::cast_possible_truncation, reason = "no more than 17")]
        {
            all[id].len = word.len() as u8 + 3;
        }
        id += 1;
    }
    all
};

/// Returns the static word of an id as JSON writes it, or `None` above 7F.
#[inline]
pub(super) fn quoted_word(id: u8) -> Option<&'static Quoted> {
    QUOTED_WORDS.get(id as usize)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn by_search(word: &[u8]) -> Option<u8> {
        (0..128).find(|&id| static_word(id).unwrap().as_bytes() == word)
    }

    #[test]
    fn words_and_ids_agree() {
        for id in 0..128 {
            let word = static_word(id).unwrap();
            assert_eq!(static_id(word.as_bytes()), Some(id));
            let quoted = quoted_word(id).unwrap();
            assert_eq!(quoted.padded[..quoted.len.into()], *std::format!("\"{word}\":").as_bytes());
        }
        assert_eq!([0x00, 0x0c, 0x20, 0x4e, 0x55, 0x7f].map(static_word), {
            ["tool", "jsonrpc", "resources", "finish_reason", "http_status", "resume"].map(Some)
        });
        assert!((128..=255).all(|id| static_word(id).is_none() && quoted_word(id).is_none()));
    }

    #[test]
    fn every_byte_of_a_word_counts() {
        for id in 0..128 {
            let word = static_word(id).unwrap().as_bytes();
            for at in 0..word.len() {
                for bit in 0..8 {
                    let mut other = word.to_vec();
                    other[at] ^= 1 << bit;
                    assert_eq!(static_id(&other), by_search(&other));
                }
                assert_eq!(static_id(&word[..at]), by_search(&word[..at]));
                assert_eq!(static_id(&word[at..]), (at == 0).then_some(id).or(by_search(&word[at..])));
            }
            let mut longer = word.to_vec();
            longer.push(0);
            assert_eq!(static_id(&longer), None);
        }
    }

    #[test]
    fn ends_that_agree_are_not_enough() {
        // Both halves of one word with the length of another, and what lies between the halves.
        assert_eq!(static_id(b"frequencX_penalty"), None);
        assert_eq!(static_id(b"frequency_penalty"), Some(0x45));
        assert_eq!(static_id(b"tags"), Some(0x29));
        assert_eq!(static_id(b"tagags"), None);
        assert_eq!(static_id(b""), None);
        assert_eq!(static_id(b"\0"), None);
        assert_eq!(static_id(&[0; 17]), None);
    }

    /// Enough strings that agree with a word in all but two bytes to meet many that share its slot.
    #[test]
    fn strings_in_the_slot_of_a_word_are_told_from_it() {
        let mut met = 0;
        for id in 0..128 {
            let word = static_word(id).unwrap().as_bytes();
            for (one, two) in [(0, 1), (word.len() - 1, word.len() - 2)] {
                for noise in 0..4096_u16 {
                    let mut other = word.to_vec();
                    other[one] = (noise & 0xff) as u8;
                    other[two] ^= (noise >> 8) as u8;
                    met += usize::from(IDS[Print::of(&other).unwrap().slot()] == id);
                    let found = static_id(&other).map(|id| static_word(id).unwrap().as_bytes());
                    assert!(found.is_none_or(|found| found == other), "{other:?}");
                }
            }
        }
        assert!(met > 1000, "{met}");
    }

    proptest! {
        #[test]
        fn finds_what_a_search_finds(word: Vec<u8>) {
            prop_assert_eq!(static_id(&word), by_search(&word));
        }
    }
}
