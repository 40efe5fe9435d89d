//! `status`: asks a mux how it does.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::args::Status;
use crate::exit::Exit;
use crate::report::say;

/// How long a mux may take to answer; it asks nobody else.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 4 * 1024 * 1024;

pub(crate) fn run(status: &Status) -> Exit {
    let answer = match ask(&status.socket) {
        Ok(answer) => answer,
        Err(error) => {
            say(&format!("{}: {}", status.socket.display(), why(&error)));
            return Exit::NotStarted;
        }
    };
    let result = answer.get("result").unwrap_or(&Value::Null);
    let text = if status.json { format!("{result}\n") } else { describe(result) };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(&format!("cannot write to stdout: {error}"));
            Exit::Failed
        }
        _ => Exit::Ok,
    }
}

/// Says why there is no answer, and what to try.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
            let advice = "it closed the connection at once: may this user not come in (--allow-uid), or do very many ask?";
            format!("{error}; {advice}")
        }
        // What the system says of a read that was given up is for programs.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("no answer within {} s; does `lumen mux` serve it, and does it hang?", PATIENCE.as_secs())
        }
        _ => format!("{error}; does `lumen mux` serve it?"),
    }
}

fn ask(socket: &Path) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"lumen/status\"}\n")?;
    let mut line = String::new();
    let mut bounded = io::Read::take(BufReader::new(stream), MAX_ANSWER);
    bounded.read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "no answer"));
    }
    let answer: Value = serde_json::from_str(&line)
        .map_err(|error| io::Error::other(format!("it answers what is no JSON: {error}")))?;
    if answer.get("result").is_none() {
        return Err(io::Error::other(format!("it refuses: {}", answer["error"]["message"])));
    }
    Ok(answer)
}

/// The same for people.
fn describe(status: &Value) -> String {
    let mut text = format!(
        "mux: process {}; {} clients with this one, {} requests in flight, {} bytes waiting for clients\n",
        status["pid"], status["clients"], status["inFlightCount"], status["queuedBytes"]
    );
    text += &describe_traffic(&status["traffic"]);
    let command = list(&status["command"]);
    if !command.is_empty() {
        text += &format!("command: {}\n", harmless(&words(command)));
    }
    if let Some(log) = status["log"].as_str() {
        text += &format!("log: {}\n", log.escape_debug());
    }
    let servers = list(&status["servers"]);
    for server in servers {
        let era = server["era"].as_str().unwrap_or("any");
        let state = server["state"].as_str().unwrap_or("?");
        text += &format!("server {} ({era})", server["server"]);
        if let Some(client) = server["client"].as_str() {
            text += &format!(" for client {client}");
        }
        text += &format!(": {state}");
        for (label, key) in [(" for", "forMs"), (", retry in", "retryInMs")] {
            if let Some(millis) = server[key].as_u64() {
                text += &format!("{label} {}", time(millis));
            }
        }
        if let Some(pid) = server["pid"].as_u64() {
            text += &format!(", process {pid}");
        }
        text += &format!(", generation {}, restarts {}", server["generation"], server["restarts"]);
        if let Some(end) = server["lastEnd"].as_str() {
            text += &format!(", last end: {end}");
        }
        text.push('\n');
        for line in list(&server["stderr"]) {
            text += &format!("  | {}\n", harmless(line.as_str().unwrap_or_default()));
        }
    }
    let left_out = status["serverCount"].as_u64().unwrap_or(0).saturating_sub(servers.len() as u64);
    if left_out > 0 {
        text += &format!("and {left_out} more servers\n");
    }
    for call in list(&status["inFlight"]) {
        let age = time(call["ageMs"].as_u64().unwrap_or(0));
        let client = call["client"].as_str().unwrap_or("lumen");
        text += &format!("  {} of {client}, {age}\n", harmless(call["method"].as_str().unwrap_or("?")));
    }
    text
}

/// Returns the words of a command as one line.
pub(crate) fn words(command: &[Value]) -> String {
    let words: Vec<_> = command.iter().filter_map(Value::as_str).collect();
    words.join(" ")
}

/// What servers and clients have written: nothing in it is for a terminal to obey.
pub(crate) fn harmless(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Says in a line what went through, and what of it is known in both encodings.
fn describe_traffic(traffic: &Value) -> String {
    let side = |name: &str| {
        let of = |way: &str| {
            let (messages, bytes) = (&traffic[name][way]["messages"], traffic[name][way]["bytes"].as_u64());
            format!("{messages} messages, {}", size(bytes.unwrap_or(0)))
        };
        format!("{name} {} in, {} out", of("in"), of("out"))
    };
    let sum = |what: &str| {
        ["clients", "servers"]
            .into_iter()
            .filter_map(|side| traffic[side]["converted"][what].as_u64())
            .sum::<u64>()
    };
    let mut text = format!("traffic: {}; {}", side("clients"), side("servers"));
    let (messages, json, lumen) = (sum("messages"), sum("jsonBytes"), sum("lumenBytes"));
    if let Some(percent) = (lumen * 100).checked_div(json) {
        let (json, lumen) = (size(json), size(lumen));
        text += &format!("; {messages} of them are {json} as JSON and {lumen} as LUMEN ({percent} %)");
    }
    text.push('\n');
    text
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn time(millis: u64) -> String {
    if millis < 10_000 { format!("{millis} ms") } else { format!("{} s", millis / 1000) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_does_not_answer_is_told_in_words() {
        let (listener, mut stream) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let error = io::Read::read(&mut stream, &mut [0]).unwrap_err();
        assert!(why(&error).starts_with("no answer within 5 s; "), "{}", why(&error));
        drop(listener);
        let error = UnixStream::connect("/nonexistent/socket").unwrap_err();
        assert!(why(&error).ends_with("; does `lumen mux` serve it?"), "{}", why(&error));
    }

    #[test]
    fn people_read_it_in_lines() {
        let status = json!({
            "pid": 7, "clients": 2, "serverCount": 3, "inFlightCount": 1, "queuedBytes": 0, "log": "/tmp/l",
            "command": ["npx", "-y\n"],
            "traffic": {
                "clients": {"in": {"messages": 3, "bytes": 300}, "out": {"messages": 4, "bytes": 40_500},
                    "converted": {"messages": 0, "jsonBytes": 0, "lumenBytes": 0}},
                "servers": {"in": {"messages": 4, "bytes": 30_000_000}, "out": {"messages": 2, "bytes": 100},
                    "converted": {"messages": 6, "jsonBytes": 400, "lumenBytes": 260}},
            },
            "inFlight": [{"method": "tools/call\u{1b}[2J\n", "ageMs": 1500, "client": "2.0", "server": 0}],
            "servers": [{"server": 0, "client": "2.0", "era": "legacy", "state": "backoff", "forMs": null, "retryInMs": 2500,
                "generation": 3, "restarts": 3, "lastEnd": "exit code 1", "pid": null, "stderr": ["boom\u{1b}[2J"]}],
        });
        assert_eq!(
            describe(&status),
            "mux: process 7; 2 clients with this one, 1 requests in flight, 0 bytes waiting for clients\n\
             traffic: clients 3 messages, 300 B in, 4 messages, 40 kB out; servers 4 messages, 30 MB in, 2 messages, 100 B \
             out; 6 of them are 400 B as JSON and 260 B as LUMEN (65 %)\n\
             command: npx -y\u{fffd}\nlog: /tmp/l\n\
             server 0 (legacy) for client 2.0: backoff, retry in 2500 ms, generation 3, restarts 3, last end: exit code 1\n\
             \x20 | boom\u{fffd}[2J\nand 2 more servers\n  tools/call\u{fffd}[2J\u{fffd} of 2.0, 1500 ms\n"
        );
    }
}
