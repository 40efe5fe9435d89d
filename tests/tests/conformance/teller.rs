//! What is written down of a story.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use lumen_proto::endpoint::{Event, Outcome, Why};
use lumen_proto::jsonrpc::Message;
use lumen_std::{Closed, Error};

/// Bytes of which only the length and a checksum are told if there are more.
const IN_FULL: usize = 600;

/// What was told so far. Its clones write into the same text.
#[derive(Clone)]
pub struct Log {
    /// The name by which this story on this runtime can be run by itself.
    pub test: String,
    text: Arc<Mutex<String>>,
}

impl Log {
    pub fn new(test: &str) -> Self {
        Self { test: test.to_owned(), text: Arc::default() }
    }

    pub fn line(&self, line: impl AsRef<str>) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(line.as_ref());
        text.push('\n');
    }

    pub fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes down what a client is told besides messages.
    pub fn on_notice(&self) -> impl FnMut(Event) + Send + use<> {
        let log = self.clone();
        move |event| log.line(format!("notice: {}", notice(&event)))
    }

    pub fn message(&self, message: Option<&Message>) {
        match message {
            Some(message) => self.line(format!("received: {}", bytes(message.bytes()))),
            None => self.line("received: nothing more"),
        }
    }

    pub fn sent(&self, result: Result<(), Error>) {
        self.line(match result {
            Ok(()) => "sent".to_owned(),
            Err(error) => format!("not sent: {error}"),
        });
    }

    pub fn closed(&self, closed: &Closed) {
        self.line(format!("closed: {}", outcome(closed.outcome)));
        for message in &closed.messages {
            self.line(format!("left over: {}", bytes(message.bytes())));
        }
    }

    pub fn wire(&self, which: &str, wire: &[u8]) {
        self.line(format!("{which}: {}", bytes(wire)));
    }

    /// Fails if the story goes another way than its transcript.
    pub fn compare(&self, story: &str) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/conformance/transcripts/{story}.txt"));
        let told = self.text();
        if std::env::var_os("TRANSCRIBE").is_some() {
            std::fs::write(&path, told).unwrap();
            return;
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        if told == written {
            return;
        }
        let lines = told.split('\n').zip(written.split('\n').chain(std::iter::repeat("")));
        let (at, (told, written)) = (1..).zip(lines).find(|(_, (told, written))| told != written).unwrap();
        panic!("{} differs in line {at} of {}:\n{told}\n{written}", self.test, path.display());
    }
}

/// Bytes as text: what is not printable ASCII is escaped.
pub fn bytes(bytes: &[u8]) -> String {
    if bytes.len() <= IN_FULL {
        return bytes.escape_ascii().to_string();
    }
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{} bytes, checksum {sum:016x}", bytes.len())
}

pub fn outcome(outcome: Outcome) -> String {
    format!("{outcome:?}")
}

/// Without ports: they differ where a server is started again.
fn notice(event: &Event) -> String {
    let mut text = String::new();
    let _ = match event {
        Event::Upgraded(_) => write!(text, "messages leave as LUMEN"),
        Event::FellBack(_) => write!(text, "the probe was not answered in time"),
        Event::Noise { excerpt, lines, bytes, .. } => {
            write!(text, "{lines} lines of noise, {bytes} bytes: {}", excerpt.escape_ascii())
        }
        Event::Restarting { why: Why::Ended(ended), .. } => write!(text, "started again: {ended:?}"),
        Event::Restarting { why: Why::NoAnswer, .. } => write!(text, "started again: no answer"),
        Event::Finished(how) => write!(text, "finished: {}", outcome(*how)),
        other => write!(text, "{other:?}"),
    };
    text
}
