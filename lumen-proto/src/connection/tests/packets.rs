//! Messages that stay in the encoding they came in.

use bytes::Bytes;

use super::*;
use crate::message::Encoding;
use crate::message::sample::{FILLS, Fill, PROGRESS_TOKEN, Random, Sample};

fn keeping(role: Role) -> Connection {
    let mut config = Config::new(role);
    config.keep_values = true;
    let mut connection = Connection::new(config);
    connection.handle_opened(Instant::ZERO);
    connection
}

/// A server side that has met a client and keeps values.
fn reading() -> Connection {
    let mut connection = keeping(Role::Server);
    connection.handle_data(OPENING_PROBE);
    let _ = sent(&mut connection);
    connection
}

/// A client side whose server speaks frames and listed these.
fn writing(caps: &str) -> Connection {
    let mut connection = client(Mode::Auto);
    let _ = sent(&mut connection);
    connection.handle_data(&framed(Kind::PROBE_ACK, &format!(r#"{{"v":1,"caps":{caps}}}"#)));
    let _ = sent(&mut connection);
    let _ = events(&mut connection);
    connection
}

const EXACT: &str = r#"["compression","exact"]"#;

fn compressed(kind: Kind, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame_bytes_into(&mut bytes, kind, Flags::COMPRESSED, value);
    bytes
}

fn packet_of(json: &str) -> Packet {
    Packet::from_value(value_of(json).into()).unwrap()
}

fn one(connection: &mut Connection, bytes: &[u8]) -> Packet {
    connection.handle_data(bytes);
    let mut got = events(connection);
    let Some(Event::Message(packet)) = got.pop() else { panic!("{got:?}") };
    packet
}

fn edits(new: &Fill) -> Edits {
    Edits::put(&[&["id"], PROGRESS_TOKEN], new.text)
}

fn fills(random: &mut Random) -> [&'static Fill; 3] {
    [(); 3].map(|()| &FILLS[random.below(FILLS.len())])
}

const MESSAGES: usize = 10_000;

#[test]
fn from_line_to_line_every_byte_outside_of_the_edits_stays() {
    let mut random = Random::new(2);
    let (mut reader, mut writer) = (keeping(Role::Plain), connection(Role::Plain));
    for _ in 0..MESSAGES {
        let sample = Sample::new(&mut random);
        let [id, token, new] = fills(&mut random);
        let packet = one(&mut reader, format!("{}\n", sample.text(id, token)).as_bytes());
        writer.send_edited(packet, edits(new));
        assert_eq!(text(&sent(&mut writer)), format!("{}\n", sample.text(new, new)));
    }
}

#[test]
fn from_value_to_value_every_byte_outside_of_the_edits_stays() {
    let mut random = Random::new(3);
    let (mut reader, mut writer) = (reading(), writing(EXACT));
    for _ in 0..MESSAGES {
        let sample = Sample::new(&mut random);
        let [id, token, new] = fills(&mut random);
        // Their lengths are often longer than they have to be, and their words spelled out: made anew, they would
        // be other bytes.
        let packet = one(&mut reader, &compressed(Kind::REQUEST, &sample.value(id, token)));
        assert_eq!(packet.encoding(), Encoding::Value);
        let kind =
            if packet.kind() == crate::jsonrpc::Kind::Request { Kind::REQUEST } else { Kind::RESPONSE };
        writer.send_edited(packet, edits(new));
        assert_eq!(sent(&mut writer), compressed(kind, &sample.value(new, new)));
    }
}

#[test]
fn across_carriers_the_document_and_the_spelling_of_its_ids_stay() {
    let mut random = Random::new(4);
    let (mut reader, mut writer) = (reading(), connection(Role::Plain));
    let mut plain = keeping(Role::Plain);
    let mut frames = writing(EXACT);
    let mut lengths = [0; 2];
    for _ in 0..500 {
        let sample = Sample::new(&mut random);
        let [id, token, new] = fills(&mut random);
        let expected = value_of(&sample.text(new, new));
        let packet = one(&mut reader, &compressed(Kind::REQUEST, &sample.value(id, token)));
        writer.send_edited(packet, edits(new));
        let line = sent(&mut writer);
        assert_eq!(value_of(text(&line)), expected);
        let packet = one(&mut plain, &line);
        assert_eq!(packet.id().unwrap(), new.text.as_bytes());
        // A text that goes compressed is edited first, and its length is that of what came of it.
        let packet = one(&mut plain, format!("{}\n", sample.text(id, token)).as_bytes());
        let kind =
            if packet.kind() == crate::jsonrpc::Kind::Request { Kind::REQUEST } else { Kind::RESPONSE };
        frames.send_edited(packet, edits(new));
        let edited = sample.text(new, new);
        let is_long = edited.len() >= limits::MIN_COMPRESSED;
        lengths[usize::from(is_long)] += 1;
        let expected = if is_long { compressed(kind, &expected) } else { framed(kind, &edited) };
        assert_eq!(sent(&mut frames), expected);
    }
    assert!(lengths.iter().all(|count| *count > 50), "{lengths:?}");
}

#[test]
fn a_value_that_becomes_text_has_its_parts_where_they_are_in_the_text() {
    let mut random = Random::new(5);
    let mut reader = connection(Role::Server);
    reader.handle_data(OPENING_PROBE);
    let mut values: Vec<_> = (0..MESSAGES)
        .map(|_| {
            let sample = Sample::new(&mut random);
            let [id, token, _] = fills(&mut random);
            sample.value(id, token)
        })
        .collect();
    let texts =
        [CALL, PONG, r#"{"a\"":[{"id":5}],"id":"x","result":{"error":1},"\u0000":{}}"#, r#"{"method":"m"}"#];
    values.extend(texts.map(value_of));
    for value in values {
        let Packet::Text(message) = one(&mut reader, &compressed(Kind::REQUEST, &value)) else { panic!() };
        let parsed = Message::copy_from(message.bytes()).unwrap();
        let parts = |message: &Message| {
            let envelope = *message.envelope();
            (envelope.kind, envelope.id, envelope.method, envelope.params, envelope.result, envelope.error)
        };
        assert_eq!(parts(&message), parts(&parsed), "{}", text(message.bytes()));
        let rest = |message: &Message| (message.envelope().body, message.envelope().has_newline);
        assert_eq!(rest(&message), rest(&parsed));
        assert_eq!(message.find(PROGRESS_TOKEN), parsed.find(PROGRESS_TOKEN));
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;

#[test]
fn a_client_gets_its_id_as_it_spelled_it_wherever_text_can_carry_it() {
    for id in ["1e0", r#""\u0061""#, "-0.0", "12345678901234567890"] {
        let edits = Edits::put(&[&["id"]], id);
        let expected = CALL.replace(":1,", &format!(":{id},"));
        let mut line = connection(Role::Plain);
        line.send_edited(packet_of(CALL), edits.clone());
        assert_eq!(text(&sent(&mut line)), format!("{expected}\n"));
        let mut plain = writing(r#"["streaming"]"#);
        plain.send_edited(packet_of(CALL), edits);
        assert_eq!(sent(&mut plain), framed(Kind::REQUEST, &expected));
    }
}

#[test]
fn what_a_lesser_peer_would_not_get_goes_as_text() {
    let whole = CALL.replace("\"x\"", "1.0");
    let edits = Edits::put(&[&["id"]], "7");
    let mut exact = writing(EXACT);
    exact.send_edited(packet_of(&whole), edits.clone());
    assert_eq!(sent(&mut exact), compressed(Kind::REQUEST, &value_of(&whole.replace(":1,", ":7,"))));
    let mut lesser = writing(r#"["compression"]"#);
    lesser.send_edited(packet_of(&whole), edits);
    assert_eq!(sent(&mut lesser), framed(Kind::REQUEST, &whole.replace(":1,", ":7,")));
    // The document would fit, the id does not.
    for (caps, id) in [(EXACT, "1e400"), (EXACT, r#""\ud800""#), (r#"["compression"]"#, "1e0")] {
        let mut writer = writing(caps);
        writer.send_edited(packet_of(CALL), Edits::put(&[&["id"]], id));
        assert_eq!(sent(&mut writer), framed(Kind::REQUEST, &CALL.replace(":1,", &format!(":{id},"))));
    }
}

#[test]
fn values_are_kept_only_if_asked_for_and_however_they_are_cut() {
    let value = value_of(CALL);
    let frame = compressed(Kind::REQUEST, &value);
    for chunk in [1, 7, frame.len()] {
        let mut keeping = reading();
        cut(&mut keeping, &frame, chunk);
        let packet = Packet::from_value(value.clone().into()).unwrap();
        assert_eq!(events(&mut keeping), [Event::Upgraded, Event::Message(packet)]);
        let mut texting = connection(Role::Server);
        texting.handle_data(OPENING_PROBE);
        cut(&mut texting, &frame, chunk);
        assert_eq!(events(&mut texting), [Event::Upgraded, Event::Message(message(CALL))]);
    }
}

#[test]
fn a_value_that_is_refused_is_refused_for_the_same_reason_as_its_text() {
    for json in [
        r#"{"id":null,"method":"m"}"#,
        r#"{"id":7,"id":7,"method":"m"}"#,
        r#"{"id":7,"method":1}"#,
        r#"{"id":"\u0001","params":{},"method":null}"#,
        r#"{"x":1}"#,
        "[]",
        r#"[{"id":1,"method":"m"},{"id":2,"method":1}]"#,
    ] {
        let frame = compressed(Kind::REQUEST, &value_of(json));
        let mut keeping = reading();
        keeping.handle_data(&frame);
        let mut texting = connection(Role::Server);
        texting.handle_data(OPENING_PROBE);
        texting.handle_data(&frame);
        let told = events(&mut keeping);
        assert!(matches!(told[..], [Event::Rejected { .. }]), "{json}: {told:?}");
        assert_eq!(told, events(&mut texting), "{json}");
    }
    // No value at all: only a scan can tell whom to answer.
    let mut keeping = reading();
    keeping.handle_data(&compressed(Kind::REQUEST, b"\xe7\x03\x04\xe3\x0c\xff\x01x\xdf"));
    let rejected =
        Event::Rejected { reason: Reason::NotValue { at: 8 }, id: Some("6".into()), has_method: true };
    assert_eq!(events(&mut keeping), [rejected]);
}

#[test]
fn a_line_too_long_is_given_back_with_its_edits() {
    let mut config = Config::new(Role::Plain);
    config.max_line = CALL.len();
    let mut c = Connection::new(config);
    c.handle_opened(Instant::ZERO);
    let longer = Edits::put(&[&["id"]], "12");
    for packet in [message(CALL), packet_of(CALL)] {
        c.send_edited(packet.clone(), Edits::put(&[&["id"]], "2"));
        assert!(c.queued() > packet.len() + 1, "what it takes to keep it counts too");
        assert_eq!(text(&sent(&mut c)), format!("{}\n", CALL.replace(":1,", ":2,")));
        c.send_edited(packet.clone(), longer.clone());
        assert_eq!(sent(&mut c), b"");
        let reason = Reason::TooLong { len: CALL.len() as u64 + 1, max: CALL.len() as u64 };
        assert_eq!(events(&mut c), [Event::Unsent { message: packet.into(), edits: longer.clone(), reason }]);
        assert_eq!((c.queued(), c.queued_own()), (0, 0));
    }
}

/// `INIT` with an offer, and an answer to it with an echo.
fn handshake() -> (String, String) {
    let hello = r#""dev.lumen/transport":{"v":1,"caps":["compression"]}"#;
    let with = |place: &str, text: &str| text.replace(place, &format!(r#"{{"extensions":{{{hello}}}}}"#));
    (with("{}", INIT), with("{}", r#"{"id":0,"result":{"capabilities":{}}}"#))
}

#[test]
fn a_handshake_in_a_value_loses_its_offer_and_its_answer_gets_the_echo() {
    let (offered, echoed) = handshake();
    let bare = r#"{"id":0,"result":{"capabilities":{}}}"#;
    let mut server = reading();
    let packet = one(&mut server, &compressed(Kind::REQUEST, &value_of(&offered)));
    assert_eq!(packet, message(INIT));
    // The hub knows it by another id, and gives the client's own back.
    for answer in [message(&bare.replace(":0,", ":99,")), packet_of(&bare.replace(":0,", ":99,"))] {
        let mut server = reading();
        let _ = one(&mut server, &compressed(Kind::REQUEST, &value_of(&offered)));
        server.send_edited(answer, Edits::put(&[&["id"]], "0"));
        let out = sent(&mut server);
        let sent = frame_text(&out);
        assert!(sent.contains(r#""id":0"#) && sent.contains("dev.lumen/transport"), "{sent}");
    }
    // An answer that is none to the handshake, by the id that the client knows.
    server.send_edited(message(bare), Edits::put(&[&["id"]], "5"));
    let out = sent(&mut server);
    assert!(!frame_text(&out).contains("dev.lumen"));
    // Toward a server: the offer is added under the id that goes out, the echo taken out of a value.
    let mut c = keeping(Role::Client { mode: Mode::Offer, probe_timeout: limits::PROBE_TIMEOUT });
    c.send_edited(packet_of(&INIT.replace(":0,", ":99,")), Edits::put(&[&["id"]], "0"));
    let out = sent(&mut c);
    assert!(text(&out).contains(r#""id":0"#) && text(&out).contains("dev.lumen/transport"));
    c.handle_data(format!("{echoed}\n").as_bytes());
    assert_eq!(events(&mut c), [Event::Message(message(bare))]);
    let mut c = keeping(Role::Client { mode: Mode::Auto, probe_timeout: limits::PROBE_TIMEOUT });
    c.handle_data(ACK);
    c.send_edited(packet_of(&INIT.replace(":0,", ":99,")), Edits::put(&[&["id"]], "0"));
    let _ = sent(&mut c);
    let _ = events(&mut c);
    assert_eq!(one(&mut c, &compressed(Kind::RESPONSE, &value_of(&echoed))), message(bare));
}

/// The text of the payload of the one message frame that `bytes` are.
fn frame_text(bytes: &[u8]) -> String {
    let (header, at) = frame::Header::decode(bytes).unwrap().unwrap();
    assert_eq!(bytes.len(), at + usize::try_from(header.len).unwrap());
    let payload = &bytes[at..];
    if header.flags == Flags::NONE {
        return text(payload).into();
    }
    let packet = Packet::from_value(Bytes::copy_from_slice(payload)).unwrap();
    text(packet.to_text().unwrap().bytes()).into()
}

#[test]
fn a_batch_goes_by_its_requests_in_a_value_too() {
    for (json, kind) in [
        (r#"[{"method":"m"},{"id":1,"method":"m"}]"#, Kind::REQUEST),
        (r#"[{"id":1,"result":1},{"method":"m"}]"#, Kind::RESPONSE),
        (r#"[{"method":"m"}]"#, Kind::NOTIFY),
    ] {
        let mut writer = writing(EXACT);
        writer.send(packet_of(json));
        assert_eq!(sent(&mut writer), compressed(kind, &value_of(json)), "{json}");
    }
}

#[test]
fn what_goes_through_is_counted_as_it_travels_and_what_is_converted_both_ways() {
    let mut client = client(Mode::Auto);
    let probe = sent(&mut client);
    client.handle_data(OUR_ACK);
    let long_ping = long(PING);
    client.send(message(&long_ping));
    let ping = sent(&mut client);
    // The value that came is told as text, so both of its lengths are known.
    client.handle_data(PONG_VALUE);
    let plain = framed(Kind::RESPONSE, PONG);
    client.handle_data(&plain);
    let tally = client.tally();
    assert_eq!(tally.sent, Amount { messages: 1, bytes: (probe.len() + ping.len()) as u64 });
    let read = OUR_ACK.len() + PONG_VALUE.len() + plain.len();
    assert_eq!(tally.received, Amount { messages: 2, bytes: read as u64 });
    let values = value_of(&long_ping).len() + value_of(PONG).len();
    let json = (long_ping.len() + PONG.len()) as u64;
    assert_eq!(tally.converted, Converted { messages: 2, json, values: values as u64 });
}
