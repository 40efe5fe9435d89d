//! One exchange, step by step: body handed over, head, chunks, end. Redirects within the origin are followed here.

use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::LOCATION;
use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use hyper_util::client::legacy::{self, ResponseFuture};
use lumen_proto::http::{self, TransportError, TransportErrorKind};
use tokio::sync::oneshot;

use crate::connect::ConnectError;
use crate::error::chain;
use crate::{Client, ServerUrl};

/// The most redirects that are followed one after the other.
const MAX_REDIRECTS: u32 = 5;

/// What happened next.
#[derive(Debug)]
pub(crate) enum Step {
    /// The body is on its way.
    Written,
    /// The response has begun.
    Head(StatusCode, HeaderMap),
    /// A piece of its body.
    Chunk(Bytes),
    /// Nothing more will come.
    End(Result<(), TransportError>),
}

/// An exchange under way.
#[derive(Debug)]
pub(crate) struct Exchange {
    client: Arc<Client>,
    url: ServerUrl,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
    redirects: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Sending(ResponseFuture, Option<oneshot::Receiver<()>>),
    Receiving(Incoming),
    Ended,
}

impl Exchange {
    pub(crate) fn start(client: Arc<Client>, request: http::Request) -> Self {
        let method = match request.method {
            http::Method::Post => Method::POST,
            http::Method::Get => Method::GET,
            http::Method::Delete => Method::DELETE,
        };
        // The machine's headers are valid by its word; one that were not would be missed by the server, and told.
        let headers = request.headers.into_iter().filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(&value).ok()?))
        });
        let headers: HeaderMap = headers.collect();
        let url = client.url().clone();
        let (response, handed_over) =
            client.send(&url, method.clone(), headers.clone(), request.body.clone());
        let state = State::Sending(response, Some(handed_over));
        Self { client, url, method, headers, body: request.body, redirects: 0, state }
    }

    /// Waits for the next step. None follows [`Step::End`].
    pub(crate) async fn step(&mut self) -> Step {
        loop {
            match &mut self.state {
                State::Sending(response, handed_over) => {
                    let result = match handed_over {
                        None => response.await,
                        Some(signal) => tokio::select! {
                            biased;
                            result = response => result,
                            _ = signal => {
                                *handed_over = None;
                                return Step::Written;
                            }
                        },
                    };
                    match result {
                        Ok(response) => {
                            if let Some(step) = self.on_response(response) {
                                return step;
                            }
                        }
                        Err(error) => return self.end(Err(self.failed(&error))),
                    }
                }
                State::Receiving(body) => match body.frame().await {
                    // Trailers mean nothing here.
                    Some(Ok(frame)) => {
                        if let Ok(chunk) = frame.into_data() {
                            return Step::Chunk(chunk);
                        }
                    }
                    Some(Err(error)) => {
                        let text = format!("the response broke off: {}", chain(&error));
                        return self.end(Err(TransportError { kind: TransportErrorKind::Reset, text }));
                    }
                    None => return self.end(Ok(())),
                },
                State::Ended => return Step::End(Ok(())),
            }
        }
    }

    /// Takes a response; there is no step if it was a redirect that is followed.
    fn on_response(&mut self, response: Response<Incoming>) -> Option<Step> {
        let (head, body) = response.into_parts();
        let Some(location) = head.headers.get(LOCATION).filter(|_| head.status.is_redirection()) else {
            self.state = State::Receiving(body);
            return Some(Step::Head(head.status, head.headers));
        };
        let target = location.to_str().ok().and_then(|location| self.url.resolve(location));
        let why = match target {
            None => "to what is no URL".to_owned(),
            Some(target) if !self.client.url().is_same_origin(&target) => format!("to {target}"),
            Some(target) if !keeps_the_method(head.status) => {
                format!("to {target}, with a status that does not keep the method")
            }
            Some(target) if self.redirects == MAX_REDIRECTS => format!("too often, last to {target}"),
            Some(target) => {
                let (headers, body) = (self.headers.clone(), self.body.clone());
                let (response, _) = self.client.send(&target, self.method.clone(), headers, body);
                self.state = State::Sending(response, None);
                self.redirects += 1;
                self.url = target;
                return None;
            }
        };
        let text = format!("the server redirects ({}) {why}", head.status.as_u16());
        Some(self.end(Err(TransportError { kind: TransportErrorKind::Redirect, text })))
    }

    fn failed(&self, error: &legacy::Error) -> TransportError {
        let url = &self.url;
        let cause = std::error::Error::source(error);
        if error.is_connect() {
            let why = cause.map_or_else(
                || error.to_string(),
                |cause| match cause.downcast_ref::<ConnectError>() {
                    Some(known) => known.to_string(),
                    None => chain(cause),
                },
            );
            let text = format!("cannot connect to {url}: {why}");
            return TransportError { kind: TransportErrorKind::Connect, text };
        }
        let why = cause.map_or_else(|| error.to_string(), chain);
        let text = format!("no response from {url}: {why}");
        TransportError { kind: TransportErrorKind::Reset, text }
    }

    fn end(&mut self, result: Result<(), TransportError>) -> Step {
        drop(mem::replace(&mut self.state, State::Ended));
        Step::End(result)
    }
}

const fn keeps_the_method(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}
