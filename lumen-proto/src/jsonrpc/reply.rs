//! Error answers that are ours, not a server's.

use core::fmt::Write;

use bytes::{Bytes, BytesMut};

use super::text::{Escaped, escape_into};
use crate::Reason;

/// The most bytes of a detail that are quoted.
const MAX_DETAIL: usize = 1024;

/// Makes the error answer for the request with the id token `id` (none: `null`).
///
/// The message is `lumen: `, the reason, and `detail` if there is any; `data.reason` is the reason's stable name, and
/// `data.retryAfterMs` says when to try again if that is known.
/// `id` is JSON text and is not checked.
///
/// # Bounds
/// 1 KiB of `detail`, cut between characters.
pub fn error(id: Option<&[u8]>, reason: &Reason, detail: Option<&str>) -> Bytes {
    let mut out = BytesMut::with_capacity(192);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.unwrap_or(b"null"));
    // Writing to memory does not fail, and neither do the `Display`s of numbers and reasons.
    let _ = write!(out, ",\"error\":{{\"code\":{},\"message\":\"lumen: ", reason.code());
    let _ = write!(Escaped(&mut out), "{reason}");
    if let Some(detail) = detail {
        out.extend_from_slice(b": ");
        // The longest prefix that ends between characters; `str::get` refuses all others.
        let quoted = (0..=MAX_DETAIL.min(detail.len())).rev().find_map(|end| detail.get(..end));
        escape_into(&mut out, quoted.unwrap_or_default());
    }
    out.extend_from_slice(b"\",\"data\":{\"reason\":\"");
    escape_into(&mut out, reason.name());
    out.extend_from_slice(b"\"");
    if let Reason::Down { retry_after_ms } = reason {
        let _ = write!(out, ",\"retryAfterMs\":{retry_after_ms}");
    }
    out.extend_from_slice(b"}}}");
    out.freeze()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_error_is_an_answer_with_the_same_id() {
        let reply = error(Some(br#""a\"b\\""#), &Reason::Duplicate("id"), Some("x\"\\\n\u{1}\u{2028}é"));
        let value: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!(
            value,
            json!({"jsonrpc": "2.0", "id": "a\"b\\", "error": {
                "code": -32600,
                "message": "lumen: member \"id\" occurs twice: x\"\\\n\u{1}\u{2028}é",
                "data": {"reason": "duplicate_member"},
            }})
        );
        assert!(!reply.contains(&b'\n'));
    }

    #[test]
    fn a_server_that_is_down_says_when_to_try_again() {
        let reply = error(Some(b"1"), &Reason::Down { retry_after_ms: 3000 }, None);
        let value: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!(value["error"]["data"], json!({"reason": "down", "retryAfterMs": 3000}));
    }

    #[test]
    fn no_id_is_null_and_no_detail_is_nothing() {
        let expected = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"lumen: a request must not have the id null","data":{"reason":"null_id"}}}"#;
        assert_eq!(&error(None, &Reason::NullId, None)[..], expected);
    }

    #[test]
    fn a_long_detail_is_cut_between_characters() {
        // 1,023 bytes, then a character of three: it does not fit any more.
        let detail = "x".repeat(1023) + "漢漢";
        let reply = error(Some(b"1"), &Reason::ServerGone, Some(&detail));
        let value: Value = serde_json::from_slice(&reply).unwrap();
        let message = value["error"]["message"].as_str().unwrap();
        assert!(message.ends_with('x'));
        assert_eq!(message.bytes().filter(|&byte| byte == b'x').count(), 1023);
    }
}
