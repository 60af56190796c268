//! A server, a proxy before it, and clients on both sides of the proxy.

use std::{future::Future, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use dlock::{
    AcquireRequest, Acquired, Clock, LockGuard, LockKey, LockName, LockService, Locks, Namespace,
    SystemClock,
};
use dlock_client::RemoteLocks;
use dlock_e2e::{
    client::Client,
    remote::{locks, remote},
    server::Server,
};
use dlock_faults::Proxy;
use dlock_memory::ManualClock;
use serde_json::Value;
use tempfile::TempDir;

/// A lifetime that ends in no test at the server; on a clock of the test's it is 200 steps.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// A lifetime that is waited for.
pub(crate) const SHORT: Duration = Duration::from_secs(3);
/// A wait that only a failing test waits out.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How finely a test's own time passes, in lifetimes.
const STEPS: u32 = 200;

/// A real server, and a proxy in front of it.
pub(crate) struct World {
    pub(crate) proxy: Proxy,
    // Dropped before the folder that it writes to.
    server: Server,
    _place: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::configured("")
    }

    /// With this configuration file at the server.
    pub(crate) fn configured(toml: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("dlock.toml");
        std::fs::write(&file, toml).unwrap();
        let server =
            Server::start(&place.path().join("data"), &["--config", file.to_str().unwrap()]);
        Self { proxy: Proxy::start(server.address()).unwrap(), server, _place: place }
    }

    /// The server itself, not the proxy.
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// JSON at the server, past the proxy.
    pub(crate) fn client(&self) -> Client {
        self.server.client()
    }

    /// Who holds a lock, by what the server says.
    pub(crate) fn holder(&self, name: &str) -> Option<Value> {
        self.client().inspect(name)
    }

    pub(crate) fn token(&self, name: &str) -> Option<u64> {
        self.holder(name)?["fencing_token"].as_u64()
    }

    /// Somebody who talks to the server directly, on the boot clock.
    pub(crate) fn neighbour(&self, ttl: Duration) -> Locks {
        let clock = boot();
        locks(&remote(self.address(), clock.clone(), 4), clock, "neighbour", ttl)
    }

    /// A client through the proxy, on the boot clock.
    pub(crate) fn holder_on_boot_clock(&self, ttl: Duration) -> (RemoteLocks, Locks) {
        // As often as the client's time for a call allows.
        let client = remote(self.proxy.addr(), boot(), 100);
        let locks = locks(&client, boot(), "holder", ttl);
        (client, locks)
    }

    /// A client through the proxy, on a clock that the test moves.
    pub(crate) fn holder_on_own_clock(&self, max_tries: u32) -> Desk {
        let clock = ManualClock::new();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let client = remote(self.proxy.addr(), shared.clone(), max_tries);
        let locks = locks(&client, shared, "holder", LONG);
        Desk { clock, client, locks }
    }

    /// Bytes that clients sent and that the proxy has seen, whatever became of them.
    pub(crate) fn sent(&self) -> u64 {
        let counts = self.proxy.counts();
        counts.to_server + counts.swallowed_to_server
    }
}

/// A holder on a clock of the test's.
pub(crate) struct Desk {
    pub(crate) clock: ManualClock,
    pub(crate) client: RemoteLocks,
    pub(crate) locks: Locks,
}

impl Desk {
    pub(crate) async fn guard(&self, name: &str) -> LockGuard {
        self.drive(self.locks.lock(name).acquire()).await.unwrap()
    }

    /// Lets time pass in small steps, with real time for the network in between.
    pub(crate) async fn pass(&self, time: Duration) {
        let step = LONG / STEPS;
        for _ in 0..time.as_nanos().div_ceil(step.as_nanos()) {
            self.clock.advance(step);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Lets time pass until something is done, slowly enough that no lifetime passes while a call
    /// is under way. Fails when it never is.
    pub(crate) async fn drive<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        for _ in 0..3_000 {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(Duration::from_millis(10)) => {}
            }
            self.clock.advance(Duration::from_millis(10));
        }
        panic!("it is never done");
    }

    /// Moves to a third of the lifetime and a tenth of that, when a keep-alive is due for certain.
    pub(crate) fn until_a_keep_alive_is_due(&self) {
        self.clock.advance(LONG / 3 + LONG / 30);
    }
}

/// Returns when something is so, with the runtime free to make it so. Fails when it never is.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never happened: {what}");
}

/// What comes of something, or a failure when nothing does: no test waits for ever.
pub(crate) async fn soon<F: Future>(work: F) -> F::Output {
    tokio::time::timeout(PATIENCE * 2, work).await.expect("it never comes to an end")
}

pub(crate) fn boot() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

pub(crate) fn key(name: &str) -> LockKey {
    LockKey::new(Namespace::default(), LockName::new(name).unwrap())
}

/// An acquire that must be granted; its token.
pub(crate) async fn granted(client: &RemoteLocks, request: AcquireRequest) -> dlock::LockHandle {
    match client.acquire(request).await.unwrap() {
        Acquired::Granted(handle) => handle,
        refused @ Acquired::NotGranted { .. } => panic!("{refused:?}"),
    }
}
