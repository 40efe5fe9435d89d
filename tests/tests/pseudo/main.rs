//! One more runtime, bound by following the page `lumen_proto::docs::adapter` and nothing else: one with a completion
//! queue, which none of our own bindings is for. What is left to show is that sessions and a hub run on it.

mod binding;
mod ring;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use lumen_driver::Pump;
use lumen_os::CommandSpec;
use lumen_proto::endpoint::{Event, Hub, HubConfig, Outcome, Peer, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::{Behind, Ended};
use lumen_proto::{Exit, Port};
use lumen_tests::procs::sibling;
use rustix::process::Pid;

use binding::{Driver, Target};

/// Answers with what it is given, over plain std: the other end of most of these.
fn echo() -> Target {
    Target::Command(CommandSpec::new(sibling("child_peer")))
}

fn config() -> ServerConfig {
    // However long a busy machine takes to start it.
    ServerConfig::new(Behind::Process, Mode::Auto).with_probe_timeout(std::time::Duration::from_secs(30))
}

fn request(id: u32, method: &str, params: &str) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"{params}"}}"#);
    Message::parse(text.into()).unwrap()
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

async fn outcome(driver: &mut Driver<Peer>) -> Outcome {
    let mut last = None;
    while let Some(event) = driver.next_event().await {
        last = Some(event);
    }
    match last {
        Some(Event::Finished(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_with_a_child_goes_its_way() {
    ring::block_on(async {
        let mut client = Driver::new(Peer::client(config()), echo());
        for id in 0..100 {
            client.with(|peer, now| peer.try_send(now, request(id, "echo", "words"))).unwrap();
        }
        for id in 0..100 {
            let answer = next_message(&mut client).await;
            let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"words"}}"#);
            assert_eq!(answer.bytes(), expected.as_bytes());
        }
        assert!(client.machine().is_lumen());
        client.with(|peer, now| peer.close(now));
        assert_eq!(outcome(&mut client).await, Outcome::Closed(Some(Ended::Exited(Exit::Code(0)))));
    });
}

#[test]
fn a_death_is_told_and_buried() {
    ring::block_on(async {
        let mut client = Driver::new(Peer::client(config()), echo());
        client.with(|peer, now| peer.try_send(now, request(1, "echo", "words"))).unwrap();
        next_message(&mut client).await;
        client.with(|peer, now| peer.try_send(now, request(2, "die", ""))).unwrap();
        let refusal = next_message(&mut client).await;
        assert_eq!(refusal.id(), Some(&b"2"[..]));
        assert_eq!(outcome(&mut client).await, Outcome::ServerGone(Ended::Exited(Exit::Code(3))));
    });
}

#[test]
fn what_cannot_be_started_is_told() {
    ring::block_on(async {
        let mut client =
            Driver::new(Peer::client(config()), Target::Command(CommandSpec::new("/nowhere/server")));
        assert!(matches!(outcome(&mut client).await, Outcome::NotStarted(_)));
    });
}

/// Neither side reads before it has written all, unless its driver sees to that.
#[test]
fn both_directions_may_be_full() {
    const LONG: usize = 5 << 20;
    ring::block_on(async {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut one, mut other) = (served(ours), served(theirs));
        let news = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(LONG));
        for end in [&mut one, &mut other] {
            end.with(|peer, now| peer.try_send(now, Message::copy_from(news.as_bytes()).unwrap())).unwrap();
        }
        let reader = std::rc::Rc::new(std::cell::Cell::new(0));
        let read = reader.clone();
        ring::spawn(async move {
            read.set(next_message(&mut other).await.len());
            other.with(|peer, now| peer.close(now));
            outcome(&mut other).await;
        });
        assert_eq!(next_message(&mut one).await.len(), news.len());
        // The other one has read all too before it closes.
        while !matches!(one.next_event().await, Some(Event::InputClosed)) {}
        assert_eq!(reader.get(), news.len());
    });
}

fn served(stream: UnixStream) -> Driver<Peer> {
    let peer = Peer::server();
    let port = peer.port();
    let mut driver = Driver::new(peer, echo());
    driver.attach(port, stream.into());
    driver
}

/// It is closed with a read, a write and a process under way, and nothing of it is left.
#[test]
fn closing_takes_back_what_is_under_way() {
    ring::block_on(async {
        // It reads nothing, so a write stays under way, and would never end by itself.
        let deaf = Target::Command(CommandSpec::new("sleep").arg("1000"));
        let mut client = Driver::new(Peer::client(ServerConfig::new(Behind::Process, Mode::Off)), deaf);
        let news = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "x".repeat(1 << 20));
        client.with(|peer, now| peer.try_send(now, Message::copy_from(news.as_bytes()).unwrap())).unwrap();
        let port = client.machine().port();
        let is_begun = |pump: &mut Pump<Peer>| (pump.counters(port).bytes_written > 0).then_some(());
        client.run_until(is_begun).await.unwrap();
        let pid = Pid::from_raw(client.child_id(port).unwrap() as i32).unwrap();
        client.close().await;
        assert!(client.is_settled());
        let left = rustix::process::test_kill_process(pid);
        assert_eq!(left, Err(rustix::io::Errno::SRCH));
    });
}

#[test]
fn two_clients_share_a_server() {
    ring::block_on(async {
        let shared = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Offer));
        let mut hub = Driver::new(Hub::new(shared), echo());
        let mut clients = Vec::new();
        for _ in 0..2 {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let port: Port = hub.with(|hub, _| hub.try_accept()).unwrap();
            hub.attach(port, OwnedFd::from(ours));
            let target = Target::Connected(Some(theirs.into()));
            let config = ServerConfig { behind: Behind::Socket, ..config() };
            clients.push(Driver::new(Peer::client(config), target));
        }
        ring::spawn(async move { while hub.next_event().await.is_some() {} });
        for (client, words) in clients.iter_mut().zip(["one", "two"]) {
            client.with(|peer, now| peer.try_send(now, request(1, "echo", words))).unwrap();
        }
        for (client, words) in clients.iter_mut().zip(["one", "two"]) {
            let answer = next_message(client).await;
            assert_eq!(
                answer.bytes(),
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{words}"}}"#).as_bytes()
            );
        }
    });
}
