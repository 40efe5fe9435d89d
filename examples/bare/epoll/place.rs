//! The streams of one port, non-blocking, and what epoll is told of them.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use bytes::{Buf as _, BytesMut};
use lumen_proto::endpoint::Hub;
use lumen_proto::{ChildEvent, Exit, Input, Instant, Machine as _, Port, Transmit, limits};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

pub struct Place {
    read: Side,
    write: Side,
    /// What was taken from the hub and is not written yet.
    output: BytesMut,
    /// The hub has no more for it, ever.
    finished: bool,
    child: Option<(Child, Side)>,
}

/// A descriptor, and whether epoll watches it. Both halves of a socket have one, so that each is watched by itself.
struct Side(Option<OwnedFd>, bool);

impl Place {
    pub fn client(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(stream.try_clone()?, stream, None))
    }

    pub fn child(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).ok_or(io::ErrorKind::BrokenPipe)?;
        rustix::io::ioctl_fionbio(&stdin, true)?;
        rustix::io::ioctl_fionbio(&stdout, true)?;
        Ok(Self::new(stdout, stdin, Some((child, Side(Some(pidfd), false)))))
    }

    fn new(read: impl Into<OwnedFd>, write: impl Into<OwnedFd>, child: Option<(Child, Side)>) -> Self {
        let [read, write] = [read.into(), write.into()].map(|fd| Side(Some(fd), false));
        Self { read, write, output: BytesMut::new(), finished: false, child }
    }

    /// Does all that can be done on `port`, and has epoll watch for the rest.
    pub fn turn(&mut self, hub: &mut Hub, now: Instant, port: Port, epoll: &OwnedFd) -> io::Result<()> {
        if let Some((child, pidfd)) = &mut self.child
            && pidfd.0.is_some()
            && let Some(status) = child.try_wait()?
        {
            pidfd.close(epoll);
            let exit = Exit::Code(status.code().unwrap_or(-1));
            hub.handle_input(now, Input::Child(port, ChildEvent::Exited(exit)));
        }
        self.fill(hub, now, port, epoll);
        self.empty(hub, now, port, epoll);
        let token = token(port);
        if let Some((_, pidfd)) = &mut self.child {
            pidfd.watch(epoll, token, EventFlags::IN, true)?;
        }
        self.read.watch(epoll, token, EventFlags::IN, hub.wants_input(port) > 0)?;
        self.write.watch(epoll, token, EventFlags::OUT, !self.output.is_empty())
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        if let Some((child, Side(Some(_), _))) = &self.child {
            // It has not been waited for, so its number is still its own.
            let _ = rustix::process::kill_process(Pid::from_child(child), signal);
        }
    }

    /// Lets go of all of it, whatever is unread and unwritten.
    pub fn drop_all(mut self, epoll: &OwnedFd) {
        self.read.close(epoll);
        self.write.close(epoll);
        if let Some((mut child, mut pidfd)) = self.child.take() {
            pidfd.close(epoll);
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Reads once: what there is more epoll will tell.
    fn fill(&mut self, hub: &mut Hub, now: Instant, port: Port, epoll: &OwnedFd) {
        let most = hub.wants_input(port).min(limits::READ_CHUNK);
        let Some(fd) = self.read.0.as_ref().filter(|_| most > 0) else { return };
        let mut buffer = vec![0; most];
        match rustix::io::read(fd, &mut buffer) {
            Ok(count) if count > 0 => hub.handle_input(now, Input::Data(port, &buffer[..count])),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => {
                self.read.close(epoll);
                hub.handle_input(now, Input::Eof(port));
            }
        }
    }

    /// Writes until the hub has no more, or the stream takes no more.
    fn empty(&mut self, hub: &mut Hub, now: Instant, port: Port, epoll: &OwnedFd) {
        while let Some(fd) = &self.write.0 {
            while self.output.len() < limits::READ_CHUNK && !self.finished {
                match hub.poll_transmit(now, port, &mut self.output) {
                    Transmit::More => {}
                    Transmit::Idle => break,
                    Transmit::Finish => self.finished = true,
                }
            }
            if self.output.is_empty() {
                if self.finished {
                    let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
                    self.write.close(epoll);
                    hub.handle_input(now, Input::Finished(port));
                }
                return;
            }
            match rustix::io::write(fd, &self.output) {
                Ok(count) => self.output.advance(count),
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    self.output.clear();
                    self.write.close(epoll);
                    hub.handle_input(now, Input::Lost(port));
                }
            }
        }
    }
}

impl Side {
    fn watch(&mut self, epoll: &OwnedFd, token: u64, flags: EventFlags, wanted: bool) -> io::Result<()> {
        let Some(fd) = self.0.as_ref().filter(|_| self.1 != wanted) else { return Ok(()) };
        self.1 = wanted;
        match wanted {
            true => epoll::add(epoll, fd, EventData::new_u64(token), flags)?,
            false => epoll::delete(epoll, fd)?,
        }
        Ok(())
    }

    fn close(&mut self, epoll: &OwnedFd) {
        // Closing alone would not do while the other half of the socket is open.
        let _ = self.watch(epoll, 0, EventFlags::empty(), false);
        self.0 = None;
    }
}

/// How epoll calls a port.
pub fn token(port: Port) -> u64 {
    u64::from(port.index()) << 32 | u64::from(port.generation())
}
