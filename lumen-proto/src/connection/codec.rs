//! Payloads of compressed frames: to the bytes of values and back, in memory that is used again.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::Reason;
use crate::value::transcode::Transcoder;
use crate::value::{Invalid, Problem, Profile};

/// The most memory kept between messages. More, for a larger message, is given back.
const MAX_KEPT: usize = 256 * 1024;

/// Both directions of one stream.
///
/// # Bounds
/// [`MAX_KEPT`] between messages; while one is encoded, four and a half times its length.
#[derive(Debug, Default)]
pub(super) struct Codec {
    transcoder: Transcoder,
    scratch: Vec<u8>,
}

impl Codec {
    /// Gives the value that `text` stands for to `then`. `None` if this receiver would not get the same document
    /// out of it, or if it is no shorter than the text: then the message goes plain.
    pub(super) fn encode<T>(
        &mut self,
        text: &[u8],
        profile: &Profile,
        then: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        self.scratch.clear();
        let needs = self.transcoder.encode(text, &mut self.scratch);
        let pays = needs.is_ok_and(|needs| profile.takes(&needs)) && self.scratch.len() < text.len();
        let result = pays.then(|| then(&self.scratch));
        self.release();
        result
    }

    /// Returns the text that a value stands for.
    ///
    /// # Errors
    /// The bytes are no value, or the text is longer than `max`.
    pub(super) fn decode(&mut self, value: &[u8], max: u64) -> Result<Bytes, Reason> {
        self.scratch.clear();
        let most = usize::try_from(max).unwrap_or(usize::MAX);
        let result = match self.transcoder.decode_within(value, None, most, &mut self.scratch) {
            // What would be given back anyway is handed over instead.
            Ok(_) if self.scratch.len() > MAX_KEPT => Ok(Bytes::from(core::mem::take(&mut self.scratch))),
            Ok(_) => Ok(Bytes::copy_from_slice(&self.scratch)),
            // How long the text would have been is not known, only that it is longer.
            Err(Invalid { problem: Problem::TooLong, .. }) => Err(Reason::TooLong { len: max + 1, max }),
            Err(Invalid { offset, .. }) => Err(Reason::NotValue { at: offset }),
        };
        self.release();
        result
    }

    fn release(&mut self) {
        if self.scratch.capacity() > MAX_KEPT {
            self.scratch = Vec::new();
        }
    }
}
