//! What people are told of a bridge, on stderr.

use lumen_proto::Port;
use lumen_proto::endpoint::BridgeEvent;
use lumen_proto::http::Event;
use lumen_proto::supervisor::Behind;
use tracing::{debug, info, warn};

use crate::exit::Exit;
use crate::report;

/// Reports events of one bridge.
#[derive(Debug)]
pub(crate) struct Report {
    client: report::Report,
    noise: u64,
}

impl Report {
    pub(crate) fn new(client: Port, url: String) -> Self {
        Self { client: report::Report::new(client, url, Behind::Socket), noise: 0 }
    }

    /// Reports one event; the last one gives the exit code.
    pub(crate) fn event(&mut self, event: &BridgeEvent) -> Option<Exit> {
        match event {
            BridgeEvent::Client(event) => return self.client.event(event),
            BridgeEvent::Server(event) => self.server(event),
        }
        None
    }

    fn server(&mut self, event: &Event) {
        match event {
            Event::Failed { id, failure } => {
                warn!("request {} was answered with an error: {failure}", String::from_utf8_lossy(id));
            }
            Event::Undelivered { method, failure } => {
                let what = method.as_deref().unwrap_or("an answer of the client");
                warn!("{what} was not delivered: {failure}");
            }
            Event::Unasked { id } => {
                debug!("an answer to nothing that was asked, id {}", String::from_utf8_lossy(id));
            }
            Event::Noise { excerpt, len } => {
                self.noise += 1;
                // The first and then ever fewer.
                if self.noise.is_power_of_two() {
                    let excerpt = String::from_utf8_lossy(excerpt);
                    warn!(
                        "the server sent what is no message ({len} bytes): {excerpt:?}; {} so far",
                        self.noise
                    );
                }
            }
            Event::Renewed => info!("the session had ended at the server and was made anew"),
            Event::NotRenewed(failure) => {
                warn!("the session had ended at the server and could not be made anew: {failure}");
            }
            Event::NoStream(failure) => debug!("the server has no stream of its own: {failure}"),
            Event::Dropped(count) => warn!("{count} events were not reported"),
        }
    }
}
