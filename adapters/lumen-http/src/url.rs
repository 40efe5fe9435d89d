//! Where the server is, and which redirects stay there.

use std::fmt;
use std::net::IpAddr;

use hyper::Uri;
use hyper::http::uri::{PathAndQuery, Scheme};

use crate::Error;

/// The path that a bare origin stands for.
const DEFAULT_PATH: &str = "/mcp";

/// The URL of a server. Its `Display` has neither query nor credentials, so it may be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    uri: Uri,
}

impl ServerUrl {
    /// Parses a URL. One without a path means `/mcp` there; with `site` it is `/mcp/SITE` of the same origin, whatever
    /// its own path.
    ///
    /// # Errors
    /// It is no absolute `http` or `https` URL, or holds a user or a password.
    pub fn parse(text: &str, site: Option<&str>) -> Result<Self, Error> {
        let text = text.trim();
        // Nothing of the text is quoted: it may hold a secret.
        let uri: Uri = text.parse().map_err(|_| Error::Url("it is no URL"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(Error::Url("it must begin with http:// or https://"));
        };
        if *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS {
            return Err(Error::Url("only http:// and https:// can be reached"));
        }
        if authority.as_str().contains('@') {
            return Err(Error::Url("it must not hold a user or a password; use --key or --header"));
        }
        let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        let is_port = |port: &str| port.strip_prefix(':').is_some_and(|digits| digits.parse::<u16>().is_ok());
        if authority.host().is_empty() || !(port.is_empty() || is_port(port)) {
            return Err(Error::Url("its host or port is none"));
        }
        // A parsed URI has the path "/" also where the text has none.
        let rest = text.get(scheme.as_str().len() + 3 + authority.as_str().len()..).unwrap_or_default();
        let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
        let path = match site {
            Some("") => return Err(Error::Url("the site has no name")),
            Some(site) => format!("{DEFAULT_PATH}/{}{query}", segment(site)),
            None if rest.starts_with('/') => return Ok(Self { uri }),
            None => format!("{DEFAULT_PATH}{query}"),
        };
        let mut parts = uri.into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| Error::Url("its path is no path"))?);
        Uri::from_parts(parts).map(|uri| Self { uri }).map_err(|_| Error::Url("it is no URL"))
    }

    /// Returns scheme, host and port, as in `https://host:8443`.
    pub fn origin(&self) -> String {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", self.scheme())
    }

    /// Returns whether what is sent there can be read on the way, by others than this machine.
    pub fn is_in_the_clear(&self) -> bool {
        let host = self.uri.host().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        self.uri.scheme() == Some(&Scheme::HTTP) && !is_local
    }

    pub(crate) fn is_https(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }

    pub(crate) const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Resolves the target of a redirect; `None` if it is no URL.
    pub(crate) fn resolve(&self, location: &str) -> Option<Self> {
        let path = self.uri.path();
        let text = if location.contains("://") && !location.starts_with('/') {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{}:{location}", self.scheme())
        } else if location.starts_with('/') {
            format!("{}{location}", self.origin())
        } else if location.starts_with('?') {
            format!("{}{path}{location}", self.origin())
        } else {
            let folder = path.rfind('/').and_then(|end| path.get(..=end)).unwrap_or("/");
            format!("{}{folder}{location}", self.origin())
        };
        let mut parts = text.parse::<Uri>().ok()?.into_parts();
        parts.scheme.as_ref()?;
        parts.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
        Uri::from_parts(parts).ok().map(|uri| Self { uri })
    }

    /// Returns whether scheme, host and port are the same, and nobody is named on the way.
    pub(crate) fn is_same_origin(&self, other: &Self) -> bool {
        let host = |url: &Self| url.uri.host().map(str::to_ascii_lowercase);
        let is_plain =
            |url: &Self| url.uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        self.uri.scheme() == other.uri.scheme()
            && host(self) == host(other)
            && self.port() == other.port()
            && is_plain(other)
    }

    fn scheme(&self) -> &str {
        self.uri.scheme_str().unwrap_or_default()
    }

    fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 })
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let authority = authority.rsplit('@').next().unwrap_or_default();
        write!(f, "{}://{authority}{}", self.scheme(), self.uri.path())
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Encodes all but what may stand in a segment of a path as it is.
fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ServerUrl {
        ServerUrl::parse(text, None).unwrap()
    }

    #[test]
    fn a_bare_origin_means_mcp_and_any_path_is_used_as_it_is() {
        for (text, site, wanted) in [
            ("https://host", None, "https://host/mcp"),
            ("http://host:3000", None, "http://host:3000/mcp"),
            ("https://host?a=b", None, "https://host/mcp?a=b"),
            ("https://host/", None, "https://host/"),
            ("https://host/x/mcp/?a=b", None, "https://host/x/mcp/?a=b"),
            ("https://host", Some("s"), "https://host/mcp/s"),
            ("https://host/mcp", Some("s"), "https://host/mcp/s"),
            ("https://host", Some("a b/../é"), "https://host/mcp/a%20b%2F..%2F%C3%A9"),
            (" http://[::1]:80/mcp\n", None, "http://[::1]:80/mcp"),
        ] {
            assert_eq!(ServerUrl::parse(text, site).unwrap().uri, wanted, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_reached_is_refused_and_never_quoted() {
        for text in [
            "",
            "host",
            "host:80",
            "/mcp",
            "ftp://s3cret",
            "ws://s3cret",
            "http://",
            "http:///mcp",
            "https://u:s3cret@host",
            "https://s3cret@host/",
            "http://ho st",
            "http://host:99999",
            "http://host:/mcp",
            "http://h:s3cret",
            "stdio",
        ] {
            let error = ServerUrl::parse(text, None).expect_err(text).to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        assert!(ServerUrl::parse("http://host", Some("")).is_err());
    }

    #[test]
    fn only_the_same_scheme_host_and_port_are_the_same_origin() {
        let from = url("https://host/a/mcp?x=1");
        for (location, target, is_same) in [
            ("/b", "https://host/b", true),
            ("b", "https://host/a/b", true),
            ("?y=2", "https://host/a/mcp?y=2", true),
            ("https://HOST:443/b", "https://HOST:443/b", true),
            ("//host/b", "https://host/b", true),
            ("/b?to=http://x", "https://host/b?to=http://x", true),
            ("http://host/b", "http://host/b", false),
            ("https://host:444/b", "https://host:444/b", false),
            ("https://host.evil/b", "https://host.evil/b", false),
            ("//evil/b", "https://evil/b", false),
            ("https://host@evil/b", "https://host@evil/b", false),
            ("https://u:p@host/b", "https://u:p@host/b", false),
        ] {
            let found = from.resolve(location).unwrap();
            assert_eq!(found.uri, target, "{location}");
            assert_eq!(from.is_same_origin(&found), is_same, "{location}");
        }
        assert_eq!(from.resolve("http://["), None);
        assert_eq!(from.resolve("http://u:p@evil/b?key=k").unwrap().to_string(), "http://evil/b");
    }

    #[test]
    fn what_is_shown_has_no_query_and_local_hosts_need_no_tls() {
        assert_eq!(url("https://host/mcp?key=s3cret").to_string(), "https://host/mcp");
        assert_eq!(url("https://host:1/mcp").origin(), "https://host:1");
        for text in ["http://host", "http://127.evil.example", "http://10.0.0.1"] {
            assert!(url(text).is_in_the_clear(), "{text}");
        }
        for text in ["https://host", "http://localhost:3000", "http://127.0.0.1", "http://[::1]:1"] {
            assert!(!url(text).is_in_the_clear(), "{text}");
        }
    }
}
