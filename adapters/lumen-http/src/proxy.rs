//! Which proxy stands between us and the server, if any.

use hyper::Uri;
use hyper::http::HeaderValue;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use crate::{Error, ServerUrl};

/// Says which proxy a server is reached by.
#[derive(Debug)]
pub struct Proxy(Matcher);

/// The way to one server.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    Direct,
    /// An HTTP proxy that is handed whole requests, and what it asks to know who we are.
    Forward(Uri, Option<HeaderValue>),
    /// An HTTP proxy that connects us through, the same.
    Tunnel(Uri, Option<HeaderValue>),
    /// A SOCKS 5 proxy, with a name and a password for it.
    Socks(Uri, Option<(String, String)>),
}

impl Proxy {
    /// Takes what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, also in small letters.
    pub fn from_env() -> Self {
        Self(Matcher::from_env())
    }

    /// Takes one proxy for all, except for what `NO_PROXY` names.
    ///
    /// # Errors
    /// It is no `http://` or `socks5://` URL.
    pub fn parse(url: &str) -> Result<Self, Error> {
        if !["http://", "socks5://", "socks5h://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(Error::Proxy("it does not begin with http:// or socks5://"));
        }
        let server = Uri::from_static("http://server/");
        let matcher = Matcher::builder().all(url).build();
        way(matcher.intercept(&server).ok_or(Error::Proxy("it is no URL"))?, false)?;
        let except = ["NO_PROXY", "no_proxy"].iter().find_map(|name| std::env::var(name).ok());
        Ok(Self(Matcher::builder().all(url).no(except.unwrap_or_default()).build()))
    }

    /// # Errors
    /// The proxy for this server is of a kind that is not spoken.
    pub(crate) fn way(&self, url: &ServerUrl) -> Result<Way, Error> {
        match self.0.intercept(url.uri()) {
            Some(proxy) => way(proxy, url.is_https()),
            None => Ok(Way::Direct),
        }
    }
}

fn way(proxy: Intercept, is_https: bool) -> Result<Way, Error> {
    let uri = proxy.uri().clone();
    let auth = proxy.basic_auth().cloned();
    match uri.scheme_str() {
        Some("http") if is_https => Ok(Way::Tunnel(uri, auth)),
        Some("http") => Ok(Way::Forward(uri, auth)),
        Some("socks5" | "socks5h") => {
            let auth = proxy.raw_auth().map(|(user, password)| (user.to_owned(), password.to_owned()));
            Ok(Way::Socks(uri, auth))
        }
        _ => Err(Error::Proxy("only http:// and socks5:// proxies are spoken to")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_taken_apart_and_no_secret_is_quoted() {
        let http = ServerUrl::parse("http://server/mcp", None).unwrap();
        let https = ServerUrl::parse("https://server/mcp", None).unwrap();
        let proxy = Proxy::parse("http://user:s3cret@proxy:3128").unwrap();
        assert!(
            matches!(proxy.way(&http).unwrap(), Way::Forward(uri, Some(_)) if uri == "http://proxy:3128/")
        );
        assert!(
            matches!(proxy.way(&https).unwrap(), Way::Tunnel(uri, Some(_)) if uri == "http://proxy:3128/")
        );
        let proxy = Proxy::parse("socks5://proxy:1080").unwrap();
        assert!(matches!(proxy.way(&https).unwrap(), Way::Socks(_, None)));
        assert!(!format!("{proxy:?}").contains("s3cret"));
        for text in ["", "https://user:s3cret@proxy", "socks4://proxy", "ftp://s3cret", "http://"] {
            let error = Proxy::parse(text).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
