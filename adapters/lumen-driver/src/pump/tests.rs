//! Tests of the pump, against a scripted machine.

use lumen_proto::OpenErrorKind;
use proptest::prelude::*;

use super::*;
use crate::toy::{Heard, Toy};

const A: Port = Port::new(0);
const B: Port = Port::new(1);
const T: Instant = Instant::ZERO;
const REFUSED: OpenError = OpenError { kind: OpenErrorKind::Refused, errno: 111 };

fn ops(pump: &mut Pump<Toy>) -> Vec<Op> {
    std::iter::from_fn(|| pump.poll_op()).collect()
}

/// A pump with these ports open that reads from none of them.
fn quiet(ports: &[Port]) -> Pump<Toy> {
    let mut pump = Pump::new(Toy::default());
    for port in ports {
        pump.with(T, |toy| toy.want(*port, 0));
        pump.complete(T, Done::Opened(*port, Ok(())));
    }
    assert_eq!(ops(&mut pump), []);
    pump
}

fn wrote(pump: &mut Pump<Toy>, port: Port, count: usize) {
    pump.complete(T, Done::Wrote(port, Outcome::Ok(count)));
}

#[test]
fn an_open_port_is_read_once_at_a_time_and_no_more_than_wanted() {
    let mut pump = Pump::new(Toy::default());
    pump.with(T, |toy| toy.want(B, 10));
    pump.complete(T, Done::Opened(A, Ok(())));
    pump.complete(T, Done::Opened(B, Ok(())));
    assert_eq!(ops(&mut pump), [Op::Read(A, READ_CHUNK), Op::Read(B, 10)]);
    assert_eq!(ops(&mut pump), []);
    assert_eq!(pump.in_flight(), 2);
    pump.complete(T, Done::Read(B, Outcome::Ok(b"0123456789")));
    assert_eq!(ops(&mut pump), [Op::Read(B, 10)]);
    assert_eq!(pump.machine().bytes_of(B), b"0123456789");
    assert_eq!(pump.counters(B), Counters { bytes_read: 10, reads: 1, ..Counters::default() });
}

#[test]
fn a_port_that_wants_nothing_is_read_again_only_when_named() {
    let mut pump = quiet(&[A]);
    pump.with(T, |toy| _ = toy.wants.insert(A, 5));
    assert_eq!(ops(&mut pump), []);
    pump.with(T, |toy| toy.want(A, 5));
    assert_eq!(ops(&mut pump), [Op::Read(A, 5)]);
}

#[test]
fn the_end_of_a_stream_is_told_once_and_ends_reading() {
    for outcome in [Outcome::Ok(&[][..]), Outcome::Failed] {
        let mut pump = Pump::new(Toy::default());
        pump.complete(T, Done::Opened(A, Ok(())));
        assert_eq!(ops(&mut pump), [Op::Read(A, READ_CHUNK)]);
        pump.complete(T, Done::Read(A, outcome));
        pump.complete(T, Done::Read(A, outcome));
        pump.with(T, |toy| toy.want(A, 5));
        assert_eq!(ops(&mut pump), []);
        assert_eq!(pump.machine().heard(), [Heard::Opened(A), Heard::Eof(A)]);
        assert_eq!(pump.in_flight(), 0);
    }
}

#[test]
fn what_is_lent_to_a_write_comes_back_and_nothing_is_gathered_meanwhile() {
    let mut pump = quiet(&[A]);
    assert_eq!(pump.lend_write(A).0, b""[..]);
    pump.with(T, |toy| toy.send(A, b"first"));
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    let (lent, from) = pump.lend_write(A);
    assert_eq!((&lent[..], from), (&b"first"[..], 0));
    pump.with(T, |toy| toy.send(A, b"second"));
    assert_eq!(ops(&mut pump), []);
    assert!(!pump.is_written() && pump.write_bytes(A).is_empty());
    pump.give_back_write(A, lent);
    wrote(&mut pump, A, 3);
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    let (lent, from) = pump.lend_write(A);
    assert_eq!(lent[from..], b"st"[..]);
    pump.give_back_write(A, lent);
    wrote(&mut pump, A, 2);
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    assert_eq!(pump.write_bytes(A), b"second");
}

#[test]
fn a_cancelled_read_or_write_of_an_open_port_is_started_again() {
    let mut pump = Pump::new(Toy::default());
    pump.complete(T, Done::Opened(A, Ok(())));
    pump.with(T, |toy| toy.send(A, b"x"));
    assert_eq!(ops(&mut pump), [Op::Write(A), Op::Read(A, READ_CHUNK)]);
    pump.complete(T, Done::Read(A, Outcome::Cancelled));
    pump.complete(T, Done::Wrote(A, Outcome::Cancelled));
    assert_eq!(ops(&mut pump), [Op::Write(A), Op::Read(A, READ_CHUNK)]);
    assert_eq!(pump.write_bytes(A), b"x");
}

#[test]
fn the_rest_of_a_partial_write_goes_before_more_is_asked_for() {
    let mut pump = quiet(&[A]);
    pump.with(T, |toy| toy.send(A, b"hello"));
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    pump.with(T, |toy| toy.send(A, b"later"));
    let asked = pump.machine().transmit_calls;
    assert_eq!(ops(&mut pump), [], "one write at a time");
    wrote(&mut pump, A, 2);
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    assert_eq!(pump.write_bytes(A), b"llo");
    assert_eq!(pump.machine().transmit_calls, asked);
    wrote(&mut pump, A, 3);
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    assert_eq!(pump.write_bytes(A), b"later");
    wrote(&mut pump, A, 5);
    assert_eq!(ops(&mut pump), []);
    assert_eq!(pump.counters(A), Counters { bytes_written: 10, writes: 3, ..Counters::default() });
}

#[test]
fn a_write_gathers_frames_up_to_its_bounds() {
    let mut pump = quiet(&[A, B]);
    pump.with(T, |toy| {
        for _ in 0..100 {
            toy.send(A, &[b'a'; 1000]);
        }
        for _ in 0..TURN_FRAMES + 1 {
            toy.send(B, b"b");
        }
    });
    assert_eq!(ops(&mut pump), [Op::Write(A), Op::Write(B)]);
    assert_eq!(pump.write_bytes(A).len(), 66_000, "the frame that passes the bound is the last");
    assert_eq!(pump.write_bytes(B).len(), TURN_FRAMES);
    wrote(&mut pump, A, 66_000);
    wrote(&mut pump, B, TURN_FRAMES);
    assert_eq!(ops(&mut pump), [Op::Write(A), Op::Write(B)]);
    assert_eq!((pump.write_bytes(A).len(), pump.write_bytes(B).len()), (34_000, 1));
}

#[test]
fn ports_take_turns() {
    let mut pump = quiet(&[A, B]);
    pump.with(T, |toy| {
        for _ in 0..3 * TURN_FRAMES {
            toy.send(A, b"a");
        }
        toy.send(B, b"b");
    });
    let mut order = Vec::new();
    while let Some(op) = pump.poll_op() {
        if let Op::Write(port) = op {
            order.push(port);
            let all = pump.write_bytes(port).len();
            wrote(&mut pump, port, all);
        }
    }
    assert_eq!(order, [A, B, A, A]);
}

#[test]
fn the_writing_half_is_closed_once_and_after_the_last_byte() {
    let mut pump = quiet(&[A]);
    pump.with(T, |toy| {
        toy.send(A, b"bye");
        toy.finish(A);
    });
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    wrote(&mut pump, A, 1);
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    wrote(&mut pump, A, 2);
    assert_eq!(ops(&mut pump), [Op::Finish(A)]);
    assert_eq!(pump.in_flight(), 1);
    let asked = pump.machine().transmit_calls;
    pump.with(T, |toy| toy.send(A, b"never"));
    pump.complete(T, Done::Finished(A));
    pump.complete(T, Done::Finished(A));
    pump.with(T, |toy| toy.send(A, b"never"));
    assert_eq!(ops(&mut pump), []);
    assert_eq!(pump.machine().transmit_calls, asked);
    assert_eq!(pump.machine().heard(), [Heard::Opened(A), Heard::Finished(A)]);
    assert_eq!(pump.in_flight(), 0);
}

#[test]
fn a_failed_write_loses_the_output_and_only_that() {
    for outcome in [Outcome::Failed, Outcome::Ok(0)] {
        let mut pump = quiet(&[A]);
        pump.with(T, |toy| {
            toy.send(A, b"lost");
            toy.finish(A);
        });
        assert_eq!(ops(&mut pump), [Op::Write(A)]);
        pump.complete(T, Done::Wrote(A, outcome));
        let asked = pump.machine().transmit_calls;
        pump.with(T, |toy| toy.send(A, b"never"));
        assert_eq!(ops(&mut pump), []);
        assert_eq!(pump.write_bytes(A), b"");
        assert_eq!(pump.machine().transmit_calls, asked);
        assert_eq!(pump.machine().heard(), [Heard::Opened(A), Heard::Lost(A)]);
        pump.with(T, |toy| toy.want(A, 7));
        assert_eq!(ops(&mut pump), [Op::Read(A, 7)]);
    }
}

#[test]
fn an_abort_closes_once_and_the_machine_hears_no_more() {
    let mut pump = Pump::new(Toy::default());
    pump.complete(T, Done::Opened(A, Ok(())));
    pump.with(T, |toy| toy.send(A, b"unsent"));
    assert_eq!(ops(&mut pump), [Op::Write(A), Op::Read(A, READ_CHUNK)]);
    pump.with(T, |toy| {
        toy.actions.extend([Action::Abort(A), Action::Abort(A), Action::Signal(A, Signal::Kill)]);
        toy.send(A, b"more");
    });
    assert_eq!(ops(&mut pump), [Op::Close(A)]);
    assert_eq!(pump.in_flight(), 3);
    assert_eq!(pump.write_bytes(A), b"unsent", "a write in flight keeps its bytes");
    pump.complete(T, Done::Wrote(A, Outcome::Ok(1)));
    pump.complete(T, Done::Exited(A, Exit::Code(0)));
    pump.complete(T, Done::Read(A, Outcome::Ok(b"late")));
    assert_eq!((pump.in_flight(), pump.is_settled()), (1, false));
    pump.complete(T, Done::Closed(A));
    assert!(pump.is_settled());
    pump.complete(T, Done::Closed(A));
    pump.complete(T, Done::Wrote(A, Outcome::Failed));
    assert_eq!(ops(&mut pump), []);
    assert_eq!(pump.machine().heard(), [Heard::Opened(A)]);
}

#[test]
fn counters_of_the_last_closed_ports_are_kept() {
    let ports: Vec<Port> = (0..=u32::try_from(MAX_REMEMBERED).unwrap()).map(Port::new).collect();
    let mut pump = quiet(&ports);
    for port in &ports {
        pump.with(T, |toy| toy.send(*port, b"abc"));
        assert_eq!(ops(&mut pump), [Op::Write(*port)]);
        wrote(&mut pump, *port, 3);
    }
    pump.close_all(T);
    for port in &ports {
        pump.complete(T, Done::Closed(*port));
    }
    let written: Vec<u64> = ports.iter().map(|port| pump.counters(*port).bytes_written).collect();
    assert_eq!((written[0], written[1], written[MAX_REMEMBERED]), (0, 3, 3));
}

#[test]
fn cancelled_operations_of_a_closing_port_count_until_they_complete() {
    let mut pump = Pump::new(Toy::default());
    pump.complete(T, Done::Opened(A, Ok(())));
    pump.with(T, |toy| toy.finish(A));
    assert_eq!(ops(&mut pump), [Op::Finish(A), Op::Read(A, READ_CHUNK)]);
    pump.close_all(T);
    assert_eq!(ops(&mut pump), [Op::Close(A)]);
    assert_eq!(pump.in_flight(), 3);
    pump.complete(T, Done::Read(A, Outcome::Cancelled));
    pump.complete(T, Done::Finished(A));
    assert_eq!(pump.in_flight(), 1);
    assert_eq!(ops(&mut pump), []);
    pump.complete(T, Done::Closed(A));
    assert!(pump.is_settled());
    assert_eq!(pump.machine().heard(), [Heard::Opened(A)]);
}

#[test]
fn closed_settles_what_was_still_outstanding() {
    let mut pump = Pump::new(Toy::default());
    pump.with(T, |toy| toy.actions.push_back(Action::Spawn(B)));
    pump.complete(T, Done::Opened(A, Ok(())));
    assert_eq!(ops(&mut pump), [Op::Open(B), Op::Read(A, READ_CHUNK)]);
    pump.close_all(T);
    assert_eq!(ops(&mut pump), [Op::Close(A), Op::Close(B)]);
    pump.complete(T, Done::Closed(A));
    pump.complete(T, Done::Closed(B));
    assert!(pump.is_settled());
}

#[test]
fn an_abort_while_output_is_polled_writes_nothing() {
    let mut pump = quiet(&[A]);
    pump.with(T, |toy| {
        toy.aborts_in_transmit = Some(A);
        toy.send(A, b"void");
    });
    assert_eq!(ops(&mut pump), [Op::Close(A)]);
}

#[test]
fn a_spawn_is_counted_and_answered() {
    let mut pump = Pump::new(Toy::default());
    pump.with(T, |toy| toy.actions.extend([Action::Spawn(A), Action::Spawn(A), Action::Spawn(B)]));
    assert_eq!(pump.in_flight(), 2);
    assert_eq!(ops(&mut pump), [Op::Open(A), Op::Open(B)]);
    assert!(!pump.is_settled());
    pump.complete(T, Done::Exited(A, Exit::Code(3)));
    pump.complete(T, Done::Opened(A, Ok(())));
    pump.complete(T, Done::Opened(A, Ok(())));
    pump.complete(T, Done::Opened(B, Err(REFUSED)));
    pump.complete(T, Done::Opened(B, Err(REFUSED)));
    pump.complete(T, Done::Exited(A, Exit::Code(7)));
    let heard = [Heard::Opened(A), Heard::Failed(B, REFUSED), Heard::Exited(A, Exit::Code(7))];
    assert_eq!(pump.machine().heard(), heard);
    assert_eq!(ops(&mut pump), [Op::Read(A, READ_CHUNK)]);
    assert_eq!(pump.in_flight(), 1);
}

#[test]
fn an_opening_that_is_taken_back_is_never_started() {
    let mut pump = Pump::new(Toy::default());
    pump.with(T, |toy| toy.actions.extend([Action::Spawn(A), Action::Abort(A)]));
    assert_eq!(ops(&mut pump), []);
    assert!(pump.is_settled());
}

#[test]
fn what_opens_while_it_is_closed_is_not_told() {
    let mut pump = Pump::new(Toy::default());
    pump.with(T, |toy| toy.actions.push_back(Action::Spawn(A)));
    assert_eq!(ops(&mut pump), [Op::Open(A)]);
    pump.with(T, |toy| toy.actions.push_back(Action::Abort(A)));
    pump.complete(T, Done::Opened(A, Ok(())));
    assert_eq!(ops(&mut pump), [Op::Close(A)]);
    assert_eq!(pump.in_flight(), 1);
    pump.complete(T, Done::Closed(A));
    assert!(pump.is_settled());
    assert_eq!(pump.machine().heard(), []);
}

#[test]
fn nothing_is_opened_after_close_all() {
    let mut pump = quiet(&[A]);
    pump.close_all(T);
    pump.close_all(T);
    pump.with(T, |toy| toy.actions.push_back(Action::Spawn(B)));
    pump.complete(T, Done::Opened(B, Ok(())));
    assert_eq!(ops(&mut pump), [Op::Close(A)]);
    pump.complete(T, Done::Closed(A));
    assert!(pump.is_settled());
}

#[test]
fn signals_keep_their_place_among_actions_and_are_not_counted() {
    let mut pump = quiet(&[A]);
    pump.with(T, |toy| {
        toy.send(A, b"x");
        toy.actions.extend([Action::Signal(A, Signal::Terminate), Action::Spawn(B)]);
        toy.actions.push_back(Action::Signal(B, Signal::Kill));
    });
    assert_eq!(ops(&mut pump), [Op::Signal(A, Signal::Terminate), Op::Open(B), Op::Write(A)]);
    assert_eq!(pump.in_flight(), 2);
}

#[test]
fn time_never_goes_back() {
    let (early, late) = (Instant::from_millis(1), Instant::from_millis(2));
    let mut pump = Pump::new(Toy::default());
    pump.handle_timeout(late);
    pump.handle_timeout(early);
    pump.complete(early, Done::Opened(A, Ok(())));
    assert_eq!(pump.machine().timeouts, [late, late]);
    assert_eq!(pump.machine().heard, [(late, Heard::Opened(A))]);
}

#[test]
fn a_turn_costs_what_is_active() {
    let idle: Vec<Port> = (0..1000).map(Port::new).collect();
    let mut pump = quiet(&idle);
    let before = (pump.machine().transmit_calls, pump.machine().wants_calls.get());
    pump.with(T, |toy| toy.send(A, b"x"));
    assert_eq!(ops(&mut pump), [Op::Write(A)]);
    wrote(&mut pump, A, 1);
    assert_eq!(ops(&mut pump), []);
    let toy = pump.machine();
    assert_eq!(toy.transmit_calls - before.0, 2);
    assert!(toy.wants_calls.get() - before.1 <= 2);
}

#[test]
fn write_buffers_are_reused_and_large_ones_given_back() {
    let mut pump = quiet(&[A]);
    let mut write = |len: usize| {
        pump.with(T, |toy| toy.send(A, &vec![b'x'; len]));
        assert_eq!(ops(&mut pump), [Op::Write(A)]);
        let at = pump.write_bytes(A).as_ptr();
        wrote(&mut pump, A, 1);
        wrote(&mut pump, A, 1);
        assert_eq!(ops(&mut pump), [Op::Write(A)]);
        wrote(&mut pump, A, len);
        assert_eq!(ops(&mut pump), []);
        (at, pump.ports.get(A).unwrap().capacity())
    };
    let (first, _) = write(1000);
    let (second, kept) = write(1000);
    assert_eq!(first, second);
    assert!(kept >= 1000);
    assert_eq!(write(300 * 1024).1, 0);
}

#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    Complete { which: usize, part: usize },
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1usize..3000).prop_map(Step::Send),
        (any::<usize>(), 1usize..5000).prop_map(|(which, part)| Step::Complete { which, part }),
        (1usize..500).prop_map(Step::Read),
    ]
}

proptest! {
    /// Whatever the order and size of completions: bytes arrive in order, none is lost, and at the end nothing
    /// is in flight.
    #[test]
    fn nothing_is_lost_or_reordered(steps in prop::collection::vec((any::<bool>(), step()), 1..200), ordered: bool) {
        let mut pump = Pump::new(Toy::default());
        let mut flying: Vec<Op> = Vec::new();
        let (mut sent, mut arrived, mut incoming, mut counter) =
            ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()], [Vec::new(), Vec::new()], 0u8);
        let side = |port: Port| usize::from(port == B);
        let mut bytes = |len: usize| -> Vec<u8> {
            (0..len).map(|_| { counter = counter.wrapping_add(1); counter }).collect()
        };
        pump.complete(T, Done::Opened(A, Ok(())));
        pump.complete(T, Done::Opened(B, Ok(())));
        let mut write = |pump: &mut Pump<Toy>, port: Port, part: usize| {
            let ready = pump.write_bytes(port);
            let part = part.min(ready.len());
            arrived[side(port)].extend_from_slice(&ready[..part]);
            pump.complete(T, Done::Wrote(port, Outcome::Ok(part)));
        };
        for (first, step) in steps {
            let port = if first { A } else { B };
            match step {
                Step::Send(len) => {
                    let frame = bytes(len);
                    sent[side(port)].extend_from_slice(&frame);
                    pump.with(T, |toy| toy.send(port, &frame));
                }
                Step::Complete { which, part } if !flying.is_empty() => {
                    let op = flying.remove(which % flying.len());
                    match op {
                        Op::Write(port) => write(&mut pump, port, part),
                        Op::Read(port, _) => pump.complete(T, Done::Read(port, Outcome::Cancelled)),
                        op => panic!("{op:?}"),
                    }
                }
                Step::Complete { .. } => {}
                Step::Read(len) => {
                    if let Some(at) = flying.iter().position(|op| *op == Op::Read(port, READ_CHUNK)) {
                        let _ = flying.remove(at);
                        let data = bytes(len);
                        incoming[side(port)].extend_from_slice(&data);
                        pump.complete(T, Done::Read(port, Outcome::Ok(&data)));
                    }
                }
            }
            flying.extend(ops(&mut pump));
            prop_assert_eq!(pump.in_flight(), flying.len());
        }
        while let Some(at) = flying.iter().position(|op| matches!(op, Op::Write(_))) {
            let Op::Write(port) = flying.remove(at) else { unreachable!() };
            write(&mut pump, port, 1000);
            flying.extend(ops(&mut pump));
        }
        prop_assert_eq!(&sent, &arrived);
        for port in [A, B] {
            prop_assert_eq!(&pump.machine().bytes_of(port), &incoming[side(port)]);
        }
        pump.with(T, |toy| { toy.send(A, b"unsent"); toy.finish(B); });
        flying.extend(ops(&mut pump));
        pump.close_all(T);
        flying.extend(ops(&mut pump));
        if !ordered {
            flying.reverse();
        }
        for op in flying {
            match op {
                Op::Read(port, _) => pump.complete(T, Done::Read(port, Outcome::Cancelled)),
                Op::Write(port) => pump.complete(T, Done::Wrote(port, Outcome::Cancelled)),
                Op::Finish(port) => pump.complete(T, Done::Finished(port)),
                Op::Close(port) => pump.complete(T, Done::Closed(port)),
                op => panic!("{op:?}"),
            }
        }
        prop_assert_eq!(pump.in_flight(), 0);
        prop_assert!(pump.is_settled());
    }
}
