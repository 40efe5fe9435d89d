//! Starts that fail, hundreds of each kind, and starts of which one step fails: descriptors and processes are as before.
//! One test, because another one in the same process would change the counts.

use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lumen_os::{CommandSpec, ListenError, Listener, Stderr, spawn};
use lumen_proto::Exit;
use lumen_std::{Behind, HubConfig, HubEvent, Mode, MuxEvent, MuxSpec, ServerConfig};
use lumen_tests::procs::{children, descriptors, lumen, sibling, wait_readable};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Failing starts of each kind.
const STARTS: usize = 500;

/// What may be open for a moment, between one start and the next: one server's and one client's.
const MOMENTARY: usize = 16;

const LIMIT: Duration = Duration::from_secs(60);

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
"#;

#[test]
fn failures_leave_nothing_open_and_nobody_alive() {
    let folder = std::env::temp_dir().join(format!("lumen-hammer-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    // Builds it, and opens what stays for good.
    lumen();
    for on in [Serve::on_std, Serve::on_tokio] {
        hammer(&folder, on, 1, &|| CommandSpec::new("/bin/false"));
    }
    let before = Counted::now();

    let refusing = || CommandSpec::new(sibling("child_server")).args(["--refuse", "initialize"]);
    let guarded = |spec: CommandSpec| spec.guarded_by(lumen(), "guard");
    for on in [Serve::on_std, Serve::on_tokio] {
        hammer(&folder, on, STARTS, &|| CommandSpec::new("/no/such/program"));
        hammer(&folder, on, STARTS, &|| CommandSpec::new("/bin/false"));
        hammer(&folder, on, STARTS, &refusing);
        before.check();
    }
    hammer(&folder, Serve::on_std, STARTS, &|| guarded(CommandSpec::new("/no/such/program")));
    hammer(&folder, Serve::on_std, STARTS, &|| guarded(CommandSpec::new("/bin/false")));
    hammer(&folder, Serve::on_tokio, STARTS, &|| guarded(refusing()));
    before.check();

    refused_binds(&folder);
    before.check();

    let program = || CommandSpec::new("/bin/cat").stderr(Stderr::Ignore);
    each_step_of_a_start(&program);
    before.check();
    each_step_of_a_start(&|| guarded(program()));
    before.check();
    each_step_of_a_bind(&folder);
    before.check();
    a_client_that_cannot_be_accepted(&folder);
    before.check();
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What this process has.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    descriptors: usize,
    children: Vec<(u32, char)>,
}

impl Counted {
    fn now() -> Self {
        let own = std::process::id();
        Self { descriptors: descriptors(own).unwrap(), children: children(own) }
    }

    #[track_caller]
    fn check(&self) {
        assert_eq!(Self::now(), *self);
    }
}

/// A mux on either runtime, driven by this thread.
enum Serve {
    Std(lumen_std::Mux),
    Tokio(tokio::runtime::Runtime, lumen_tokio::Mux),
}

impl Serve {
    fn on_std(path: &Path, command: CommandSpec, config: HubConfig) -> Result<Self, ListenError> {
        Ok(Self::Std(lumen_std::Mux::bind(MuxSpec::new(path, command).hub(config))?))
    }

    fn on_tokio(path: &Path, command: CommandSpec, config: HubConfig) -> Result<Self, ListenError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let entered = runtime.enter();
        let mux = lumen_tokio::Mux::bind(MuxSpec::new(path, command).hub(config))?;
        drop(entered);
        Ok(Self::Tokio(runtime, mux))
    }

    fn next_event(&mut self) -> MuxEvent {
        match self {
            Self::Std(mux) => mux.next_event().unwrap().unwrap(),
            Self::Tokio(runtime, mux) => runtime
                .block_on(async { tokio::time::timeout(LIMIT, mux.next_event()).await })
                .unwrap()
                .unwrap(),
        }
    }
}

type Bind = fn(&Path, CommandSpec, HubConfig) -> Result<Serve, ListenError>;

fn config() -> HubConfig {
    let mut config = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off));
    (config.backoff.base, config.backoff.cap) = (Duration::from_millis(1), Duration::from_millis(1));
    config
}

/// Lets a hub start what does not start, again and again, because each time a client comes and needs it.
fn hammer(folder: &Path, bind: Bind, starts: usize, command: &dyn Fn() -> CommandSpec) {
    let path = folder.join("s");
    let mut mux = bind(&path, command().stderr(Stderr::Ignore), config()).unwrap();
    let own = std::process::id();
    let base = descriptors(own).unwrap();
    let mut client = ask(&path);
    let mut ended = 0;
    while ended < starts {
        if let MuxEvent::Hub(HubEvent::Ended { again, .. }) = mux.next_event() {
            assert!(again.is_some(), "it gave up");
            ended += 1;
            let open = descriptors(own).unwrap();
            assert!(open <= base + MOMENTARY, "{open} descriptors after {ended} starts, {base} before");
            assert!(children(own).len() <= 1, "{:?}", children(own));
            drop(std::mem::replace(&mut client, ask(&path)));
        }
    }
    drop(mux);
    assert!(!path.exists());
}

fn ask(path: &Path) -> UnixStream {
    let mut client = UnixStream::connect(path).unwrap();
    client.write_all(INITIALIZE).unwrap();
    client
}

/// The path is somebody else's, is no socket, or cannot be.
fn refused_binds(folder: &Path) {
    let held = folder.join("held");
    let owner = Listener::bind(&held).unwrap();
    let file = folder.join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("s");
    let long = folder.join("x".repeat(120));
    for bind in [Serve::on_std as Bind, Serve::on_tokio] {
        for index in 0..STARTS {
            let path: &PathBuf = [&held, &file, &below, &long][index % 4];
            assert!(bind(path, CommandSpec::new("/bin/cat"), config()).is_err(), "{path:?}");
        }
    }
    drop(owner);
}

/// Runs `attempt` with room for no further descriptor, then for one, and so on until it succeeds; returns what came of it.
///
/// Each failure must leave as many descriptors and children as there were.
fn with_room_for<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let before = Counted::now();
    let first = lowest_free();
    let mut failures = Vec::new();
    for room in 0..64 {
        match below(first + room, &mut attempt) {
            Ok(done) => {
                assert!(failures.len() >= 2, "{what}: {failures:?}");
                return done;
            }
            Err(error) => {
                assert_eq!(Counted::now(), before, "{what}, after {error}");
                failures.push(error);
            }
        }
    }
    panic!("{what} never succeeds: {failures:?}");
}

/// Does something while new descriptors must have numbers below `limit`.
fn below<T>(limit: u64, work: impl FnOnce() -> T) -> T {
    let usual = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..usual }).unwrap();
    let result = work();
    setrlimit(Resource::Nofile, usual).unwrap();
    result
}

/// The number that the next descriptor gets.
fn lowest_free() -> u64 {
    let next = std::fs::File::open("/dev/null").unwrap();
    u64::try_from(next.as_raw_fd()).unwrap()
}

fn each_step_of_a_start(command: &dyn Fn() -> CommandSpec) {
    let mut child =
        with_room_for("a start", || spawn(&command()).map_err(|error| format!("{error:?} {error}")));
    // It has no more room for descriptors than the start had, which may be too little for it.
    drop(child.stdin);
    assert!(wait_readable(&child.process, LIMIT));
    assert!(matches!(child.process.end(), Exit::Code(0 | 127)));
}

fn each_step_of_a_bind(folder: &Path) {
    let path = folder.join("steps");
    let cat = || CommandSpec::new("/bin/cat");
    let words = |error: ListenError| error.to_string();
    let mux = with_room_for("a bind", || {
        lumen_std::Mux::bind(MuxSpec::new(&path, cat()).hub(config())).map_err(words)
    });
    assert!(path.exists());
    drop(mux);
    assert!(!path.exists());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let mux = with_room_for("a bind", || {
        lumen_tokio::Mux::bind(MuxSpec::new(&path, cat()).hub(config())).map_err(words)
    });
    assert!(path.exists());
    drop(mux);
    assert!(!path.exists());
}

/// It waits in the socket's queue until there is room again.
fn a_client_that_cannot_be_accepted(folder: &Path) {
    for bind in [Serve::on_std as Bind, Serve::on_tokio] {
        let path = folder.join("full");
        let mut mux = bind(&path, CommandSpec::new("/bin/cat"), config()).unwrap();
        let _client = UnixStream::connect(&path).unwrap();
        let open = descriptors(std::process::id()).unwrap();
        let event = below(lowest_free(), || mux.next_event());
        assert!(matches!(event, MuxEvent::Exhausted), "{event:?}");
        assert!(matches!(mux.next_event(), MuxEvent::Joined { .. }));
        assert_eq!(descriptors(std::process::id()).unwrap(), open + 1);
    }
}
