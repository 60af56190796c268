//! What the client can be told.

use core::time::Duration;

use dlock_domain::Backoff;

use crate::ServerUrl;

/// The settings of a [`RemoteLocks`](crate::RemoteLocks).
///
/// Times of the network (connecting, a call's time-out) run on the runtime's timer; everything
/// about leases, waits and pauses runs on the clock that is handed in.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// The servers, in the order in which they are tried. All of them serve the same store.
    pub servers: Vec<ServerUrl>,
    /// How long connecting may take. What fails before a connection stands was never sent.
    pub connect_timeout: Duration,
    /// How long one try of a call may take, connecting included; a long poll may take its wait
    /// besides. Renewals and keep-alives of sessions with a short lifetime get a third of that
    /// lifetime if it is less, so that a server which hangs leaves time for the next one.
    pub call_timeout: Duration,
    /// How often a call is tried.
    pub retry: RetryBudget,
    /// How repeats are spaced, once every server has been tried.
    pub backoff: Backoff,
    /// What requests name as their sender.
    pub user_agent: String,
    /// How many acquires may wait at once; each has a connection of its own (INV-10).
    pub max_waiting: usize,
}

/// How often a call is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// How many tries a call has. 1 means that nothing is ever repeated; otherwise every server is
    /// tried at least once. An acquire that waits is bounded by `total` and its wait alone.
    pub max_tries: u32,
    /// No try starts later than this after the first; for an acquire that waits, after the first
    /// failure in a row.
    pub total: Duration,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self { max_tries: 4, total: Duration::from_secs(15) }
    }
}

impl RemoteConfig {
    /// The defaults, for these servers.
    #[must_use]
    pub fn new(servers: Vec<ServerUrl>) -> Self {
        Self {
            servers,
            connect_timeout: Duration::from_secs(2),
            call_timeout: Duration::from_secs(6),
            retry: RetryBudget::default(),
            backoff: Backoff::default(),
            user_agent: concat!("dlock/", env!("CARGO_PKG_VERSION")).to_owned(),
            max_waiting: 4_096,
        }
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is nobody to ask.
    #[error("no server is given")]
    NoServer,
    /// An address is wrong; it is not repeated, since it may hold a password.
    #[error("the address of a server {0}")]
    Server(&'static str),
    /// A time-out of zero would fail every call.
    #[error("time-outs must not be zero")]
    ZeroTimeout,
    /// At least one try is needed.
    #[error("max_tries must be at least 1")]
    NoTries,
    /// The client needs a tokio runtime, for what outlives its callers.
    #[error("there is no tokio runtime here")]
    NoRuntime,
    /// The binary has installed no TLS provider, and libraries never do.
    #[error("no TLS provider is installed in this process")]
    NoTlsProvider,
    /// The HTTP library refused the settings.
    #[error("the HTTP client cannot be built")]
    Http(#[source] reqwest::Error),
}
