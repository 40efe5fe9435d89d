//! What was found, for people and for programs.

use std::fmt::Write as _;

use lumen_proto::Exit;
use serde_json::{Value, json};

use super::finding::Finding;
use super::slips::{Slip, Slips};

/// How a server takes a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    /// It speaks LUMEN.
    Answers,
    /// Nothing comes of it.
    Ignores,
    /// One line.
    Stray(String),
    Exits,
    Deaf,
}

/// What it does when its input ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AtEof {
    pub(super) asked: usize,
    pub(super) answered: usize,
    /// How it ended by itself, and in how many milliseconds.
    pub(super) exit: Option<(Exit, u64)>,
}

/// All that is known of a server. What was not tried is `None`.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) program: String,
    pub(super) starts: u32,
    pub(super) first_answer_ms: Option<u64>,
    /// Name and version as it says.
    pub(super) server: Option<(String, String)>,
    pub(super) legacy: Option<String>,
    pub(super) modern: Option<Vec<String>>,
    pub(super) capabilities: Vec<String>,
    pub(super) by_probe: bool,
    pub(super) by_offer: bool,
    pub(super) reaction: Option<Reaction>,
    pub(super) at_eof: Option<AtEof>,
    pub(super) slips: Slips,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    /// Adds what is wrong, once.
    pub(super) fn add(&mut self, finding: Finding) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Makes findings of the slips.
    pub(super) fn finish(&mut self) {
        let slips =
            self.slips.iter().map(|(slip, lines)| Finding::Slip(slip, lines.count, lines.quoted.clone()));
        self.findings.extend(slips);
    }

    /// Returns it as one line of JSON, whose members are described in the README.
    pub(super) fn json(&self) -> String {
        let reaction = self.reaction.as_ref().map(|reaction| match reaction {
            Reaction::Answers => json!({"reaction": "answers"}),
            Reaction::Ignores => json!({"reaction": "ignores"}),
            Reaction::Stray(line) => json!({"reaction": "stray", "line": line}),
            Reaction::Exits => json!({"reaction": "exits"}),
            Reaction::Deaf => json!({"reaction": "deaf"}),
        });
        let at_eof = self.at_eof.as_ref().map(|at_eof| {
            let (code, signal) = match at_eof.exit {
                Some((Exit::Code(code), _)) => (Some(code), None),
                Some((Exit::Signal(signal), _)) => (None, Some(signal)),
                None => (None, None),
            };
            json!({
                "asked": at_eof.asked, "answered": at_eof.answered, "exit_code": code, "signal": signal,
                "exit_ms": at_eof.exit.map(|(_, ms)| ms),
            })
        });
        let noise = self.slips.of(Slip::Noise);
        let findings: Vec<Value> = self.findings.iter().map(finding).collect();
        let mut text = json!({
            "schema": 1,
            "program": self.program,
            "healthy": self.findings.is_empty(),
            "starts": self.starts,
            "first_answer_ms": self.first_answer_ms,
            "server": self.server.as_ref().map(|(name, version)| json!({"name": name, "version": version})),
            "eras": {"legacy": self.legacy, "modern": self.modern},
            "capabilities": self.capabilities,
            "lumen": {"probe": self.by_probe, "offer": self.by_offer},
            "probe": reaction,
            "eof": at_eof,
            "noise": {
                "lines": noise.map_or(0, |lines| lines.count),
                "quoted": noise.map(|lines| lines.quoted.clone()).unwrap_or_default(),
            },
            "findings": findings,
        })
        .to_string();
        text.push('\n');
        text
    }

    /// Returns it for people. What the server said is quoted and escaped.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<14}{value}");
        };
        let or = |value: Option<String>, none: &str| value.unwrap_or_else(|| none.to_owned());
        line("program", self.program.clone());
        let server = self.server.as_ref().map(|(name, version)| format!("{name:?} {version:?}"));
        line("server", or(server, "not told"));
        line("first answer", or(self.first_answer_ms.map(|ms| format!("{ms} ms")), "none"));
        let eras = [
            self.legacy.as_ref().map(|version| format!("initialize ({version:?})")),
            self.modern.as_ref().map(|versions| format!("server/discover ({versions:?})")),
        ];
        let eras: Vec<String> = eras.into_iter().flatten().collect();
        line("eras", if eras.is_empty() { "none".to_owned() } else { eras.join(", ") });
        line("capabilities", format!("{:?}", self.capabilities));
        let yes = |is: bool| if is { "yes" } else { "no" };
        line("LUMEN", format!("by probe {}, by offer {}", yes(self.by_probe), yes(self.by_offer)));
        let reaction = self.reaction.as_ref().map(|reaction| match reaction {
            Reaction::Answers => "it answers".to_owned(),
            Reaction::Ignores => "it ignores it".to_owned(),
            Reaction::Stray(line) => format!("one stray line, which is harmless: {line:?}"),
            Reaction::Exits => "it ends".to_owned(),
            Reaction::Deaf => "it answers nothing any more".to_owned(),
        });
        line("at a probe", or(reaction, "not tried"));
        let at_eof = self.at_eof.as_ref().map(|at_eof| {
            let exit = at_eof.exit.map(|(exit, ms)| format!("{exit} after {ms} ms"));
            let exit = or(exit, "it stays");
            format!("{} of {} answers owed were given; {exit}", at_eof.answered, at_eof.asked)
        });
        line("at its end", or(at_eof, "not tried"));
        let noise = self.slips.of(Slip::Noise).map_or(0, |lines| lines.count);
        line("noise", format!("{noise} lines on stdout"));
        line("starts", self.starts.to_string());
        if self.findings.is_empty() {
            text.push_str("\nnothing wrong was found\n");
        } else {
            let _ = writeln!(text, "\nfindings: {}", self.findings.len());
        }
        for finding in &self.findings {
            let _ = writeln!(text, "\n{}: {}", finding.code(), finding.what());
            let _ = writeln!(text, "  what to do: {}", finding.advice());
        }
        text
    }
}

fn finding(finding: &Finding) -> Value {
    let mut value = json!({"code": finding.code(), "what": finding.what(), "advice": finding.advice()});
    match finding {
        Finding::Slip(_, count, quoted) => {
            value["count"] = (*count).into();
            value["quoted"] = quoted.clone().into();
        }
        Finding::Ended(method, _) | Finding::Unanswered(method) | Finding::Refused(method, _) => {
            value["method"] = method.clone().into();
        }
        Finding::Leftovers(ids) => value["processes"] = ids.clone().into(),
        _ => {}
    }
    value
}
