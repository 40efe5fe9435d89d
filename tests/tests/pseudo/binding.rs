//! The binding: what a reader of the page `lumen_proto::docs::adapter` writes for this runtime, with the numbers of its
//! steps.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::{pending, poll_fn};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Instant;

use bytes::BytesMut;
use lumen_driver::{Done, Op, Outcome, Pump};
use lumen_os::{Clock, CommandSpec, Process};
use lumen_proto::{Machine, OpenError, OpenErrorKind, Port};
use rustix::io::Errno;

use crate::ring;

/// What became of what was started. Bytes that were read and a buffer that was lent come along.
enum Completion {
    Opened(Port),
    Read(Port, io::Result<usize>, Vec<u8>),
    Wrote(Port, io::Result<usize>, BytesMut),
    Finished(Port),
    Exited(Port),
    Closed(Port),
}

/// Completions that wait for the driver, and the driver that waits for them.
#[derive(Clone, Default)]
struct Inbox(Rc<RefCell<(VecDeque<Completion>, Option<Waker>)>>);

/// The descriptors of an open port, and the process behind it.
struct Open {
    read: Rc<OwnedFd>,
    write: Option<Rc<OwnedFd>>,
    process: Option<(Process, Rc<OwnedFd>)>,
}

/// What `Open` leads to.
pub enum Target {
    Command(CommandSpec),
    /// A connection that was made already, for want of an operation that makes one.
    Connected(Option<OwnedFd>),
}

pub struct Driver<M: Machine> {
    pump: Pump<M>,
    clock: Clock,
    target: Target,
    ports: BTreeMap<Port, Open>,
    inbox: Inbox,
}

impl<M: Machine> Driver<M> {
    pub fn new(machine: M, target: Target) -> Self {
        let pump = Pump::new(machine);
        Self { pump, clock: Clock::new(), target, ports: BTreeMap::new(), inbox: Inbox::default() }
    }

    /// Takes a connected socket as a port that is open from the start.
    pub fn attach(&mut self, port: Port, socket: OwnedFd) {
        rustix::io::ioctl_fionbio(&socket, true).unwrap();
        let socket = Rc::new(socket);
        self.ports.insert(port, Open { read: Rc::clone(&socket), write: Some(socket), process: None });
        self.inbox.push(Completion::Opened(port));
    }

    pub fn with<R>(&mut self, command: impl FnOnce(&mut M, lumen_proto::Instant) -> R) -> R {
        let now = self.clock.now();
        self.pump.with(now, |machine| command(machine, now))
    }

    pub fn machine(&self) -> &M {
        self.pump.machine()
    }

    pub fn child_id(&self, port: Port) -> Option<u32> {
        let (process, _) = self.ports.get(&port)?.process.as_ref()?;
        Some(process.id())
    }

    pub fn is_settled(&self) -> bool {
        self.pump.is_settled() && self.ports.is_empty()
    }

    pub async fn next_event(&mut self) -> Option<M::Event> {
        self.run_until(Pump::poll_event).await
    }

    /// Does all the work until `is_done` says something, or there is nothing left to wait for.
    pub async fn run_until<T>(&mut self, mut is_done: impl FnMut(&mut Pump<M>) -> Option<T>) -> Option<T> {
        loop {
            // 1.
            while let Some(completion) = self.inbox.pop() {
                self.complete(completion);
            }
            // 2.
            while let Some(op) = self.pump.poll_op() {
                self.start(op);
            }
            // 3.
            if let Some(done) = is_done(&mut self.pump) {
                return Some(done);
            }
            // 4.
            let until = self.pump.poll_timeout();
            if self.pump.is_settled() && until.is_none() {
                return None;
            }
            let until = until.and_then(|until| self.clock.std_instant(until));
            let is_due = self.inbox.wait(until).await;
            if is_due {
                self.pump.handle_timeout(self.clock.now());
            }
        }
    }

    /// Ends everything.
    pub async fn close(&mut self) {
        self.pump.close_all(self.clock.now());
        while self.next_event().await.is_some() {}
    }

    fn start(&mut self, op: Op) {
        match op {
            Op::Open(port) => self.open(port),
            Op::Read(port, most) => {
                if let Some(open) = self.ports.get(&port) {
                    let (fd, inbox) = (Rc::clone(&open.read), self.inbox.clone());
                    ring::spawn(async move {
                        let (result, buffer) = ring::read(fd, vec![0; most]).await;
                        inbox.push(Completion::Read(port, result, buffer));
                    });
                }
            }
            Op::Write(port) => {
                let (buffer, from) = self.pump.lend_write(port);
                if let Some(fd) = self.ports.get(&port).and_then(|open| open.write.clone()) {
                    let inbox = self.inbox.clone();
                    ring::spawn(async move {
                        let (result, buffer) = ring::write(fd, buffer, from).await;
                        inbox.push(Completion::Wrote(port, result, buffer));
                    });
                }
            }
            Op::Finish(port) => {
                if let Some(open) = self.ports.get_mut(&port)
                    && let Some(write) = open.write.take()
                {
                    // A pipe is closed by dropping it, which this refuses; a socket goes on being read.
                    let _ = rustix::net::shutdown(&*write, rustix::net::Shutdown::Write);
                }
                self.inbox.push(Completion::Finished(port));
            }
            Op::Signal(port, signal) => {
                if let Some((process, _)) = self.ports.get(&port).and_then(|open| open.process.as_ref()) {
                    process.signal(signal);
                }
            }
            Op::Close(port) => {
                if let Some(open) = self.ports.remove(&port) {
                    // What is under way completes now, and is told before the port is.
                    ring::cancel(&open.read);
                    open.write.iter().for_each(ring::cancel);
                    if let Some((mut process, watched)) = open.process {
                        ring::cancel(&watched);
                        process.end();
                    }
                }
                let inbox = self.inbox.clone();
                ring::spawn(async move { inbox.push(Completion::Closed(port)) });
            }
        }
    }

    fn open(&mut self, port: Port) {
        let spawned = match &mut self.target {
            Target::Command(command) => lumen_os::spawn(command).map_err(|error| error.open_error()),
            Target::Connected(socket) => match socket.take() {
                Some(socket) => return self.attach(port, socket),
                None => Err(OpenError { kind: OpenErrorKind::Refused, errno: 0 }),
            },
        };
        let child = match spawned {
            Ok(child) => child,
            Err(error) => return self.pump.complete(self.clock.now(), Done::Opened(port, Err(error))),
        };
        let watched = Rc::new(child.process.as_fd().try_clone_to_owned().unwrap());
        let (fd, inbox) = (Rc::clone(&watched), self.inbox.clone());
        ring::spawn(async move {
            if ring::watch(fd).await.is_ok() {
                inbox.push(Completion::Exited(port));
            }
        });
        let (read, write) = (Rc::new(child.stdout), Some(Rc::new(child.stdin)));
        self.ports.insert(port, Open { read, write, process: Some((child.process, watched)) });
        self.inbox.push(Completion::Opened(port));
    }

    fn complete(&mut self, completion: Completion) {
        let now = self.clock.now();
        match completion {
            Completion::Opened(port) => self.pump.complete(now, Done::Opened(port, Ok(()))),
            Completion::Read(port, result, buffer) => {
                let outcome = outcome(result.map(|count| &buffer[..count]));
                let is_end = matches!(outcome, Outcome::Ok([]));
                self.pump.complete(now, Done::Read(port, outcome));
                if is_end && self.ports.get(&port).is_some_and(|open| lumen_os::is_hung_up(open.read.as_fd()))
                {
                    self.pump.complete(now, Done::HungUp(port));
                }
            }
            Completion::Wrote(port, result, buffer) => {
                self.pump.give_back_write(port, buffer);
                self.pump.complete(now, Done::Wrote(port, outcome(result)));
            }
            Completion::Finished(port) => self.pump.complete(now, Done::Finished(port)),
            Completion::Exited(port) => {
                let process = self.ports.get(&port).and_then(|open| open.process.as_ref());
                if let Some(exit) = process.and_then(|(process, _)| process.try_exit()) {
                    self.pump.complete(now, Done::Exited(port, exit));
                }
            }
            Completion::Closed(port) => self.pump.complete(now, Done::Closed(port)),
        }
    }
}

fn outcome<T>(result: io::Result<T>) -> Outcome<T> {
    match result {
        Ok(done) => Outcome::Ok(done),
        Err(error) if error.raw_os_error() == Some(Errno::CANCELED.raw_os_error()) => Outcome::Cancelled,
        Err(_) => Outcome::Failed,
    }
}

impl Inbox {
    fn push(&self, completion: Completion) {
        let mut inbox = self.0.borrow_mut();
        inbox.0.push_back(completion);
        if let Some(waker) = inbox.1.take() {
            waker.wake();
        }
    }

    fn pop(&self) -> Option<Completion> {
        self.0.borrow_mut().0.pop_front()
    }

    /// Waits for a completion; returns whether it was `until` that came first.
    async fn wait(&self, until: Option<Instant>) -> bool {
        let sleep = async {
            match until {
                Some(until) => ring::sleep_until(until).await,
                None => pending().await,
            }
        };
        let mut sleep = pin!(sleep);
        poll_fn(|cx| {
            let mut inbox = self.0.borrow_mut();
            if !inbox.0.is_empty() {
                return Poll::Ready(false);
            }
            inbox.1 = Some(cx.waker().clone());
            sleep.as_mut().poll(cx).map(|()| true)
        })
        .await
    }
}
