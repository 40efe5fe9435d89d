//! Writing frames.

#[cfg(feature = "alloc")]
use bytes::BytesMut;

use super::{Flags, Header, Kind, MAX_HEADER_LEN};

/// Appends one whole frame to `out`.
#[cfg(feature = "alloc")]
pub fn encode(kind: Kind, flags: Flags, payload: &[u8], out: &mut BytesMut) {
    let header = Header { len: payload.len() as u64, kind, flags };
    out.reserve(header.encoded_len() + payload.len());
    encode_header(header, out);
    out.extend_from_slice(payload);
}

/// Appends a header to `out`; the caller appends the `header.len` bytes of payload.
#[cfg(feature = "alloc")]
pub fn encode_header(header: Header, out: &mut BytesMut) {
    let mut buf = [0; MAX_HEADER_LEN];
    let len = header.encode(&mut buf);
    out.extend_from_slice(&buf[..len]);
}

/// Writes one whole frame to the front of `out` and returns how many bytes that took, or `None`, with nothing
/// written, if it does not fit.
#[must_use]
pub fn encode_to_slice(kind: Kind, flags: Flags, payload: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut buf = [0; MAX_HEADER_LEN];
    let len = Header { len: payload.len() as u64, kind, flags }.encode(&mut buf);
    let end = len.checked_add(payload.len())?;
    let (head, body) = out.get_mut(..end)?.split_at_mut(len);
    head.copy_from_slice(&buf[..len]);
    body.copy_from_slice(payload);
    Some(end)
}
