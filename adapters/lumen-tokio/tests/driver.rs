//! The driver against real processes, pipes and sockets.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Event, PORT, Toy, command, pattern, sh};
use lumen_os::stdio::{Stdin, Stdout};
use lumen_os::{Stderr, Target};
use lumen_proto::{Action, Exit, Instant, OpenErrorKind, Signal};
use lumen_tokio::{Driver, Stream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener, UnixStream};

async fn event(driver: &mut Driver<Toy>) -> Event {
    driver.next_event().await.expect("there is more to come")
}

/// Reads until `len` bytes have come.
async fn data(driver: &mut Driver<Toy>, len: usize) -> Vec<u8> {
    let mut data = Vec::new();
    while data.len() < len {
        match event(driver).await {
            Event::Data(bytes) => data.extend(bytes),
            other => panic!("{other:?} after {} bytes", data.len()),
        }
    }
    data
}

/// Takes these events, in whatever order they come.
async fn events(driver: &mut Driver<Toy>, mut expected: Vec<Event>) {
    while !expected.is_empty() {
        let event = event(driver).await;
        let at = expected.iter().position(|one| *one == event);
        expected.remove(at.unwrap_or_else(|| panic!("{event:?} is none of {expected:?}")));
    }
}

async fn round_trip() {
    let mut driver = Driver::new(Toy::spawning(), command("exec cat"));
    assert_eq!(event(&mut driver).await, Event::Opened);
    for message in [&b"hello"[..], b"again"] {
        driver.with(|toy| toy.send(message));
        assert_eq!(data(&mut driver, 5).await, message);
    }
    assert_eq!(driver.child_exit(PORT), None);
    driver.with(Toy::finish);
    events(&mut driver, vec![Event::Finished, Event::Eof, Event::Exited(Exit::Code(0))]).await;
    driver.with(|toy| toy.actions.push_back(Action::Abort(PORT)));
    assert_eq!(driver.next_event().await, None);
    assert_eq!(driver.child_exit(PORT), Some(Exit::Code(0)));
    let counters = driver.counters(PORT);
    assert_eq!((counters.bytes_read, counters.bytes_written), (10, 10));
}

#[tokio::test]
async fn a_child_echoes_and_ends() {
    round_trip().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_moves_between_threads() {
    let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(round_trip())).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn both_pipes_may_be_full() {
    let mut driver = Driver::new(Toy::spawning(), command("exec cat"));
    assert_eq!(event(&mut driver).await, Event::Opened);
    let sent = pattern(8 * 1024 * 1024);
    driver.with(|toy| sent.chunks(300_000).for_each(|chunk| toy.send(chunk)));
    assert!(data(&mut driver, sent.len()).await == sent);
}

/// Every future of `next_event` that is pending once is dropped.
#[tokio::test]
async fn nothing_is_lost_when_the_wait_is_given_up() {
    let mut driver = Driver::new(Toy::spawning(), command("exec cat"));
    let sent = pattern(1024 * 1024);
    driver.with(|toy| sent.chunks(1000).for_each(|chunk| toy.send(chunk)));
    let mut got = Vec::new();
    while got.len() < sent.len() {
        tokio::select! {
            biased;
            event = driver.next_event() => if let Some(Event::Data(bytes)) = event { got.extend(bytes) },
            () = tokio::task::yield_now() => {}
        }
    }
    assert!(got == sent);
}

#[tokio::test]
async fn waiting_for_something_else_keeps_the_events() {
    let mut driver = Driver::new(Toy::spawning(), command("exec cat >/dev/null"));
    driver.with(|toy| pattern(1024 * 1024).chunks(1000).for_each(|chunk| toy.send(chunk)));
    driver.with(Toy::finish);
    assert!(driver.wait_until(|pump| pump.machine().output.is_empty()).await);
    assert!(driver.counters(PORT).bytes_written > 900_000);
    assert_eq!(event(&mut driver).await, Event::Opened);
    driver.close().await;
    assert!(!driver.wait_until(|_| false).await);
}

#[tokio::test]
async fn a_signal_reaches_the_child() {
    let mut driver = Driver::new(Toy::spawning(), command("exec cat"));
    assert_eq!(event(&mut driver).await, Event::Opened);
    driver.with(|toy| toy.actions.push_back(Action::Signal(PORT, Signal::Terminate)));
    events(&mut driver, vec![Event::Eof, Event::Exited(Exit::Signal(15))]).await;
    assert_eq!(driver.child_exit(PORT), Some(Exit::Signal(15)));
}

#[tokio::test]
async fn writing_to_a_child_that_reads_no_more_is_lost() {
    let mut driver = Driver::new(Toy::spawning(), command("exec 0<&-; echo closed; read never"));
    assert_eq!(event(&mut driver).await, Event::Opened);
    assert_eq!(data(&mut driver, 7).await, b"closed\n");
    driver.with(|toy| toy.send(b"x"));
    events(&mut driver, vec![Event::Lost, Event::Eof, Event::Exited(Exit::Code(1))]).await;
}

#[tokio::test]
async fn standard_error_is_drained_handed_out_and_its_tail_kept() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let on_line = move |line: &[u8]| sink.lock().unwrap().push(line.to_vec());
    // More than a pipe holds, so that it would never end if nobody read.
    let spec = sh(
        "i=0; while [ $i -lt 3000 ]; do echo 'a line of noise, 32 bytes long..' >&2; i=$((i+1)); done; printf last >&2; exit 3",
    );
    let spec = spec.stderr(Stderr::Lines(Box::new(on_line)));
    let mut driver = Driver::new(Toy::spawning(), Some(Target::Command(spec)));
    events(&mut driver, vec![Event::Opened, Event::Eof, Event::Exited(Exit::Code(3))]).await;
    assert!(driver.stderr_tail(PORT).unwrap().text().ends_with("long..\nlast"));
    driver.close().await;
    assert!(driver.stderr_tail(PORT).unwrap().text().ends_with("long..\nlast"));
    let lines = lines.lock().unwrap();
    assert_eq!((lines.len(), lines.last().unwrap().as_slice()), (3001, &b"last"[..]));
}

#[tokio::test]
async fn close_ends_a_child_that_ignores_everything() {
    let mut driver =
        Driver::new(Toy::spawning(), command("trap '' TERM; echo up; while :; do sleep 1000; done"));
    assert_eq!(event(&mut driver).await, Event::Opened);
    assert_eq!(data(&mut driver, 3).await, b"up\n");
    driver.close().await;
    assert_eq!(driver.child_exit(PORT), Some(Exit::Signal(9)));
    assert_eq!(driver.next_event().await, None);
}

#[tokio::test]
async fn what_cannot_be_opened_is_told_in_words() {
    let missing = std::env::temp_dir().join("lumen-tokio-no-such-socket");
    let too_long = missing.with_file_name("x".repeat(200));
    // Bound and let go of, so that nobody listens there.
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    for (target, kind, words) in [
        (
            Some(Target::Command(lumen_os::CommandSpec::new("/no/such/lumen"))),
            OpenErrorKind::NotFound,
            "/no/such",
        ),
        (Some(Target::Unix(missing)), OpenErrorKind::NotFound, "no-such-socket"),
        (Some(Target::Unix(too_long)), OpenErrorKind::Other, "longer than"),
        (Some(Target::Tcp(tcp.clone())), OpenErrorKind::Refused, tcp.as_str()),
        (None, OpenErrorKind::NotFound, "nothing to start"),
    ] {
        let mut driver = Driver::new(Toy::spawning(), target);
        let event = event(&mut driver).await;
        assert!(matches!(event, Event::Failed(error) if error.kind == kind), "{event:?}");
        let said = driver.open_error().unwrap();
        assert!(said.contains(words), "{said}");
        assert_eq!(driver.next_event().await, None);
    }
}

async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.unwrap();
    stream.write_all(&all).await.unwrap();
}

/// The peer answers only when it has seen the end of what is sent, so this also shows the half close.
async fn over_a_socket(mut driver: Driver<Toy>) {
    assert_eq!(event(&mut driver).await, Event::Opened);
    driver.with(|toy| {
        toy.send(b"ping");
        toy.finish();
    });
    assert_eq!(event(&mut driver).await, Event::Finished);
    assert_eq!(data(&mut driver, 4).await, b"ping");
    assert_eq!(event(&mut driver).await, Event::Eof);
    driver.close().await;
    assert_eq!(driver.child_exit(PORT), None);
}

#[tokio::test]
async fn sockets_are_connected_to_and_taken_over() {
    let path = std::env::temp_dir().join(format!("lumen-tokio-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move { echo(listener.accept().await.unwrap().0).await });
    over_a_socket(Driver::new(Toy::spawning(), Some(Target::Unix(path.clone())))).await;
    std::fs::remove_file(path).unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { echo(listener.accept().await.unwrap().0).await });
    over_a_socket(Driver::new(Toy::spawning(), Some(Target::Tcp(address)))).await;

    let (ours, theirs) = UnixStream::pair().unwrap();
    tokio::spawn(echo(theirs));
    let mut driver = Driver::new(Toy::default(), None);
    driver.attach(PORT, ours.into());
    over_a_socket(driver).await;
}

#[tokio::test]
async fn standard_streams_may_be_pipes() {
    let (their_read, our_write) = std::io::pipe().unwrap();
    let (our_read, mut their_write) = std::io::pipe().unwrap();
    let halves =
        (Stdin::new(OwnedFd::from(our_read)).unwrap(), Stdout::new(OwnedFd::from(our_write)).unwrap());
    let mut driver = Driver::new(Toy::default(), None);
    driver.attach(PORT, Stream::halves(halves.0, halves.1).unwrap());
    assert_eq!(event(&mut driver).await, Event::Opened);
    let sent = pattern(1024 * 1024);
    driver.with(|toy| {
        toy.send(&sent);
        toy.finish();
    });
    let reader = std::thread::spawn(move || {
        let (mut their_read, mut all) = (their_read, Vec::new());
        their_read.read_to_end(&mut all).unwrap();
        their_write.write_all(b"seen").unwrap();
        all
    });
    assert_eq!(event(&mut driver).await, Event::Finished);
    assert_eq!(data(&mut driver, 4).await, b"seen");
    assert_eq!(event(&mut driver).await, Event::Eof);
    assert!(reader.join().unwrap() == sent);
}

#[tokio::test]
async fn standard_streams_may_be_files() {
    let path = std::env::temp_dir().join(format!("lumen-tokio-{}.txt", std::process::id()));
    std::fs::write(&path, "from a file").unwrap();
    let read = Stdin::new(std::fs::File::open(&path).unwrap().into()).unwrap();
    let write = Stdout::new(std::fs::OpenOptions::new().append(true).open(&path).unwrap().into()).unwrap();
    assert!(!read.is_pollable() && !write.is_pollable());
    let mut driver = Driver::new(Toy::default(), None);
    driver.attach(PORT, Stream::halves(read, write).unwrap());
    events(&mut driver, vec![Event::Opened, Event::Data(b"from a file".to_vec()), Event::Eof]).await;
    driver.with(|toy| {
        toy.send(b", and to it");
        toy.finish();
    });
    assert_eq!(event(&mut driver).await, Event::Finished);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "from a file, and to it");
    std::fs::remove_file(path).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_slept_for_on_the_clock_of_the_runtime() {
    let mut driver = Driver::new(Toy::default(), None);
    driver.with(|toy| toy.deadline = Some(Instant::ZERO + Duration::from_secs(3600)));
    let start = tokio::time::Instant::now();
    assert_eq!(event(&mut driver).await, Event::Due);
    assert!(start.elapsed() >= Duration::from_secs(3600));
    driver.with(|toy| toy.deadline = Some(Instant::from_micros(u64::MAX)));
    let waited = tokio::time::timeout(Duration::from_secs(1_000_000), driver.next_event()).await;
    assert!(waited.is_err());
}

#[tokio::test]
async fn a_machine_that_never_runs_out_of_events_does_not_starve_other_tasks() {
    let mut driver = Driver::new(Toy { chatty: true, ..Toy::default() }, None);
    let had_a_turn = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&had_a_turn);
    tokio::spawn(async move { flag.store(true, Ordering::Relaxed) });
    for _ in 0..1000 {
        assert_eq!(event(&mut driver).await, Event::Due);
    }
    assert!(had_a_turn.load(Ordering::Relaxed));
}
