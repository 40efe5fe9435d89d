//! What people are told of a session, on stderr.

use lumen_proto::endpoint::{Event, Outcome, Unlike, Why};
use lumen_proto::supervisor::{Behind, Ended};
use lumen_proto::{Exit as ChildExit, OpenErrorKind, Port};
use tracing::{debug, info, warn};

use crate::exit::Exit;
use crate::log::Stderr;

/// Noise lines that are quoted; further ones are only counted.
const QUOTED: u64 = 8;

/// Reports events of one session, and bounds how much a noisy side can make it say.
#[derive(Debug)]
pub(crate) struct Report {
    client: Port,
    /// The server's command or address, as people wrote it.
    command: String,
    behind: Behind,
    /// Why the server could not be started, in words.
    why: Option<String>,
    /// Why nobody could be started to serve the socket, in words.
    unserved: Option<String>,
    noise: u64,
    next_noise: u64,
    /// It was said that the connection is made again.
    is_down: bool,
}

impl Report {
    pub(crate) fn new(client: Port, command: String, behind: Behind) -> Self {
        Self {
            client,
            command,
            behind,
            why: None,
            unserved: None,
            noise: 0,
            next_noise: QUOTED,
            is_down: false,
        }
    }

    /// Takes the words for why the server could not be started.
    pub(crate) fn not_started(&mut self, why: &str) {
        self.why = Some(why.to_owned());
    }

    /// Takes the words for why nobody could be started to serve the socket.
    pub(crate) fn not_served(&mut self, why: String) {
        self.unserved = Some(why);
    }

    /// Reports one event; the last one gives the exit code.
    pub(crate) fn event(&mut self, event: &Event) -> Option<Exit> {
        match event {
            Event::Finished(outcome) => return Some(self.finished(*outcome)),
            Event::Noise { port, excerpt, lines, bytes } => self.noise(*port, excerpt, *lines, *bytes),
            Event::Upgraded(port) => info!("{}: LUMEN frames from now on", self.side(*port)),
            Event::FellBack(port) => info!("{}: no answer to the probe, speaking JSON", self.side(*port)),
            Event::Restarting { why, .. } => match why {
                Why::Ended(_) if self.behind == Behind::Socket => {
                    info!("the connection was closed after the LUMEN probe, trying again without");
                }
                Why::Ended(ended) => warn!(
                    "the server ended after the LUMEN probe ({}), starting it again without; \
                     --negotiate offer avoids that",
                    how(*ended)
                ),
                Why::NoAnswer => warn!(
                    "the server answers nothing after the LUMEN probe, starting it again without; \
                     --negotiate offer avoids that"
                ),
            },
            Event::Rejected { port, id, reason } => {
                let id = id.as_deref().map_or_else(|| "none".into(), String::from_utf8_lossy);
                warn!("a message of the {} was not passed on: {reason} (id {id})", self.side(*port));
            }
            Event::Lost { port, reason } => warn!("{}: {reason}", self.side(*port)),
            Event::Unasked { port, id } => {
                debug!(
                    "{}: answer to nothing that was asked, id {}",
                    self.side(*port),
                    String::from_utf8_lossy(id)
                );
            }
            Event::Stray(port) => debug!("{}: swallowed its complaint about the probe", self.side(*port)),
            Event::Skipped { port, kind, frames } => {
                debug!("{}: skipped {frames} frames of type 0x{:02x}", self.side(*port), kind.0);
            }
            Event::Reconnecting { ended: Ended::Failed(error), .. } => {
                debug!("{} cannot be reached yet: {error}", self.command);
            }
            Event::Reconnecting { .. } if !self.is_news(true) => {
                debug!("{} has closed the connection before the session could go on", self.command);
            }
            Event::Reconnecting { .. } => warn!(
                "the connection to {} was closed, making it again; what was not answered had an error for an answer",
                self.command
            ),
            Event::Resumed(_) => {
                self.is_news(false);
                warn!("the session goes on at {}", self.command);
            }
            Event::Dropped(count) => warn!("{count} events were not reported"),
            Event::InputClosed => debug!("the client closed its input"),
            Event::Message(_) => {}
        }
        None
    }

    /// Takes that the connection is down, or up again. Returns whether people do not know that.
    const fn is_news(&mut self, is_down: bool) -> bool {
        std::mem::replace(&mut self.is_down, is_down) != is_down
    }

    fn noise(&mut self, port: Port, excerpt: &[u8], lines: u64, bytes: u64) {
        // Lines that came together are one event; what begins the first burst is quoted however long that is.
        let is_quoted = self.noise < QUOTED;
        self.noise += lines;
        if is_quoted {
            self.next_noise = QUOTED.max(self.noise * 2);
            let text = String::from_utf8_lossy(excerpt);
            let more = if lines > 1 { format!(" (and {} lines more)", lines - 1) } else { String::new() };
            warn!("the {} printed what is no message: {:?}{more}", self.side(port), text);
        } else if self.noise >= self.next_noise {
            self.next_noise = self.noise * 2;
            warn!(
                "{} lines that are no messages so far, the last {bytes} bytes by the {}",
                self.noise,
                self.side(port)
            );
        }
    }

    fn finished(&self, outcome: Outcome) -> Exit {
        match outcome {
            Outcome::Closed(ended) | Outcome::Terminated(ended) => {
                match ended {
                    Some(Ended::Exited(ChildExit::Code(0)) | Ended::Closed) | None => {}
                    Some(ended) => info!("the server ended with {}", how(ended)),
                }
                Exit::Ok
            }
            Outcome::NotStarted(error) => {
                let why = self.why.clone().unwrap_or_else(|| error.to_string());
                if let Some(why) = &self.unserved {
                    say(why);
                    return Exit::NotStarted;
                }
                if self.behind == Behind::Socket {
                    say(&format!("{why}; {}", unserved(&self.command)));
                    return Exit::NotStarted;
                }
                let advice = match error.kind {
                    OpenErrorKind::NotFound if why.contains("directory") => "is the path right?",
                    OpenErrorKind::NotFound => {
                        "is it there, and on this PATH? a full path avoids the question"
                    }
                    OpenErrorKind::PermissionDenied => "is it a program, and executable by this user?",
                    _ => "try the command by itself",
                };
                say(&format!("cannot start {}: {why}; {advice}", self.command));
                Exit::NotStarted
            }
            Outcome::ServerGone(Ended::Failed(error)) if self.behind == Behind::Socket => {
                let why = self.unserved.clone().unwrap_or_else(|| {
                    format!(
                        "{error}; --reconnect S tries longer, --start -- COMMAND starts what is to serve it"
                    )
                });
                say(&format!(
                    "the connection to {} was closed, and could not be made again: {why}",
                    self.command
                ));
                Exit::Failed
            }
            Outcome::ServerGone(_) if self.behind == Behind::Socket => {
                say(&format!(
                    "the connection to {} was closed while it was needed; if `lumen mux` serves it, what that printed \
                     says why: it may have ended, be full (--max-clients), or not let this user in (--allow-uid)",
                    self.command
                ));
                Exit::Failed
            }
            Outcome::ServerGone(ended) => {
                say(&format!(
                    "the server {} ended while it was needed ({}); try the command by itself, or -v here",
                    self.command,
                    how(ended)
                ));
                Exit::Failed
            }
            Outcome::NotResumed(unlike) => {
                let why = match unlike {
                    Unlike::Refused => "the handshake is refused now",
                    Unlike::Revision => "it agrees on another protocol revision now",
                    Unlike::Silent => "nobody answers now; --reconnect S waits longer",
                };
                say(&format!(
                    "the connection to {} was closed and made again, but the session cannot go on there: {why}",
                    self.command
                ));
                Exit::Failed
            }
            Outcome::NoAnswer => {
                let place = match self.behind {
                    Behind::Socket => "an MCP server there",
                    Behind::Process => "it an MCP server on stdio",
                };
                say(&format!(
                    "the server {} never answered; is {place}? \
                     --start-timeout S waits longer, --negotiate off asks nothing unusual",
                    self.command
                ));
                Exit::NoAnswer
            }
            Outcome::Unanswered(count) => {
                say(&format!("the client closed its input, and the server left {count} requests unanswered"));
                Exit::Failed
            }
        }
    }

    fn side(&self, port: Port) -> &'static str {
        if port == self.client { "client" } else { "server" }
    }
}

/// Returns what to try when nobody serves this socket.
pub(crate) fn unserved(socket: &str) -> String {
    format!(
        "does anything serve {socket}? `lumen mux` does so for a Unix socket, and --start -- COMMAND starts that"
    )
}

/// Says something that must be seen whatever the log level.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let _ = Stderr.write_all(format!("lumen: {text}\n").as_bytes());
}

/// Says how a server ended.
pub(crate) fn how(ended: Ended) -> String {
    match ended {
        Ended::Failed(error) => error.to_string(),
        Ended::Exited(exit) => exit.to_string(),
        Ended::Closed => "its stream closed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_first_burst_is_quoted_too_and_later_noise_only_counted() {
        let mut report = Report::new(Port::new(0), String::new(), Behind::Process);
        report.noise(Port::new(1), b"x", 1000, 2000);
        assert_eq!((report.noise, report.next_noise), (1000, 2000));
        report.noise(Port::new(1), b"x", 999, 2000);
        assert_eq!((report.noise, report.next_noise), (1999, 2000));
        report.noise(Port::new(1), b"x", 1, 2000);
        assert_eq!((report.noise, report.next_noise), (2000, 4000));
    }
    #[test]
    fn a_connection_that_is_closed_again_and_again_is_told_once() {
        let mut report = Report::new(Port::new(0), String::new(), Behind::Socket);
        assert!(report.is_news(true) && !report.is_news(true) && !report.is_news(true));
        assert!(report.is_news(false) && report.is_news(true));
    }
}
