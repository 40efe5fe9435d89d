//! One request at a time between two processes.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lumen_os::engine::{Client, Engine, Server};
use lumen_proto::endpoint::ServerConfig;
use lumen_proto::jsonrpc::{Kind as MessageKind, Message};
use lumen_std::{Behind, CommandSpec, Mode, Target};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Kind, SPIN, Side, Way, pin, unpin};

/// Both have 64 bytes.
const REQUEST: &[u8; 64] = br#"{"jsonrpc":"2.0","id":1,"method":"echo","params":["0123456789"]}"#;
const ANSWER: &[u8; 64] = br#"{"jsonrpc":"2.0","id":1,"result":"0123456789 0123456789 012345"}"#;

/// Round trips that are made before those that count.
const WARM_UP: usize = 500;

/// Returns the 50th, 99th and 99.9th percentile of so many round trips.
pub fn measure(kind: Kind, way: Way, cores: usize, trips: usize) -> [Duration; 3] {
    let path = match way {
        Way::Pipe => PathBuf::new(),
        Way::Unix => std::env::temp_dir().join(format!("lumen-latency-{}.sock", std::process::id())),
    };
    let _ = std::fs::remove_file(&path);
    let program = std::env::current_exe().expect("this program");
    let words = ["serve".into(), kind.name().into(), path.clone().into_os_string(), cores.to_string().into()];
    let mut times = match (kind, way) {
        (Kind::Std | Kind::StdSpin | Kind::Uring | Kind::UringSpin | Kind::Tokio | Kind::Smol, Way::Pipe) => {
            ask(kind, Target::Command(CommandSpec::new(program).args(words)), cores, trips)
        }
        (Kind::Std | Kind::StdSpin | Kind::Uring | Kind::UringSpin | Kind::Tokio | Kind::Smol, Way::Unix) => {
            let server = started(Command::new(program).args(words));
            let times = ask(kind, Target::Unix(path.clone()), cores, trips);
            ended(server);
            times
        }
        (_, Way::Pipe) => {
            let mut command = Command::new(program);
            let mut child = command
                .args(words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("this program");
            apart(cores, Side::First);
            let (write, read) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
            let times = swing(kind, read.into(), write.into(), trips);
            ended(child);
            times
        }
        (_, Way::Unix) => {
            let server = started(Command::new(program).args(words));
            apart(cores, Side::First);
            let socket = UnixStream::connect(&path).expect("it listens");
            let times = swing(kind, socket.try_clone().expect("a descriptor").into(), socket.into(), trips);
            ended(server);
            times
        }
    };
    if cores > 1 {
        unpin();
    }
    let _ = std::fs::remove_file(&path);
    times.sort_unstable();
    [50.0, 99.0, 99.9].map(|percent| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let at = (times.len() as f64 * percent / 100.0) as usize;
        times[at.min(times.len() - 1)]
    })
}

/// Starts a server, which says when it listens.
pub fn started(command: &mut Command) -> Child {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("this program");
    let mut ready = [0; 1];
    child.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("it listens");
    child
}

/// On two cores, keeps this end on its own. Not before it knows that there are two, for looking is of no use on one.
fn apart(cores: usize, side: Side) {
    if cores > 1 {
        pin(side);
    }
}

fn ended(mut child: Child) {
    assert!(child.wait().expect("our child").success());
}

fn timed(trips: usize, mut trip: impl FnMut()) -> Vec<Duration> {
    (0..WARM_UP.min(trips)).for_each(|_| trip());
    (0..trips)
        .map(|_| {
            let began = Instant::now();
            trip();
            began.elapsed()
        })
        .collect()
}

/// A client of a binding.
fn ask(kind: Kind, target: Target, cores: usize, trips: usize) -> Vec<Duration> {
    let config = ServerConfig::new(Behind::Process, Mode::Auto);
    let request = Message::copy_from(REQUEST).expect("a message");
    match kind {
        Kind::Std | Kind::StdSpin => blocking(kind, lumen_std::Client::connect(target, config), cores, trips),
        Kind::Uring | Kind::UringSpin => {
            blocking(kind, lumen_uring::Client::connect(target, config).expect("a ring"), cores, trips)
        }
        Kind::Tokio => {
            apart(cores, Side::First);
            let runtime = tokio();
            let mut client = runtime.block_on(async { lumen_tokio::Client::connect(target, config) });
            let times = runtime.block_on(async { asked!(client, request, trips) });
            runtime.block_on(client.close());
            times
        }
        _ => smol::block_on(async {
            apart(cores, Side::First);
            let mut client = lumen_futures::Client::connect(target, config);
            let times = asked!(client, request, trips);
            client.close().await;
            times
        }),
    }
}

/// The round trips of a client that is awaited.
macro_rules! asked {
    ($client:ident, $request:ident, $trips:ident) => {{
        let mut times = Vec::with_capacity($trips);
        for trip in 0..$trips + WARM_UP.min($trips) {
            let began = Instant::now();
            $client.send($request.clone()).await.expect("a server");
            $client.recv().await.expect("an answer");
            if trip >= WARM_UP.min($trips) {
                times.push(began.elapsed());
            }
        }
        assert!($client.is_lumen());
        times
    }};
}
use asked;

fn blocking<E: Engine>(kind: Kind, mut client: Client<E>, cores: usize, trips: usize) -> Vec<Duration> {
    if kind.spins() {
        client.set_spin(SPIN);
    }
    apart(cores, Side::First);
    let request = Message::copy_from(REQUEST).expect("a message");
    let times = timed(trips, || {
        client.send(request.clone()).expect("a server");
        client.recv().expect("an answer");
    });
    assert!(client.is_lumen());
    client.close();
    times
}

/// A client that only writes and reads.
fn swing(kind: Kind, read: OwnedFd, write: OwnedFd, trips: usize) -> Vec<Duration> {
    let mut buf = [0; 64];
    match kind {
        Kind::TokioBare => tokio().block_on(async {
            let (mut read, mut write) = tokio_ends(read, write);
            let mut times = Vec::with_capacity(trips);
            for _ in 0..trips {
                let began = Instant::now();
                write.write_all(REQUEST).await.expect("a server");
                read.read_exact(&mut buf).await.expect("an answer");
                times.push(began.elapsed());
            }
            times
        }),
        Kind::SmolBare => smol::block_on(async {
            use smol::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (mut read, mut write) = smol_ends(read, write);
            let mut times = Vec::with_capacity(trips);
            for _ in 0..trips {
                let began = Instant::now();
                write.write_all(REQUEST).await.expect("a server");
                read.read_exact(&mut buf).await.expect("an answer");
                times.push(began.elapsed());
            }
            times
        }),
        _ => {
            if kind.spins() {
                rustix::io::ioctl_fionbio(&read, true).expect("our own");
            }
            let others = [(); 2].map(|()| io::pipe().expect("descriptors"));
            let mut fds = vec![PollFd::new(&read, PollFlags::IN)];
            fds.extend(others.iter().map(|(other, _)| PollFd::new(other, PollFlags::IN)));
            timed(trips, || {
                rustix::io::write(&write, REQUEST).expect("a server");
                if kind == Kind::RawPoll {
                    poll(&mut fds, None).expect("memory");
                }
                assert_eq!(read_some(&read, &mut buf), 64);
            })
        }
    }
}

/// Serves until its client is gone.
pub fn serve(kind: Kind, path: &str, cores: usize) {
    if cores > 1 {
        unpin();
    }
    let socket = (!path.is_empty()).then(|| {
        let listener = UnixListener::bind(path).expect("a free path");
        io::stdout().write_all(b"!").and_then(|()| io::stdout().flush()).expect("somebody waits for it");
        listener.accept().expect("a client").0
    });
    let ends = || match &socket {
        Some(socket) => (
            socket.try_clone().expect("a descriptor").into(),
            socket.try_clone().expect("a descriptor").into(),
        ),
        None => (
            io::stdin().as_fd().try_clone_to_owned().expect("a descriptor"),
            io::stdout().as_fd().try_clone_to_owned().expect("a descriptor"),
        ),
    };
    if !matches!(kind, Kind::StdSpin | Kind::UringSpin) {
        apart(cores, Side::Last);
    }
    match kind {
        Kind::Std | Kind::StdSpin => answer_blocking::<lumen_std::Engine>(kind, socket, cores),
        Kind::Uring | Kind::UringSpin => answer_blocking::<lumen_uring::Engine>(kind, socket, cores),
        Kind::Tokio => tokio().block_on(async {
            let server = match socket {
                Some(socket) => {
                    socket.set_nonblocking(true).expect("our own");
                    lumen_tokio::Server::socket(tokio::net::UnixStream::from_std(socket).expect("a socket"))
                }
                None => lumen_tokio::Server::stdio().expect("standard streams"),
            };
            answered!(server);
        }),
        Kind::Smol => smol::block_on(async {
            let server = match socket {
                Some(socket) => lumen_futures::Server::socket(
                    smol::net::unix::UnixStream::try_from(socket).expect("a socket"),
                ),
                None => lumen_futures::Server::stdio().expect("standard streams"),
            };
            answered!(server);
        }),
        Kind::TokioBare => tokio().block_on(async {
            let (read, write) = ends();
            let (mut read, mut write) = tokio_ends(read, write);
            let mut buf = [0; 64];
            while read.read_exact(&mut buf).await.is_ok() {
                write.write_all(ANSWER).await.expect("a client");
            }
        }),
        Kind::SmolBare => smol::block_on(async {
            use smol::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let (read, write) = ends();
            let (mut read, mut write) = smol_ends(read, write);
            let mut buf = [0; 64];
            while read.read_exact(&mut buf).await.is_ok() {
                write.write_all(ANSWER).await.expect("a client");
            }
        }),
        Kind::Raw | Kind::RawPoll | Kind::RawSpin => {
            let (read, write) = ends();
            rustix::io::ioctl_fionbio(&read, kind.spins()).expect("our own");
            let mut buf = [0; 64];
            while read_some(&read, &mut buf) > 0 {
                rustix::io::write(&write, ANSWER).expect("a client");
            }
        }
    }
}

/// The service of a server that is awaited.
macro_rules! answered {
    ($server:ident) => {{
        let mut server = $server;
        let answer = Message::copy_from(ANSWER).expect("a message");
        while let Some(message) = server.recv().await {
            if message.kind() == MessageKind::Request {
                server.send(answer.clone()).await.expect("a client");
            }
        }
        server.close().await;
    }};
}
use answered;

fn answer_blocking<E: Engine>(kind: Kind, socket: Option<UnixStream>, cores: usize) {
    let server = socket.map_or_else(Server::<E>::stdio, Server::<E>::socket);
    let mut server = server.expect("an engine and its streams");
    if kind.spins() {
        server.set_spin(SPIN);
    }
    apart(cores, Side::Last);
    let answer = Message::copy_from(ANSWER).expect("a message");
    while let Some(message) = server.recv() {
        if message.kind() == MessageKind::Request {
            server.send(answer.clone()).expect("a client");
        }
    }
    server.close();
}

/// Reads again and again if there is nothing and the descriptor does not wait by itself.
fn read_some(fd: &OwnedFd, buf: &mut [u8]) -> usize {
    loop {
        match rustix::io::read(fd, &mut *buf) {
            Ok(len) => return len,
            Err(error) if io::Error::from(error).kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

type TokioEnds = (Box<dyn tokio::io::AsyncRead + Unpin>, Box<dyn tokio::io::AsyncWrite + Unpin>);

/// One half is enough of a socket, whose other clone goes.
fn tokio_ends(read: OwnedFd, write: OwnedFd) -> TokioEnds {
    rustix::io::ioctl_fionbio(&read, true).expect("our own");
    rustix::io::ioctl_fionbio(&write, true).expect("our own");
    if rustix::net::sockopt::socket_type(&read).is_ok() {
        let socket = tokio::net::UnixStream::from_std(read.into()).expect("a socket");
        let (read, write) = socket.into_split();
        return (Box::new(read), Box::new(write));
    }
    let read = tokio::net::unix::pipe::Receiver::from_owned_fd(read).expect("a pipe");
    let write = tokio::net::unix::pipe::Sender::from_owned_fd(write).expect("a pipe");
    (Box::new(read), Box::new(write))
}

type SmolEnds = (Box<dyn smol::io::AsyncRead + Unpin>, Box<dyn smol::io::AsyncWrite + Unpin>);

fn smol_ends(read: OwnedFd, write: OwnedFd) -> SmolEnds {
    if rustix::net::sockopt::socket_type(&read).is_ok() {
        let socket = smol::net::unix::UnixStream::try_from(UnixStream::from(read)).expect("a socket");
        return (Box::new(socket.clone()), Box::new(socket));
    }
    let read = smol::Async::new(std::fs::File::from(read)).expect("a pipe");
    let write = smol::Async::new(std::fs::File::from(write)).expect("a pipe");
    (Box::new(read), Box::new(write))
}
