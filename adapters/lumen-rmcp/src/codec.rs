//! rmcp's typed messages to text and back.

use lumen_proto::jsonrpc::{Kind, Message};
use rmcp::model::{ErrorData, JsonRpcError, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};

use crate::Error;

/// What became of a message that was received.
#[derive(Debug)]
pub(crate) enum Decoded<R: ServiceRole> {
    /// It is for rmcp.
    Message(RxJsonRpcMessage<R>),
    /// rmcp has no such message, and who sent it is to be told so.
    Refused(TxJsonRpcMessage<R>),
    /// rmcp has no such message, and nobody waits for an answer.
    Ignored,
}

/// Writes a message as text.
///
/// # Errors
/// Something in it is no JSON, or it is no message by our rules.
pub(crate) fn encode<R: ServiceRole>(message: &TxJsonRpcMessage<R>) -> Result<Message, Error> {
    let text = serde_json::to_vec(message)?;
    Message::parse(text.into()).map_err(|(refused, _)| refused.into())
}

/// Reads a message. One that rmcp has no type for is settled here, so that nobody waits for ever.
pub(crate) fn decode<R: ServiceRole>(message: &Message) -> Decoded<R> {
    let error = match serde_json::from_slice(message.bytes()) {
        Ok(message) => return Decoded::Message(message),
        Err(error) => error,
    };
    let id = message.id().and_then(|id| serde_json::from_slice::<RequestId>(id).ok());
    let refusal = |words: &str| ErrorData::invalid_request(format!("{words}: {error}"), None);
    match message.kind() {
        Kind::Notification => Decoded::Ignored,
        // It has an answer, if not one to be understood.
        Kind::Response => match id {
            Some(_) => Decoded::Message(JsonRpcMessage::Error(JsonRpcError::new(
                id,
                ErrorData::internal_error(format!("the answer cannot be read: {error}"), None),
            ))),
            None => Decoded::Ignored,
        },
        Kind::Request => Decoded::Refused(JsonRpcMessage::error(refusal("the request cannot be read"), id)),
        Kind::Batch => Decoded::Refused(JsonRpcMessage::error(refusal("there are no batches here"), None)),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::{RoleClient, RoleServer};

    use super::*;

    fn message(text: &str) -> Message {
        Message::copy_from(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_rmcp_cannot_read_is_answered_where_somebody_waits() {
        let request = message(r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#);
        let Decoded::Refused(JsonRpcMessage::Error(error)) = decode::<RoleServer>(&request) else { panic!() };
        assert_eq!(error.id, Some(RequestId::String("a".into())));
        let batch = message(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
        let Decoded::Refused(JsonRpcMessage::Error(error)) = decode::<RoleServer>(&batch) else { panic!() };
        assert_eq!(error.id, None);
        let news = message(r#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#);
        assert!(matches!(decode::<RoleServer>(&news), Decoded::Ignored));
        let answer = message(r#"{"jsonrpc":"2.0","id":7,"error":{"code":"no number"}}"#);
        let Decoded::Message(JsonRpcMessage::Error(error)) = decode::<RoleClient>(&answer) else { panic!() };
        assert_eq!(error.id, Some(RequestId::Number(7)));
    }

    #[test]
    fn what_is_sent_is_what_rmcp_writes() {
        let error = ErrorData::invalid_request("no", None);
        let message: TxJsonRpcMessage<RoleServer> = JsonRpcMessage::error(error, Some(RequestId::Number(3)));
        let text = encode::<RoleServer>(&message).unwrap();
        assert_eq!(text.bytes(), &serde_json::to_vec(&message).unwrap());
        assert_eq!(text.id(), Some(&b"3"[..]));
    }
}
