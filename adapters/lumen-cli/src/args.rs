//! The command line.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use lumen_proto::limits;
use lumen_proto::negotiate::Mode;

use crate::exit::Exit;
use crate::runtime::Runs;

/// MCP over stdio, through the LUMEN transport where both sides have it and plain JSON-RPC where not.
#[derive(Debug, Parser)]
#[command(name = "lumen", version, after_help = Exit::HELP)]
pub(crate) struct Args {
    /// Say more on stderr: -v notable events, -vv all. RUST_LOG decides alone if it is set.
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a server, or reach one on a socket, and speak newline JSON for it: put this line into an agent's configuration.
    Connect(Connect),
    /// Give a JSON server the LUMEN transport: put this in front of the server's command.
    Wrap(Wrap),
    /// Share one server between all who connect to a Unix socket.
    Mux(crate::mux::args::Mux),
    /// Say how a shared server does.
    Status(crate::mux::args::Status),
    /// Reach a server behind a URL, and speak newline JSON for it: put this line into an agent's configuration.
    Bridge(Bridge),
    /// Start a server by itself, several times, and report what is wrong with it and what to do.
    Doctor(Doctor),
    /// Show it at work: a small server, asked over JSON-RPC and over LUMEN, bytes and times counted.
    Demo(Demo),
    /// Turn JSON lines into LUMEN frames, one message at a time.
    Encode(Encode),
    /// Turn LUMEN frames into JSON lines, or show every frame.
    Decode(Decode),
    /// The small server that `demo` starts, on its own stdin and stdout.
    #[command(hide = true)]
    DemoServer,
}

const CONNECT_EXAMPLES: &str = "\
Examples:
  lumen connect -- npx -y @modelcontextprotocol/server-everything
  lumen connect --negotiate offer -- uvx mcp-server-git
  lumen connect --env TOKEN=x --cwd /srv -- lumen wrap -- python server.py
  lumen connect unix:/run/user/1000/git.sock
  lumen connect unix:/run/user/1000/git.sock --start -- uvx mcp-server-git
  lumen connect unix:./s --start --idle-exit 3600 --env TOKEN=x -- node server.js

With --start, `lumen mux` is started for the socket, detached from this command and its terminal, if nobody serves it: all \
who connect share one server, whoever comes first. It ends when no client has been there for --idle-exit; `lumen status \
PATH` says how it does and where its log is. The server's options and command count only for who starts it; that another command is served is said on stderr.

When the connection is closed, as by a mux that ends or crashes, it is made again, with --start by a new mux. The client \
need not know: its handshake, log level and subscriptions are told again. Requests that were not answered get an error.

stdin and stdout carry the protocol; everything for people goes to stderr.";

const WRAP_EXAMPLES: &str = "\
Examples:
  lumen wrap -- python server.py
  lumen connect -- lumen wrap -- npx -y @modelcontextprotocol/server-everything

stdin and stdout carry the protocol; everything for people goes to stderr.";

const BRIDGE_EXAMPLES: &str = "\
Examples:
  lumen bridge --url https://host
  lumen bridge --url https://host/api/mcp --header 'X-Team: ${TEAM}'
  lumen bridge --url http://127.0.0.1:3000 --site weather --timeout 60

The key is --key, or else the variable LUMEN_API_KEY, or else LEUMAS_API_KEY. A variable keeps it out of the list of \
processes, which every user of this machine can read. HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY count unless \
--proxy is given, and SSL_CERT_FILE in place of the platform's certificates.

stdin and stdout carry the protocol; everything for people goes to stderr.";

const DOCTOR_EXAMPLES: &str = "\
It begins sessions by initialize, by server/discover, after a LUMEN probe and with a LUMEN offer, and ends the \
server's input while answers are owed. It asks initialize, server/discover, ping and the lists that the server \
declares, and calls no tool. The report is on stdout.

Examples:
  lumen doctor -- npx -y @modelcontextprotocol/server-everything
  lumen doctor --json -- python server.py | jq '.findings[].code'
  lumen doctor --timeout 120 --env TOKEN=x -- uvx mcp-server-git";

const ENCODE_EXAMPLES: &str = "\
Each line must be one JSON-RPC message or batch. Its frame is compressed if the protocol's reference \
implementation gets the same document out of it; if not (it has a number such as 1.0, an array of more than 1,024, or \
nests deeper than 32), it carries the text as it is.

Examples:
  lumen encode < session.jsonl > session.lumen
  lumen encode session.jsonl | lumen decode --frames
  echo '{\"a\":[1,2]}' | lumen encode --value | xxd";

const DECODE_EXAMPLES: &str = "\
Frames that carry no message are passed over. With --frames, each frame is one line of JSON:
  {\"offset\":0,\"type\":\"REQUEST\",\"flags\":[\"COMPRESSED\"],\"header\":3,\"payload\":18,\"message\":{..}}
offset, header and payload count bytes; a type without a name is a number such as \"0x11\". Where there is no message \
it is null, and \"json\" has what the payload says, or \"hex\" its bytes. A frame that is broken, but whose end is known, \
has a \"problem\" too, and the exit code is 1.

Examples:
  lumen decode < session.lumen
  lumen decode --frames capture.lumen | jq .type
  printf '\\xe6\\x02\\xe4\\x00\\xe5\\x01x' | lumen decode --value";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{CONNECT_EXAMPLES}\n\n{}", Exit::HELP))]
#[command(
    override_usage = "lumen connect [OPTIONS] -- COMMAND [ARGS]...\n       lumen connect [OPTIONS] unix:PATH|tcp:HOST:PORT\n       lumen connect [OPTIONS] unix:PATH --start -- COMMAND [ARGS]..."
)]
#[command(mut_arg("command", |command| command.required(false).required_unless_present("socket")))]
pub(crate) struct Connect {
    /// A server that is running already, such as what `lumen mux` serves, in place of a command.
    #[arg(value_name = "unix:PATH|tcp:HOST:PORT", value_parser = Socket::parse)]
    pub(crate) socket: Option<Socket>,

    /// Whether and how the server is asked for LUMEN.
    #[arg(long, value_enum, default_value_t = Negotiate::Auto)]
    pub(crate) negotiate: Negotiate,

    /// How long an opening probe waits for its answer.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    probe_timeout: u64,

    /// How long a server that was probed may leave the first request unanswered before it is started once more
    /// without a probe; not longer than --start-timeout.
    #[arg(long, value_name = "MS", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    #[arg(hide_short_help = true)]
    probed_timeout: u64,

    /// How long a connection that was closed may take to be made again, all tries together, and until something is heard
    /// there, before nobody is there any more; 0 is not to try. The session then goes on, and the client need not know;
    /// requests that were not answered get an error.
    #[arg(long, value_name = "S", default_value_t = limits::RECONNECT_LIMIT.as_secs(), value_parser = clap::value_parser!(u64).range(..=86_400))]
    #[arg(requires = "socket")]
    reconnect: u64,

    /// If nobody serves the socket, start `lumen mux` there with the command behind --, detached.
    #[arg(long, requires_all = ["socket", "command"])]
    pub(crate) start: bool,

    /// When a mux that was started ends: when no client has been there for so long.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(requires = "start")]
    pub(crate) idle_exit: u64,

    /// Have a mux that is started give each client a server of its own.
    #[arg(long, requires = "start")]
    pub(crate) child_per_session: bool,

    /// The log of a mux that was started, in which each line begins with its time, UTC; PATH.log if this is left out.
    #[arg(long, value_name = "FILE", requires = "start")]
    pub(crate) log: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) runs: Runs,

    #[command(flatten)]
    pub(crate) server: Server,
}

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{WRAP_EXAMPLES}\n\n{}", Exit::HELP))]
pub(crate) struct Wrap {
    #[command(flatten)]
    pub(crate) runs: Runs,

    #[command(flatten)]
    pub(crate) server: Server,
}

/// Where a server is that is running already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Socket {
    Unix(PathBuf),
    Tcp(String),
}

impl Socket {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", address))
                if address
                    .rsplit_once(':')
                    .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) =>
            {
                Ok(Self::Tcp(address.to_owned()))
            }
            _ => Err("neither unix:PATH nor tcp:HOST:PORT; a command to start goes behind --".to_owned()),
        }
    }
}

/// A server to start.
#[derive(Debug, clap::Args)]
pub(crate) struct Server {
    /// Set a variable in the server's environment, which is otherwise this one's. May be repeated.
    #[arg(long = "env", value_name = "K=V")]
    env: Vec<OsString>,

    /// The directory that the server runs in.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// How long the server may leave the first request unanswered; 0 is for ever.
    #[arg(long, value_name = "S", default_value_t = 120)]
    start_timeout: u64,

    /// The server's command and its arguments, passed on exactly; there is no shell in between.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{DOCTOR_EXAMPLES}\n\n{}", Exit::DOCTOR_HELP))]
pub(crate) struct Doctor {
    /// Print the report as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// How long each answer may take that is not the very first one.
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,

    #[command(flatten)]
    pub(crate) server: Server,
}

/// No `Debug`: it holds the key.
#[derive(clap::Args)]
#[command(after_help = format!("{BRIDGE_EXAMPLES}\n\n{}", Exit::BRIDGE_HELP))]
pub(crate) struct Bridge {
    /// The server's URL, http or https. Without a path it means /mcp there; with one it is used as it is.
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,

    /// Use /mcp/SITE of the URL's host, whatever the URL's path.
    #[arg(long, value_name = "SITE")]
    pub(crate) site: Option<String>,

    /// The key, sent as `Authorization: Bearer KEY` to this server only.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,

    /// Send a further header; ${NAME} in its value is a variable of the environment, which must be set. May be
    /// repeated.
    #[arg(long = "header", value_name = "K: V")]
    pub(crate) headers: Vec<String>,

    /// Trust the certificates in this PEM file besides the platform's.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// How long a request may go unanswered; 0 is for ever.
    #[arg(long, value_name = "S", default_value_t = 0)]
    timeout: u64,

    /// How long making a connection may take; 0 is for ever.
    #[arg(long, value_name = "S", default_value_t = 10)]
    connect_timeout: u64,

    /// Go through this proxy, http:// or socks5://, except to what NO_PROXY names.
    #[arg(long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").finish_non_exhaustive()
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = Exit::HELP)]
pub(crate) struct Demo {
    /// How many times the small tool is called; other requests are not made more often than that.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) calls: u32,
}

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{ENCODE_EXAMPLES}\n\n{}", Exit::CODEC_HELP))]
pub(crate) struct Encode {
    /// Compress also what only receivers that list "exact" keep: 1.0, -0.0, any number of members, depth 128.
    #[arg(long)]
    pub(crate) exact: bool,

    /// Compress nothing: every frame carries its text.
    #[arg(long, conflicts_with_all = ["exact", "value"])]
    pub(crate) plain: bool,

    /// Write the bytes of one value: the whole input is one JSON document of any kind, and there is no frame.
    #[arg(long)]
    pub(crate) value: bool,

    #[command(flatten)]
    pub(crate) files: Files,
}

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{DECODE_EXAMPLES}\n\n{}", Exit::CODEC_HELP))]
pub(crate) struct Decode {
    /// Print one line for each frame, with its offset, type, flags and lengths.
    #[arg(long, conflicts_with = "value")]
    pub(crate) frames: bool,

    /// Read the bytes of one value, and no frame.
    #[arg(long)]
    pub(crate) value: bool,

    #[command(flatten)]
    pub(crate) files: Files,
}

/// What is read and what is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// The file to read; stdin if it is left out or is -.
    pub(crate) input: Option<PathBuf>,

    /// The file to write, which is emptied first; stdout if it is left out or is -.
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<PathBuf>,
}

/// Whether and how a server is asked for LUMEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Negotiate {
    /// Probe first, unless the server minded that the last time; without an answer speak JSON, and let the first
    /// request carry the offer.
    Auto,
    /// Probe first; without an answer speak JSON.
    Probe,
    /// Never probe first; the first request carries the offer.
    Offer,
    /// Speak JSON.
    Off,
}

impl From<Negotiate> for Mode {
    fn from(negotiate: Negotiate) -> Self {
        match negotiate {
            Negotiate::Auto => Self::Auto,
            Negotiate::Probe => Self::Probe,
            Negotiate::Offer => Self::Offer,
            Negotiate::Off => Self::Off,
        }
    }
}

impl Connect {
    pub(crate) const fn probe_timeout(&self) -> Duration {
        Duration::from_millis(self.probe_timeout)
    }

    pub(crate) const fn probed_timeout(&self) -> Duration {
        Duration::from_millis(self.probed_timeout)
    }

    pub(crate) fn reconnect(&self) -> Option<Duration> {
        self.socket.as_ref().and_then(|_| seconds(self.reconnect))
    }
}

impl Bridge {
    pub(crate) fn timeout(&self) -> Option<Duration> {
        seconds(self.timeout)
    }

    pub(crate) fn connect_timeout(&self) -> Option<Duration> {
        seconds(self.connect_timeout)
    }
}

impl Args {
    /// What clap cannot check without quoting it: the value of a variable may be a secret.
    fn checked(self) -> Result<Self, Exit> {
        if let Command::Connect(Connect { socket: Some(socket), start, server, .. }) = &self.command {
            let problem = match (socket, start) {
                (Socket::Tcp(_), true) => Some("--start serves unix:PATH only"),
                (_, false) if !server.command.is_empty() => {
                    Some("a socket is in place of a command; with --start the command is what is to serve it")
                }
                (_, false) if !server.env.is_empty() || server.cwd.is_some() => {
                    Some("--env and --cwd are for a server that is started, on a socket only with --start")
                }
                _ => None,
            };
            if let Some(problem) = problem {
                let _ = writeln!(std::io::stderr(), "lumen: {problem}");
                return Err(Exit::Usage);
            }
        }
        let env = match &self.command {
            Command::Connect(connect) => connect.server.env.as_slice(),
            Command::Wrap(wrap) => wrap.server.env.as_slice(),
            Command::Doctor(doctor) => doctor.server.env.as_slice(),
            Command::Mux(mux) => mux.server.env.as_slice(),
            _ => &[],
        };
        if env.iter().all(|text| split_env(text).is_some()) {
            return Ok(self);
        }
        let _ =
            writeln!(std::io::stderr(), "lumen: --env takes NAME=VALUE; one of them has no name or no `=`");
        Err(Exit::Usage)
    }
}

impl Doctor {
    pub(crate) const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

impl Server {
    /// Returns the variables to set in the server's environment.
    pub(crate) fn env(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.env.iter().filter_map(|text| split_env(text))
    }

    pub(crate) fn start_timeout(&self) -> Option<Duration> {
        seconds(self.start_timeout)
    }
}

/// Returns a time in which 0 means for ever.
pub(crate) fn seconds(count: u64) -> Option<Duration> {
    (count > 0).then(|| Duration::from_secs(count))
}

/// Parses, or says on the right stream why not.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Args, Exit> {
    let args: Vec<OsString> = args.into_iter().collect();
    let error = match Args::try_parse_from(&args) {
        Ok(args) => return args.checked(),
        Err(error) => error,
    };
    let text = error.render();
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if is_help && !has_protocol_stdout(&args) {
        return Err(print(&text.to_string()));
    }
    let _ = write!(std::io::stderr(), "{text}");
    // The commonest slip, and what clap says of it would not help.
    if error.kind() == ErrorKind::UnknownArgument && !args.iter().any(|arg| arg == "--") {
        let _ = writeln!(
            std::io::stderr(),
            "lumen: a server's command goes behind --, as in: lumen connect -- npx -y some-server"
        );
    }
    Err(if is_help { Exit::Ok } else { Exit::Usage })
}

/// Writes data to stdout. A reader that went away is no failure of ours; anything else is.
pub(crate) fn print(text: &str) -> Exit {
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = writeln!(
                std::io::stderr(),
                "lumen: cannot write to stdout: {error}; is there room where it goes?"
            );
            Exit::Failed
        }
        _ => Exit::Ok,
    }
}

/// Returns whether the command named on this line has a stdout that carries the protocol.
fn has_protocol_stdout(args: &[OsString]) -> bool {
    let command = args.iter().skip(1).find(|arg| !arg.to_string_lossy().starts_with('-'));
    command.is_some_and(|command| {
        ["connect", "wrap", "mux", "bridge", "demo-server"].iter().any(|name| command == name)
    })
}

/// Splits NAME=VALUE. The value may be any bytes.
fn split_env(text: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=').filter(|&at| at > 0)?;
    Some((OsStr::from_bytes(bytes.get(..at)?), OsStr::from_bytes(bytes.get(at + 1..)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Args, Exit> {
        parse(line.iter().map(OsString::from))
    }

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }

    #[test]
    fn a_command_is_taken_as_it_is() {
        let args =
            parsed(&["lumen", "connect", "--env", "A=b=c", "--env", "E=", "--", "x y", "", "-v", "$Z"])
                .unwrap();
        let Command::Connect(connect) = args.command else { panic!() };
        assert_eq!(connect.server.command, ["x y", "", "-v", "$Z"]);
        let env: Vec<_> = connect.server.env().collect();
        assert_eq!(env, [(OsStr::new("A"), OsStr::new("b=c")), (OsStr::new("E"), OsStr::new(""))]);
        assert_eq!(Mode::from(connect.negotiate), Mode::Auto);
    }

    #[test]
    fn a_socket_takes_the_place_of_a_command() {
        for (text, expected) in [
            ("unix:/a b", Socket::Unix("/a b".into())),
            ("tcp:localhost:80", Socket::Tcp("localhost:80".to_owned())),
            ("tcp:[::1]:80", Socket::Tcp("[::1]:80".to_owned())),
        ] {
            let Command::Connect(connect) = parsed(&["lumen", "connect", text]).unwrap().command else {
                panic!()
            };
            assert_eq!((connect.socket, connect.server.command.len()), (Some(expected), 0));
        }
        for wrong in ["unix:", "tcp:80", "tcp:x:y", "tcp::80", "server", "http://x"] {
            assert_eq!(parsed(&["lumen", "connect", wrong]).unwrap_err(), Exit::Usage, "{wrong}");
        }
        assert_eq!(parsed(&["lumen", "connect", "unix:x", "--", "y"]).unwrap_err(), Exit::Usage);
    }

    #[test]
    fn nothing_to_start_and_odd_variables_are_usage_errors() {
        for line in [
            &["lumen"][..],
            &["lumen", "connect"],
            &["lumen", "connect", "--"],
            &["lumen", "wrap", "--env", "=x", "--", "y"],
            &["lumen", "connect", "--probe-timeout", "0", "--", "y"],
            &["lumen", "connect", "--env", "A=b", "unix:x"],
            &["lumen", "connect", "--cwd", "/", "unix:x"],
            &["lumen", "bridge"],
            &["lumen", "doctor", "--json"],
            &["lumen", "doctor", "--timeout", "0", "--", "y"],
        ] {
            assert_eq!(parsed(line).unwrap_err(), Exit::Usage, "{line:?}");
        }
    }

    #[test]
    fn help_belongs_on_stderr_where_stdout_is_the_protocol() {
        for (line, expected) in [
            (&["lumen", "-v", "connect", "--help"][..], true),
            (&["lumen", "wrap", "--help"], true),
            (&["lumen", "bridge", "--help"], true),
            (&["lumen", "mux", "--help"], true),
            (&["lumen", "status", "--help"], false),
            (&["lumen", "demo", "--help"], false),
            (&["lumen", "--version"], false),
        ] {
            let line: Vec<OsString> = line.iter().map(OsString::from).collect();
            assert_eq!(has_protocol_stdout(&line), expected);
        }
    }
}
