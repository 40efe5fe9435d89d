//! A whole session: a peer that is client and a peer that is server, in this process or against a child.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use lumen_os::{CommandSpec, Target};
use lumen_proto::Exit;
use lumen_proto::endpoint::{Event, Outcome, Peer, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_tokio::Driver;
use tokio::net::UnixStream;

fn message(text: &str) -> Message {
    Message::copy_from(text.as_bytes()).unwrap()
}

fn send(driver: &mut Driver<Peer>, text: &str) {
    let now = driver.now();
    driver.with(|peer| peer.try_send(now, message(text))).unwrap();
}

async fn next_message(driver: &mut Driver<Peer>) -> Message {
    loop {
        match driver.next_event().await.expect("the session goes on") {
            Event::Message(message) => return message,
            Event::Finished(outcome) => panic!("{outcome:?}"),
            _ => {}
        }
    }
}

/// Lets a session end: a server has nothing more to say once its client has not.
async fn outcome(driver: &mut Driver<Peer>) -> Outcome {
    let mut last = None;
    while let Some(event) = driver.next_event().await {
        if event == Event::InputClosed {
            let now = driver.now();
            driver.with(|peer| peer.close(now));
        }
        last = Some(event);
    }
    match last {
        Some(Event::Finished(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_client_asks_a_child_in_plain_json() {
    let script = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"ok":true}}'; read line; exit 0"#;
    let spec = CommandSpec::new("/bin/sh").args(["-c", script]);
    let peer = Peer::client(ServerConfig::new(Behind::Process, Mode::Off));
    let mut driver = Driver::new(peer, Some(Target::Command(spec)));
    send(&mut driver, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let answer = next_message(&mut driver).await;
    assert_eq!(answer.bytes(), &br#"{"jsonrpc":"2.0","id":1,"result":{"ok":true}}"#[..]);
    let port = driver.machine().port();
    let now = driver.now();
    driver.with(|peer| peer.close(now));
    assert!(matches!(outcome(&mut driver).await, Outcome::Closed(Some(_))));
    assert_eq!(driver.child_exit(port), Some(Exit::Code(0)));
}

#[tokio::test]
async fn two_peers_speak_frames_over_a_socket() {
    let path = std::env::temp_dir().join(format!("lumen-tokio-peer-{}.sock", std::process::id()));
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let server = async {
        let stream: UnixStream = listener.accept().await.unwrap().0;
        let peer = Peer::server();
        let port = peer.port();
        let mut driver = Driver::new(peer, None);
        driver.attach(port, stream.into());
        let asked = next_message(&mut driver).await;
        assert!(asked.method_is("ping"));
        send(&mut driver, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        outcome(&mut driver).await
    };
    let client = async {
        let peer = Peer::client(ServerConfig::new(Behind::Socket, Mode::Probe));
        let mut driver = Driver::new(peer, Some(Target::Unix(path.clone())));
        send(&mut driver, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
        let event = driver.next_event().await;
        assert!(matches!(event, Some(Event::Upgraded(_))), "{event:?}");
        assert_eq!(next_message(&mut driver).await.id(), Some(&b"7"[..]));
        let now = driver.now();
        driver.with(|peer| peer.close(now));
        outcome(&mut driver).await
    };
    let (server, client) = tokio::join!(server, client);
    assert_eq!(server, Outcome::Closed(None));
    assert!(matches!(client, Outcome::Closed(_)), "{client:?}");
    std::fs::remove_file(path).unwrap();
}
