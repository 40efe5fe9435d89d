//! The hub inside a loop of one's own, here over epoll, with no adapter: for a program that has a loop already and wants
//! clients to share a server in it. The steps are those of the page `lumen_proto::docs::adapter`; what is done with the
//! streams of one port is in `epoll/place.rs`. The clients write plain JSON lines, as any agent does.
//!
//! ```text
//! cargo run -p lumen-examples --example bare_epoll
//! ```

#[path = "epoll/place.rs"]
mod place;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Instant as Clock;

use lumen_proto::endpoint::{Event, Hub, HubConfig, HubEvent, Outcome, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{Action, ChildEvent, Input, Instant, Machine as _, OpenError, OpenErrorKind, Port, Signal};
use place::{Place, token};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

/// What wakes the loop besides the ports of the hub.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return Ok(lumen_examples::serve_json()?);
    }
    let folder = std::env::temp_dir().join(format!("lumen-bare-epoll-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let socket = folder.join("socket");
    let listener = UnixListener::bind(&socket)?;
    let (stop, stopping) = io::pipe()?;
    let clients = std::thread::spawn(move || {
        let talked = talk(&socket).map_err(|error| error.to_string());
        // That tells the loop to end.
        drop(stopping);
        talked
    });
    let outcome = Share::new(listener)?.run(stop.into())?;
    clients.join().map_err(|_| "the clients panicked")??;
    println!("the hub has ended: {outcome:?}");
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

fn talk(socket: &Path) -> Result<(), Box<dyn Error>> {
    let mut clients = [UnixStream::connect(socket)?, UnixStream::connect(socket)?];
    for (client, name) in [(0, "Ada"), (1, "Grace"), (0, "Ada")] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"hello","params":"{name}"}}"#);
        println!("{name} asks: {request}");
        writeln!(clients[client], "{request}")?;
        let mut answer = String::new();
        BufReader::new(&clients[client]).read_line(&mut answer)?;
        println!("the server answers: {}", answer.trim_end());
    }
    Ok(())
}

struct Share {
    hub: Hub,
    epoll: OwnedFd,
    listener: UnixListener,
    places: BTreeMap<u64, (Port, Place)>,
    epoch: Clock,
}

impl Share {
    fn new(listener: UnixListener) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        listener.set_nonblocking(true)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        let hub = Hub::new(HubConfig::new(ServerConfig::new(Behind::Process, Mode::Offer)));
        Ok(Self { hub, epoll, listener, places: BTreeMap::new(), epoch: Clock::now() })
    }

    fn run(mut self, stop: OwnedFd) -> io::Result<Outcome> {
        epoll::add(&self.epoll, &stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        let mut woken = Vec::with_capacity(64);
        loop {
            if let Some(outcome) = self.drain()? {
                return Ok(outcome);
            }
            // Only now the deadline is right.
            let left = self.hub.poll_timeout().map(|until| until.saturating_since(self.now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            epoll::wait(&self.epoll, spare_capacity(&mut woken), left.as_ref())?;
            self.hub.handle_timeout(self.now());
            for event in woken.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    STOP => {
                        epoll::delete(&self.epoll, &stop)?;
                        self.hub.shut_down(self.now());
                    }
                    port => self.turn(port)?,
                }
            }
        }
    }

    /// Does what the hub wants done, until it wants nothing more.
    fn drain(&mut self) -> io::Result<Option<Outcome>> {
        loop {
            while let Some(action) = self.hub.poll_action() {
                self.act(action)?;
            }
            if let Some(port) = self.hub.poll_ready() {
                self.turn(token(port))?;
            } else if let Some(event) = self.hub.poll_event() {
                if let HubEvent::Stream(Event::Finished(outcome)) = event {
                    return Ok(Some(outcome));
                }
            } else {
                return Ok(None);
            }
        }
    }

    fn act(&mut self, action: Action) -> io::Result<()> {
        let signal = |signal| match signal {
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        match action {
            Action::Spawn(port) => match Place::child(Command::new(std::env::current_exe()?).arg("serve")) {
                Ok(place) => self.open(port, place)?,
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(0);
                    let failed = ChildEvent::Failed(OpenError { kind: OpenErrorKind::Other, errno });
                    self.hub.handle_input(self.now(), Input::Child(port, failed));
                }
            },
            Action::Signal(port, which) => {
                if let Some((_, place)) = self.places.get(&token(port)) {
                    place.signal(signal(which));
                }
            }
            Action::Abort(port) => {
                if let Some((_, place)) = self.places.remove(&token(port)) {
                    place.drop_all(&self.epoll);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            // One too many is closed again.
            if let Some(port) = self.hub.try_accept() {
                self.open(port, Place::client(stream)?)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, port: Port, place: Place) -> io::Result<()> {
        self.places.insert(token(port), (port, place));
        self.hub.handle_input(self.now(), Input::Opened(port));
        self.turn(token(port))
    }

    fn turn(&mut self, token: u64) -> io::Result<()> {
        let now = self.now();
        match self.places.get_mut(&token) {
            Some((port, place)) => place.turn(&mut self.hub, now, *port, &self.epoll),
            None => Ok(()),
        }
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.epoch.elapsed().as_micros() as u64)
    }
}
