//! What a request costs while a thousand other clients are idle: polls of streams and descriptors, counted by a reactor
//! around the binding's own.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::thread;

use lumen_os::reactor::{Connecting, Interest, Mux, OwnsFd, Reactor, Stdio, Watched};
use lumen_proto::Instant;
use lumen_proto::endpoint::{HubConfig, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::{CommandSpec, MuxSpec};
use lumen_tests::mux::{Client, Scratch, call};
use lumen_tests::procs::sibling;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::agent::{greeted, heard, settle};
use crate::over::Runs;
use crate::runtimes;

const IDLE: usize = 1000;
const REQUESTS: usize = 50;

/// All polls so far. The stories here are told one after the other.
static POLLS: AtomicUsize = AtomicUsize::new(0);
static TELLING: Mutex<()> = Mutex::new(());

fn count() {
    POLLS.fetch_add(1, Ordering::Relaxed);
}

#[derive(Debug, Default)]
struct Counting<R>(R);

#[derive(Debug)]
struct Counted<T>(T);

impl<R: Reactor + 'static> Reactor for Counting<R> {
    type Fd<T: OwnsFd> = Counted<R::Fd<T>>;
    type Stream = Counted<R::Stream>;

    fn watch<T: OwnsFd>(inner: T, interest: Interest) -> io::Result<Self::Fd<T>> {
        R::watch(inner, interest).map(Counted)
    }

    fn pipes(read: OwnedFd, write: OwnedFd) -> io::Result<Self::Stream> {
        R::pipes(read, write).map(Counted)
    }

    fn unix(socket: OwnedFd) -> io::Result<Self::Stream> {
        R::unix(socket).map(Counted)
    }

    fn stdio(_: Stdio<Self>) -> Self::Stream {
        unreachable!("a mux has none")
    }

    fn connect_tcp(_: String) -> Connecting<Self::Stream> {
        unreachable!("its server is a child")
    }

    fn now(&self) -> Instant {
        self.0.now()
    }

    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Poll<()> {
        self.0.poll_sleep(cx, until)
    }

    fn poll_budgeted<T>(cx: &mut Context<'_>, work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        R::poll_budgeted(cx, work)
    }
}

impl<T, W: Watched<T>> Watched<T> for Counted<W> {
    fn poll_with<O>(
        &mut self,
        cx: &mut Context<'_>,
        io: impl FnMut(&T) -> io::Result<O>,
    ) -> Poll<io::Result<O>> {
        count();
        self.0.poll_with(cx, io)
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        read: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        count();
        self.0.poll_read(cx, most, read)
    }

    fn as_inner(&self) -> &T {
        self.0.as_inner()
    }

    fn into_inner(self) -> io::Result<T> {
        self.0.into_inner()
    }
}

impl<S: lumen_driver::Stream> lumen_driver::Stream for Counted<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        count();
        self.0.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        count();
        self.0.poll_write(cx, bytes)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        count();
        self.0.poll_finish(cx)
    }

    fn is_hung_up(&self) -> bool {
        self.0.is_hung_up()
    }
}

/// Returns the polls that a request costs while so many clients are idle.
fn per_request(path: &std::path::Path, idle: &mut Vec<Client>, clients: usize) -> usize {
    while idle.len() < clients {
        let (mut client, _) = greeted(path);
        settle(&mut client);
        idle.push(client);
    }
    let (mut busy, _) = greeted(path);
    let mut ask = |id: usize| {
        busy.say(&call(&id.to_string(), "echo", "{}"));
        heard(&mut busy).expect("an answer");
    };
    ask(0);
    let before = POLLS.load(Ordering::Relaxed);
    (1..=REQUESTS).for_each(&mut ask);
    (POLLS.load(Ordering::Relaxed) - before).div_ceil(REQUESTS)
}

fn idle_clients_cost_nothing<A: Runs>() {
    let _alone = TELLING.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let scratch = Scratch::new();
    let path = scratch.path("s");
    let hub = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Offer));
    let spec = MuxSpec::new(&path, CommandSpec::new(sibling("child_server")))
        .hub(HubConfig { max_clients: IDLE + 2, ..hub });
    let (tell, told) = mpsc::channel();
    let serving = thread::spawn(move || {
        A::default().block_on(async {
            let (serve, handle) = Mux::<Counting<A::Reactor>>::bind(spec).unwrap().serve(|_| {});
            tell.send(handle).unwrap();
            serve.await;
        });
    });
    let handle = told.recv().unwrap();
    let mut idle = Vec::new();
    let few = per_request(&path, &mut idle, 1);
    let many = per_request(&path, &mut idle, IDLE);
    println!("{few} polls a request with 1 idle client, {many} with {IDLE}");
    assert!((4..=24).contains(&few) && many <= few + 2, "{few} polls with 1 idle client, {many} with {IDLE}");
    drop(idle);
    drop(handle);
    serving.join().unwrap();
}

#[test]
fn tokio_current_thread() {
    idle_clients_cost_nothing::<runtimes::tokio::CurrentThread>();
}

#[test]
fn tokio_multi_thread() {
    idle_clients_cost_nothing::<runtimes::tokio::MultiThread>();
}

#[test]
fn smol() {
    idle_clients_cost_nothing::<runtimes::smol::Smol>();
}

#[test]
fn async_std() {
    idle_clients_cost_nothing::<runtimes::async_std::AsyncStd>();
}
