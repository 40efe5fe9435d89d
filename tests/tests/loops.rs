//! The loop with real processes and sockets, and a machine that does what the test says, over each engine.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use lumen_driver::Pump;
use lumen_os::engine::{Engine, Loop, MAX_ENDED};
use lumen_os::stdio::{Stdin, Stdout};
use lumen_os::{CommandSpec, Stderr, Target};
use lumen_proto::{
    Action, ChildEvent, Exit, Input, Instant, Machine, OpenError, OpenErrorKind, Port, Signal, Transmit,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// An engine, and what differs in how it is made.
trait Kit: Engine {
    fn new(target: Option<Target>) -> Loop<Toy, Self>;

    fn halves(read: Stdin, write: Stdout) -> Self::Stream;
}

impl Kit for lumen_std::Engine {
    fn new(target: Option<Target>) -> Loop<Toy, Self> {
        lumen_std::Loop::new(Toy::default(), target)
    }

    fn halves(read: Stdin, write: Stdout) -> lumen_std::Stream {
        lumen_std::Stream::halves(read, write)
    }
}

impl Kit for lumen_uring::Engine {
    fn new(target: Option<Target>) -> Loop<Toy, Self> {
        lumen_uring::Loop::new(Toy::default(), target).unwrap()
    }

    fn halves(read: Stdin, write: Stdout) -> lumen_uring::Stream {
        lumen_uring::Stream::halves(read, write).unwrap()
    }
}

thread_local! {
    /// How long the loops of this test look before they sleep.
    static SPIN: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Long enough to find most of what comes.
const LOOKING: Duration = Duration::from_micros(500);

/// Makes a loop.
fn made<E: Kit>(target: Option<Target>) -> Loop<Toy, E> {
    let mut made = E::new(target);
    made.set_spin(SPIN.get());
    made
}

/// Runs a story on each engine.
macro_rules! on_each_engine {
    ($($story:ident)*) => {
        mod on_std {
            $(#[test] fn $story() { super::$story::<lumen_std::Engine>(); })*
        }
        mod on_uring {
            $(#[test] fn $story() { if lumen_tests::ring::is_here() { super::$story::<lumen_uring::Engine>(); } })*
        }
        /// The same, but it is looked for a while before it sleeps.
        mod on_std_looking {
            $(#[test] fn $story() { super::SPIN.set(super::LOOKING); super::$story::<lumen_std::Engine>(); })*
        }
        mod on_uring_looking {
            $(#[test] fn $story() {
                super::SPIN.set(super::LOOKING);
                if lumen_tests::ring::is_here() { super::$story::<lumen_uring::Engine>(); }
            })*
        }
    };
}

on_each_engine! {
    child_is_talked_to_ends_and_is_remembered
    both_pipes_full_is_no_deadlock
    standard_error_is_drained_handed_out_and_its_end_kept
    what_cannot_be_opened_is_said_in_short_and_in_words
    abort_close_and_drop_end_the_whole_tree
    signal_reaches_the_whole_tree
    child_that_reads_no_more_loses_output_and_is_still_heard
    socket_half_closes_and_is_read_on
    halves_are_standard_streams_of_any_kind
    connects_to_unix_and_tcp_sockets
    paused_port_is_not_read_until_it_is_ready
    nothing_is_waited_for_after_a_port_that_was_being_read_is_closed
    everything_is_read_however_many_ports_can_be_read_at_once
    endless_input_does_not_hide_the_watched_descriptor_or_a_deadline
    watched_descriptor_wakes_a_turn_and_its_end_does_not_spin
    ended_streams_and_processes_do_not_spin
    event_that_waits_keeps_a_turn_from_waiting
    only_the_last_ended_ports_are_remembered
}

const PORT: Port = Port::new(1);
const OTHER: Port = Port::new(2);

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Opened(Port),
    Data(Port, Vec<u8>),
    Eof(Port),
    Lost(Port),
    Finished(Port),
    Child(Port, ChildEvent),
    Timeout,
}

/// Tells all that it hears, and sends and does what it is told.
#[derive(Debug, Default)]
struct Toy {
    events: VecDeque<Event>,
    actions: VecDeque<Action>,
    ready: VecDeque<Port>,
    output: BTreeMap<Port, VecDeque<Vec<u8>>>,
    finishing: BTreeSet<Port>,
    paused: BTreeSet<Port>,
    timeout: Option<Instant>,
}

impl Toy {
    fn send(&mut self, port: Port, bytes: &[u8]) {
        self.output.entry(port).or_default().push_back(bytes.to_vec());
        self.ready.push_back(port);
    }

    fn finish(&mut self, port: Port) {
        self.finishing.insert(port);
        self.ready.push_back(port);
    }
}

impl Machine for Toy {
    type Event = Event;

    fn handle_input(&mut self, _now: Instant, input: Input<'_>) {
        self.events.push_back(match input {
            Input::Opened(port) => Event::Opened(port),
            Input::Data(port, bytes) => Event::Data(port, bytes.to_vec()),
            Input::Eof(port) => Event::Eof(port),
            Input::Lost(port) => Event::Lost(port),
            Input::Finished(port) => Event::Finished(port),
            Input::Child(port, event) => Event::Child(port, event),
        });
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timeout.is_some_and(|due| due <= now) {
            self.timeout = None;
            self.events.push_back(Event::Timeout);
        }
    }

    fn wants_input(&self, port: Port) -> usize {
        if self.paused.contains(&port) { 0 } else { usize::MAX }
    }

    fn poll_ready(&mut self) -> Option<Port> {
        self.ready.pop_front()
    }

    fn poll_transmit(&mut self, _now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        if let Some(bytes) = self.output.get_mut(&port).and_then(VecDeque::pop_front) {
            out.extend_from_slice(&bytes);
            return Transmit::More;
        }
        if self.finishing.contains(&port) { Transmit::Finish } else { Transmit::Idle }
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timeout
    }
}

/// What came of a port, gathered until it was enough.
#[derive(Debug, Default)]
struct Seen {
    data: Vec<u8>,
    events: Vec<Event>,
}

fn until<E: Kit>(driver: &mut Loop<Toy, E>, is_enough: impl Fn(&Seen) -> bool) -> Seen {
    let mut seen = Seen::default();
    driver
        .run_until(|driver| {
            while let Some(event) = driver.poll_event() {
                match event {
                    Event::Data(_, bytes) => seen.data.extend_from_slice(&bytes),
                    other => seen.events.push(other),
                }
            }
            is_enough(&seen).then_some(())
        })
        .unwrap();
    seen
}

fn has_ended(seen: &Seen) -> bool {
    let is_exit = |event: &Event| matches!(event, Event::Child(_, ChildEvent::Exited(_)));
    seen.events.contains(&Event::Eof(PORT)) && seen.events.iter().any(is_exit)
}

fn sh(script: &str) -> CommandSpec {
    CommandSpec::new("/bin/sh").args(["-c", script]).stderr(Stderr::Ignore)
}

fn started<E: Kit>(spec: CommandSpec) -> Loop<Toy, E> {
    let mut driver = made::<E>(Some(Target::Command(spec)));
    driver.with(|toy| toy.actions.push_back(Action::Spawn(PORT)));
    driver
}

fn child_is_talked_to_ends_and_is_remembered<E: Kit>() {
    let mut driver = started::<E>(sh("cat; exit 3"));
    driver.with(|toy| toy.send(PORT, b"hello"));
    let seen = until(&mut driver, |seen| !seen.data.is_empty());
    assert_eq!((seen.data, seen.events), (b"hello".to_vec(), vec![Event::Opened(PORT)]));
    assert_eq!(driver.child_exit(PORT), None);
    driver.with(|toy| toy.finish(PORT));
    let seen = until(&mut driver, has_ended);
    assert!(seen.events.contains(&Event::Finished(PORT)), "{seen:?}");
    assert!(seen.events.contains(&Event::Child(PORT, ChildEvent::Exited(Exit::Code(3)))), "{seen:?}");

    assert!(!driver.is_settled());
    driver.with(|toy| toy.actions.push_back(Action::Abort(PORT)));
    driver.wait_until(Pump::is_settled).unwrap();
    assert_eq!(driver.child_exit(PORT), Some(Exit::Code(3)));
    let counters = driver.counters(PORT);
    assert_eq!((counters.bytes_read, counters.bytes_written), (5, 5));
    assert_eq!(driver.turn(None).unwrap_err().kind(), io::ErrorKind::Deadlock);
}

fn both_pipes_full_is_no_deadlock<E: Kit>() {
    let mut driver = started::<E>(sh("head -c 3000000 /dev/zero; head -c 3000000 | wc -c"));
    driver.with(|toy| {
        for _ in 0..3 {
            toy.send(PORT, &vec![b'x'; 1_000_000]);
        }
    });
    let seen = until(&mut driver, has_ended);
    assert_eq!(seen.data.len(), 3_000_000 + "3000000\n".len());
    assert!(seen.data.ends_with(b"3000000\n"));
}

fn standard_error_is_drained_handed_out_and_its_end_kept<E: Kit>() {
    let lines = Arc::new(Mutex::new((0, Vec::new())));
    let sink = Arc::clone(&lines);
    let on_line = Box::new(move |line: &[u8]| {
        let mut lines = sink.lock().unwrap();
        lines.0 += line.len();
        lines.1 = line.to_vec();
    });
    let script = "head -c 300000 /dev/zero >&2; echo answer; echo >&2; printf 'last words' >&2; exit 1";
    let mut driver = started::<E>(sh(script).stderr(Stderr::Lines(on_line)));
    let seen = until(&mut driver, has_ended);
    assert_eq!(seen.data, b"answer\n");
    driver.close_all();
    assert_eq!(*lines.lock().unwrap(), (300_000 + 10, b"last words".to_vec()));
    let tail = driver.stderr_tail(PORT).unwrap();
    assert_eq!(tail.text(), "last words");
    assert!(tail.dropped() > 280_000);
}

fn what_cannot_be_opened_is_said_in_short_and_in_words<E: Kit>() {
    let mut driver = started::<E>(CommandSpec::new("no-such-program-of-lumen"));
    let seen = until(&mut driver, |seen| !seen.events.is_empty());
    let error = OpenError { kind: OpenErrorKind::NotFound, errno: 2 };
    assert_eq!(seen.events, [Event::Child(PORT, ChildEvent::Failed(error))]);
    assert!(driver.open_error().unwrap().contains("no-such-program-of-lumen"));
    assert!(driver.is_settled());

    let mut driver = made::<E>(None);
    driver.with(|toy| toy.actions.push_back(Action::Spawn(PORT)));
    until(&mut driver, |seen| matches!(seen.events[..], [Event::Child(_, ChildEvent::Failed(_))]));
    assert!(driver.open_error().is_some());
}

/// Starts a child with a grandchild, and follows that.
fn with_grandchild<E: Kit>() -> (Loop<Toy, E>, OwnedFd) {
    let mut driver = started::<E>(sh("sleep 1000 & echo $!; wait"));
    let seen = until(&mut driver, |seen| seen.data.ends_with(b"\n"));
    let pid = String::from_utf8(seen.data).unwrap().trim().parse().unwrap();
    let grandchild = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    (driver, grandchild)
}

fn wait_for_end(process: &OwnedFd) {
    poll(&mut [PollFd::new(process, PollFlags::IN)], None).unwrap();
}

fn abort_close_and_drop_end_the_whole_tree<E: Kit>() {
    let (mut driver, grandchild) = with_grandchild::<E>();
    driver.with(|toy| toy.actions.push_back(Action::Abort(PORT)));
    driver.wait_until(Pump::is_settled).unwrap();
    wait_for_end(&grandchild);
    assert_eq!(driver.child_exit(PORT), Some(Exit::Signal(9)));

    let (mut driver, grandchild) = with_grandchild::<E>();
    driver.close_all();
    assert!(driver.is_settled());
    wait_for_end(&grandchild);

    let (driver, grandchild) = with_grandchild::<E>();
    drop(driver);
    wait_for_end(&grandchild);
}

fn signal_reaches_the_whole_tree<E: Kit>() {
    let (mut driver, grandchild) = with_grandchild::<E>();
    driver.with(|toy| toy.actions.push_back(Action::Signal(PORT, Signal::Terminate)));
    let seen = until(&mut driver, has_ended);
    assert!(seen.events.contains(&Event::Child(PORT, ChildEvent::Exited(Exit::Signal(15)))), "{seen:?}");
    wait_for_end(&grandchild);
}

fn child_that_reads_no_more_loses_output_and_is_still_heard<E: Kit>() {
    let mut driver = started::<E>(sh("exec <&-; echo closed; sleep 1000"));
    until(&mut driver, |seen| seen.data == b"closed\n");
    // Not at once in every case: a process that another test is just starting may hold a copy of the pipe.
    let event = loop {
        driver.with(|toy| toy.send(PORT, b"into the void"));
        driver.turn(Some(Instant::ZERO)).unwrap();
        if let Some(event) = driver.poll_event() {
            break event;
        }
    };
    assert_eq!(event, Event::Lost(PORT));
}

fn socket_half_closes_and_is_read_on<E: Kit>() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut driver = made::<E>(None);
    driver.attach(PORT, E::socket(ours.into()).unwrap());
    driver.with(|toy| {
        toy.send(PORT, b"question");
        toy.finish(PORT);
    });
    until(&mut driver, |seen| seen.events.contains(&Event::Finished(PORT)));
    let mut question = String::new();
    theirs.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    theirs.write_all(b"answer").unwrap();
    drop(theirs);
    let seen = until(&mut driver, |seen| seen.events.contains(&Event::Eof(PORT)));
    assert_eq!(seen.data, b"answer");
    driver.close_all();
    assert!(driver.is_settled());
}

fn halves_are_standard_streams_of_any_kind<E: Kit>() {
    let (in_read, mut in_write) = io::pipe().unwrap();
    let (mut out_read, out_write) = io::pipe().unwrap();
    let stdin = Stdin::new(in_read.into()).unwrap();
    let stdout = Stdout::new(out_write.into()).unwrap();
    let mut driver = made::<E>(None);
    driver.attach(PORT, E::halves(stdin, stdout));
    in_write.write_all(b"in").unwrap();
    drop(in_write);
    driver.with(|toy| {
        toy.send(PORT, b"out");
        toy.finish(PORT);
    });
    let seen = until(&mut driver, |seen| seen.events.contains(&Event::Eof(PORT)));
    assert_eq!(seen.data, b"in");
    until(&mut driver, |_| true);
    let mut out = String::new();
    out_read.read_to_string(&mut out).unwrap();
    assert_eq!(out, "out");
}

fn connects_to_unix_and_tcp_sockets<E: Kit>() {
    let path = std::env::temp_dir().join(format!(
        "lumen-loops-{}-{}",
        std::process::id(),
        std::any::type_name::<E>()
    ));
    let unix = UnixListener::bind(&path).unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    let accept_unix = || OwnedFd::from(unix.accept().unwrap().0);
    let accept_tcp = || OwnedFd::from(tcp.accept().unwrap().0);
    let cases: [(Target, &dyn Fn() -> OwnedFd); 2] =
        [(Target::Unix(path.clone()), &accept_unix), (Target::Tcp(address), &accept_tcp)];
    for (target, accept) in cases {
        let mut driver = made::<E>(Some(target));
        driver.with(|toy| toy.actions.push_back(Action::Spawn(PORT)));
        until(&mut driver, |seen| seen.events == [Event::Opened(PORT)]);
        driver.attach(OTHER, E::socket(accept()).unwrap());
        driver.with(|toy| toy.send(OTHER, b"welcome"));
        let seen = until(&mut driver, |seen| !seen.data.is_empty());
        assert_eq!(seen.data, b"welcome");
    }
    std::fs::remove_file(&path).unwrap();
}

fn paused_port_is_not_read_until_it_is_ready<E: Kit>() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut driver = made::<E>(None);
    driver.with(|toy| toy.paused.extend([PORT]));
    driver.attach(PORT, E::socket(ours.into()).unwrap());
    theirs.write_all(b"wait").unwrap();
    assert_eq!(driver.poll_event(), Some(Event::Opened(PORT)));
    driver.turn(Some(Instant::ZERO)).unwrap();
    assert_eq!(driver.poll_event(), None);
    driver.with(|toy| {
        toy.paused.clear();
        toy.ready.push_back(PORT);
    });
    let seen = until(&mut driver, |seen| !seen.data.is_empty());
    assert_eq!(seen.data, b"wait");
}

fn nothing_is_waited_for_after_a_port_that_was_being_read_is_closed<E: Kit>() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut driver = made::<E>(None);
    driver.attach(PORT, E::socket(ours.into()).unwrap());
    assert_eq!(driver.poll_event(), Some(Event::Opened(PORT)));
    // Its read is started, and something else ends the wait.
    let (watched, ended) = std::io::pipe().unwrap();
    driver.watch(watched);
    drop(ended);
    driver.turn(None).unwrap();
    assert!(driver.take_woken());
    driver.with(|toy| toy.actions.push_back(Action::Abort(PORT)));
    assert_eq!(driver.next_event().unwrap(), None);
}

fn everything_is_read_however_many_ports_can_be_read_at_once<E: Kit>() {
    let mut driver = made::<E>(None);
    let mut peers = Vec::new();
    for index in 0..300 {
        let (ours, theirs) = UnixStream::pair().unwrap();
        driver.attach(Port::new(index), E::socket(ours.into()).unwrap());
        peers.push(theirs);
    }
    // All wait to be read before there is anything.
    for _ in 0..10 {
        driver.turn(Some(Instant::ZERO)).unwrap();
        while driver.poll_event().is_some() {}
    }
    for peer in &mut peers {
        peer.write_all(b"x").unwrap();
    }
    let seen = until(&mut driver, |seen| seen.data.len() == peers.len() || !seen.events.is_empty());
    assert_eq!((seen.data.len(), seen.events), (peers.len(), vec![]));
}

fn endless_input_does_not_hide_the_watched_descriptor_or_a_deadline<E: Kit>() {
    let zero = std::fs::File::open("/dev/zero").unwrap();
    let null = std::fs::File::options().write(true).open("/dev/null").unwrap();
    let stdin = Stdin::new(zero.into()).unwrap();
    let stdout = Stdout::new(null.into()).unwrap();
    let mut driver = made::<E>(None);
    driver.attach(PORT, E::halves(stdin, stdout));
    let (read, mut write) = io::pipe().unwrap();
    driver.watch(read);
    until(&mut driver, |seen| seen.data.len() > 1_000_000);
    assert!(!driver.take_woken());
    write.write_all(b"!").unwrap();
    driver
        .run_until(|driver| {
            while driver.poll_event().is_some() {}
            driver.take_woken().then_some(())
        })
        .unwrap();
    let soon = driver.now() + Duration::from_millis(1);
    driver.with(|toy| toy.timeout = Some(soon));
    until(&mut driver, |seen| seen.events == [Event::Timeout]);
}

fn watched_descriptor_wakes_a_turn_and_its_end_does_not_spin<E: Kit>() {
    let mut driver = started::<E>(sh("exec sleep 1000"));
    until(&mut driver, |seen| !seen.events.is_empty());
    let (read, write) = io::pipe().unwrap();
    driver.watch(read);
    drop(write);
    driver.turn(None).unwrap();
    assert!(driver.take_woken());
    let deadline = driver.now() + Duration::from_millis(5);
    driver.turn(Some(deadline)).unwrap();
    assert!(driver.now() >= deadline, "nothing else happened, so the turn lasts until its deadline");
}

fn ended_streams_and_processes_do_not_spin<E: Kit>() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut driver = started::<E>(sh("exit 0"));
    driver.attach(OTHER, E::socket(ours.into()).unwrap());
    drop(theirs);
    until(&mut driver, |seen| has_ended(seen) && seen.events.contains(&Event::Eof(OTHER)));
    // That its standard error has ended may be one more thing that happens.
    let mut turns = 0..3;
    let is_quiet = turns.any(|_| {
        let deadline = driver.now() + Duration::from_millis(5);
        driver.turn(Some(deadline)).unwrap();
        driver.now() >= deadline
    });
    assert!(is_quiet);
}

fn event_that_waits_keeps_a_turn_from_waiting<E: Kit>() {
    let mut driver = started::<E>(sh("exec sleep 1000"));
    until(&mut driver, |seen| !seen.events.is_empty());
    driver.with(|toy| toy.events.push_back(Event::Timeout));
    driver.turn(None).unwrap();
    driver.turn(None).unwrap();
    assert_eq!(driver.poll_event(), Some(Event::Timeout));
    assert_eq!(driver.poll_event(), None);
}

fn only_the_last_ended_ports_are_remembered<E: Kit>() {
    let mut driver = made::<E>(None);
    for index in 0..=u32::try_from(MAX_ENDED).unwrap() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let port = Port::new(index);
        driver.attach(port, E::socket(ours.into()).unwrap());
        assert_eq!(lumen_os::send(theirs.as_fd(), b"x").unwrap(), 1);
        until(&mut driver, |seen| !seen.data.is_empty());
        driver.with(|toy| toy.actions.push_back(Action::Abort(port)));
        driver.wait_until(Pump::is_settled).unwrap();
        assert_eq!(driver.counters(port).bytes_read, 1);
    }
    assert_eq!(driver.counters(Port::new(0)).bytes_read, 0);
    assert!(driver.stderr_tail(Port::new(0)).is_none());
}
