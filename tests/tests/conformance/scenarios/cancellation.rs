//! Calls and sessions that are dropped while they wait. Where that cannot be done, a story is told without it, and has to
//! be the same.

use lumen_proto::negotiate::Mode;
use lumen_tests::procs::{children, descriptors};

use super::{child, config};
use crate::alone::alone;
use crate::face::{End as _, Face, request};
use crate::teller::Log;

/// Waits after which no call of a session is expected to wait any more.
const FAR: usize = 10_000;

/// Lives through a session, in which calls are dropped at a wait and made again.
fn session<F: Face>(face: &F, drop_at: Option<usize>) -> (String, bool) {
    let log = Log::new("");
    let mut client = face.connect(child("child_peer", &[]), config(Mode::Auto));
    client.drop_at(drop_at);
    for id in 0..6 {
        log.sent(client.send(request(id, "echo", &format!("[{id}]"))));
    }
    log.line(format!("all is written: {}", client.flush()));
    for _ in 0..6 {
        log.message(client.recv().as_ref());
    }
    let large = format!("\"{}\"", "z".repeat(300_000));
    for id in 6..9 {
        log.sent(client.send(request(id, "echo", &large)));
    }
    for _ in 6..9 {
        log.message(client.recv().as_ref());
    }
    log.sent(client.send(request(9, "die", "[]")));
    log.message(client.recv().as_ref());
    log.message(client.recv().as_ref());
    let was_dropped = client.was_dropped();
    log.closed(&client.close());
    (log.text(), was_dropped)
}

pub fn dropped_calls_lose_nothing<F: Face>(face: &F, log: &Log) {
    let (always, _) = session(face, None);
    log.line(always.trim_end());
    for wait in 0..FAR {
        let (told, was_dropped) = session(face, Some(wait));
        assert!(told == always, "dropped at wait {wait}:\n{told}");
        if !was_dropped {
            break;
        }
    }
}

pub fn dropped_sessions_leave_nothing<F: Face>(face: &F, log: &Log) {
    alone(log, |log| {
        let me = std::process::id();
        let give_up = |waits| face.give_up_after(waits, child("child_peer", &[]), config(Mode::Auto));
        // What a runtime opens once stays open.
        assert!(give_up(FAR));
        let before = descriptors(me).unwrap();
        for waits in 0..FAR {
            let is_over = give_up(waits);
            assert_eq!(children(me), [], "after {waits} waits");
            assert_eq!(descriptors(me).unwrap(), before, "after {waits} waits");
            if is_over {
                log.line("dropped at each of its waits, a session leaves no process and no descriptor");
                return;
            }
        }
    });
}
