//! What the application sets.

use core::{fmt, time::Duration};
use std::sync::Arc;

use dlock_domain::Namespace;
use dlock_ports::Entropy;
use tokio_util::sync::CancellationToken;

use crate::ReadinessProbe;

/// Which `Host` a request may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPolicy {
    /// `localhost`, `127.0.0.0/8` and `[::1]` with any port: for a server that listens on loopback,
    /// where a web page could otherwise reach it under a name of its own (DNS rebinding).
    Loopback,
    /// Any, as long as there is exactly one.
    Any,
}

/// Writes all metrics in Prometheus' text format, version 0.0.4, without waiting for anything.
pub type Metrics = Arc<dyn Fn() -> String + Send + Sync>;

/// The settings of the HTTP server (C3, C5).
#[derive(Clone)]
pub struct HttpConfig {
    /// The namespace of a call that names none (`lock.namespace`).
    pub namespace: Namespace,
    /// Which `Host` a request may name.
    pub host_policy: HostPolicy,
    /// The largest body, in bytes (`http.max_body`).
    pub max_body: usize,
    /// How many connections are served at a time; further ones wait to be accepted. Three quarters
    /// of them may be long polls, so that renewals always find one (trap 45).
    pub max_connections: usize,
    /// How long a request's head may take, and how long a connection may be idle between two.
    pub header_read_timeout: Duration,
    /// How long a request's body may take.
    pub body_read_timeout: Duration,
    /// How long a client may refuse to take any part of an answer.
    pub write_timeout: Duration,
    /// How long the readiness probe may take.
    pub ready_timeout: Duration,
    /// The readiness probe.
    pub ready: Arc<dyn ReadinessProbe>,
    /// Once cancelled, `/readyz` says no: this server is about to stop.
    pub draining: CancellationToken,
    /// Where request ids come from.
    pub entropy: Arc<dyn Entropy>,
    /// The store's name as the page at `/` shows it: the backend's `backend_id`.
    pub backend: &'static str,
    /// What `/metrics` answers; without it there is none (404).
    pub metrics: Option<Metrics>,
}

impl HttpConfig {
    /// The defaults, with what has none.
    #[must_use]
    pub fn new(ready: Arc<dyn ReadinessProbe>, entropy: Arc<dyn Entropy>) -> Self {
        Self {
            namespace: Namespace::default(),
            host_policy: HostPolicy::Loopback,
            max_body: 64 * 1024,
            max_connections: 16_384,
            header_read_timeout: Duration::from_secs(10),
            body_read_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            ready_timeout: Duration::from_secs(2),
            ready,
            draining: CancellationToken::new(),
            entropy,
            backend: "unknown",
            metrics: None,
        }
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConfig")
            .field("namespace", &self.namespace)
            .field("host_policy", &self.host_policy)
            .field("max_body", &self.max_body)
            .field("max_connections", &self.max_connections)
            .field("header_read_timeout", &self.header_read_timeout)
            .field("body_read_timeout", &self.body_read_timeout)
            .field("write_timeout", &self.write_timeout)
            .field("ready_timeout", &self.ready_timeout)
            .field("draining", &self.draining.is_cancelled())
            .field("backend", &self.backend)
            .field("metrics", &self.metrics.is_some())
            .finish_non_exhaustive()
    }
}
