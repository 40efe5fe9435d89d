//! One message: its bytes as they came, and where its parts are in them.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Envelope, Kind, Patches, Refused, Span, apply, path};

/// A checked JSON-RPC text. Cloning it copies no bytes.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Bytes,
    envelope: Envelope,
}

impl Message {
    /// Checks `bytes` and keeps them.
    ///
    /// # Errors
    /// As [`Envelope::parse`]; gives the bytes back, to which the ranges in [`Refused`] belong.
    pub fn parse(bytes: Bytes) -> Result<Self, (Refused, Bytes)> {
        match Envelope::parse(&bytes) {
            Ok(envelope) => Ok(Self { bytes, envelope }),
            Err(refused) => Err((refused, bytes)),
        }
    }

    /// Keeps a text that was checked on the way to here.
    pub(crate) const fn checked(bytes: Bytes, envelope: Envelope) -> Self {
        Self { bytes, envelope }
    }

    /// Checks `text` where it is and copies it only if it is good.
    ///
    /// # Errors
    /// As [`Envelope::parse`].
    pub fn copy_from(text: &[u8]) -> Result<Self, Refused> {
        let envelope = Envelope::parse(text)?;
        Ok(Self { bytes: Bytes::copy_from_slice(text), envelope })
    }

    /// Appends the message as one line: patched, raw CR and LF between its tokens turned into spaces, then LF.
    pub fn write_line(&self, patches: &Patches, out: &mut BytesMut) {
        let start = out.len();
        self.write_text(patches, out);
        if self.envelope.has_newline || patches.has_newline() {
            // Valid JSON has no raw CR or LF inside of strings.
            let mut rest = out.get_mut(start..).unwrap_or_default();
            while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
                let (_, found) = rest.split_at_mut(at);
                let Some((byte, after)) = found.split_first_mut() else { break };
                *byte = b' ';
                rest = after;
            }
        }
        out.put_u8(b'\n');
    }

    /// Appends the message as it is, patched.
    pub fn write_text(&self, patches: &Patches, out: &mut BytesMut) {
        apply(&self.bytes, patches, out);
    }

    /// Returns the bytes as they came.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no bytes, which is never so.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns where the parts are.
    pub const fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Returns what kind of message it is.
    pub const fn kind(&self) -> Kind {
        self.envelope.kind
    }

    /// Returns the id token as it was spelled.
    pub fn id(&self) -> Option<&[u8]> {
        self.part(self.envelope.id)
    }

    /// Returns the parameters' text.
    pub fn params(&self) -> Option<&[u8]> {
        self.part(self.envelope.params)
    }

    /// Returns the value at the end of `path`, a key for each level from the root; see [`find`](path::find).
    pub fn find(&self, path: &[&str]) -> Option<Span> {
        let (within, path) = self.envelope.begin(path)?;
        path::find(&self.bytes, within, path)
    }

    /// Returns whether it has this method, however that was spelled.
    #[inline]
    pub fn method_is(&self, method: &str) -> bool {
        self.part(self.envelope.method).is_some_and(|token| path::text_is(token, method))
    }

    fn part(&self, span: Option<Span>) -> Option<&[u8]> {
        span.map(|span| span.of(&self.bytes))
    }
}

/// Where the parts are follows from the bytes.
impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Message {}

#[cfg(test)]
mod tests;
