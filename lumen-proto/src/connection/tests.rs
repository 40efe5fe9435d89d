//! Connections by hand, byte for byte.

mod handshake;
mod packets;
mod reading;
mod writing;

use core::time::Duration;
use std::format;
use std::string::String;
use std::vec::Vec;

use bytes::BytesMut;

use super::*;
use crate::frame::{self, Flags, Kind};
use crate::jsonrpc::Message;
use crate::message::{Edits, Packet};
use crate::negotiate::Mode;
use crate::negotiate::hello::OPENING_PROBE;
use crate::value::transcode::Transcoder;
use crate::{Instant, Reason, Transmit, limits};

const ACK: &[u8] = b"\x12\x10\x00{\"v\":1,\"caps\":[]}\n";
const OUR_ACK: &[u8] = b"\x27\x10\x00{\"v\":1,\"caps\":[\"compression\",\"exact\"]}\n";
/// [`PONG`] as a compressed frame.
const PONG_VALUE: &[u8] = b"\x0e\x02\x01\xe7\x03\x0c\xe5\x032.0\x04\xe3\x02\x02\xe7\x00";
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const INIT: &str = r#"{"id":0,"method":"initialize","params":{"capabilities":{}}}"#;

fn connection(role: Role) -> Connection {
    let mut connection = Connection::new(Config::new(role));
    connection.handle_opened(Instant::ZERO);
    connection
}

fn client(mode: Mode) -> Connection {
    connection(Role::Client { mode, probe_timeout: limits::PROBE_TIMEOUT })
}

fn message(text: &str) -> Packet {
    Message::copy_from(text.as_bytes()).unwrap().into()
}

fn framed(kind: Kind, text: &str) -> Vec<u8> {
    let mut out = BytesMut::new();
    frame::encode(kind, Flags::NONE, text.as_bytes(), &mut out);
    out.to_vec()
}

fn sent(connection: &mut Connection) -> Vec<u8> {
    let mut out = BytesMut::new();
    while connection.poll_transmit(&mut out) == Transmit::More {}
    out.to_vec()
}

fn events(connection: &mut Connection) -> Vec<Event> {
    core::iter::from_fn(|| connection.poll_event()).collect()
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap()
}

fn frame_into(bytes: &mut Vec<u8>, kind: Kind, flags: u8, text: &str) {
    let mut out = BytesMut::new();
    frame::encode(kind, Flags(flags), text.as_bytes(), &mut out);
    bytes.extend_from_slice(&out);
}

/// A message with so much more in it that it is worth compressing.
fn long(text: &str) -> String {
    format!(r#"{{"more":"{}",{}"#, "m".repeat(limits::MIN_COMPRESSED), text.strip_prefix('{').unwrap())
}

/// The value that `text` stands for.
fn value_of(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Transcoder::new().encode(text.as_bytes(), &mut out).unwrap();
    out
}

fn frame_bytes_into(bytes: &mut Vec<u8>, kind: Kind, flags: Flags, payload: &[u8]) {
    let mut out = BytesMut::new();
    frame::encode(kind, flags, payload, &mut out);
    bytes.extend_from_slice(&out);
}

fn cut(connection: &mut Connection, bytes: &[u8], chunk: usize) {
    bytes.chunks(chunk).for_each(|chunk| connection.handle_data(chunk));
}
