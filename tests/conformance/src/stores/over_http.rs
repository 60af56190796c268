//! Any store here, served over HTTP: users talk to a client, which talks to a server on a loopback
//! port of the case's own process.
//!
//! Client, routes, service and store are on one clock, so a case advances time for all of them at
//! once. What counts real time is the network alone (connecting, a call's time-out, an idle
//! connection), and it is given more of it than any case takes.
//!
//! The client never tries a call twice: cases expect what the service says, not what comes of
//! asking again. Whoever repeats is a case's second desk, a client
//! [beside](RemoteLocks::beside) the first, since a lock's own session is known to the client that
//! opened it and to no one else.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use async_trait::async_trait;
use dlock::{Service, ServiceConfig};
use dlock_client::{RemoteConfig, RemoteLocks, RetryBudget, ServerUrl};
use dlock_domain::Ttl;
use dlock_http::{HttpConfig, ReadinessProbe};
use dlock_ports::{Backend, Clock, Entropy};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    Expected, Harness, Limits, Served, ServiceHarness, VirtualTime, kit::millis, swallow::Method,
};

/// Real time that the network may take: more than any case does.
const PATIENCE: Duration = Duration::from_secs(110);

/// The harness's store, behind a wire.
pub struct OverHttp<H> {
    store: H,
    /// What was served so far: the first client, and every server.
    served: Mutex<Running>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Running {
    first: Option<RemoteLocks>,
    servers: Vec<JoinHandle<()>>,
}

struct Probe(Arc<Service>);

#[async_trait]
impl ReadinessProbe for Probe {
    async fn check(&self) -> dlock_domain::Result<()> {
        self.0.probe().await
    }
}

impl<H: Harness> OverHttp<H> {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server of this service, and where it is.
    async fn listen(&self, service: &Arc<Service>) -> (ServerUrl, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let url = ServerUrl::parse(&format!("http://{address}")).expect("an address of a server");
        let config = HttpConfig {
            header_read_timeout: PATIENCE,
            body_read_timeout: PATIENCE,
            write_timeout: PATIENCE,
            ..HttpConfig::new(Arc::new(Probe(Arc::clone(service))), self.entropy())
        };
        let router = dlock_http::router(Arc::clone(service) as _, self.clock(), config.clone());
        // At the end of a case nobody is waited for: a poll may be open for an hour.
        let serve = dlock_http::serve(listener, router, config, self.stop.clone(), Duration::ZERO);
        (url, tokio::spawn(serve))
    }

    /// A client of this server; all but the first are beside it.
    fn client(&self, server: ServerUrl) -> RemoteLocks {
        let config = RemoteConfig {
            connect_timeout: PATIENCE,
            call_timeout: PATIENCE,
            retry: RetryBudget { max_tries: 1, ..RetryBudget::default() },
            ..RemoteConfig::new(vec![server])
        };
        let mut running = self.running();
        let client = match &running.first {
            Some(first) => first.beside(config),
            None => RemoteLocks::new(config, self.clock(), self.entropy()),
        };
        let client = client.expect("a client");
        running.first.get_or_insert_with(|| client.clone());
        client
    }
}

/// A client cannot be made before the process has a TLS provider, whatever the addresses are.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.install_default().expect("nobody else installs one");
    });
}

#[async_trait]
impl<H: ServiceHarness> ServiceHarness for OverHttp<H> {
    async fn serve(&self, backend: Backend, config: ServiceConfig) -> Served {
        let service = Service::new(backend, self.clock(), self.entropy(), config);
        let (url, server) = self.listen(&service).await;
        self.running().servers.push(server);
        let client = self.client(url);
        Served { front: Arc::new(client.clone()), service, client: Some(client) }
    }

    fn shows_sessions(&self) -> bool {
        false
    }

    fn knows_whom_nobody_repeats(&self) -> bool {
        false
    }

    fn settles_by(&self) -> Method {
        Method::Close
    }

    fn lingers(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn spent_budget(&self) -> Duration {
        // The client cuts waits into polls of 30 s, and what a case lets run out must do so within
        // one of them: the service decides about the whole of a call and knows nothing of the next.
        self.store.spent_budget().min(Duration::from_secs(20))
    }
}

#[async_trait]
impl<H: Harness> Harness for OverHttp<H> {
    async fn start() -> Self {
        install_tls();
        Self { store: H::start().await, served: Mutex::default(), stop: CancellationToken::new() }
    }

    async fn finish(self) {
        self.stop.cancel();
        let servers = core::mem::take(&mut self.running().servers);
        for server in servers {
            server.await.expect("no server panics");
        }
        self.store.finish().await;
    }

    fn expected(&self) -> Expected {
        self.store.expected()
    }

    fn backend(&self) -> Backend {
        self.store.backend()
    }

    fn backend_b(&self) -> Backend {
        self.store.backend_b()
    }

    async fn limited(&self, limits: Limits) -> Backend {
        self.store.limited(limits).await
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.store.clock()
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        self.store.entropy()
    }

    async fn pass(&self, time: Duration) {
        self.store.pass(time).await;
    }

    fn expiry_slack(&self) -> Duration {
        self.store.expiry_slack()
    }

    fn short_ttl(&self) -> Ttl {
        // The client gives a renewal a third of this, in real time, before it calls a server slow.
        millis(8_000)
    }

    fn budget(&self) -> Duration {
        self.store.budget()
    }
}

impl<H: VirtualTime> VirtualTime for OverHttp<H> {}
