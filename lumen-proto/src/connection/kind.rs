//! Which frame type a message travels as.

use crate::frame::Kind;
use crate::jsonrpc::{self, batch};
use crate::message::Packet;

/// Returns the frame type for a checked JSON-RPC text of this kind. A batch is a request if one of its elements is,
/// else what its first element is.
pub fn frame_kind(text: &[u8], kind: jsonrpc::Kind) -> Kind {
    of_shape(kind, || batch(text).map(|element| element.kind))
}

/// Returns the frame type for a message in either encoding.
pub(super) fn packet_kind(packet: &Packet) -> Kind {
    match packet {
        Packet::Text(message) => frame_kind(message.bytes(), message.kind()),
        Packet::Value(_) => of_shape(packet.kind(), || packet.batch().map(|element| element.kind())),
    }
}

fn of_shape<I: Iterator<Item = jsonrpc::Kind>>(kind: jsonrpc::Kind, elements: impl FnOnce() -> I) -> Kind {
    let shape = match kind {
        jsonrpc::Kind::Batch => {
            let mut kinds = elements();
            let first = kinds.next().unwrap_or(jsonrpc::Kind::Notification);
            if kinds.any(|kind| kind == jsonrpc::Kind::Request) { jsonrpc::Kind::Request } else { first }
        }
        kind => kind,
    };
    match shape {
        jsonrpc::Kind::Request | jsonrpc::Kind::Batch => Kind::REQUEST,
        jsonrpc::Kind::Response => Kind::RESPONSE,
        jsonrpc::Kind::Notification => Kind::NOTIFY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::Envelope;

    #[test]
    fn a_message_goes_by_its_shape_and_a_batch_by_its_requests() {
        for (text, kind) in [
            (r#"{"id":1,"method":"m"}"#, Kind::REQUEST),
            (r#"{"id":null,"error":{}}"#, Kind::RESPONSE),
            (r#"{"method":"m"}"#, Kind::NOTIFY),
            (r#"[{"method":"m"},{"id":1,"method":"m"}]"#, Kind::REQUEST),
            (r#"[{"id":1,"result":1},{"method":"m"}]"#, Kind::RESPONSE),
            (r#"[{"method":"m"}]"#, Kind::NOTIFY),
        ] {
            let shape = Envelope::parse(text.as_bytes()).unwrap().kind;
            assert_eq!(frame_kind(text.as_bytes(), shape), kind, "{text}");
        }
    }
}
