//! Tests of the imitation, in a world made of queues.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use lumen_proto::{Action, OpenErrorKind};
use proptest::prelude::*;

use super::*;
use crate::toy::{Heard, Toy};

const A: Port = Port::new(0);
const B: Port = Port::new(1);

/// One end of a stream: what the test put there to be read, and what was written to it.
#[derive(Default)]
struct End {
    incoming: VecDeque<u8>,
    ended: bool,
    broken: bool,
    interrupts: usize,
    room: usize,
    written: Vec<u8>,
    finished: bool,
    dropped: bool,
    opens: Option<Result<(), OpenError>>,
    exit: Option<Exit>,
    closes: bool,
    waiting: Vec<Waker>,
    polls: usize,
}

#[derive(Default)]
struct Fake {
    now: u64,
    /// Something arrives here at the very moment of going to sleep.
    arrives_late: Option<Port>,
    ends: BTreeMap<Port, End>,
    log: Vec<String>,
}

#[derive(Clone, Default)]
struct Sim(Rc<RefCell<Fake>>);

struct Side(Port, Sim);

impl Sim {
    /// Changes an end and wakes whoever waits for it.
    fn change(&self, port: Port, change: impl FnOnce(&mut End)) {
        let waiting = {
            let mut fake = self.0.borrow_mut();
            let end = fake.ends.entry(port).or_default();
            change(end);
            std::mem::take(&mut end.waiting)
        };
        waiting.iter().for_each(Waker::wake_by_ref);
    }

    fn poll<T>(&self, cx: &Context<'_>, port: Port, poll: impl FnOnce(&mut End) -> Option<T>) -> Poll<T> {
        let mut fake = self.0.borrow_mut();
        let end = fake.ends.entry(port).or_default();
        end.polls += 1;
        let result = poll(end);
        if result.is_none() {
            end.waiting.push(cx.waker().clone());
        }
        result.map_or(Poll::Pending, Poll::Ready)
    }

    fn look<T>(&self, port: Port, look: impl FnOnce(&End) -> T) -> T {
        look(&self.0.borrow().ends[&port])
    }

    fn polls(&self) -> usize {
        self.0.borrow().ends.values().map(|end| end.polls).sum()
    }

    fn side(&self, port: Port) -> Side {
        Side(port, self.clone())
    }

    fn note(&self, what: String) {
        self.0.borrow_mut().log.push(what);
    }
}

impl Stream for Side {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.1.poll(cx, self.0, |end| {
            if end.interrupts > 0 {
                end.interrupts -= 1;
                return Some(Err(ErrorKind::Interrupted.into()));
            }
            let count = buf.len().min(end.incoming.len());
            for (to, from) in buf.iter_mut().zip(end.incoming.drain(..count)) {
                *to = from;
            }
            (count > 0 || end.ended).then_some(Ok(count))
        })
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        assert!(!bytes.is_empty());
        self.1.poll(cx, self.0, |end| {
            if end.broken {
                return Some(Err(ErrorKind::BrokenPipe.into()));
            }
            let count = bytes.len().min(end.room);
            end.room -= count;
            end.written.extend_from_slice(&bytes[..count]);
            (count > 0).then_some(Ok(count))
        })
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.1.poll(cx, self.0, |end| {
            end.finished = true;
            Some(())
        })
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.1.0.borrow_mut().ends.entry(self.0).or_default().dropped = true;
    }
}

impl World for Sim {
    type Stream = Side;

    fn now(&self) -> Instant {
        Instant::from_millis(self.0.borrow().now)
    }

    fn start_open(&mut self, port: Port) {
        self.note(format!("open {port}"));
    }

    fn poll_open(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Result<Side, OpenError>> {
        self.poll(cx, port, |end| end.opens.take()).map_ok(|()| self.side(port))
    }

    fn poll_process(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<Exit> {
        self.poll(cx, port, |end| end.exit.take())
    }

    fn signal(&mut self, port: Port, signal: Signal) {
        self.note(format!("{signal:?} {port}"));
    }

    fn start_close(&mut self, port: Port) {
        self.note(format!("close {port}"));
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, port: Port) -> Poll<()> {
        self.poll(cx, port, |end| end.closes.then_some(()))
    }

    fn poll_sleep(&mut self, _cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()> {
        let late = self.0.borrow_mut().arrives_late.take();
        if let Some(port) = late {
            self.change(port, |end| end.incoming.extend(b"late"));
        }
        match until {
            Some(until) if until <= self.now() => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

struct Rig {
    sim: Sim,
    io: PollIo<Toy, Sim>,
    task: Arc<Task>,
}

impl Rig {
    fn new(toy: Toy) -> Self {
        let sim = Sim::default();
        Self { io: PollIo::new(toy, sim.clone()), sim, task: Arc::default() }
    }

    fn attached(toy: Toy, ports: impl IntoIterator<Item = Port>) -> Self {
        let mut rig = Self::new(toy);
        for port in ports {
            rig.io.attach(port, rig.sim.side(port));
        }
        while rig.poll() == Poll::Pending && rig.wakes() > 0 {}
        rig
    }

    fn poll(&mut self) -> Poll<Option<u32>> {
        let waker = Waker::from(Arc::clone(&self.task));
        self.io.poll_event(&mut Context::from_waker(&waker))
    }

    fn wakes(&self) -> usize {
        self.task.0.swap(0, Ordering::Relaxed)
    }
}

#[test]
fn idle_ports_cost_no_polls() {
    let mut rig = Rig::attached(Toy::echo(), (0..1000).map(Port::new));
    let before = rig.sim.polls();
    rig.sim.change(A, |end| {
        end.room = 1000;
        end.incoming.extend(b"request");
    });
    assert_eq!(rig.wakes(), 1);
    assert_eq!(rig.poll(), Poll::Pending);
    rig.sim.look(A, |end| assert_eq!(end.written, b"request"));
    let polls = rig.sim.polls() - before;
    assert!(polls <= 12, "{polls}");
    assert_eq!(rig.wakes(), 0);
}

#[test]
fn what_many_ports_say_at_once_goes_on_in_one_write() {
    let many = 1..=50;
    let mut toy = Toy::default();
    toy.forwards_to = Some(A);
    let mut rig = Rig::attached(toy, std::iter::once(A).chain(many.clone().map(Port::new)));
    rig.sim.change(A, |end| end.room = 1000);
    for port in many {
        rig.sim.change(Port::new(port), |end| end.incoming.extend(b"request"));
    }
    assert_eq!(rig.poll(), Poll::Pending);
    assert_eq!((rig.io.counters(A).bytes_written, rig.io.counters(A).writes), (350, 1));
}

#[test]
fn a_write_goes_on_when_there_is_room() {
    let mut rig = Rig::attached(Toy::default(), [A]);
    rig.io.with(|toy| {
        toy.send(A, b"hello");
        toy.finish(A);
    });
    for (room, seen) in [(0, &b""[..]), (2, b"he"), (3, b"hello")] {
        rig.sim.change(A, |end| end.room += room);
        assert_eq!(rig.poll(), Poll::Pending);
        rig.sim.look(A, |end| assert_eq!((&end.written[..], end.finished), (seen, seen.len() == 5)));
    }
    assert_eq!(rig.io.machine().heard(), [Heard::Opened(A), Heard::Finished(A)]);
    assert_eq!(rig.io.counters(A).bytes_written, 5);
}

#[test]
fn a_failed_write_is_lost_and_an_interrupted_read_repeated() {
    let mut rig = Rig::attached(Toy::default(), [A]);
    rig.io.with(|toy| toy.send(A, b"x"));
    rig.sim.change(A, |end| {
        (end.broken, end.ended, end.interrupts) = (true, true, 2);
        end.incoming.extend(b"y");
    });
    assert_eq!(rig.poll(), Poll::Pending);
    let heard = rig.io.machine().heard();
    let lost = heard.iter().position(|one| *one == Heard::Lost(A)).expect("it is lost");
    let mut rest = heard;
    rest.remove(lost);
    assert_eq!(rest, [Heard::Opened(A), Heard::Data(A, b"y".to_vec()), Heard::Eof(A)]);
}

#[test]
fn a_process_is_opened_signalled_heard_of_and_closed() {
    let mut rig = Rig::new(Toy::default());
    rig.io.with(|toy| toy.actions.push_back(Action::Spawn(A)));
    assert_eq!(rig.poll(), Poll::Pending);
    rig.sim.change(A, |end| (end.opens, end.exit) = (Some(Ok(())), Some(Exit::Code(7))));
    assert_eq!((rig.wakes(), rig.poll()), (1, Poll::Pending));
    assert_eq!(rig.io.machine().heard(), [Heard::Opened(A), Heard::Exited(A, Exit::Code(7))]);
    rig.io.with(|toy| toy.actions.extend([Action::Signal(A, Signal::Kill), Action::Abort(A)]));
    assert_eq!(rig.poll(), Poll::Pending);
    rig.sim.look(A, |end| assert!(end.dropped, "the stream is let go before the process has ended"));
    rig.wakes();
    rig.sim.change(A, |end| end.closes = true);
    assert_eq!((rig.wakes(), rig.poll()), (1, Poll::Ready(None)));
    assert_eq!(rig.sim.0.borrow().log, ["open 0.0", "Kill 0.0", "close 0.0"]);
    assert_eq!(rig.io.machine().heard().len(), 2);
    assert!(rig.io.ports.is_empty());
}

#[test]
fn nothing_is_read_that_was_not_asked_for() {
    let mut rig = Rig::attached(Toy::default(), [A]);
    rig.io.with(|toy| toy.want(A, 0));
    for bytes in [b"abc", b"def"] {
        rig.sim.change(A, |end| end.incoming.extend(bytes));
        assert_eq!(rig.poll(), Poll::Pending);
        assert_eq!(rig.io.machine().bytes_of(A), b"abc", "the read that was in flight, and no other");
    }
    rig.io.with(|toy| toy.want(A, 2));
    assert_eq!(rig.poll(), Poll::Pending);
    let heard = [b"abc".to_vec(), b"de".to_vec(), b"f".to_vec()].map(|bytes| Heard::Data(A, bytes));
    assert_eq!(rig.io.machine().heard()[1..], heard);
}

#[test]
fn what_arrives_on_the_way_to_sleep_is_not_slept_over() {
    let mut rig = Rig::attached(Toy::default(), [A, B]);
    rig.sim.change(A, |end| end.incoming.extend(b"first"));
    rig.sim.0.borrow_mut().arrives_late = Some(B);
    assert_eq!((rig.wakes(), rig.poll()), (1, Poll::Pending));
    assert_eq!(rig.io.machine().bytes_of(B), b"late");
}

#[test]
fn what_cannot_be_opened_leaves_nothing() {
    let error = OpenError { kind: OpenErrorKind::NotFound, errno: 2 };
    let mut rig = Rig::new(Toy::default());
    rig.io.with(|toy| toy.actions.push_back(Action::Spawn(A)));
    rig.sim.change(A, |end| end.opens = Some(Err(error)));
    assert_eq!(rig.poll(), Poll::Ready(None));
    assert_eq!(rig.io.machine().heard(), [Heard::Failed(A, error)]);
    assert!(rig.io.ports.is_empty());
}

#[test]
fn close_all_takes_back_what_was_started() {
    let mut rig = Rig::attached(Toy::default(), [A, B]);
    rig.io.with(|toy| {
        toy.actions.push_back(Action::Spawn(Port::new(2)));
        toy.send(A, b"stuck");
        toy.deadline = Some(Instant::from_millis(9));
    });
    assert_eq!(rig.poll(), Poll::Pending);
    rig.io.close_all();
    for index in 0..3 {
        assert_eq!(rig.poll(), Poll::Pending);
        rig.sim.change(Port::new(index), |end| end.closes = true);
    }
    assert_eq!(rig.poll(), Poll::Ready(None), "a deadline no longer matters");
    assert_eq!(rig.io.machine().heard(), [Heard::Opened(A), Heard::Opened(B)]);
    rig.io.attach(Port::new(3), rig.sim.side(Port::new(3)));
    assert_eq!(rig.poll(), Poll::Ready(None));
    assert!(rig.io.ports.is_empty());
}

#[test]
fn a_deadline_keeps_it_going_and_fires() {
    let mut rig = Rig::new(Toy::default());
    rig.io.with(|toy| toy.deadline = Some(Instant::from_millis(5)));
    assert_eq!(rig.poll(), Poll::Pending);
    rig.sim.0.borrow_mut().now = 6;
    assert_eq!(rig.poll(), Poll::Ready(Some(0)));
    assert_eq!(rig.poll(), Poll::Ready(None));
    assert_eq!(rig.io.machine().timeouts, [Instant::from_millis(6)], "told the clock, not the deadline");
}

#[test]
fn one_poll_does_not_run_for_ever_and_time_passes_under_load() {
    let mut rig = Rig::attached(Toy::default(), [A]);
    rig.io.with(|toy| {
        toy.want(A, 1);
        toy.deadline = Some(Instant::from_millis(5));
    });
    rig.sim.change(A, |end| end.incoming.extend(vec![b'x'; READ_CHUNK + 4 * TURNS]));
    rig.sim.0.borrow_mut().now = 5;
    assert_eq!(rig.poll(), Poll::Ready(Some(0)), "the deadline did not wait for the end of the load");
    assert!(rig.io.machine().bytes_of(A).len() <= READ_CHUNK + TURNS);
    rig.wakes();
    assert_eq!((rig.poll(), rig.wakes()), (Poll::Pending, 1));
    assert!(rig.io.machine().bytes_of(A).len() <= READ_CHUNK + 2 * TURNS);
}

#[test]
fn a_wake_between_two_tasks_is_not_lost() {
    let mut rig = Rig::attached(Toy::default(), [A]);
    rig.sim.change(A, |end| end.incoming.extend(b"1"));
    assert_eq!(rig.wakes(), 1, "told the task that slept");
    rig.sim.change(B, |_| ());
    rig.task = Arc::default();
    assert_eq!(rig.poll(), Poll::Pending, "another goes on");
    assert_eq!(rig.io.machine().bytes_of(A), b"1");
    rig.sim.change(A, |end| end.incoming.extend(b"2"));
    assert_eq!(rig.wakes(), 1);
}

proptest! {
    /// Whatever comes, and whatever room there is: all that was read is written back, in order, and polling
    /// only when woken is enough.
    #[test]
    fn an_echo_loses_nothing(steps in prop::collection::vec((0u32..3, 0usize..3000, 0usize..3000), 1..60)) {
        let mut rig = Rig::attached(Toy::echo(), (0..3).map(Port::new));
        let mut sent = vec![Vec::new(); 3];
        let mut counter = 0u8;
        let settle = |rig: &mut Rig| {
            while rig.wakes() > 0 {
                prop_assert_eq!(rig.poll(), Poll::Pending);
            }
            Ok(())
        };
        for (index, len, room) in steps {
            let bytes: Vec<u8> = (0..len).map(|_| { counter = counter.wrapping_add(1); counter }).collect();
            sent[index as usize].extend_from_slice(&bytes);
            rig.sim.change(Port::new(index), |end| { end.incoming.extend(bytes); end.room += room; });
            settle(&mut rig)?;
        }
        for index in 0..3 {
            rig.sim.change(Port::new(index), |end| { end.ended = true; end.room = usize::MAX; });
            settle(&mut rig)?;
            rig.sim.look(Port::new(index), |end| {
                prop_assert_eq!(&end.written, &sent[index as usize]);
                prop_assert!(end.finished);
                Ok(())
            })?;
        }
    }
}
