//! An HTTP server that does what a test says, request by request, on real sockets: plain, over TLS, over HTTP/2.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lumen_tests::procs::lumen;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::support::{INITIALIZE, INITIALIZED, LIMIT, Session, temp};

pub const JSON: (&str, &str) = ("content-type", "application/json");
pub const EVENTS: (&str, &str) = ("content-type", "text/event-stream");

/// What is below HTTP, and which HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Tcp,
    Tls,
    Http2,
}

/// A server whose answers the test gives.
pub struct Server {
    address: SocketAddr,
    over: Over,
    requests: Receiver<Request>,
    connections: Arc<AtomicUsize>,
    runtime: Runtime,
    /// The certificate that its own leads to.
    pub ca: PathBuf,
}

impl Server {
    pub fn start() -> Self {
        Self::start_over(Over::Tcp)
    }

    pub fn start_over(over: Over) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let ca = temp("ca.pem");
        let tls = (over != Over::Tcp).then(|| acceptor(over, &ca));
        runtime.spawn(accept(listener, tls, sender, connections.clone()));
        Self { address, over, requests, connections, runtime, ca }
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        match self.over {
            Over::Tcp => format!("http://{}", self.address),
            // The name that the certificate has.
            Over::Tls | Over::Http2 => format!("https://localhost:{}", self.address.port()),
        }
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the command of a bridge to this server.
    pub fn command(&self, options: &[&str]) -> Command {
        let mut command = bridge_command(&self.origin());
        if self.over != Over::Tcp {
            command.arg("--ca").arg(&self.ca);
        }
        command.args(options);
        command
    }

    /// Starts a bridge to this server.
    pub fn bridge(&self, options: &[&str]) -> Session {
        Session::start(self.command(options))
    }

    /// Starts a bridge and takes it through the handshake of a session called `s1`.
    pub fn connected(&self) -> Session {
        self.connected_with(&[])
    }

    pub fn connected_with(&self, options: &[&str]) -> Session {
        let mut session = self.bridge(options);
        self.handshake(&mut session, "s1");
        session
    }

    /// The handshake; the stream that the bridge asks for is refused.
    pub fn handshake(&self, session: &mut Session, name: &str) {
        self.open(session, name).answer(405, &[], "");
    }

    /// The handshake, with the stream that the bridge asks for.
    pub fn handshake_with_stream(&self, session: &mut Session, name: &str) -> Stream {
        self.open(session, name).stream()
    }

    fn open(&self, session: &mut Session, name: &str) -> Request {
        session.send(&[INITIALIZE]);
        let request = self.post("initialize");
        let body = initialized(&request);
        request.answer(200, &[JSON, ("mcp-session-id", name)], body);
        assert_eq!(session.json()["id"], 0);
        session.send(&[INITIALIZED]);
        self.post("notifications/initialized").answer(202, &[], "");
        self.stream_request()
    }

    /// Waits for the next request.
    pub fn next(&self) -> Request {
        self.requests.recv_timeout(LIMIT).expect("a request comes in time")
    }

    /// Waits for the next request, which must be a POST of this method.
    #[track_caller]
    pub fn post(&self, method: &str) -> Request {
        let request = self.next();
        assert_eq!((request.method.as_str(), &request.json()["method"]), ("POST", &Value::from(method)));
        request
    }

    /// Waits for the next request, which must ask for the server's own stream.
    #[track_caller]
    pub fn stream_request(&self) -> Request {
        let request = self.next();
        assert_eq!(request.method, "GET");
        request
    }

    /// Waits for the next request, which must end the session.
    #[track_caller]
    pub fn end(&self) -> Request {
        let request = self.next();
        assert_eq!(request.method, "DELETE");
        request
    }

    /// Asserts that nothing has come. For after the bridge has exited.
    pub fn assert_idle(&self) {
        assert!(self.requests.try_recv().is_err());
    }

    /// Returns how many connections there were so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Closes all connections and listens no longer.
    pub fn stop(self) -> SocketAddr {
        self.runtime.shutdown_background();
        self.address
    }
}

/// The command of a bridge, with nothing of this process's environment that it would look at.
pub fn bridge_command(url: &str) -> Command {
    let mut command = Command::new(lumen());
    command.args(["bridge", "--url", url]);
    for name in ["LUMEN_API_KEY", "LEUMAS_API_KEY", "RUST_LOG", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        command.env_remove(name);
    }
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command
}

/// An answer to `initialize` with the version that was asked for.
pub fn initialized(request: &Request) -> String {
    let version = &request.json()["params"]["protocolVersion"];
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":{version},"capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
    )
}

/// A request that waits for its answer. Dropped without one, its connection is closed.
#[derive(Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    reply: oneshot::Sender<Response<Pieces>>,
    runtime: Handle,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        if self.body.is_empty() { Value::Null } else { serde_json::from_slice(&self.body).unwrap() }
    }

    pub fn answer(self, status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) {
        let body = body.into();
        let mut stream = self.begin(status, headers);
        if !body.is_empty() {
            stream.send(body);
        }
        stream.end();
    }

    /// Answers with one JSON body.
    pub fn json_answer(self, body: impl Into<Bytes>) {
        self.answer(200, &[JSON], body);
    }

    /// Answers a request with an empty result.
    pub fn result(self) {
        let id = self.json()["id"].to_string();
        self.json_answer(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }

    /// Answers with a stream of events.
    pub fn stream(self) -> Stream {
        self.begin(200, &[EVENTS])
    }

    /// Answers with a head, and a body that is still to come.
    pub fn begin(self, status: u16, headers: &[(&str, &str)]) -> Stream {
        let (sender, pieces) = mpsc::unbounded_channel();
        let mut response = Response::new(Pieces(pieces));
        *response.status_mut() = status.try_into().unwrap();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            response.headers_mut().append(name, HeaderValue::from_str(value).unwrap());
        }
        // Whether anybody still waits is the test's question.
        let _ = self.reply.send(response);
        Stream { pieces: Some(sender), runtime: self.runtime }
    }

    /// Waits until nobody waits for the answer any longer.
    pub fn wait_abandoned(mut self) {
        let runtime = self.runtime.clone();
        within(&runtime, self.reply.closed());
    }

    pub fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

/// A response under way. Dropped without an end, its connection is closed.
#[derive(Debug)]
pub struct Stream {
    pieces: Option<mpsc::UnboundedSender<io::Result<Bytes>>>,
    runtime: Handle,
}

impl Stream {
    pub fn send(&mut self, bytes: impl Into<Bytes>) {
        if let Some(pieces) = &self.pieces {
            let _ = pieces.send(Ok(bytes.into()));
        }
    }

    /// Sends one event that holds `data`.
    pub fn event(&mut self, data: impl std::fmt::Display) {
        self.send(format!("data: {data}\n\n"));
    }

    /// Ends the response in order.
    pub fn end(mut self) {
        self.pieces = None;
    }

    /// Waits until nobody reads it any longer.
    pub fn wait_abandoned(self) {
        if let Some(pieces) = &self.pieces {
            within(&self.runtime, pieces.closed());
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(pieces) = self.pieces.take() {
            let _ = pieces.send(Err(io::ErrorKind::ConnectionReset.into()));
        }
    }
}

fn within<T>(runtime: &Handle, future: impl Future<Output = T>) -> T {
    runtime.block_on(async { timeout(LIMIT, future).await }).expect("it comes in time")
}

/// A body in pieces.
#[derive(Debug)]
struct Pieces(mpsc::UnboundedReceiver<io::Result<Bytes>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    requests: Sender<Request>,
    connections: Arc<AtomicUsize>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        let _ = stream.set_nodelay(true);
        let (tls, requests) = (tls.clone(), requests.clone());
        tokio::spawn(async move {
            match tls {
                None => serve(stream, false, requests).await,
                Some(tls) => {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve(stream, is_http2, requests).await;
                }
            }
        });
    }
}

async fn serve<S>(stream: S, is_http2: bool, requests: Sender<Request>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| answer(request, requests.clone()));
    let stream = TokioIo::new(stream);
    // How a connection ended is for the other end to tell.
    if is_http2 {
        let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
    } else {
        let _ = http1::Builder::new().serve_connection(stream, service).await;
    }
}

async fn answer(
    request: hyper::Request<Incoming>,
    requests: Sender<Request>,
) -> Result<Response<Pieces>, Box<dyn std::error::Error + Send + Sync>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes().to_vec();
    let (reply, response) = oneshot::channel();
    let request = Request {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        version: head.version,
        headers: head.headers,
        body,
        reply,
        runtime: Handle::current(),
    };
    requests.send(request)?;
    Ok(response.await?)
}

fn acceptor(over: Over, ca_file: &std::path::Path) -> TlsAcceptor {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new([]).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(ca_file, ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    if over == Over::Http2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    TlsAcceptor::from(Arc::new(config))
}
