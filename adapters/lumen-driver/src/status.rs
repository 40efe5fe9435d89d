//! How things stand with a hub, as JSON: the answer to `lumen/status`, the same on every runtime.

use lumen_proto::endpoint::Hub;
use lumen_proto::mcp::Era;
use lumen_proto::mux::{STATUS, SlotId};
use lumen_proto::supervisor::{Ended, State};
use lumen_proto::{Instant, Port};
use serde_json::{Value, json};

/// Requests in flight that are named; further ones are only counted.
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

/// Describes a hub; `process` is asked for what stands behind a server's port.
///
/// The text is one JSON object. `servers` has one entry for each place that was ever used: `era` (`legacy`, `modern` or
/// null), `state` (`idle`, `starting`, `running`, `stopping`, `backoff`, `gave_up` or `stopped`), `generation`,
/// `restarts`, `forMs` (how long it runs) or `retryInMs`, `lastEnd`, `pid`, `stderr`. `inFlight` names the oldest requests:
/// `method`, `ageMs`, `client` (null for ours), `server`. Times are in milliseconds, sizes in bytes.
pub fn describe(hub: &Hub, now: Instant, mut process: impl FnMut(Port) -> Process) -> String {
    let servers: Vec<Value> = SlotId::ALL
        .into_iter()
        .filter(|slot| *slot == SlotId::First || hub.server(*slot).state != State::Idle)
        .map(|slot| server(hub, now, slot, &mut process))
        .collect();
    let calls: Vec<Value> = hub
        .mux()
        .calls()
        // Whoever asks knows.
        .filter(|call| call.method != STATUS)
        .take(MAX_NAMED)
        .map(|call| {
            json!({
                "method": call.method,
                "ageMs": millis(now, call.since),
                "client": call.client.map(|port| port.to_string()),
                "server": call.slot.index(),
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "clients": hub.clients(),
        "queuedBytes": hub.queued(),
        "inFlightCount": hub.mux().calls().filter(|call| call.method != STATUS).count(),
        "inFlight": calls,
        "servers": servers,
    })
    .to_string()
}

fn server(hub: &Hub, now: Instant, slot: SlotId, process: &mut impl FnMut(Port) -> Process) -> Value {
    let status = hub.server(slot);
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
        "server": slot.index(),
        "era": era,
        "state": state,
        "forMs": since.map(|since| millis(now, since)),
        "retryInMs": until.map(|until| millis(until, now)),
        "generation": status.port.generation(),
        "restarts": status.restarts,
        "lastEnd": status.last_end.map(ended),
        "pid": pid,
        "stderr": stderr,
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
    fn it_says_who_waits_for_what() {
        let mut hub = Hub::new(HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off)));
        let client = hub.try_accept().unwrap();
        let now = Instant::from_millis(10);
        hub.handle_input(now, Input::Opened(client));
        let ask = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"lumen/status\"}\n";
        hub.handle_input(now, Input::Data(client, ask));
        let Some(HubEvent::Asked { request, .. }) = hub.poll_event() else { panic!("nobody asks") };
        let now = Instant::from_millis(35);
        let text = describe(&hub, now, |_| Process { pid: Some(7), stderr: vec!["a\"b".to_owned()] });
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(status["clients"], 1);
        assert_eq!(status["inFlightCount"], 1);
        assert_eq!(status["inFlight"][0]["method"], "tools/list");
        assert_eq!(status["inFlight"][0]["ageMs"], 25);
        let servers = status["servers"].as_array().unwrap();
        assert_eq!(servers.len(), 1);
        assert_eq!((&servers[0]["state"], &servers[0]["pid"]), (&"starting".into(), &7.into()));
        assert_eq!(servers[0]["stderr"][0], "a\"b");
        hub.answer(now, request, &text);
        let mut out = bytes::BytesMut::new();
        while hub.poll_transmit(now, client, &mut out) == lumen_proto::Transmit::More {}
        let answer: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!((&answer["id"], &answer["result"]), (&2.into(), &status));
    }
}
