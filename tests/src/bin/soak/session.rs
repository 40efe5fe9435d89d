//! What one client does: sessions of every kind, one after the other.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lumen_tests::mux::{Client, INITIALIZED, call, initialize, notification};
use lumen_tests::rng::Rng;
use serde_json::Value;

use crate::tally::Tally;

/// The code for what was in flight when the server went away.
const SERVER_GONE: i64 = -32011;

/// What modern requests say of their client.
const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

/// Answers of which a stalled client reads none for a while, and their size in bytes: all together more than is kept for one.
const STALLED_ANSWERS: u64 = 48;
const STALLED_BYTES: u64 = 512 * 1024;

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// Runs sessions until all is over.
pub(crate) fn run_client(number: u64, socket: &Path, mut rng: Rng, tally: &Tally, is_over: &AtomicBool) {
    // Ids go on over all sessions, so an answer that comes to the wrong one is found.
    let mut next = 0;
    while !is_over.load(Ordering::Relaxed) {
        tally.add(&tally.sessions, 1);
        let era = if rng.percent(25) { Era::Modern } else { Era::Legacy };
        let connected =
            Client::connect(socket).and_then(|mut client| greet(&mut client, era).map(|()| client));
        let client = match connected {
            Ok(client) => client,
            Err(error) => {
                tally.violation(&format!("client {number} cannot connect: {error}"));
                continue;
            }
        };
        let mut session =
            Session { number, era, client, rng: Rng::new(rng.next()), tally, next, open: BTreeMap::new() };
        let ended = match rng.below(100) {
            0..60 => session.steady(is_over, false),
            60..75 => session.steady(is_over, true),
            75..90 => session.vanish(),
            _ => session.stall(),
        };
        next = session.next;
        if let Err(error) = ended {
            tally.violation(&format!("client {number} was cut off: {error}"));
        }
    }
}

/// Shakes hands, as often as the server dies over it.
pub(crate) fn greet(client: &mut Client, era: Era) -> io::Result<()> {
    for attempt in 0.. {
        let hello = match era {
            Era::Legacy => initialize(&format!("\"hello {attempt}\""), "{}", "2025-06-18"),
            Era::Modern => format!(
                r#"{{"jsonrpc":"2.0","id":"hello {attempt}","method":"server/discover","params":{{"_meta":{{{META}}}}}}}"#
            ),
        };
        client.try_say(&hello)?;
        let answer = hear(client)?;
        if answer["result"].is_object() {
            break;
        }
        if answer["error"]["code"] != SERVER_GONE || attempt == 20 {
            return Err(io::Error::other(format!("the handshake is answered by {answer}")));
        }
    }
    if era == Era::Legacy { client.try_say(INITIALIZED) } else { Ok(()) }
}

fn hear(client: &mut Client) -> io::Result<Value> {
    let line = client.try_hear()?.ok_or(io::ErrorKind::UnexpectedEof)?;
    serde_json::from_slice(&line)
        .map_err(|error| io::Error::other(format!("{error}: {}", String::from_utf8_lossy(&line))))
}

/// What is known of a request that was sent.
#[derive(Debug)]
struct Open {
    count: u64,
    /// It was taken back, so it may be answered or not.
    is_cancelled: bool,
    is_answered: bool,
}

struct Session<'a> {
    number: u64,
    era: Era,
    client: Client,
    rng: Rng,
    tally: &'a Tally,
    next: u64,
    /// By the id as it was spelled.
    open: BTreeMap<String, Open>,
}

impl Session<'_> {
    /// Asks, reads all answers, and again; says nonsense between if told to. At the end nothing more may come.
    fn steady(&mut self, is_over: &AtomicBool, is_dirty: bool) -> io::Result<()> {
        for _ in 0..self.rng.below(40) + 5 {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            for _ in 0..self.rng.below(8) + 1 {
                if is_dirty && self.rng.percent(50) {
                    self.say_garbage()?;
                }
                let id = self.ask("echo", "")?;
                if self.rng.percent(10) {
                    self.cancel(&id)?;
                }
            }
            self.settle()?;
            std::thread::sleep(Duration::from_micros(self.rng.below(20_000)));
        }
        self.client.close_input();
        while let Some(line) = self.client.try_hear()? {
            let message = serde_json::from_slice(&line).map_err(io::Error::other)?;
            self.on_message(&message);
        }
        Ok(())
    }

    /// Asks, and is gone.
    fn vanish(&mut self) -> io::Result<()> {
        self.tally.add(&self.tally.vanished, 1);
        for _ in 0..self.rng.below(16) + 1 {
            let (id, text) = self.request("echo", "");
            self.open.remove(&id);
            let cut =
                if self.rng.percent(20) { self.rng.below(text.len() as u64) } else { text.len() as u64 };
            self.client.try_write(&text.as_bytes()[..usize::try_from(cut).expect("small")])?;
            self.client.try_write(b"\n")?;
        }
        Ok(())
    }

    /// Asks for more than is kept for one that does not read, and reads late: then all of it is there, or the stream ends.
    fn stall(&mut self) -> io::Result<()> {
        self.tally.add(&self.tally.stalled, 1);
        for _ in 0..STALLED_ANSWERS {
            let (_, text) = self.request("big", &format!(r#","bytes":{STALLED_BYTES}"#));
            if self.client.try_say(&text).is_err() {
                self.tally.add(&self.tally.parted, 1);
                return Ok(());
            }
        }
        std::thread::sleep(Duration::from_millis(self.rng.below(1500)));
        if self.rng.percent(50) {
            return Ok(());
        }
        while self.open.values().any(|open| !open.is_answered) {
            match hear(&mut self.client) {
                Ok(message) => self.on_message(&message),
                // It may have been cut off inside of a message.
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    self.tally.add(&self.tally.parted, 1);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn ask(&mut self, tool: &str, arguments: &str) -> io::Result<String> {
        self.tally.add(&self.tally.asked, 1);
        let (id, text) = self.request(tool, arguments);
        self.client.try_say(&text)?;
        Ok(id)
    }

    fn request(&mut self, tool: &str, arguments: &str) -> (String, String) {
        let count = self.next;
        self.next += 1;
        // The same ids as other clients have, and both types of them.
        let id = if self.rng.percent(50) { count.to_string() } else { format!("\"{count}\"") };
        let padding = match self.rng.below(20) {
            0 => 100_000,
            1 => 5000,
            length => length,
        };
        let padding = "é".repeat(usize::try_from(padding / 2).expect("small"));
        let arguments = format!(r#"{{"c":{},"n":{count},"p":"{padding}"{arguments}}}"#, self.number);
        let mut text = call(&id, tool, &arguments);
        let token = if self.rng.percent(20) { r#""progressToken":7"# } else { "" };
        let meta = if self.era == Era::Modern { META } else { "" };
        if !(token.is_empty() && meta.is_empty()) {
            let comma = if token.is_empty() || meta.is_empty() { "" } else { "," };
            text.truncate(text.len() - 2);
            text.push_str(&format!(r#","_meta":{{{meta}{comma}{token}}}}}}}"#));
        }
        self.open.insert(id.clone(), Open { count, is_cancelled: false, is_answered: false });
        (id, text)
    }

    fn cancel(&mut self, id: &str) -> io::Result<()> {
        self.tally.add(&self.tally.cancelled, 1);
        if let Some(open) = self.open.get_mut(id) {
            open.is_cancelled = true;
        }
        self.client.try_say(&notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#)))
    }

    /// A line that is no message, or none that anybody can use.
    fn say_garbage(&mut self) -> io::Result<()> {
        self.tally.add(&self.tally.garbage, 1);
        let line: Vec<u8> = match self.rng.below(8) {
            0 => br#"{"jsonrpc":"2.0","id":}"#.to_vec(),
            1 => br#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#.to_vec(),
            2 => b"[".repeat(2000),
            3 => b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}".to_vec(),
            4 => br#"{"jsonrpc":"2.0","id":3.5,"result":{}}"#.to_vec(),
            5 => br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody's"}}"#
                .to_vec(),
            6 => b"\r".to_vec(),
            // No line feed, and nothing that a frame begins with.
            _ => (0..200).map(|_| b' ' + u8::try_from(self.rng.below(90)).expect("small")).collect(),
        };
        self.client.try_write(&line)?;
        self.client.try_write(b"\n")
    }

    /// Reads until all is answered that has to be.
    fn settle(&mut self) -> io::Result<()> {
        while self.open.values().any(|open| !open.is_answered && !open.is_cancelled) {
            match hear(&mut self.client) {
                Ok(message) => self.on_message(&message),
                Err(error) => {
                    let missing =
                        self.open.iter().filter(|(_, open)| !open.is_answered && !open.is_cancelled);
                    for (id, _) in missing {
                        let what = format!("lost: client {} is not answered {id} ({error})", self.number);
                        self.tally.fault(&self.tally.lost, &what);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn on_message(&mut self, message: &Value) {
        if message.get("method").is_some() {
            // The server only tells late what nobody waits for any more.
            let what = format!("misrouted: client {} got {message}", self.number);
            return self.tally.fault(&self.tally.misrouted, &what);
        }
        if message["id"].is_null() && message["error"].is_object() {
            // What was no message is refused.
            return;
        }
        let id = message["id"].to_string();
        let short = || message.to_string().chars().take(300).collect::<String>();
        let Some(open) = self.open.get_mut(&id) else {
            let what = format!("misrouted: client {} did not ask {}", self.number, short());
            return self.tally.fault(&self.tally.misrouted, &what);
        };
        if std::mem::replace(&mut open.is_answered, true) {
            let what = format!("doubled: client {} was answered before: {}", self.number, short());
            return self.tally.fault(&self.tally.doubled, &what);
        }
        if let Some(code) = message["error"]["code"].as_i64() {
            if code != SERVER_GONE {
                self.tally.violation(&format!("client {} is answered {}", self.number, short()));
            }
            return self.tally.error(code);
        }
        let echo = &message["result"]["structuredContent"];
        let is_big =
            message["result"]["content"][0]["text"].as_str().is_some_and(|text| text.starts_with("bb"));
        if !is_big && (echo["c"] != self.number || echo["n"] != open.count) {
            let what = format!("misrouted: client {} got {} for {}", self.number, short(), open.count);
            return self.tally.fault(&self.tally.misrouted, &what);
        }
        self.tally.add(&self.tally.results, 1);
    }
}
