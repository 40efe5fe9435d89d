//! One row: so many clients by one way.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::event::{Timespec, epoll};

use crate::lane::{Counts, Lane};
use crate::process::{INITIALIZE, Served, Way, cpu, memory, serve};

/// How long what is in flight at the end may take.
const LATE: Duration = Duration::from_secs(10);

pub(crate) struct Load {
    pub(crate) pipeline: u64,
    pub(crate) size: usize,
    pub(crate) seconds: u64,
    /// Requests a second; a closed loop without it.
    pub(crate) rate: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) clients: usize,
    pub(crate) per_second: f64,
    /// p50, p99, p99.9.
    micros: [f64; 3],
    cpu_micros: f64,
    idle_kib: u64,
    loaded_kib: u64,
    lost: u64,
    doubled: u64,
    misrouted: u64,
}

impl Row {
    pub(crate) const fn is_faulty(&self) -> bool {
        self.lost + self.doubled + self.misrouted > 0
    }

    /// Of two runs the one that got more done; faults are those of both.
    pub(crate) fn keep_better(&mut self, other: Self) {
        let faults = [self.lost + other.lost, self.doubled + other.doubled, self.misrouted + other.misrouted];
        if other.per_second > self.per_second {
            *self = other;
        }
        [self.lost, self.doubled, self.misrouted] = faults;
    }

    pub(crate) fn line(&self, direct: f64) -> String {
        let [p50, p99, p999] = self.micros;
        format!(
            "| {} | {} | {:.0} | {:.2} | {p50:.0} | {p99:.0} | {p999:.0} | {:.2} | {} | {} | {} | {} | {} |",
            self.name,
            self.clients,
            self.per_second,
            self.per_second / direct,
            self.cpu_micros,
            self.idle_kib,
            self.loaded_kib,
            self.lost,
            self.doubled,
            self.misrouted,
        )
    }
}

/// What stands behind the lanes.
enum Behind {
    Server(Child),
    Mux(Served),
}

pub(crate) fn run(name: &str, way: &Way, clients: usize, load: &Load) -> Row {
    let (behind, mut lanes) = connect(way, clients, load.size);
    let pid = match &behind {
        Behind::Server(child) => child.id(),
        Behind::Mux(served) => served.pid,
    };
    let idle_kib = memory(pid, "VmRSS:");
    let mut bench = Bench::new(&lanes);
    let warm = Duration::from_secs(load.seconds) / 3;
    bench.drive(&mut lanes, load, warm);
    bench.counts.is_measuring = true;
    let (cpu_before, began) = (cpu(pid), Instant::now());
    bench.drive(&mut lanes, load, Duration::from_secs(load.seconds));
    let took = began.elapsed().as_secs_f64();
    let cpu_took = cpu(pid).saturating_sub(cpu_before);
    let loaded_kib = memory(pid, "VmRSS:");
    bench.counts.is_measuring = false;
    let answered = bench.counts.answered;
    let lost = bench.settle(&mut lanes);
    let counts = bench.counts;
    let micros = [0.5, 0.99, 0.999].map(|at| counts.latency.value_at_quantile(at) as f64 / 1e3);
    drop(lanes);
    match behind {
        Behind::Server(mut child) => drop(child.wait()),
        Behind::Mux(served) => drop(served),
    }
    Row {
        name: name.to_owned(),
        clients,
        per_second: answered as f64 / took,
        micros,
        cpu_micros: cpu_took.as_secs_f64() * 1e6 / answered.max(1) as f64,
        idle_kib,
        loaded_kib,
        lost,
        doubled: counts.doubled,
        misrouted: counts.misrouted,
    }
}

/// One lane for each client, or one for all where there is but one connection.
fn connect(way: &Way, clients: usize, size: usize) -> (Behind, Vec<Lane>) {
    let numbers = 0..clients as u64;
    if let Way::Pipes = way {
        let exe = std::env::current_exe().expect("it has a path");
        let mut child = Command::new(exe)
            .arg("echo")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("itself");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (write, read) = greet(OwnedFd::from(stdin), OwnedFd::from(stdout));
        return (Behind::Server(child), vec![Lane::new(read, write, numbers, size)]);
    }
    let (served, _) = serve(way);
    let lanes = numbers.map(|number| {
        let stream = UnixStream::connect(&served.socket).expect("it serves");
        let (write, read) =
            greet(OwnedFd::from(stream.try_clone().expect("a descriptor")), OwnedFd::from(stream));
        Lane::new(read, write, number..number + 1, size)
    });
    let lanes = lanes.collect();
    (Behind::Mux(served), lanes)
}

fn greet(write: OwnedFd, read: OwnedFd) -> (OwnedFd, OwnedFd) {
    let mut write = std::fs::File::from(write);
    write.write_all(INITIALIZE.as_bytes()).expect("it reads");
    let mut reader = BufReader::new(std::fs::File::from(read));
    let mut line = String::new();
    reader.read_line(&mut line).expect("it answers");
    assert!(line.contains("\"result\""), "no handshake: {line:?}");
    write.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").expect("it reads");
    (write.into(), reader.into_inner().into())
}

struct Bench {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    block: Vec<u8>,
    counts: Counts,
    /// When the next request is due, in an open loop, and whose turn it is.
    due: Option<Instant>,
    turn: usize,
}

impl Bench {
    fn new(lanes: &[Lane]) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
        for (index, lane) in lanes.iter().enumerate() {
            epoll::add(
                &epoll,
                lane.read.as_fd(),
                epoll::EventData::new_u64(index as u64),
                epoll::EventFlags::IN,
            )
            .expect("it is watched");
        }
        let latency = Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("sensible bounds");
        Self {
            epoll,
            events: Vec::with_capacity(1024),
            block: vec![0; 1 << 16],
            counts: Counts { latency, answered: 0, doubled: 0, misrouted: 0, is_measuring: false },
            due: None,
            turn: 0,
        }
    }

    /// Lets the clients ask for so long.
    fn drive(&mut self, lanes: &mut [Lane], load: &Load, time: Duration) {
        let end = Instant::now() + time;
        let step = load.rate.map(|rate| Duration::from_nanos(1_000_000_000 / rate));
        // Those that could not be written at once.
        let mut blocked: Vec<usize> = Vec::new();
        if step.is_none() {
            for (index, lane) in lanes.iter_mut().enumerate() {
                for asker in 0..lane.askers.len() {
                    let now = Instant::now();
                    while lane.askers[asker].in_flight < load.pipeline && lane.ask(asker, now) {}
                }
                if lane.flush() {
                    blocked.push(index);
                }
            }
        }
        loop {
            let now = Instant::now();
            if now >= end {
                return;
            }
            if let Some(step) = step {
                self.ask_due(lanes, now, step, &mut blocked);
            }
            let is_polled = step.is_some() || !blocked.is_empty();
            self.wait(if is_polled { Duration::from_micros(50) } else { end - now });
            self.take_all(lanes, step.is_none(), &mut blocked);
            blocked.retain(|&index| lanes[index].flush());
        }
    }

    /// Asks what is due by now, each in turn; what cannot be asked yet stays due.
    fn ask_due(&mut self, lanes: &mut [Lane], now: Instant, step: Duration, blocked: &mut Vec<usize>) {
        let mut due = self.due.unwrap_or(now);
        while due <= now {
            let per_lane = lanes[0].askers.len();
            let (lane, asker) = (self.turn / per_lane, self.turn % per_lane);
            if !lanes[lane].ask(asker, due) {
                break;
            }
            if lanes[lane].flush() && !blocked.contains(&lane) {
                blocked.push(lane);
            }
            self.turn = (self.turn + 1) % (lanes.len() * per_lane);
            due += step;
        }
        self.due = Some(due);
    }

    fn wait(&mut self, time: Duration) {
        self.events.clear();
        let timeout = Timespec::try_from(time).expect("a sensible time");
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("epoll: {error}"),
        }
    }

    fn take_all(&mut self, lanes: &mut [Lane], is_closed: bool, blocked: &mut Vec<usize>) {
        let Self { events, block, counts, .. } = self;
        for event in events.iter() {
            let index = usize::try_from(event.data.u64()).expect("an index");
            lanes[index].take(block, counts, |lane, asker, now| {
                if is_closed {
                    lane.ask(asker, now);
                }
            });
            if is_closed && lanes[index].flush() && !blocked.contains(&index) {
                blocked.push(index);
            }
        }
    }

    /// Waits for what is in flight; returns how much did not come.
    fn settle(&mut self, lanes: &mut [Lane]) -> u64 {
        let end = Instant::now() + LATE;
        let mut blocked: Vec<usize> = (0..lanes.len()).collect();
        loop {
            blocked.retain(|&index| lanes[index].flush());
            let left: u64 = lanes.iter().flat_map(|lane| &lane.askers).map(|asker| asker.in_flight).sum();
            if left == 0 || Instant::now() >= end {
                return left;
            }
            self.wait(Duration::from_millis(1));
            let Self { events, block, counts, .. } = self;
            for event in events.iter() {
                lanes[usize::try_from(event.data.u64()).expect("an index")].take(block, counts, |_, _, _| {});
            }
        }
    }
}
