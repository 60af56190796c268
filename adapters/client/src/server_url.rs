//! Addresses of servers.

use core::fmt;
use std::sync::Arc;

use reqwest::Url;

use crate::ConfigError;

/// The address of a dlock server: `http://host:port` or `https://host:port`, and nothing else.
///
/// No user and password, path, query, fragment or escapes: what is asked of a server is decided
/// here and not by its address. A host outside ASCII is written in its `xn--` form.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    url: Url,
    shown: Arc<str>,
}

impl ServerUrl {
    /// The longest address, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Reads an address.
    ///
    /// # Errors
    /// [`ConfigError::Server`], which does not repeat the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        if text.len() > Self::MAX_BYTES {
            return Err(ConfigError::Server("must be at most 512 bytes"));
        }
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"))
            .ok_or(ConfigError::Server("must begin with http:// or https://"))?;
        let place = rest.strip_suffix('/').unwrap_or(rest);
        // Checked before it is parsed: URL parsers forgive a lot, backslashes and blanks included.
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
        if place.is_empty() || !place.bytes().all(plain) {
            return Err(ConfigError::Server("must be a host and perhaps a port, and nothing else"));
        }
        let url = Url::parse(text).map_err(|_| ConfigError::Server("is no URL"))?;
        if url.port() == Some(0) {
            return Err(ConfigError::Server("must not have port 0"));
        }
        let shown = url.as_str().trim_end_matches('/').into();
        Ok(Self { url, shown })
    }

    /// The address without a trailing slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// Whether it is asked over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Where to ask for a path of ours, with a query that is encoded already.
    pub(crate) fn endpoint(&self, path: &'static str, query: Option<&str>) -> Url {
        let mut url = self.url.clone();
        url.set_path(path);
        url.set_query(query);
        url
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({})", self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_a_host_and_a_port() {
        for (good, shown) in [
            ("http://127.0.0.1:7420", "http://127.0.0.1:7420"),
            ("http://127.0.0.1:7420/", "http://127.0.0.1:7420"),
            ("http://localhost", "http://localhost"),
            ("https://locks.example:443", "https://locks.example"),
            ("http://[::1]:7420", "http://[::1]:7420"),
            ("https://Locks.Example", "https://locks.example"),
        ] {
            let url = ServerUrl::parse(good).unwrap();
            assert_eq!(url.as_str(), shown);
            assert_eq!(url.is_tls(), good.starts_with("https"));
            let asked = url.endpoint("/v1/locks", Some("prefix=%2F..%2F"));
            assert_eq!(asked.as_str(), format!("{shown}/v1/locks?prefix=%2F..%2F"));
        }
    }

    #[test]
    fn everything_else_is_refused_and_not_repeated() {
        for bad in [
            "",
            "localhost:7420",
            "ftp://host",
            "HTTP://host",
            "http:/host",
            "http:///host",
            "http://",
            "http:///",
            "http://user:topsecret@host",
            "http://@host",
            "http://host/v1",
            "http://host/..",
            "http://host//",
            "http://host?x=1",
            "http://host#x",
            "http://host%2Fevil",
            "http:\\\\host",
            "http://host\\evil",
            "http://host name",
            " http://host",
            "http://host\n",
            "http://h\u{f6}st",
            "http://host:0",
            "http://host:65536",
            "http://host:port",
            "http://[::1",
            "http://::1",
            &format!("http://{}", "h".repeat(600)),
        ] {
            let error = ServerUrl::parse(bad).unwrap_err();
            assert!(!error.to_string().contains("topsecret"), "{bad}");
        }
    }
}
