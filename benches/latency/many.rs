//! One server for many connections: an echo, with one request at a time on each.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::time::{Duration, Instant as Clock};

use bytes::BytesMut;
use lumen_driver::PortMap;
use lumen_os::engine::{Engine, Loop};
use lumen_proto::{Action, Input, Instant, Machine, Port, Transmit};
use rustix::time::{ClockId, clock_gettime};

use super::{Kind, pair};

pub const KINDS: [Kind; 4] = [Kind::Std, Kind::Uring, Kind::Tokio, Kind::Smol];

/// Says everything back.
#[derive(Debug, Default)]
struct Echo {
    output: PortMap<Vec<u8>>,
    ready: VecDeque<Port>,
    actions: VecDeque<Action>,
}

impl Machine for Echo {
    type Event = ();

    fn handle_input(&mut self, _: Instant, input: Input<'_>) {
        match input {
            Input::Data(port, bytes) => {
                match self.output.get_mut(port) {
                    Some(output) => output.extend_from_slice(bytes),
                    None => _ = self.output.insert(port, bytes.to_vec()),
                }
                self.ready.push_back(port);
            }
            Input::Eof(port) | Input::Lost(port) => self.actions.push_back(Action::Abort(port)),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn wants_input(&self, _: Port) -> usize {
        usize::MAX
    }

    fn poll_ready(&mut self) -> Option<Port> {
        self.ready.pop_front()
    }

    fn poll_transmit(&mut self, _: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        match self.output.get_mut(port) {
            Some(bytes) if !bytes.is_empty() => {
                out.extend_from_slice(bytes);
                bytes.clear();
                Transmit::More
            }
            _ => Transmit::Idle,
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// Returns requests a second, and what one costs the server, in microseconds of CPU.
pub fn measure(kind: Kind, count: usize, time: Duration) -> (f64, f64) {
    let path = std::env::temp_dir().join(format!("lumen-many-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["serve-many", kind.name(), &count.to_string()]).arg(&path);
    let mut server = pair::started(&mut command);
    let mut sockets: Vec<UnixStream> =
        (0..count).map(|_| UnixStream::connect(&path).expect("it listens")).collect();
    let (mut requests, mut buf) = (0_u32, [0; 64]);
    let began = Clock::now();
    while began.elapsed() < time {
        for socket in &mut sockets {
            socket.write_all(&[b'x'; 64]).expect("a server");
        }
        for socket in &mut sockets {
            socket.read_exact(&mut buf).expect("an answer");
            requests += 1;
        }
    }
    let took = began.elapsed();
    drop(sockets);
    let mut cpu = String::new();
    server.stdout.as_mut().expect("piped").read_to_string(&mut cpu).expect("it tells");
    assert!(server.wait().expect("our child").success());
    let _ = std::fs::remove_file(&path);
    let cpu: f64 = cpu.trim().parse().expect("a number");
    (f64::from(requests) / took.as_secs_f64(), cpu / f64::from(requests))
}

/// Serves until all clients are gone, then prints what that cost, in microseconds of CPU.
pub fn serve(kind: Kind, count: usize, path: &str) {
    let listener = UnixListener::bind(path).expect("a free path");
    io::stdout().write_all(b"!").and_then(|()| io::stdout().flush()).expect("somebody waits for it");
    let sockets: Vec<UnixStream> = (0..count).map(|_| listener.accept().expect("a client").0).collect();
    let ports = (0..).map(Port::new);
    let began = cpu();
    match kind {
        Kind::Std => turn(lumen_std::Loop::new(Echo::default(), None), sockets),
        Kind::Uring => turn(lumen_uring::Loop::new(Echo::default(), None).expect("a ring"), sockets),
        Kind::Tokio => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut driver = lumen_tokio::Driver::new(Echo::default(), None);
                for (port, socket) in ports.zip(sockets) {
                    socket.set_nonblocking(true).expect("our own");
                    driver.attach(port, tokio::net::UnixStream::from_std(socket).expect("a socket").into());
                }
                driver.next_event().await;
            });
        }
        _ => smol::block_on(async {
            let mut driver = lumen_futures::Driver::new(Echo::default(), None);
            for (port, socket) in ports.zip(sockets) {
                driver.attach(port, smol::net::unix::UnixStream::try_from(socket).expect("a socket").into());
            }
            driver.next_event().await;
        }),
    }
    writeln!(io::stdout(), "{}", (cpu() - began).as_micros()).expect("somebody waits for it");
}

fn turn<E: Engine>(mut driver: Loop<Echo, E>, sockets: Vec<UnixStream>) {
    for (port, socket) in (0..).map(Port::new).zip(sockets) {
        driver.attach(port, E::socket(socket.into()).expect("a socket"));
    }
    driver.next_event().expect("memory");
}

fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("it is positive")
}
