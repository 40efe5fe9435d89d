//! Answers to requests that came in one array, until all of them are there.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::jsonrpc::Message;
use crate::{Port, limits};

#[derive(Debug)]
struct Batch {
    client: Port,
    left: usize,
    text: Vec<u8>,
}

/// Arrays that are being answered.
///
/// # Bounds
/// [`limits::MAX_QUEUE`] plus one answer for all together, and a few bytes for each: an answer that does not fit goes
/// out at once, with what its own array has, as an array before the rest.
#[derive(Debug, Default)]
pub(super) struct Batches {
    open: BTreeMap<u64, Batch>,
    last: u64,
    /// Bytes of answers in all of them.
    bytes: usize,
}

impl Batches {
    /// Begins one, for so many answers.
    pub(super) fn open(&mut self, client: Port, left: usize) -> u64 {
        self.last += 1;
        self.bytes += 1;
        self.open.insert(self.last, Batch { client, left, text: Vec::from(*b"[") });
        self.last
    }

    /// Adds the answer to one of its requests; `None` if there will be none. Returns what can be sent now.
    pub(super) fn settle(&mut self, batch: u64, answer: Option<&[u8]>) -> Option<(Port, Message)> {
        let open = self.open.get_mut(&batch)?;
        self.bytes -= open.text.len();
        open.left = open.left.saturating_sub(1);
        if let Some(answer) = answer {
            if open.text.len() > 1 {
                open.text.push(b',');
            }
            open.text.extend_from_slice(answer.trim_ascii());
        }
        let is_whole = open.left == 0;
        self.bytes += open.text.len();
        if !is_whole && (answer.is_none() || self.bytes < limits::MAX_QUEUE) {
            return None;
        }
        self.bytes -= open.text.len();
        let client = open.client;
        let mut text = core::mem::replace(&mut open.text, Vec::from(*b"["));
        text.push(b']');
        if is_whole {
            self.open.remove(&batch);
        } else {
            self.bytes += 1;
        }
        // An empty array is none: all its requests were cancelled.
        Message::parse(text.into()).ok().map(|message| (client, message))
    }

    /// Forgets those of a client that is gone.
    pub(super) fn drop_client(&mut self, client: Port) {
        let bytes = &mut self.bytes;
        self.open.retain(|_, batch| {
            let stays = batch.client != client;
            *bytes -= if stays { 0 } else { batch.text.len() };
            stays
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_goes_out_when_its_last_answer_is_there() {
        let mut batches = Batches::default();
        let client = Port::new(4);
        let batch = batches.open(client, 3);
        assert_eq!(batches.settle(batch, Some(br#"{"id":2,"result":1}"#)), None);
        assert_eq!(batches.settle(batch, None), None);
        let (to, message) = batches.settle(batch, Some(b" {\"id\":1,\"result\":1}\n")).unwrap();
        assert_eq!(to, client);
        assert_eq!(&message.bytes()[..], br#"[{"id":2,"result":1},{"id":1,"result":1}]"#);
        assert!(batches.is_empty());
        assert_eq!(batches.settle(batch, Some(b"{}")), None);
    }

    #[test]
    fn an_array_of_which_all_was_cancelled_is_not_answered() {
        let mut batches = Batches::default();
        let batch = batches.open(Port::new(4), 1);
        assert_eq!(batches.settle(batch, None), None);
        assert!(batches.is_empty());
    }

    #[test]
    fn many_arrays_do_not_keep_more_than_one() {
        let mut batches = Batches::default();
        let answer = alloc::format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(limits::MAX_QUEUE / 4));
        let all: Vec<u64> = (0..100).map(|_| batches.open(Port::new(4), 3)).collect();
        let sent =
            all.iter().filter(|batch| batches.settle(**batch, Some(answer.as_bytes())).is_some()).count();
        assert_eq!(sent, 97);
        assert!(batches.bytes <= limits::MAX_QUEUE + answer.len());
        for batch in &all {
            batches.settle(*batch, None);
            let whole = batches.settle(*batch, Some(answer.as_bytes()));
            assert!(whole.is_some_and(|(_, message)| message.len() > answer.len()));
        }
        assert_eq!((batches.bytes, batches.is_empty()), (0, true));
        batches.open(Port::new(4), 1);
        batches.drop_client(Port::new(4));
        assert_eq!(batches.bytes, 0);
    }

    #[test]
    fn large_answers_do_not_pile_up() {
        let mut batches = Batches::default();
        let batch = batches.open(Port::new(4), 2);
        let large = alloc::format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(limits::MAX_QUEUE));
        assert!(batches.settle(batch, Some(large.as_bytes())).is_some());
        let (_, rest) = batches.settle(batch, Some(br#"{"id":2,"result":1}"#)).unwrap();
        assert_eq!(&rest.bytes()[..], br#"[{"id":2,"result":1}]"#);
    }
}
