//! `dlock serve`.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dlock_http::{HostPolicy, HttpConfig, ReadinessProbe};
use dlock_ports::{Backend, LockService};
use rustix::net::sockopt::set_socket_keepalive;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::args::Serve;
use super::{loaded, logs, place, say, stores};
use crate::config::{BackendName, Effective};
use crate::run::{exit, shown};
use crate::telemetry::Metered;
use crate::wiring;
use crate::{OsEntropy, Service, SystemClock};

/// How long what is under way may take once every connection has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many connections may wait to be accepted; the system may allow fewer (`somaxconn`). Beyond it
/// the first packet of a connection is dropped and comes again a second later, which a renewal in a
/// crowd cannot afford; the usual 128 are a burst of clients that starts at once.
const BACKLOG: u32 = 4_096;

pub(crate) fn main(options: Serve) -> u8 {
    let loaded = loaded::load(
        &options.file,
        &[
            ("http.listen", "--listen", &options.listen),
            ("lock.backend", "--backend", &options.backend),
            ("embedded.path", "--data-dir", &options.data_dir),
            ("etcd.endpoints", "--etcd-endpoints", &options.etcd_endpoints),
            ("postgres.url", "--postgres-url", &options.postgres_url),
            ("lock.namespace", "--namespace", &options.namespace),
            ("http.drain", "--drain", &options.drain),
        ],
    );
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    logs::start(&loaded, None);
    let listen = loaded.effective.listen;
    if !listen.ip().is_loopback() && !options.insecure {
        say(format_args!(
            "{listen} can be reached from other machines, and there are no access rules yet: \
             listen on 127.0.0.1, or say --insecure"
        ));
        return exit::USAGE;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(format_args!("cannot start: {error}"));
            return exit::UNREACHABLE;
        }
    };
    let code = runtime.block_on(async {
        match serve(&loaded.effective).await {
            Ok(()) => 0,
            Err((code, message)) => {
                say(format_args!("{message}"));
                code
            }
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    code
}

async fn serve(effective: &Effective) -> Result<(), (u8, String)> {
    let unreachable = |message: String| (exit::UNREACHABLE, message);
    // Listened for before anything is served, so that no signal finds the default.
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| unreachable(e.to_string()))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| unreachable(e.to_string()))?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(|e| unreachable(e.to_string()))?;
    let mut quit = signal(SignalKind::quit()).map_err(|e| unreachable(e.to_string()))?;

    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let (backend, lives) = match effective.backend {
        BackendName::Memory => (
            wiring::memory(clock.clone(), entropy.clone()),
            "in memory, gone with this process".into(),
        ),
        BackendName::Embedded => {
            let surroundings = place::Surroundings::of_this_process();
            let directory = surroundings
                .data_dir(effective.embedded_path.as_deref())
                .map_err(|m| (exit::USAGE, m))?;
            let backend = open(effective, &directory, &clock, &entropy).map_err(unreachable)?;
            (backend, directory.display().to_string())
        }
        BackendName::Etcd => {
            let place = &effective.etcd;
            let backend = wiring::etcd(place, clock.clone(), entropy.clone()).await?;
            (backend, format!("in etcd at {}, below {}", place.endpoints.join(", "), place.prefix))
        }
        BackendName::Postgres => {
            let (place, purge_after) = (&effective.postgres, effective.purge_after);
            wiring::postgres(place, purge_after, clock.clone(), entropy.clone()).await?
        }
    };
    let service = Service::new(backend, clock.clone(), entropy.clone(), effective.service);

    let draining = CancellationToken::new();
    let mut config = HttpConfig::new(Arc::new(Probe(Arc::clone(&service))), entropy);
    config.namespace = effective.namespace.clone();
    config.max_body = effective.max_body;
    config.max_connections = effective.max_connections;
    config.draining = draining.clone();
    config.backend = service.backend_id();
    config.host_policy =
        if effective.listen.ip().is_loopback() { HostPolicy::Loopback } else { HostPolicy::Any };
    let metrics = crate::prometheus::install(&service, clock.clone());
    config.metrics = Some(metrics.map_err(|error| unreachable(error.to_string()))?);
    let locks: Arc<dyn LockService> =
        Arc::new(Metered::new(service.clone(), clock.clone(), service.backend_id()));
    let router = dlock_http::router(locks, clock, config.clone());

    raise_descriptor_limit();
    let listener = listen(effective.listen)
        .map_err(|error| unreachable(format!("cannot listen on {}: {error}", effective.listen)))?;
    // Accepted sockets inherit it: a peer that was cut off without a word is noticed in the end.
    if let Err(error) = set_socket_keepalive(&listener, true) {
        tracing::debug!(%error, "keep-alive probes could not be turned on");
    }
    let address = listener.local_addr().map_err(|e| unreachable(e.to_string()))?;
    greet(address, &lives);

    let serving = tokio::spawn(dlock_http::serve(
        listener,
        router,
        config,
        draining.clone(),
        effective.drain,
    ));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hang_up.recv() => {}
        _ = quit.recv() => {}
    }
    tracing::info!("stopping: waiting calls are answered, nothing new is granted");
    // First the waiting calls get their answer, then the connections end.
    service.drain();
    draining.cancel();
    let mut serving = serving;
    tokio::select! {
        ended = &mut serving => {
            if let Err(error) = ended {
                tracing::error!(%error, "the server's task died");
            }
        }
        // Asked twice: whoever is connected still is cut off.
        _ = terminate.recv() => serving.abort(),
        _ = interrupt.recv() => serving.abort(),
    }
    if !service.shutdown(PATIENCE).await {
        tracing::warn!("some calls did not end; what they hold ends with its lease");
    }
    Ok(())
}

fn open(
    effective: &Effective,
    directory: &Path,
    clock: &Arc<SystemClock>,
    entropy: &Arc<OsEntropy>,
) -> Result<Backend, String> {
    let config = stores::embedded(effective, directory);
    wiring::embedded(config, Arc::clone(clock) as _, Arc::clone(entropy) as _)
        .map_err(|error| error.to_string())
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of a server before us may linger on the port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// As many descriptors as we may have: every waiting call is a connection.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wish = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, wish) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// What a newcomer wants to know: where it listens, where its data is, and a first thing to try.
fn greet(address: SocketAddr, lives: &str) {
    // A closed pipe is no error.
    let _ = writeln!(
        std::io::stdout().lock(),
        "dlock serves on http://{address}\n\
         data: {}\n\
         try:  curl -s {address}/v1/locks/acquire -H 'content-type: application/json' -d \
         '{{\"name\":\"nightly\",\"owner\":\"me\",\"ttl_ms\":10000}}'",
        shown(lives),
    );
}

/// Ready means: the store answers a transaction.
struct Probe(Arc<Service>);

#[async_trait]
impl ReadinessProbe for Probe {
    async fn check(&self) -> dlock_domain::Result<()> {
        self.0.probe().await
    }
}
