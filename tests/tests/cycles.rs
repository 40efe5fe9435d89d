//! Starting and stopping again and again leaves descriptors and processes where they were. Alone in its file: other
//! tests in the same process would change the counts.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use lumen_os::{CommandSpec, Stderr, Target};
use lumen_proto::endpoint::{Event, Relay, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_std::{Loop, Stream};
use lumen_tests::procs::{Mark, children, descriptors, sibling};

const CYCLES: usize = 50;
const CRASHES: usize = 20;
/// A cycle that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn cycles_leave_nothing_behind() {
    let mark = Mark::new();
    let own = std::process::id();
    // The first may open what stays for good.
    cycle(&mark, false, false);
    let before = descriptors(own).unwrap();
    for index in 0..CYCLES {
        let is_crash = index * CRASHES / CYCLES != (index + 1) * CRASHES / CYCLES;
        cycle(&mark, is_crash, index % 7 == 0);
    }
    assert_eq!(descriptors(own).unwrap(), before);
    assert!(children(own).is_empty(), "zombies or worse: {:?}", children(own));
    assert!(mark.processes().is_empty(), "grandchildren: {:?}", mark.processes());
}

fn cycle(mark: &Mark, is_crash: bool, is_lingering: bool) {
    let config = ServerConfig::new(Behind::Process, Mode::Off);
    let relay = Relay::connect(config);
    let port = relay.client_port();
    let (name, value) = mark.pair();
    let pid_file = std::env::temp_dir().join(format!("lumen-cycles-{}", std::process::id()));
    let mut spec = CommandSpec::new(sibling("child_server")).env(name, value).stderr(Stderr::Ignore);
    if is_lingering {
        // Its own child outlives it and holds its output, which costs half a second.
        spec = spec.arg("--linger-grandchild").arg(&pid_file);
    }
    if is_crash {
        spec = spec.args(["--crash-after", "0"]);
    }
    let (mut client, own) = UnixStream::pair().unwrap();
    let mut relay = Loop::new(relay, Some(Target::Command(spec)));
    relay.attach(port, Stream::socket(own).unwrap());
    client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let until = relay.now() + LIMIT;
    let mut is_finished = false;
    while !(is_finished && relay.is_settled()) {
        assert!(relay.now() < until, "it hangs");
        relay.turn(Some(until)).unwrap();
        while let Some(event) = relay.poll_event() {
            is_finished |= matches!(event, Event::Finished(_));
        }
    }
    drop(relay);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer.lines().count(), 1, "{answer}");
    assert_eq!(answer.contains("\"error\""), is_crash, "{answer}");
    let _ = std::fs::remove_file(pid_file);
}
