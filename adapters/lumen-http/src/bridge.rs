//! The loop: the agent's port and the exchanges, owned by one task.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::Arc;

use bytes::BytesMut;
use hyper::http::HeaderMap;
use lumen_proto::endpoint::{self, BridgeEvent};
use lumen_proto::http::{self, ExchangeId, Request};
use lumen_proto::{Action, Input, Instant, Machine, Port, Transmit};
use lumen_tokio::{Driver, Stream};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::Client;
use crate::exchange::{Exchange, Step};

/// Forwards every message between an agent and a server.
///
/// Nothing of the agent's is read while nobody awaits [`next_event`](Self::next_event). Dropping it drops all that is
/// under way; [`terminate`](Self::terminate) ends it in order.
#[derive(Debug)]
pub struct Bridge {
    driver: Driver<Machinery>,
    client: Arc<Client>,
    steps: JoinSet<(ExchangeId, Exchange, Step)>,
    /// Exchanges whose next step is waited for.
    running: BTreeMap<ExchangeId, AbortHandle>,
    /// Exchanges that wait until the agent has read more.
    paused: BTreeMap<ExchangeId, Exchange>,
}

impl Bridge {
    /// Makes a bridge between an agent's stream and a server. What the errors call the URL is set right, and
    /// what they must not quote.
    pub fn new(config: http::Config, client: Client, agent: Stream) -> Self {
        let config = http::Config { url: client.url().to_string(), secrets: client.secrets(), ..config };
        let bridge = endpoint::Bridge::new(config);
        let port = bridge.client_port();
        let mut driver = Driver::new(Machinery { bridge, paused: BTreeSet::new() }, None);
        driver.attach(port, agent);
        let client = Arc::new(client);
        Self { driver, client, steps: JoinSet::new(), running: BTreeMap::new(), paused: BTreeMap::new() }
    }

    /// Does all the work, until there is an event. `None` means that everything is over.
    ///
    /// Safe to drop at any point, as in `select!`.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time enabled.
    pub async fn next_event(&mut self) -> Option<BridgeEvent> {
        loop {
            let has_steps = !self.steps.is_empty();
            tokio::select! {
                wish = self.driver.next_event() => match wish {
                    Some(Wish::Tell(event)) => return Some(event),
                    Some(Wish::Start(request)) => self.start(request),
                    Some(Wish::Drop(id)) => self.abort(id),
                    Some(Wish::GoOn(id)) => self.go_on(id),
                    None if !has_steps => return None,
                    // Only the exchanges can bring news.
                    None => {
                        let step = self.steps.join_next().await;
                        self.on_joined(step);
                    }
                },
                step = self.steps.join_next(), if has_steps => self.on_joined(step),
            }
        }
    }

    /// Ends the session because we were told to end; go on with [`next_event`](Self::next_event).
    pub fn terminate(&mut self) {
        let now = self.driver.now();
        self.driver.with(|machinery| machinery.bridge.terminate(now));
    }

    /// Returns the agent's port, by which events name it.
    pub fn client_port(&self) -> Port {
        self.driver.machine().bridge.client_port()
    }

    /// Returns why writing to the agent failed, if that was for another reason than that it had gone.
    pub const fn write_error(&self) -> Option<std::io::ErrorKind> {
        self.driver.write_error()
    }

    fn start(&mut self, request: Request) {
        let id = request.id;
        let exchange = Exchange::start(self.client.clone(), request);
        self.wait(id, exchange);
    }

    /// Waits for the exchange's next step, beside all others.
    fn wait(&mut self, id: ExchangeId, mut exchange: Exchange) {
        let task = async move {
            let step = exchange.step().await;
            (id, exchange, step)
        };
        self.running.insert(id, self.steps.spawn(task));
    }

    fn abort(&mut self, id: ExchangeId) {
        self.paused.remove(&id);
        if let Some(task) = self.running.remove(&id) {
            task.abort();
        }
    }

    fn go_on(&mut self, id: ExchangeId) {
        if let Some(exchange) = self.paused.remove(&id) {
            self.wait(id, exchange);
        }
    }

    fn on_joined(&mut self, joined: Option<Result<(ExchangeId, Exchange, Step), JoinError>>) {
        match joined {
            Some(Ok(step)) => self.on_step(step),
            // Nobody would ever answer for it.
            Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
            // An exchange that was aborted.
            Some(Err(_)) | None => {}
        }
    }

    fn on_step(&mut self, (id, exchange, step): (ExchangeId, Exchange, Step)) {
        // Aborted when it was too late to stop it.
        if self.running.remove(&id).is_none() {
            return;
        }
        let now = self.driver.now();
        let goes_on = self.driver.with(|machinery| machinery.on_step(now, id, step));
        match goes_on {
            GoesOn::Now => self.wait(id, exchange),
            GoesOn::Later => drop(self.paused.insert(id, exchange)),
            GoesOn::Never => {}
        }
    }
}

/// The machine, and as its events also what it wants done with the exchanges.
#[derive(Debug)]
struct Machinery {
    bridge: endpoint::Bridge,
    /// Exchanges of which nothing is read for now.
    paused: BTreeSet<ExchangeId>,
}

/// What the loop has to do.
enum Wish {
    Start(Request),
    Drop(ExchangeId),
    GoOn(ExchangeId),
    Tell(BridgeEvent),
}

/// Whether an exchange is read further.
enum GoesOn {
    Now,
    Later,
    Never,
}

impl Machinery {
    fn on_step(&mut self, now: Instant, id: ExchangeId, step: Step) -> GoesOn {
        match step {
            Step::Written => self.bridge.handle_written(now, id),
            Step::Head(status, headers) => {
                self.bridge.handle_head(now, id, status.as_u16(), &readable(&headers));
            }
            Step::Chunk(chunk) => self.bridge.handle_chunk(now, id, &chunk),
            Step::End(result) => {
                self.bridge.handle_end(now, id, result);
                return GoesOn::Never;
            }
        }
        if self.bridge.wants_chunks(id) {
            return GoesOn::Now;
        }
        self.paused.insert(id);
        GoesOn::Later
    }
}

/// The headers whose values are text.
fn readable(headers: &HeaderMap) -> Vec<(&str, &str)> {
    headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect()
}

impl Machine for Machinery {
    type Event = Wish;

    fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.bridge.handle_input(now, input);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.bridge.handle_timeout(now);
    }

    fn wants_input(&self, port: Port) -> usize {
        self.bridge.wants_input(port)
    }

    fn poll_ready(&mut self) -> Option<Port> {
        self.bridge.poll_ready()
    }

    fn poll_transmit(&mut self, now: Instant, port: Port, out: &mut BytesMut) -> Transmit {
        self.bridge.poll_transmit(now, port, out)
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.bridge.poll_action()
    }

    fn poll_event(&mut self) -> Option<Wish> {
        if let Some(id) = self.bridge.poll_abort() {
            self.paused.remove(&id);
            return Some(Wish::Drop(id));
        }
        if let Some(request) = self.bridge.poll_request() {
            return Some(Wish::Start(request));
        }
        let readable = self.paused.iter().copied().find(|&id| self.bridge.wants_chunks(id));
        if let Some(id) = readable {
            self.paused.remove(&id);
            return Some(Wish::GoOn(id));
        }
        self.bridge.poll_event().map(Wish::Tell)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.bridge.poll_timeout()
    }
}
