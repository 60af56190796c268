//! Whom a request believes to talk to.
//!
//! A web page can have its own name resolve to 127.0.0.1 and then talk to a server on loopback as
//! if it were its own; the `Host` header gives it away.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::{
    extract::{Request, State},
    http::{Version, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{HostPolicy, app::App, problem::Problem};

/// Refuses requests that name no host, several, or one that the policy does not allow (C3).
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    match judge(app.config().host_policy, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.of(request.method()).into_response(),
    }
}

fn judge(policy: HostPolicy, request: &Request) -> Result<(), Problem> {
    let mut given = request.headers().get_all(header::HOST).iter();
    let host = match (given.next(), given.next()) {
        (Some(only), None) => Some(only),
        (None, _) if request.version() < Version::HTTP_11 => None,
        (None, _) => return Err(Problem::malformed_host("the Host header is missing")),
        (Some(_), Some(_)) => {
            return Err(Problem::malformed_host("there are several Host headers"));
        }
    };
    if policy == HostPolicy::Any {
        return Ok(());
    }
    // A request line with an authority overrides the header, so both have to be right. A client
    // of HTTP/1.0 without a Host is no browser: nobody rebound its name.
    let header = host.is_none_or(|value| value.to_str().is_ok_and(is_loopback));
    let authority = request.uri().authority().is_none_or(|value| is_loopback(value.as_str()));
    if header && authority { Ok(()) } else { Err(Problem::misdirected()) }
}

fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => {
                return address.parse() == Ok(Ipv6Addr::LOCALHOST) && is_port_suffix(port);
            }
            None => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let named = name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    named && is_port_suffix(port)
}

/// Nothing, or a colon and digits.
fn is_port_suffix(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_loopback() {
        for good in [
            "localhost",
            "LocalHost:7420",
            "127.0.0.1",
            "127.0.0.1:",
            "127.9.8.7:1",
            "[::1]",
            "[::1]:7420",
            "[0:0:0:0:0:0:0:1]:1",
        ] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            ":7420",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:x",
            "localhost:1:2",
            "user@localhost",
            "::1",
            "[::1",
            "[::1]x",
            "[::2]",
            "0.0.0.0",
            "10.0.0.1:7420",
            "127.1",
            "localhost ",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }
}
