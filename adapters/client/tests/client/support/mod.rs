//! What the tests share.

mod clock;
mod server;

use core::{future::Future, time::Duration};
use std::sync::{
    Arc, Once,
    atomic::{AtomicU64, Ordering},
};

use dlock_client::{RemoteConfig, RemoteLocks, ServerUrl};
use dlock_domain::{
    Applied, AttemptId, ErrorKind, FencingToken, LockError, LockHandle, LockInfo, LockKey,
    LockName, Namespace, OwnerId, Result, SessionId, Ttl,
};
use dlock_ports::{AcquireRequest, Acquired, Entropy, LockService, SessionRef};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) use clock::TestClock;
pub(crate) use server::{Asked, Server, nobody};

/// Far longer than anything here takes: a test that hangs fails instead.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

/// Numbers in order: ids that differ, and the least jitter.
#[derive(Default)]
struct Chance(AtomicU64);

impl Entropy for Chance {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 0xa000
    }
    fn jitter(&self) -> u64 {
        0
    }
}

/// A client and its clock.
pub(crate) struct World {
    pub(crate) clock: TestClock,
    pub(crate) locks: RemoteLocks,
}

/// Time-outs that no test runs into.
pub(crate) fn config(servers: &[&ServerUrl]) -> RemoteConfig {
    let servers = servers.iter().map(|server| (*server).clone()).collect();
    RemoteConfig {
        connect_timeout: PATIENCE * 2,
        call_timeout: PATIENCE * 2,
        ..RemoteConfig::new(servers)
    }
}

pub(crate) fn world(config: RemoteConfig) -> World {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        rustls::crypto::aws_lc_rs::default_provider().install_default().unwrap();
    });
    let clock = TestClock::default();
    let chance = Arc::new(Chance::default());
    let locks = RemoteLocks::new(config, Arc::new(clock.clone()), chance).unwrap();
    World { clock, locks }
}

/// A server and a client of it.
pub(crate) async fn alone() -> (Server, World) {
    let server = Server::start().await;
    let world = world(config(&[&server.url]));
    (server, world)
}

/// A server and a client that never tries twice.
pub(crate) async fn once() -> (Server, World) {
    let server = Server::start().await;
    let mut config = config(&[&server.url]);
    config.retry.max_tries = 1;
    let world = world(config);
    (server, world)
}

impl World {
    /// A call in a task of its own.
    pub(crate) fn start<T, F, W>(&self, call: W) -> JoinHandle<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
        W: FnOnce(RemoteLocks) -> F,
    {
        tokio::spawn(call(self.locks.clone()))
    }

    pub(crate) fn acquire(&self, request: AcquireRequest) -> JoinHandle<Result<Acquired>> {
        self.start(|locks| async move { locks.acquire(request).await })
    }

    /// Until nothing is under way, settling included.
    pub(crate) async fn settled(&self) {
        let at_rest = async {
            while self.locks.under_way() > 0 {
                tokio::task::yield_now().await;
            }
        };
        soon(at_rest).await;
    }
}

pub(crate) fn key(name: &str) -> LockKey {
    LockKey::new(Namespace::default(), LockName::new(name).unwrap())
}

pub(crate) fn session() -> SessionId {
    SessionId::from_bits(0x5e55)
}

pub(crate) fn owner() -> OwnerId {
    OwnerId::new("worker").unwrap()
}

pub(crate) fn token(number: u64) -> FencingToken {
    FencingToken::from_user(number).unwrap()
}

/// 10 s.
pub(crate) fn ttl() -> Ttl {
    Ttl::from_millis(10_000).unwrap()
}

pub(crate) fn private() -> SessionRef {
    SessionRef::Private { owner: owner(), ttl: ttl() }
}

/// A wish for the lock `k`, in an open session, without waiting, under no name of the caller's.
pub(crate) fn wish() -> AcquireRequest {
    let max_wait = Duration::ZERO;
    AcquireRequest { key: key("k"), session: SessionRef::Id(session()), attempt: None, max_wait }
}

pub(crate) fn named(request: AcquireRequest, bits: u128) -> AcquireRequest {
    AcquireRequest { attempt: Some(AttemptId::from_bits(bits)), ..request }
}

/// A grant of the lock `k` under token 7, valid for 9 s.
pub(crate) fn grant(id: SessionId) -> Value {
    json!({
        "name": "k", "namespace": "default", "owner": "worker", "session_id": id.expose(),
        "fencing_token": 7, "ttl_ms": 10_000, "valid_ms": 9_000,
    })
}

pub(crate) fn opened(id: SessionId) -> Value {
    json!({ "session_id": id.expose(), "owner": "worker", "ttl_ms": 10_000, "valid_ms": 9_000 })
}

pub(crate) fn kept(id: SessionId, valid_ms: u64) -> Value {
    json!({ "session_id": id.expose(), "ttl_ms": 10_000, "valid_ms": valid_ms, "lost": [] })
}

/// Somebody else's grant of the lock `k`.
pub(crate) fn info() -> Value {
    json!({
        "name": "k", "namespace": "default", "owner": "other", "fencing_token": 3,
        "held_for_ms": 1_000, "expires_in_ms": 2_000, "waiter_count": 1,
    })
}

/// A problem document as dlock's servers write them.
pub(crate) fn problem(status: u16, kind: &str) -> Value {
    json!({
        "type": format!("urn:dlock:problem:{kind}"), "title": "T", "status": status,
        "detail": "in words", "retryable": status == 503, "applied": "no",
    })
}

pub(crate) fn not_granted() -> Value {
    let mut problem = problem(409, "not-granted");
    problem["holder"] = info();
    problem
}

#[track_caller]
pub(crate) fn got(answer: Result<Acquired>) -> LockHandle {
    match answer.unwrap() {
        Acquired::Granted(handle) => handle,
        Acquired::NotGranted { holder } => panic!("not granted: {holder:?}"),
    }
}

#[track_caller]
pub(crate) fn refused(answer: Result<Acquired>) -> Option<LockInfo> {
    match answer.unwrap() {
        Acquired::NotGranted { holder } => holder,
        Acquired::Granted(handle) => panic!("granted: {handle:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_failed<T: core::fmt::Debug>(
    answer: Result<T>,
    kind: ErrorKind,
    applied: Applied,
) -> LockError {
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), error.applied()), (kind, applied), "{error:?}");
    error
}
