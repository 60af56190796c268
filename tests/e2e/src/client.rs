//! A blocking JSON client that keeps apart what a lock's user must keep apart: an answer, a call
//! that certainly never arrived, and a call of unknown outcome (INV-07).

#![expect(clippy::panic, reason = "only tests call it")]

use std::{fmt, io, net::SocketAddr, time::Duration};

use serde_json::Value;
use ureq::{Agent, AsSendBody, Error, http::Request};

/// Talks to one server. Cheap to make; a clone shares its connections.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    base: String,
}

/// What a server answered, whatever its status.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body: JSON; a string, where it is not JSON; `null`, where there is none.
    pub body: Value,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The connection was refused: the call certainly had no effect.
    Refused,
    /// Anything else, time-outs and broken connections: the call may have had its effect, or may
    /// have it yet.
    Unknown(String),
}

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the connection was refused"),
            Self::Unknown(why) => write!(f, "no answer: {why}"),
        }
    }
}

impl std::error::Error for NoReply {}

impl Client {
    /// A client with a connection for each call, so that no call meets a connection that died
    /// before it. It waits two minutes for an answer.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self::build(address, 0, Duration::from_secs(120))
    }

    /// A client that keeps one connection, as busy programs do. A call without an answer ends
    /// after `patience`, its outcome unknown.
    #[must_use]
    pub fn pooled(address: SocketAddr, patience: Duration) -> Self {
        Self::build(address, 1, patience)
    }

    fn build(address: SocketAddr, idle_connections: usize, patience: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .max_idle_connections(idle_connections)
            .max_idle_connections_per_host(idle_connections)
            // Shorter than the server's own patience with an idle connection.
            .max_idle_age(Duration::from_secs(5))
            .timeout_global(Some(patience));
        Self { agent: config.build().new_agent(), base: format!("http://{address}") }
    }

    /// `POST` of a JSON value.
    ///
    /// # Errors
    /// [`NoReply`]; no status is an error.
    pub fn post(&self, path: &str, body: &Value) -> Result<Reply, NoReply> {
        self.post_bytes(path, body.to_string().as_bytes())
    }

    /// `POST` of bytes that claim to be JSON.
    ///
    /// # Errors
    /// [`NoReply`]; no status is an error.
    pub fn post_bytes(&self, path: &str, body: &[u8]) -> Result<Reply, NoReply> {
        let request = Request::post(self.url(path)).header("content-type", "application/json");
        self.run(request.body(body))
    }

    /// `GET` of a path with its query, both already encoded.
    ///
    /// # Errors
    /// [`NoReply`]; no status is an error.
    pub fn get(&self, path_and_query: &str) -> Result<Reply, NoReply> {
        self.run(Request::get(self.url(path_and_query)).body(()))
    }

    fn url(&self, path_and_query: &str) -> String {
        format!("{}{path_and_query}", self.base)
    }

    fn run(
        &self,
        request: Result<Request<impl AsSendBody>, ureq::http::Error>,
    ) -> Result<Reply, NoReply> {
        let request = request.unwrap_or_else(|error| panic!("the test's own request: {error}"));
        let answered = self.agent.run(request).and_then(|mut response| {
            Ok((response.status().as_u16(), response.body_mut().read_to_string()?))
        });
        match answered {
            Ok((status, text)) => Ok(Reply { status, body: json(text) }),
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Err(NoReply::Refused)
            }
            Err(error) => Err(NoReply::Unknown(error.to_string())),
        }
    }

    /// [`post`](Self::post) that must be answered with this status; the body.
    ///
    /// # Panics
    /// When there is no answer, or another one.
    #[track_caller]
    pub fn call(&self, path: &str, body: &Value, status: u16) -> Value {
        match self.post(path, body) {
            Ok(reply) => reply.expect(status),
            Err(error) => panic!("{path} {body}: {error}"),
        }
    }

    /// Looks at a lock of the default namespace: what holds it, `None` if nothing does.
    ///
    /// # Panics
    /// When there is no answer, or one that says neither.
    #[track_caller]
    #[must_use]
    pub fn inspect(&self, name: &str) -> Option<Value> {
        match self.get(&format!("/v1/locks/inspect?name={}", encode(name))) {
            Ok(Reply { status: 404, body }) if is_problem(&body, "not-held") => None,
            Ok(reply) => Some(reply.expect(200)),
            Err(error) => panic!("inspect {name:?}: {error}"),
        }
    }

    /// How many calls wait for a lock, by what its server says; 0 where nobody holds it.
    ///
    /// # Panics
    /// As [`inspect`](Self::inspect).
    #[track_caller]
    #[must_use]
    pub fn waiters(&self, name: &str) -> u64 {
        self.inspect(name).and_then(|info| info["waiter_count"].as_u64()).unwrap_or(0)
    }
}

impl Reply {
    /// The body of an answer that must have this status.
    ///
    /// # Panics
    /// When it has another; shows the body.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

/// Whether a body is the problem document of this kind (C2).
#[must_use]
pub fn is_problem(body: &Value, kind: &str) -> bool {
    body["type"] == format!("urn:dlock:problem:{kind}")
}

/// Percent-encodes text for a query: everything but letters, digits, `-`, `.`, `_` and `~`.
#[must_use]
pub fn encode(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// JSON where it is JSON.
pub(crate) fn json(text: String) -> Value {
    match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(_) if text.is_empty() => Value::Null,
        Err(_) => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_listening_is_a_definite_failure() {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
        // Bound and not listening: connections are refused, and nobody else gets the port.
        let deaf = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&deaf, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = SocketAddr::try_from(getsockname(&deaf).unwrap()).unwrap();
        assert_eq!(Client::new(address).get("/livez"), Err(NoReply::Refused));
    }

    #[test]
    fn silence_and_hanging_up_are_unknown() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let client = Client::pooled(address, Duration::from_millis(50));
        assert!(matches!(client.get("/livez"), Err(NoReply::Unknown(_))));
        let client = Client::new(address);
        let cut = std::thread::spawn(move || {
            // The first is the silent call's, long given up.
            drop((silent.accept().unwrap(), silent.accept().unwrap()));
        });
        assert!(matches!(client.get("/livez"), Err(NoReply::Unknown(_))));
        cut.join().unwrap();
    }

    #[test]
    fn every_byte_survives_a_query() {
        assert_eq!(encode("a-Z_9.~"), "a-Z_9.~");
        assert_eq!(encode("a b+/%é"), "a%20b%2B%2F%25%C3%A9");
    }
}
