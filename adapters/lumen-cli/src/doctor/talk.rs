//! The client's side of a conversation: what was asked, and what each line of the server means to that.

use lumen_proto::mcp::{FromServer, from_server};
use serde_json::{Value, json};

use super::slips::{Slip, Slips, excerpt};

/// Answers in a row that are remembered, to tell a second one from an unknown one.
const REMEMBERED: usize = 64;

/// What a line of the server came to.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Answers to what was asked: the request's number, and `result` or `error`.
    pub(super) answers: Vec<(u64, Result<Value, Value>)>,
    /// What the server has to be told: it asked something.
    pub(super) replies: Vec<Value>,
}

/// What was asked, and is to be answered.
#[derive(Debug, Default)]
pub(super) struct Talk {
    last: u64,
    open: Vec<u64>,
    answered: Vec<u64>,
    /// The line with which it answered a probe that it does not know.
    stray: Option<String>,
    /// A probe was sent, and no answer has come: one line about it is no slip.
    is_probed: bool,
}

impl Talk {
    /// Makes a request, and says under which number its answer will come. It may carry a token for progress.
    pub(super) fn request(&mut self, method: &str, mut params: Value, has_token: bool) -> (u64, Value) {
        self.last += 1;
        self.open.push(self.last);
        if has_token {
            params["_meta"]["progressToken"] = token(self.last);
        }
        (self.last, json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}))
    }

    /// Notes that a probe was sent.
    pub(super) fn on_probe(&mut self) {
        self.is_probed = true;
    }

    /// Returns the one line about a probe.
    pub(super) fn stray(&self) -> Option<&str> {
        self.stray.as_deref()
    }

    /// Returns how many requests are not answered.
    pub(super) fn owed(&self) -> usize {
        self.open.len()
    }

    /// Takes a line.
    pub(super) fn on_line(&mut self, line: &[u8], slips: &mut Slips) -> Said {
        let mut said = Said::default();
        let text = match line.strip_suffix(b"\r") {
            Some(text) => {
                slips.add(Slip::Cr, line);
                text
            }
            None => line,
        };
        if text.trim_ascii().is_empty() {
            return said;
        }
        let is_utf8 = std::str::from_utf8(text).is_ok();
        match serde_json::from_str(&String::from_utf8_lossy(text)) {
            Ok(Value::Array(messages)) if !messages.is_empty() && messages.iter().all(is_message) => {
                messages.iter().for_each(|message| self.on_message(message, text, slips, &mut said));
            }
            Ok(message) if is_message(&message) => self.on_message(&message, text, slips, &mut said),
            _ => return self.on_noise(text, slips, said),
        }
        if !is_utf8 {
            slips.add(Slip::InvalidUtf8, text);
        }
        said
    }

    fn on_noise(&mut self, text: &[u8], slips: &mut Slips, said: Said) -> Said {
        if !self.is_probed || slips.is_known(Slip::Noise, text) || !self.is_stray(text) {
            slips.add(Slip::Noise, text);
        }
        said
    }

    fn on_message(&mut self, message: &Value, line: &[u8], slips: &mut Slips, said: &mut Said) {
        let id = message.get("id").filter(|id| !id.is_null());
        match (message.get("method").and_then(Value::as_str), id) {
            (Some("ping"), Some(id)) => said.replies.push(json!({"jsonrpc": "2.0", "id": id, "result": {}})),
            // Our own request sent back, as `cat` does: an answer to that would come back as the answer to ours.
            (Some(method), Some(id)) if self.is_ours(method, id) => {}
            (Some(method), Some(id)) => {
                let error = json!({"code": -32601, "message": format!("{method} is not served here")});
                said.replies.push(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            (Some("notifications/progress"), None) => {
                let given = message.pointer("/params/progressToken");
                if !self.open.iter().any(|&id| given == Some(&token(id))) {
                    slips.add(Slip::UnknownProgress, line);
                }
            }
            (Some(_), None) => {}
            (None, id) => self.on_answer(message, id, line, slips, said),
        }
    }

    /// Returns whether this is a request of ours that is open, and none that servers make.
    fn is_ours(&self, method: &str, id: &Value) -> bool {
        let is_open = id.as_u64().is_some_and(|id| self.open.contains(&id));
        is_open && from_server(method, true) == FromServer::Refuse
    }

    fn on_answer(
        &mut self,
        message: &Value,
        id: Option<&Value>,
        line: &[u8],
        slips: &mut Slips,
        said: &mut Said,
    ) {
        let error = message.get("error");
        let number = id.and_then(Value::as_u64);
        let at = self.open.iter().position(|&open| Some(open) == number);
        let at = match (id, at) {
            (_, Some(at)) => at,
            (Some(_), None) => {
                let is_second = number.is_some_and(|number| self.answered.contains(&number));
                return slips.add(if is_second { Slip::Twice } else { Slip::UnknownId }, line);
            }
            (None, None) if self.is_probed && error.is_some() && self.is_stray(line) => return,
            (None, None) => {
                slips.add(Slip::NoId, line);
                // It may be meant for what was asked first; then that is not unanswered besides.
                if self.open.is_empty() {
                    return;
                }
                0
            }
        };
        let number = self.open.remove(at);
        self.answered.push(number);
        if self.answered.len() > REMEMBERED {
            self.answered.remove(0);
        }
        self.is_probed = false;
        let result = message.get("result").cloned().unwrap_or_default();
        said.answers.push((number, error.map_or(Ok(result), |error| Err(error.clone()))));
    }

    /// Takes the first line about a probe.
    fn is_stray(&mut self, line: &[u8]) -> bool {
        let is_first = self.stray.is_none();
        self.stray.get_or_insert_with(|| excerpt(line));
        is_first
    }
}

fn token(number: u64) -> Value {
    format!("lumen-{number}").into()
}

fn is_message(value: &Value) -> bool {
    let has = |name| value.get(name).is_some();
    value.get("method").is_some_and(Value::is_string) || has("result") || has("error")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says the lines to one who has asked twice, with a token, and returns the slips.
    fn slips(lines: &[&str]) -> (Talk, Vec<(Slip, u64)>) {
        let (mut talk, mut slips) = (Talk::default(), Slips::default());
        talk.request("a", json!({}), true);
        talk.request("b", json!({}), false);
        for line in lines {
            talk.on_line(line.as_bytes(), &mut slips);
        }
        (talk, slips.iter().map(|(slip, lines)| (slip, lines.count)).collect())
    }

    #[test]
    fn each_slip_is_told() {
        let one = r#"{"id":1,"result":{}}"#;
        let progress = r#"{"method":"notifications/progress","params":{"progressToken":"lumen-1"}}"#;
        for (lines, expected) in [
            (&[progress, one, "", "  "][..], &[][..]),
            (&["[]", "{}", "x", "\"x\"", "[1]"], &[(Slip::Noise, 5)]),
            (&["{\"id\":1,\"result\":{}}\r"], &[(Slip::Cr, 1)]),
            (&[one, one], &[(Slip::Twice, 1)]),
            (&[r#"{"id":"1","result":{}}"#, r#"{"id":3,"error":{}}"#], &[(Slip::UnknownId, 2)]),
            (&[r#"{"id":null,"error":{}}"#, r#"{"result":{}}"#], &[(Slip::NoId, 2)]),
            (&[one, progress], &[(Slip::UnknownProgress, 1)]),
            (&[&progress.replace("lumen-1", "lumen-2x")], &[(Slip::UnknownProgress, 1)]),
        ] {
            assert_eq!(slips(lines).1, expected, "{lines:?}");
        }
        assert_eq!(slips(&[r#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#]).0.owed(), 0);
        assert_eq!(slips(&[r#"{"result":{}}"#]).0.owed(), 1);
        let (mut talk, mut found) = (Talk::default(), Slips::default());
        talk.on_line(b"{\"method\":\"\xff\"}", &mut found);
        assert_eq!(found.iter().map(|(slip, _)| slip).collect::<Vec<_>>(), [Slip::InvalidUtf8]);
    }

    #[test]
    fn one_line_about_a_probe_is_no_slip() {
        let error = br#"{"id":null,"error":{"code":-32700}}"#;
        let (mut talk, mut slips) = (Talk::default(), Slips::default());
        slips.add(Slip::Noise, b"banner");
        talk.on_probe();
        talk.request("a", json!({}), false);
        talk.on_line(b"banner", &mut slips);
        talk.on_line(error, &mut slips);
        assert_eq!((talk.stray().is_some(), talk.owed()), (true, 1));
        assert_eq!(slips.iter().count(), 1);
        talk.on_line(b"another", &mut slips);
        assert_eq!(slips.of(Slip::Noise).map(|lines| lines.count), Some(3));
    }

    #[test]
    fn what_the_server_asks_is_answered() {
        let (mut talk, mut slips) = (Talk::default(), Slips::default());
        let said = talk.on_line(br#"{"id":7,"method":"ping"}"#, &mut slips);
        assert_eq!(said.replies, [json!({"jsonrpc": "2.0", "id": 7, "result": {}})]);
        let said = talk.on_line(br#"{"id":"x","method":"roots/list"}"#, &mut slips);
        assert_eq!(said.replies[0]["error"]["code"], -32601);
    }
}
