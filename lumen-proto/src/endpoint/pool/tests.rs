//! The pool by hand. The simulated world has the long walks.

use core::time::Duration;

use super::*;
use crate::endpoint::{Event, Parted, ServerConfig};
use crate::negotiate::Mode;
use crate::supervisor::Behind;
use crate::{ChildEvent, OpenError, OpenErrorKind, limits};

fn pool(private: bool) -> Pool {
    let config = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off));
    Pool::new(HubConfig { mux: crate::mux::Config { private, ..config.mux }, ..config })
}

#[test]
fn who_connects_waits_until_there_is_room_again() {
    for private in [false, true] {
        let mut pool = pool(private);
        assert!(pool.is_taking_clients());
        pool.hold_clients(Instant::from_millis(500));
        assert_eq!(pool.poll_timeout(), Some(Instant::from_millis(500)));
        pool.handle_timeout(Instant::from_millis(499));
        assert!(!pool.is_taking_clients());
        pool.handle_timeout(Instant::from_millis(500));
        assert!(pool.is_taking_clients());
        assert_eq!(pool.poll_timeout(), None);
    }
}

#[test]
fn who_only_asks_how_things_stand_does_not_keep_it() {
    for private in [false, true] {
        let config = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off));
        let mux = crate::mux::Config { private, ..config.mux };
        let mut pool = Pool::new(HubConfig { mux, idle_exit: Some(Duration::from_secs(10)), ..config });
        let is_over = |pool: &mut Pool| {
            core::iter::from_fn(|| pool.poll_event())
                .any(|event| matches!(event, HubEvent::Stream(Event::Finished(_))))
        };
        let visit = |pool: &mut Pool, from: u64, to: u64, method: &str| {
            let client = pool.try_accept().unwrap();
            let from = Instant::from_millis(from);
            pool.handle_input(from, Input::Opened(client));
            let ask = alloc::format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"}}\n");
            pool.handle_input(from, Input::Data(client, ask.as_bytes()));
            // It is there while it is there.
            assert_eq!(pool.clients(), 1);
            pool.handle_input(Instant::from_millis(to), Input::Lost(client));
            client
        };
        visit(&mut pool, 3000, 3000, "lumen/status");
        assert_eq!(pool.poll_timeout(), Some(Instant::from_millis(10_000)));
        let client = visit(&mut pool, 9000, 11_000, "tools/list");
        assert!(!is_over(&mut pool));
        let server = Port::new(client.index() - 2);
        let gone = ChildEvent::Failed(OpenError { kind: OpenErrorKind::NotFound, errno: 2 });
        pool.handle_input(Instant::from_millis(11_000), Input::Child(server, gone));
        for at in [12_000, 15_000, 20_000] {
            visit(&mut pool, at, at + 500, "lumen/status");
        }
        assert!(!is_over(&mut pool));
        // Not before it has gone, and then at once.
        visit(&mut pool, 20_900, 22_000, "lumen/status");
        assert!(is_over(&mut pool), "{private}");
    }
}

#[test]
fn a_clock_that_goes_back_stops_nothing() {
    let mut pool = pool(true);
    let later = Instant::ZERO + Duration::from_secs(100);
    let client = pool.try_accept().unwrap();
    pool.handle_input(later, Input::Opened(client));
    let ask = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"lumen/status\"}\n";
    pool.handle_input(Instant::ZERO, Input::Data(client, ask));
    pool.handle_timeout(later + limits::OWN_TIMEOUT);
    pool.handle_timeout(Instant::ZERO);
    let mut out = BytesMut::new();
    assert_eq!(pool.poll_transmit(Instant::ZERO, client, &mut out), Transmit::More);
    assert!(out.ends_with(b"\"data\":{\"reason\":\"no_answer\"}}}\n"), "{out:?}");
}

#[test]
fn no_two_sessions_have_a_port_in_common() {
    let mut pool = pool(true);
    let ports: [Port; 3] = core::array::from_fn(|_| pool.try_accept().unwrap());
    assert_eq!(ports, [2, 5, 8].map(Port::new));
    pool.handle_input(Instant::ZERO, Input::Opened(ports[1]));
    pool.handle_input(Instant::ZERO, Input::Lost(ports[1]));
    assert_eq!(pool.poll_action(), Some(Action::Abort(ports[1])));
    assert_eq!(pool.try_accept(), Some(Port::new(11)));
    assert_eq!(pool.clients(), 3);
}

#[test]
fn what_waits_for_all_clients_together_is_bounded() {
    let mut pool = pool(true);
    let now = Instant::ZERO;
    let news = alloc::format!("{{\"method\":\"n\",\"params\":[\"{}\"]}}\n", "n".repeat(512 * 1024));
    let most = limits::MAX_CLIENT_QUEUE / news.len() - 1;
    let parted = |pool: &mut Pool| {
        core::iter::from_fn(|| pool.poll_event()).find_map(|event| match event {
            HubEvent::Parted { port, why } => Some((port, why)),
            _ => None,
        })
    };
    let (mut sent, mut first) = (0, None);
    while sent <= limits::MAX_HUB_QUEUE {
        let client = pool.try_accept().unwrap();
        first.get_or_insert(client);
        pool.handle_input(now, Input::Opened(client));
        pool.handle_input(now, Input::Data(client, b"{\"id\":1,\"method\":\"m\"}\n"));
        let server = client.with_index(client.index() - 2);
        pool.handle_input(now, Input::Opened(server));
        // The first is the slowest.
        for _ in 0..most + usize::from(first == Some(client)) {
            for chunk in news.as_bytes().chunks(limits::READ_CHUNK) {
                pool.handle_input(now, Input::Data(server, chunk));
            }
            sent += news.len();
        }
    }
    assert_eq!(parted(&mut pool), Some((first.unwrap(), Parted::Slow)));
    assert!(pool.queued() <= limits::MAX_HUB_QUEUE);
}
