//! How things stand with a mux, as JSON: the answer to `lumen/status`, the same on every runtime.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use lumen_proto::connection::Tally;
use lumen_proto::endpoint::{Pool, ServerStatus};
use lumen_proto::mcp::Era;
use lumen_proto::mux::STATUS;
use lumen_proto::supervisor::{Ended, State};
use lumen_proto::{Instant, Port};
use serde_json::{Value, json};

/// Requests in flight, servers and clients that are named, of each kind; further ones are only counted.
pub const MAX_NAMED: usize = 64;

/// Lines of a server's standard error that are quoted.
pub const MAX_LINES: usize = 20;

/// What only the binding knows of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its process id, while it lives.
    pub pid: Option<u32>,
    /// The end of what it wrote to its standard error.
    pub stderr: Vec<String>,
}

/// The longest command that is told, in bytes.
pub const MAX_COMMAND: usize = 64 * 1024;

/// What the owner of a mux has those told who ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Where it writes what it does.
    pub log: Option<PathBuf>,
    /// The command of its server, word by word.
    pub command: Vec<OsString>,
}

/// Describes what a mux does; `about` is what only its owner knows, `process` is asked for what stands behind a server's
/// port.
///
/// The text is one JSON object. Times are in milliseconds, sizes in bytes, a port is written `index.generation`.
///
/// | member | what it says |
/// |---|---|
/// | `version` | of lumen |
/// | `pid` | the process id of the mux |
/// | `private` | whether each client has a server to itself |
/// | `clients` | how many are connected, the one that asks included |
/// | `queuedBytes` | what waits for clients |
/// | `traffic.clients`, `.servers` | what went through all clients and all servers there ever were: a traffic, see below |
/// | `command[]` | the words of the command that starts a server, as in the list of processes; null if they are longer than [`MAX_COMMAND`] |
/// | `log` | the path of the log file, null if there is none |
/// | `inFlightCount` | how many requests are not answered, those that ask for this left out |
/// | `inFlight[]` | up to [`MAX_NAMED`] of them, of each server the oldest first |
/// | `inFlight[].method`, `.ageMs` | what, and for how long |
/// | `inFlight[].client` | the port of who asked, null for requests of lumen's own |
/// | `inFlight[].server` | whom: a `server` below |
/// | `serverCount` | how many servers there are |
/// | `servers[]` | up to [`MAX_NAMED`] of them: each that was ever needed, a shared one in any case; a private one until it has ended after its client |
/// | `servers[].server` | its number: the index of its port |
/// | `servers[].client` | the port of the client whose own it is, null if it is shared or that client has gone |
/// | `servers[].era` | `legacy`, `modern`, or null while that is undecided |
/// | `servers[].state` | `idle`, `starting`, `running`, `stopping`, `backoff`, `gave_up` or `stopped` |
/// | `servers[].forMs` | how long it has been ready, null if it is not |
/// | `servers[].retryInMs` | when it is started again, null unless that is due |
/// | `servers[].generation`, `.restarts` | how often it was started, both counted from 0 |
/// | `servers[].lastEnd` | how it ended the last time, null if it has not |
/// | `servers[].carrier` | `lumen`, or `json` before that is agreed on and without it |
/// | `servers[].queuedBytes` | what waits for it, or until it is ready |
/// | `servers[].traffic` | what went to it and came from it, in all generations |
/// | `servers[].pid` | its process id, null without a process |
/// | `servers[].stderr[]` | up to [`MAX_LINES`] lines, the last it wrote to its standard error |
/// | `connections[]` | up to [`MAX_NAMED`] of the clients |
/// | `connections[].client` | its port |
/// | `connections[].carrier`, `.queuedBytes`, `.traffic` | as for servers |
///
/// A traffic counts from lumen's side:
///
/// | member | what it says |
/// |---|---|
/// | `in.messages`, `out.messages` | whole messages that came and went, a batch as one |
/// | `in.bytes`, `out.bytes` | all that came and went as it travelled, lines or frames, probes and heartbeats included |
/// | `converted.messages` | how many of these were turned from JSON into values or back, which is what happens between one side that speaks LUMEN and one that does not |
/// | `converted.jsonBytes`, `.lumenBytes` | the length of just these as JSON text and as values, line feeds and frame headers left out: what LUMEN saves, or would |
///
/// Nothing is converted only to be counted: where both sides speak the same, nothing is known of the other length.
pub fn describe(
    pool: &Pool,
    now: Instant,
    about: &About,
    mut process: impl FnMut(Port) -> Process,
) -> String {
    let all = pool.servers();
    let servers: Vec<Value> =
        all.iter().take(MAX_NAMED).map(|status| server(status, now, &mut process)).collect();
    // Whoever asks knows.
    let mut pending = pool.pending();
    pending.retain(|call| call.method != STATUS);
    let calls: Vec<Value> = pending
        .iter()
        .take(MAX_NAMED)
        .map(|call| {
            json!({
                "method": call.method,
                "ageMs": millis(now, call.since),
                "client": call.client.map(|port| port.to_string()),
                "server": call.server,
            })
        })
        .collect();
    let connections: Vec<Value> = pool
        .connected()
        .into_iter()
        .take(MAX_NAMED)
        .map(|client| {
            json!({
                "client": client.port.to_string(),
                "carrier": carrier(client.is_lumen),
                "queuedBytes": client.queued,
                "traffic": traffic(client.tally),
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "private": pool.is_private(),
        "clients": pool.clients(),
        "queuedBytes": pool.queued(),
        "traffic": {"clients": traffic(pool.clients_tally()), "servers": traffic(pool.servers_tally())},
        "command": command(&about.command),
        "log": about.log.as_deref().map(|log| log.to_string_lossy()),
        "inFlightCount": pending.len(),
        "inFlight": calls,
        "serverCount": all.len(),
        "servers": servers,
        "connections": connections,
    })
    .to_string()
}

fn command(words: &[OsString]) -> Option<Vec<Cow<'_, str>>> {
    let len: usize = words.iter().map(|word| word.len()).sum();
    (!words.is_empty() && len <= MAX_COMMAND)
        .then(|| words.iter().map(|word| word.to_string_lossy()).collect())
}

fn server(status: &ServerStatus, now: Instant, process: &mut impl FnMut(Port) -> Process) -> Value {
    let Process { pid, stderr } = process(status.port);
    let era = match status.era {
        Some(Era::Legacy) => Some("legacy"),
        Some(Era::Modern) => Some("modern"),
        None => None,
    };
    let (state, since, until) = match status.state {
        State::Idle => ("idle", None, None),
        State::Starting => ("starting", None, None),
        State::Running { since } => ("running", Some(since), None),
        State::Stopping { .. } => ("stopping", None, None),
        State::Backoff { until } => ("backoff", None, Some(until)),
        State::GaveUp => ("gave_up", None, None),
        State::Stopped => ("stopped", None, None),
    };
    json!({
        "server": status.port.index(),
        "client": status.client.map(|port| port.to_string()),
        "era": era,
        "state": state,
        "forMs": since.map(|since| millis(now, since)),
        "retryInMs": until.map(|until| millis(until, now)),
        "generation": status.port.generation(),
        "restarts": status.restarts,
        "lastEnd": status.last_end.map(ended),
        "carrier": carrier(status.is_lumen),
        "queuedBytes": status.queued,
        "traffic": traffic(status.tally),
        "pid": pid,
        "stderr": stderr,
    })
}

const fn carrier(is_lumen: bool) -> &'static str {
    if is_lumen { "lumen" } else { "json" }
}

fn traffic(tally: Tally) -> Value {
    let Tally { received, sent, converted } = tally;
    json!({
        "in": {"messages": received.messages, "bytes": received.bytes},
        "out": {"messages": sent.messages, "bytes": sent.bytes},
        "converted": {
            "messages": converted.messages,
            "jsonBytes": converted.json,
            "lumenBytes": converted.values,
        },
    })
}

fn ended(ended: Ended) -> String {
    match ended {
        Ended::Failed(error) => format!("not started: {error}"),
        Ended::Exited(exit) => exit.to_string(),
        Ended::Closed => "its stream closed".to_owned(),
    }
}

fn millis(later: Instant, earlier: Instant) -> u64 {
    u64::try_from(later.saturating_since(earlier).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use lumen_proto::Input;
    use lumen_proto::Machine as _;
    use lumen_proto::endpoint::{HubConfig, HubEvent, ServerConfig};
    use lumen_proto::negotiate::Mode;
    use lumen_proto::supervisor::Behind;

    use super::*;

    #[test]
    fn a_command_is_told_unless_it_is_endless() {
        let words = |len: usize| [OsString::from("x"), OsString::from("y".repeat(len - 1))];
        assert_eq!(command(&words(MAX_COMMAND)).map(|words| words.len()), Some(2));
        assert_eq!(command(&words(MAX_COMMAND + 1)), None);
        assert_eq!(command(&[]), None);
    }

    #[test]
    fn it_says_who_waits_for_what() {
        let mut hub = Pool::new(HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off)));
        let client = hub.try_accept().unwrap();
        let now = Instant::from_millis(10);
        hub.handle_input(now, Input::Opened(client));
        let ask = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"lumen/status\"}\n";
        hub.handle_input(now, Input::Data(client, ask));
        let Some(HubEvent::Asked { request, .. }) = hub.poll_event() else { panic!("nobody asks") };
        let now = Instant::from_millis(35);
        let about = About { log: Some("/l".into()), command: vec!["npx".into(), "a b".into()] };
        let text = describe(&hub, now, &about, |_| Process { pid: Some(7), stderr: vec!["a\"b".to_owned()] });
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(status["clients"], 1);
        assert_eq!(status["inFlightCount"], 1);
        assert_eq!(status["inFlight"][0]["method"], "tools/list");
        assert_eq!(status["inFlight"][0]["ageMs"], 25);
        let servers = status["servers"].as_array().unwrap();
        assert_eq!(servers.len(), 1);
        assert_eq!((&servers[0]["state"], &servers[0]["pid"]), (&"starting".into(), &7.into()));
        assert_eq!(servers[0]["stderr"][0], "a\"b");
        assert!(servers[0]["queuedBytes"].as_u64().unwrap() > 0, "the request waits for it");
        assert_eq!(
            (&servers[0]["carrier"], &servers[0]["traffic"]["out"]["bytes"]),
            (&"json".into(), &0.into())
        );
        let said = json!({"messages": 2, "bytes": ask.len()});
        assert_eq!(status["connections"][0]["client"], "2.0");
        for traffic in [&status["connections"][0]["traffic"], &status["traffic"]["clients"]] {
            assert_eq!(traffic["in"], said);
        }
        assert_eq!((&status["log"], &status["private"]), (&"/l".into(), &false.into()));
        assert_eq!(status["command"], json!(["npx", "a b"]));
        hub.answer(now, client, request, &text);
        let mut out = bytes::BytesMut::new();
        while hub.poll_transmit(now, client, &mut out) == lumen_proto::Transmit::More {}
        let answer: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&answer["id"], &answer["result"]), (&2.into(), &status));
    }
}
