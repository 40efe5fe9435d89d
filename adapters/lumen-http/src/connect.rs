//! How a connection is made: TCP, a proxy where there is one, TLS where the URL asks for it.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::error::chain;
use crate::proxy::Way;
use crate::tls::Tls;

/// How long a connection may be silent before the system asks whether the other end is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Makes connections to one server.
#[derive(Clone, Debug)]
pub(crate) struct Connector(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tcp: HttpConnector,
    way: Way,
    tls: Tls,
    timeout: Option<Duration>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}")]
    Refused(String),
    #[error("the proxy does not let us through: {0}")]
    Proxy(String),
    #[error("no secure connection: {0}")]
    Tls(String),
    #[error("no connection within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl Connector {
    pub(crate) fn new(way: Way, tls: Tls, timeout: Option<Duration>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        Self(Arc::new(Shared { tcp, way, tls, timeout }))
    }
}

impl Shared {
    async fn connect(&self, server: Uri) -> Result<Stream, ConnectError> {
        let connecting = self.connect_in_any_time(server);
        match self.timeout {
            Some(limit) => timeout(limit, connecting).await.unwrap_or(Err(ConnectError::TimedOut(limit))),
            None => connecting.await,
        }
    }

    async fn connect_in_any_time(&self, server: Uri) -> Result<Stream, ConnectError> {
        let mut tcp = self.tcp.clone();
        let is_forwarded = matches!(self.way, Way::Forward(..));
        let io = match &self.way {
            Way::Direct => {
                tcp.call(server.clone()).await.map_err(|error| ConnectError::Refused(chain(&error)))?
            }
            Way::Forward(proxy, _) => {
                tcp.call(proxy.clone()).await.map_err(|error| ConnectError::Proxy(chain(&error)))?
            }
            Way::Tunnel(proxy, auth) => {
                let mut tunnel = Tunnel::new(proxy.clone(), tcp);
                if let Some(auth) = auth {
                    tunnel = tunnel.with_auth(auth.clone());
                }
                tunnel.call(server.clone()).await.map_err(|error| ConnectError::Proxy(chain(&error)))?
            }
            Way::Socks(proxy, auth) => {
                let mut socks = SocksV5::new(proxy.clone(), tcp);
                if let Some((user, password)) = auth {
                    socks = socks.with_auth(user.clone(), password.clone());
                }
                socks.call(server.clone()).await.map_err(|error| ConnectError::Proxy(error.to_string()))?
            }
        };
        if server.scheme_str() != Some("https") {
            return Ok(Stream { io: Box::new(io), is_forwarded, is_h2: false });
        }
        let host = server.host().unwrap_or_default();
        let tls = self.tls.connect(io.into_inner(), host).await.map_err(ConnectError::Tls)?;
        let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Stream { io: Box::new(TokioIo::new(tls)), is_forwarded, is_h2 })
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move { shared.connect(server).await })
    }
}

trait Io: Read + Write + Send {}

impl Io for TokioIo<TcpStream> {}
impl Io for TokioIo<tokio_rustls::client::TlsStream<TcpStream>> {}

/// A connection, secure or not.
pub(crate) struct Stream {
    io: Box<dyn Io + Unpin>,
    /// It goes to a proxy that is handed whole requests.
    is_forwarded: bool,
    is_h2: bool,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_forwarded);
        if self.is_h2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
