//! What can be wrong with a server, and what to do about each.

use lumen_proto::Exit;

use super::slips::Slip;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Finding {
    /// It answered no opening of a session, and what it said last on standard error.
    NoAnswer(String),
    /// It refused every opening of a session.
    NoEra(String),
    /// It ended at this request.
    Ended(String, String),
    /// It never answered this request.
    Unanswered(String),
    /// It refused a request that it should serve.
    Refused(String, String),
    /// A line above the bound.
    EndlessLine,
    ExitsAtDiscover,
    ExitsAtProbe,
    DeafAfterProbe,
    /// The offer in its first request was too much for it.
    MindsOffer,
    /// It answers probes and does not speak LUMEN.
    LumenBroken,
    /// So many of so many answers were not given after the end of its input.
    OwedAtEof(usize, usize),
    StaysAfterEof,
    IgnoresTerm,
    BadExit(Exit),
    Leftovers(Vec<u32>),
    /// A slip against the protocol, how often, and lines that show it.
    Slip(Slip, u64, Vec<String>),
}

impl Finding {
    /// Returns its name in `--json`, which does not change.
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::NoAnswer(_) => "no_answer",
            Self::NoEra(_) => "no_era",
            Self::Ended(..) => "ended",
            Self::Unanswered(_) => "unanswered",
            Self::Refused(..) => "refused",
            Self::EndlessLine => "endless_line",
            Self::ExitsAtDiscover => "exits_at_discover",
            Self::ExitsAtProbe => "exits_at_probe",
            Self::DeafAfterProbe => "deaf_after_probe",
            Self::MindsOffer => "minds_offer",
            Self::LumenBroken => "lumen_broken",
            Self::OwedAtEof(..) => "owed_at_eof",
            Self::StaysAfterEof => "stays_after_eof",
            Self::IgnoresTerm => "ignores_term",
            Self::BadExit(_) => "bad_exit",
            Self::Leftovers(_) => "leftover_processes",
            Self::Slip(Slip::Noise, ..) => "noise",
            Self::Slip(Slip::Cr, ..) => "cr",
            Self::Slip(Slip::InvalidUtf8, ..) => "invalid_utf8",
            Self::Slip(Slip::NoId, ..) => "no_id",
            Self::Slip(Slip::Twice, ..) => "answered_twice",
            Self::Slip(Slip::UnknownId, ..) => "unknown_id",
            Self::Slip(Slip::UnknownProgress, ..) => "unknown_progress",
        }
    }

    /// Says what was seen.
    pub(super) fn what(&self) -> String {
        match self {
            Self::NoAnswer(said) => format!("it gave no answer to a first request{}", on_stderr(said)),
            Self::NoEra(error) => format!("it refuses initialize and server/discover: {error:?}"),
            Self::Ended(method, said) => format!("it ended at {method}{}", on_stderr(said)),
            Self::Unanswered(method) => format!("it never answered {method}"),
            Self::Refused(method, error) => format!("it refuses {method}, which it should serve: {error:?}"),
            Self::EndlessLine => "it wrote a line of more than 64 MiB".to_owned(),
            Self::ExitsAtDiscover => "it ends at server/discover instead of refusing it".to_owned(),
            Self::ExitsAtProbe => "it ends at the LUMEN probe, a line that is no message".to_owned(),
            Self::DeafAfterProbe => {
                "it answers nothing after the LUMEN probe, a line that is no message".to_owned()
            }
            Self::MindsOffer => "it does not open a session when the request lists an extension".to_owned(),
            Self::LumenBroken => "it answers the LUMEN probe and then does not speak LUMEN".to_owned(),
            Self::OwedAtEof(lost, asked) => {
                format!("when its input ended, it left {lost} of {asked} requests unanswered")
            }
            Self::StaysAfterEof => "it does not end when its input has ended".to_owned(),
            Self::IgnoresTerm => "it does not end at SIGTERM".to_owned(),
            Self::BadExit(exit) => format!("at the end of its input it ends with {exit}"),
            Self::Leftovers(ids) => format!("it leaves processes behind: {ids:?}"),
            Self::Slip(slip, count, quoted) => {
                let what = match slip {
                    Slip::Noise => "lines on stdout that are no messages",
                    Slip::Cr => "lines that end in CR LF",
                    Slip::InvalidUtf8 => "messages that are not UTF-8",
                    Slip::NoId => "answers without an id",
                    Slip::Twice => "second answers to one request",
                    Slip::UnknownId => "answers to nothing that was asked",
                    Slip::UnknownProgress => {
                        "reports of progress for a token that was not given or is done with"
                    }
                };
                format!("{what}: {count}, such as {quoted:?}")
            }
        }
    }

    /// Says what to do.
    pub(super) const fn advice(&self) -> &'static str {
        match self {
            Self::NoAnswer(_) => {
                "run the command by itself and see what it says; is it an MCP server on stdio, and has it the \
                 arguments and variables that it needs? if it was only slow, --start-timeout waits longer"
            }
            Self::NoEra(_) => "update the server: it has no revision of MCP that is in use",
            Self::Ended(..) => "run it by itself with this request to see why; a server refuses by an error",
            Self::Unanswered(_) => {
                "answer every request, by an error if need be; if it only was slow, --timeout waits longer"
            }
            Self::Refused(..) => "serve what the capabilities declare, or do not declare it",
            Self::EndlessLine => "split large results into pages; clients drop such lines or die of them",
            Self::ExitsAtDiscover => {
                "update its SDK; until then clients of 2026-07-28 must be told to begin with initialize"
            }
            Self::ExitsAtProbe => {
                "update its SDK, which should skip such lines; lumen connect starts it once more and remembers \
                 that, --negotiate offer never probes"
            }
            Self::DeafAfterProbe => {
                "update its SDK, which should skip such lines; use --negotiate offer with lumen connect, or the \
                 first start waits 20 s before it is repeated without"
            }
            Self::MindsOffer => "use --negotiate off with lumen connect; servers must ignore extensions",
            Self::LumenBroken => "use --negotiate off with lumen connect, and update the server's LUMEN",
            Self::OwedAtEof(..) => {
                "answer what was read before you end; lumen connect ends a server's input only when nothing is owed, other \
                 clients close it right after the last request"
            }
            Self::StaysAfterEof => {
                "end when stdin ends; clients wait a few seconds for that and then kill it"
            }
            Self::IgnoresTerm => "do not catch SIGTERM, or end on it; clients kill it soon after",
            Self::BadExit(_) => "end with exit code 0 when stdin ends, which is how a session closes",
            Self::Leftovers(_) => {
                "end what the server started when its stdin ends; lumen ends the processes of its group, others \
                 stay and have to be ended by hand"
            }
            Self::Slip(Slip::Noise, ..) => {
                "print to stderr; in Node console.log, in Python print and in Java System.out write to stdout. \
                 lumen connect keeps such lines from the client"
            }
            Self::Slip(Slip::Cr, ..) => "end lines with LF alone; most clients bear CR LF, not all",
            Self::Slip(Slip::InvalidUtf8, ..) => {
                "write UTF-8, whatever the locale (PYTHONUTF8=1); clients hang or die of anything else"
            }
            Self::Slip(Slip::NoId, ..) => {
                "give back the id of the request; nobody can tell what such an answer is to"
            }
            Self::Slip(Slip::Twice, ..) => "answer each request once; lumen connect drops the second",
            Self::Slip(Slip::UnknownId, ..) => {
                "give back the id as it was asked, of the same type; lumen connect drops such answers"
            }
            Self::Slip(Slip::UnknownProgress, ..) => {
                "report progress only for the token in _meta.progressToken and before the answer; some clients \
                 close the session over it"
            }
        }
    }
}

fn on_stderr(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!("; on stderr it said: {said:?}"),
    }
}
