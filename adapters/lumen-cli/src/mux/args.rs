//! The command lines of `mux` and `status`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use lumen_os::{CommandSpec, MuxSpec};
use lumen_proto::limits;
use lumen_proto::negotiate::Mode;

use crate::args::{Server, seconds};
use crate::exit::Exit;
use crate::runtime::Spin;

const MUX_EXAMPLES: &str = "\
Examples:
  lumen mux --socket /run/user/1000/git.sock -- uvx mcp-server-git
  lumen mux --socket ./s --idle-exit 600 --backoff 1s..10s -- node server.js
  lumen mux --socket ./own --child-per-session -- npx some-server-with-a-session
  lumen connect unix:./s
  lumen status ./s

One server process serves all who connect; another one, if clients of both of MCP's eras come; --child-per-session gives each client one of its own. Say what you want them to \
share by giving each its own socket. SOCKET.lock is kept beside the socket. Told to end, it gives requests in flight 5 s. \
stdin and stdout are not used; everything for people goes to stderr.";

const STATUS_EXAMPLES: &str = "\
Examples:
  lumen status /run/user/1000/git.sock
  lumen status --json ./s | jq .servers[0].pid";

/// How a server is shared.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{MUX_EXAMPLES}\n\n{}", Exit::MUX_HELP))]
pub(crate) struct Mux {
    /// The Unix socket to serve. Its directory is made if it is missing; a socket that nobody serves is replaced.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,

    /// End when no client has been there for so long.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    idle_exit: Option<u64>,

    /// Start the server when the first client needs it, not at once.
    #[arg(long)]
    lazy: bool,

    /// How many clients may be connected at a time.
    #[arg(long, value_name = "N", default_value_t = limits::MAX_CLIENTS as u32, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    pub(crate) max_clients: u32,

    /// How long a request may go unanswered, unless it reports progress; 0 is for ever.
    #[arg(long, value_name = "S", default_value_t = limits::REQUEST_TIMEOUT.as_secs())]
    request_timeout: u64,

    /// How long to wait before the server is started again: the first time, doubled each time, and at most. In
    /// seconds, or with a unit: 500ms..5s.
    #[arg(long, value_name = "MIN..MAX", default_value = "3s..30s", value_parser = parse_backoff)]
    backoff: (Duration, Duration),

    /// Start one server only, for the era of whoever comes first; clients of the other are refused.
    #[arg(long)]
    one_child: bool,

    /// Start a server for each client, which is told what that client says of itself and ends when it goes. Implies
    /// --lazy; --max-clients bounds the servers.
    #[arg(long, conflicts_with = "one_child")]
    pub(crate) child_per_session: bool,

    /// Also let in clients of this user, by number. May be repeated. The socket can then be reached by everybody, and
    /// whoever is not let in is turned away when it connects.
    #[arg(long = "allow-uid", value_name = "UID")]
    allow: Vec<u32>,

    /// Whether and how the server is asked for LUMEN.
    #[arg(long, value_enum, default_value_t = Negotiate::Offer)]
    negotiate: Negotiate,

    /// What it runs on: all do the same; tokio and io_uring cost less with hundreds of clients.
    #[arg(long, value_enum, default_value_t = Runtime::Tokio)]
    pub(crate) runtime: Runtime,

    #[command(flatten)]
    pub(crate) spin: Spin,

    /// Append all that is for people to this file in place of stderr: what the mux says, and what the server writes to its
    /// standard error. Each line begins with its time, UTC. Above 1 MiB the file is renamed to FILE.old, in place of an
    /// older one, and begun anew.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) server: Server,
}

/// How things stand with a server that is shared.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{STATUS_EXAMPLES}\n\n{}", Exit::STATUS_HELP))]
pub(crate) struct Status {
    /// The socket that `lumen mux` serves, with `unix:` before it or not.
    #[arg(value_parser = parse_socket)]
    pub(crate) socket: PathBuf,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whether and how a shared server is asked for LUMEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Negotiate {
    /// The handshake carries the offer.
    Offer,
    /// Probe first; without an answer speak JSON, and let the handshake carry the offer.
    Auto,
    /// Speak JSON.
    Off,
}

/// What a mux runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Runtime {
    /// One tokio thread: epoll.
    Tokio,
    /// One plain thread: poll.
    Std,
    /// One plain thread: io_uring, where the kernel lets this process have it.
    Uring,
}

impl Mux {
    /// Returns whether nothing is started before a client needs it.
    pub(crate) const fn is_lazy(&self) -> bool {
        self.lazy || self.child_per_session
    }

    /// Returns whether and how the server is to be asked for LUMEN.
    pub(crate) const fn mode(&self) -> Mode {
        match self.negotiate {
            Negotiate::Offer => Mode::Offer,
            Negotiate::Auto => Mode::Auto,
            Negotiate::Off => Mode::Off,
        }
    }

    /// Returns what is shared how: the server that `command` starts, asked in this way.
    pub(crate) fn spec(&self, command: CommandSpec, mode: Mode) -> MuxSpec {
        let (base, cap) = self.backoff;
        let spec = MuxSpec::new(&self.socket, command)
            .negotiate(mode)
            .backoff(base, cap)
            .request_timeout(seconds(self.request_timeout))
            .start_timeout(self.server.start_timeout())
            .max_clients(self.max_clients as usize)
            .idle_exit(self.idle_exit.map(Duration::from_secs))
            .one_child(self.one_child)
            .child_per_session(self.child_per_session);
        self.allow.iter().copied().fold(spec, MuxSpec::allow_uid)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what the command line's parser takes")]
fn parse_socket(text: &str) -> Result<PathBuf, String> {
    Ok(text.strip_prefix("unix:").unwrap_or(text).into())
}

fn parse_backoff(text: &str) -> Result<(Duration, Duration), String> {
    let problem = || format!("{text:?} is not MIN..MAX, such as 3s..30s or 500ms..5s");
    let (min, max) = text.split_once("..").ok_or_else(problem)?;
    let (min, max) = (parse_time(min).ok_or_else(problem)?, parse_time(max).ok_or_else(problem)?);
    if min.is_zero() || min > max {
        return Err(format!("{text:?}: the first must be above 0 and not above the second"));
    }
    Ok((min, max))
}

fn parse_time(text: &str) -> Option<Duration> {
    if let Some(millis) = text.strip_suffix("ms") {
        return millis.parse().ok().map(Duration::from_millis);
    }
    text.strip_suffix('s').unwrap_or(text).parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_is_read_in_seconds_or_with_a_unit() {
        let millis = Duration::from_millis;
        assert_eq!(parse_backoff("3..30"), Ok((millis(3000), millis(30_000))));
        assert_eq!(parse_backoff("10ms..1s"), Ok((millis(10), millis(1000))));
        for wrong in ["", "3", "3..", "..3", "0..3", "4..3", "1m..2m", "-1..3", "3s...30s", "1.5..3"] {
            assert!(parse_backoff(wrong).is_err(), "{wrong}");
        }
    }
}
