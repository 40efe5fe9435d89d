//! What clients do, at random.

use super::model::{Asked, LEVELS, Said, Style, Withdrawn};
use super::stream::{Carrier, spelled};
use super::world::World;

/// Ids as spelled, with a name for the value of each.
const IDS: [(&str, &str); 16] = [
    ("1", "n1"),
    ("1.0", "n1"),
    ("10e-1", "n1"),
    ("\"1\"", "s1"),
    ("\"a\"", "sa"),
    ("\"\\u0061\"", "sa"),
    ("0", "n0"),
    ("-0", "n0"),
    ("-7", "n-7"),
    ("1.5", "n1.5"),
    ("\"\"", "s"),
    ("9007199254740993", "n53"),
    ("123456789012345678901234567890", "nbig"),
    ("\"\u{2028}\u{e9}\\n\"", "sodd"),
    ("\"lumen-1\"", "slumen"),
    ("\"\\ud800\"", "slone"),
];

pub const URIS: [&str; 4] = ["file:///a", "file:///b", "x:\u{2028}c", "bad:///d"];

const LEGACY_CALLS: [&str; 7] =
    ["tools/call", "tools/call", "tools/list", "ping", "resources/read", "odd/one", "completion/complete"];
const MODERN_CALLS: [&str; 5] =
    ["tools/call", "tools/call", "tools/list", "resources/read", "server/discover"];

impl World {
    /// Does one step; most are somebody's message, and at least one in ten is a fault.
    pub fn step(&mut self) {
        match self.rng.below(100) {
            0..=3 => self.come(),
            4..=30 => self.ask(),
            31..=52 => self.answer(),
            53..=58 => self.progress(),
            59..=63 => self.announce(),
            64..=67 => self.question(),
            68..=72 => self.reply(),
            73..=74 => self.batch(),
            75..=78 => self.told(),
            79..=81 => self.pass_some(),
            82..=87 => self.cancel(),
            88..=90 => self.client_fault(),
            91..=93 => self.server_fault(),
            94..=95 => self.garbage(),
            96..=97 => self.late(),
            _ => self.catch_up(),
        }
        self.settle();
        self.check();
    }

    pub fn check(&mut self) {
        for (number, mark) in &self.model.awaited {
            let client = &self.model.clients[*number];
            assert!(!client.is_prompt(), "client {number} was to hear {mark} and did not");
        }
        self.model.awaited.clear();
    }

    pub fn live(&mut self) -> Option<usize> {
        let clients = self.model.clients.iter();
        let live: Vec<usize> = clients
            .filter(|client| {
                !client.gone
                    && !client.eof
                    && !client.deaf
                    && !client.poisoned
                    && client.acked
                    && !client.finished
            })
            .map(|client| client.number)
            .collect();
        if live.is_empty() { None } else { Some(*self.rng.pick(&live)) }
    }

    pub fn server(&mut self) -> Option<usize> {
        let from = self.model.children.len().saturating_sub(8);
        let open: Vec<usize> =
            (from..self.model.children.len()).filter(|at| self.model.children[*at].is_open()).collect();
        if open.is_empty() { None } else { Some(*self.rng.pick(&open)) }
    }

    pub fn say(&mut self, number: usize, text: &str, said: Said) {
        self.note(format!("client {number} says {text}"));
        self.model.clients[number].stream.send(text, said);
    }

    pub fn tell(&mut self, at: usize, text: &str) {
        self.note(format!("server {at} says {text}"));
        self.model.children[at].stream.send(text, ());
    }

    pub fn come(&mut self) {
        let present = self.model.clients.iter().filter(|client| !client.gone).count();
        if present >= 6 {
            return self.pass_some();
        }
        let style =
            *self.rng.pick(&[Style::Legacy, Style::Legacy, Style::Legacy, Style::Modern, Style::Plain]);
        let carrier = *self.rng.pick(&[Carrier::Line, Carrier::Line, Carrier::Plain, Carrier::Value]);
        self.connect(style, carrier);
        let number = self.model.clients.len() - 1;
        if style == Style::Legacy && self.rng.percent(90) {
            self.initialize(number);
        }
    }

    pub fn token(&mut self, carrier: Carrier) -> (String, String) {
        loop {
            let (id, value) = if self.rng.percent(50) {
                let (id, value) = *self.rng.pick(&IDS);
                (id.to_owned(), value.to_owned())
            } else if self.rng.percent(50) {
                let n = self.model.fresh();
                (format!("{}", 1000 + n), format!("n{}", 1000 + n))
            } else {
                let n = self.model.fresh();
                (format!("\"id {n:04}\""), format!("s id {n}"))
            };
            if carrier != Carrier::Value || spelled(carrier, &id) == id {
                return (id, value);
            }
        }
    }

    pub fn asked(&mut self, number: usize, method: &'static str) -> Asked {
        let carrier = self.model.clients[number].stream.carrier;
        // An id that is in use, only if it will be clear at once which of the two is refused.
        let (id, value) = loop {
            let (id, value) = self.token(carrier);
            let client = &self.model.clients[number];
            let is_open = |asked: &&Asked| asked.value == value && asked.withdrawn != Withdrawn::Surely;
            let open = client.asked.iter().filter(is_open).count();
            let may_repeat = open == 1 && client.is_prompt() && method == "tools/call";
            // What is still to be sent is not among the open ones.
            let is_fresh = id.len() > 8 && id.contains("id ");
            if is_fresh || (!client.stream.has_output() && (open == 0 || may_repeat)) {
                break (id, value);
            }
        };
        let token = self.rng.percent(40).then(|| self.token(carrier).0);
        Asked {
            tag: self.model.fresh(),
            id,
            value,
            method,
            token,
            at: self.now,
            withdrawn: Withdrawn::No,
            acknowledged: false,
            uri: None,
            level: None,
            repeats: false,
            in_batch: false,
        }
    }

    pub fn text_of(&self, number: usize, asked: &Asked, more: &str) -> String {
        let mut meta = Vec::new();
        if let Some(token) = &asked.token {
            meta.push(format!("\"progressToken\":{token}"));
        }
        if self.model.clients[number].style == Style::Modern {
            meta.push("\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"".to_owned());
            meta.push("\"io.modelcontextprotocol/clientCapabilities\":{}".to_owned());
        }
        let (id, method, tag) = (&asked.id, asked.method, asked.tag);
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"t":{tag},"_meta":{{{}}}{more}}}}}"#,
            meta.join(",")
        )
    }

    pub fn initialize(&mut self, number: usize) {
        let asked = Asked { token: None, ..self.asked(number, "initialize") };
        let version =
            *self.rng.pick(&["2024-11-05", "2025-03-26", "2025-03-26", "2025-06-18", "2025-11-25", "x"]);
        let capable: Vec<String> =
            self.model.clients[number].capable.iter().map(|name| format!("\"{name}\":{{}}")).collect();
        let more = format!(r#","protocolVersion":"{version}","capabilities":{{{}}}"#, capable.join(","));
        let text = self.text_of(number, &asked, &more);
        self.say(number, &text, Said::Request(asked));
    }

    /// Some request of a client.
    pub fn ask(&mut self) {
        let Some(number) = self.live() else { return self.come() };
        if self.model.clients[number].asked.len() > 12 {
            return self.answer_one();
        }
        let style = self.model.clients[number].style;
        let kind = self.rng.below(20);
        match (style, kind) {
            (Style::Legacy, 0..=2) => {
                let method =
                    *self.rng.pick(&["resources/subscribe", "resources/subscribe", "resources/unsubscribe"]);
                let uri = *self.rng.pick(&URIS);
                let asked = Asked { uri: Some(uri), ..self.asked(number, method) };
                let text = self.text_of(number, &asked, &format!(r#","uri":"{uri}""#));
                self.say(number, &text, Said::Request(asked));
            }
            (Style::Legacy, 3) => {
                let level = self.rng.below(LEVELS.len());
                let asked = Asked { level: Some(level), ..self.asked(number, "logging/setLevel") };
                let text = self.text_of(number, &asked, &format!(r#","level":"{}""#, LEVELS[level]));
                self.say(number, &text, Said::Request(asked));
            }
            (Style::Legacy, 4) => {
                if !self.model.clients[number].asked.iter().any(|asked| asked.method == "initialize") {
                    self.initialize(number);
                }
            }
            (Style::Modern, 0..=2) => {
                let asked = self.asked(number, "subscriptions/listen");
                let text = self.text_of(number, &asked, "");
                self.say(number, &text, Said::Request(asked));
            }
            _ => {
                let calls: &[&str] = match style {
                    Style::Legacy => &LEGACY_CALLS,
                    Style::Modern => &MODERN_CALLS,
                    Style::Plain => &["x/y", "x/z"],
                };
                let method = *self.rng.pick(calls);
                let asked = self.asked(number, method);
                let text = self.text_of(number, &asked, "");
                self.say(number, &text, Said::Request(asked));
            }
        }
    }

    pub fn batch(&mut self) {
        let Some(number) = self.live() else { return };
        let may = self.model.clients[number].batches;
        // A client may have been greeted anew by the time it is read.
        if self.model.clients[number].asked.iter().any(|asked| asked.method == "initialize") {
            return;
        }
        let count = 1 + self.rng.below(3);
        let mut parts = Vec::new();
        let mut all = Vec::new();
        for _ in 0..count {
            let asked = Asked { in_batch: true, ..self.asked(number, "tools/call") };
            parts.push(self.text_of(number, &asked, ""));
            all.push(asked);
            if self.rng.percent(30) {
                parts.push(r#"{"jsonrpc":"2.0","method":"odd/note"}"#.to_owned());
            }
        }
        let text = format!("[{}]", parts.join(","));
        if self.model.clients[number].stream.carrier == Carrier::Line || may {
            self.say(number, &text, Said::Batch(all));
        }
    }

    pub fn cancel(&mut self) {
        let Some(number) = self.live() else { return };
        let asked = &self.model.clients[number].asked;
        let known: Vec<(String, String)> =
            asked.iter().map(|asked| (asked.id.clone(), asked.value.clone())).collect();
        let (id, value) = if known.is_empty() || self.rng.percent(10) {
            self.token(self.model.clients[number].stream.carrier)
        } else {
            self.rng.pick(&known).clone()
        };
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        self.say(number, &text, Said::Cancel(value));
    }

    pub fn told(&mut self) {
        let Some(number) = self.live() else { return };
        let text = *self.rng.pick(&[
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
            r#"{"jsonrpc":"2.0","method":"odd/note","params":{"x":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
            r#"{"jsonrpc":"2.0","id":"lumen-3","result":{}}"#,
        ]);
        self.say(number, text, Said::Nothing);
    }

    /// A client replies to what it was asked, or to what another one was.
    pub fn reply(&mut self) {
        let Some(number) = self.live() else { return };
        let forged = self.rng.percent(15);
        let all: Vec<(usize, String, u64)> = self
            .model
            .clients
            .iter()
            .filter(|client| (client.number == number) != forged)
            .flat_map(|client| client.asks.iter().map(|(id, mark)| (client.number, id.clone(), *mark)))
            .collect();
        if all.is_empty() {
            return self.ask();
        }
        let (whose, id, mark) = self.rng.pick(&all).clone();
        if whose == number && self.rng.percent(80) {
            self.model.clients[number].asks.retain(|(known, _)| *known != id);
        }
        let text = if self.rng.percent(80) {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"mark":{mark},"from":{number}}}}}"#)
        } else {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no","data":{{"mark":{mark},"from":{number}}}}}}}"#
            )
        };
        self.say(number, &text, Said::Nothing);
    }
}
