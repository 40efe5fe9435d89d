//! The fakes against each other: a wire-level client and server agree without any machine between them.

use super::*;
use crate::sim::party::{Deed, Outbox, Party};

use std::time::Duration;

/// Hands bytes to and fro until nobody has anything to say.
fn talk(client: &mut impl Party, server: &mut impl Party) {
    let now = Instant::ZERO;
    let (mut left, mut right) = (Outbox::new(now), Outbox::new(now));
    client.on_open(now, &mut left);
    server.on_open(now, &mut right);
    while !left.deeds.is_empty() || !right.deeds.is_empty() {
        for ((_, _), deed) in std::mem::take(&mut left.deeds) {
            match deed {
                Deed::Write(bytes) => {
                    bytes.chunks(3).for_each(|piece| server.on_data(now, piece, &mut right))
                }
                _ => server.on_eof(now, &mut right),
            }
        }
        for ((_, _), deed) in std::mem::take(&mut right.deeds) {
            match deed {
                Deed::Write(bytes) => bytes.chunks(3).for_each(|piece| client.on_data(now, piece, &mut left)),
                _ => client.on_eof(now, &mut left),
            }
        }
    }
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#;

#[test]
fn a_lumen_client_and_server_switch() {
    let seen = Witness::default();
    let mut client = LumenClient::new().at(0, LIST).at(1, r#"{"jsonrpc":"2.0","method":"x"}"#).close_at(2);
    let got = client.got();
    talk(&mut client, &mut LumenServer::new(&seen));
    let (got, seen) = (got.borrow(), seen.borrow());
    assert!(got.ack.is_some() && got.eof.is_some());
    assert_eq!(got.answers("\"a\"").len(), 1);
    assert!(got.messages.iter().all(|(_, _, framed)| *framed));
    assert_eq!((seen.probes.len(), seen.frames.len(), seen.lines.len(), seen.eofs.len()), (1, 2, 0, 1));
}

#[test]
fn a_json_server_answers_lines_and_behaves_as_told() {
    let seen = Witness::default();
    let init = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"x","capabilities":{"extensions":{"dev.lumen/transport":{}}}}}"#;
    let mut client = JsonClient::new().at(0, "+foreign").at(1, init).at(2, LIST).close_at(3);
    let got = client.got();
    let manners = Manners { strays: 1, echo_offer: true, answer_after: Duration::ZERO, ..Manners::default() };
    talk(&mut client, &mut JsonServer::new(manners, &seen));
    let got = got.borrow();
    assert_eq!(got.answers("null").len(), 1);
    assert!(got.answers("0")[0]["result"]["capabilities"]["extensions"][OFFER].is_object());
    assert_eq!(got.answers("\"a\"").len(), 1);
    assert_eq!(seen.borrow().foreign, [b"+foreign"]);
}
