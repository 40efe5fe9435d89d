//! The HTTP client: one URL, and what goes with every request.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{ACCEPT_ENCODING, AUTHORIZATION, PROXY_AUTHORIZATION};
use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use hyper_util::client::legacy::{self, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use lumen_proto::http::Secrets;
use tokio::sync::oneshot;

use crate::connect::Connector;
use crate::proxy::Way;
use crate::tls::Tls;
use crate::{Error, Proxy, Roots, ServerUrl};

/// How long a connection that nothing uses is kept.
const IDLE: Duration = Duration::from_secs(60);

/// The most connections that are kept while nothing uses them. Worst case: two buffers of 8 KiB each.
const MAX_IDLE: usize = 32;

/// Headers that the bridge or HTTP itself decides, so that nobody else may.
const RESERVED: [&str; 18] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Which server is talked to, and how.
#[derive(Debug)]
pub struct Config {
    url: ServerUrl,
    headers: HeaderMap,
    roots: Roots,
    proxy: Proxy,
    connect_timeout: Option<Duration>,
}

impl Config {
    /// Makes the usual set-up: nothing added, the platform's certificates, the environment's proxy, any time to connect.
    pub fn new(url: ServerUrl) -> Self {
        let proxy = Proxy::from_env();
        Self { url, headers: HeaderMap::new(), roots: Roots::default(), proxy, connect_timeout: None }
    }

    /// Sends a key with every request, as `Authorization: Bearer`.
    ///
    /// # Errors
    /// It holds what no header can.
    pub fn with_key(self, key: &str) -> Result<Self, Error> {
        self.with_header(AUTHORIZATION.as_str(), &format!("Bearer {key}"))
    }

    /// Sends a further header with every request. One that was given before under this name is sent too.
    ///
    /// # Errors
    /// The name or the value is none, or the header is one that the bridge or HTTP itself decides.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let fail = |why| Error::Header { name: name.to_owned(), why };
        let parsed = HeaderName::try_from(name).map_err(|_| fail("this is no name of a header"))?;
        if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-param-") {
            return Err(fail("it is decided by what is sent"));
        }
        let value = HeaderValue::from_bytes(value.as_bytes());
        let mut value = value.map_err(|_| fail("its value holds a control character"))?;
        value.set_sensitive(true);
        self.headers.append(parsed, value);
        Ok(self)
    }

    /// Sets which certificates are trusted.
    #[must_use]
    pub fn with_roots(mut self, roots: Roots) -> Self {
        self.roots = roots;
        self
    }

    /// Sets which proxy is used.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Sets how long making a connection may take: name, TCP, proxy and TLS together.
    #[must_use]
    pub const fn with_connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Returns whether requests say who sends them.
    pub fn is_authorized(&self) -> bool {
        self.headers.contains_key(AUTHORIZATION)
    }
}

/// Makes requests to one URL.
#[derive(Debug)]
pub struct Client {
    url: ServerUrl,
    headers: HeaderMap,
    http: legacy::Client<Connector, Posted>,
}

impl Client {
    /// Makes a client. No connection is made before the first request.
    ///
    /// # Errors
    /// The proxy for this URL is of a kind that is not spoken.
    pub fn new(config: Config) -> Result<Self, Error> {
        let Config { url, mut headers, roots, proxy, connect_timeout } = config;
        let way = proxy.way(&url)?;
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Way::Forward(_, Some(auth)) = &way {
            headers.insert(PROXY_AUTHORIZATION, auth.clone());
        }
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(Connector::new(way, Tls::new(roots), connect_timeout));
        Ok(Self { url, headers, http })
    }

    /// Returns the URL.
    pub const fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// Returns what goes with every request and must not be quoted by errors: the values of the headers that were
    /// given, what follows the scheme in those that authorize, and the URL's query.
    pub(crate) fn secrets(&self) -> Secrets {
        let given =
            self.headers.iter().filter(|(name, value)| value.is_sensitive() || *name == PROXY_AUTHORIZATION);
        let texts = given.filter_map(|(name, value)| Some((name, value.to_str().ok()?)));
        let texts = texts.flat_map(|(name, text)| {
            let is_authorizing = [AUTHORIZATION, PROXY_AUTHORIZATION].contains(name);
            let token = text.split_once(' ').filter(|_| is_authorizing).map(|(_, token)| token.trim());
            [Some(text), token].into_iter().flatten()
        });
        Secrets::new(texts.chain(self.url.uri().query()))
    }

    /// Starts a request to `url`, which must be of the same origin. What is returned besides the response is ready
    /// when the body was handed over, or never will be.
    pub(crate) fn send(
        &self,
        url: &ServerUrl,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> (ResponseFuture, oneshot::Receiver<()>) {
        let (signal, handed_over) = oneshot::channel();
        let mut request =
            Request::new(Posted { bytes: Some(body).filter(|body| !body.is_empty()), _signal: signal });
        *request.method_mut() = method;
        *request.uri_mut() = url.uri().clone();
        *request.headers_mut() = headers;
        request.headers_mut().extend(self.headers.clone());
        (self.http.request(request), handed_over)
    }
}

/// A request's body, whose drop says that it was handed over.
#[derive(Debug)]
struct Posted {
    bytes: Option<Bytes>,
    _signal: oneshot::Sender<()>,
}

impl Body for Posted {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::new(ServerUrl::parse("http://server", None).unwrap())
    }

    #[test]
    fn what_is_secret_is_the_key_with_and_without_its_scheme_and_the_query() {
        let url = ServerUrl::parse("http://server/mcp?token=in-query", None).unwrap();
        let config = Config::new(url).with_key("s3cret").unwrap().with_header("X-Team", "blue team").unwrap();
        let secrets = Client::new(config).unwrap().secrets();
        assert_eq!(secrets, Secrets::new(["Bearer s3cret", "s3cret", "blue team", "token=in-query"]));
    }

    #[test]
    fn only_headers_that_are_nobody_elses_can_be_added_and_no_value_is_shown() {
        let config = config().with_key("s3cret").unwrap().with_header("X-Team", "é s3cret").unwrap();
        assert!(config.is_authorized());
        assert!(!format!("{config:?}").contains("s3cret"));
        for (name, value) in [
            ("Content-Type", "s3cret"),
            ("Mcp-Session-Id", "s3cret"),
            ("mcp-param-x", "s3cret"),
            ("Host", "s3cret"),
            ("a b", "s3cret"),
            ("", "s3cret"),
            ("x", "s3cret\r\nY: z"),
        ] {
            let error = super::tests::config().with_header(name, value).unwrap_err().to_string();
            assert!(error.contains(&format!("{name:?}")) && !error.contains("s3cret"), "{error}");
        }
    }
}
