//! A service whose metrics are looked at, on a store that fails when it is told to.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dlock_domain::{
    Deadline, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockName, LockOutcome,
    Moment, Namespace, OwnerId, Reason, Result, Session, SessionId, Ttl,
};
use dlock_memory::{ManualClock, MemoryStore, SeededEntropy};
use dlock_ports::{
    AcquireRequest, Acquired, Attempt, Backend, Consistency, InsertRequest, LockService as _,
    LockStore, Observed, ReleaseWaiter, RevokeRequest, SessionRef, WaitEnd,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use crate::telemetry::table::{self, Values};
use crate::telemetry::{Metered, describe, start};
use crate::{Service, ServiceConfig};

/// The lifetime of every session.
pub(super) const TTL: Duration = Duration::from_secs(30);

/// A memory store whose next calls fail as told, and whose waiter gives up when told.
pub(super) struct Faulty {
    inner: Backend,
    failures: Mutex<VecDeque<LockError>>,
    pub(super) falls_back: AtomicBool,
    pub(super) fallbacks: AtomicUsize,
}

impl Faulty {
    /// The next write fails like this.
    pub(super) fn fail(&self, error: LockError) {
        self.failures.lock().unwrap().push_back(error);
    }

    fn next(&self) -> Result<()> {
        self.failures.lock().unwrap().pop_front().map_or(Ok(()), Err)
    }

    fn waiter(&self) -> &dyn ReleaseWaiter {
        self.inner.waiter.as_deref().unwrap()
    }
}

#[async_trait]
impl LockStore for Faulty {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        self.next()?;
        self.inner.locks.try_insert(request, by).await
    }
    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        self.next()?;
        self.inner.locks.extend(key, token, by).await
    }
    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        self.next()?;
        self.inner.locks.delete_if_owner(key, token, by).await
    }
    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        self.inner.locks.read(key, consistency, by).await
    }
    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        self.next()?;
        self.inner.locks.revoke(key, request, by).await
    }
    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        self.inner.locks.reap_expired(limit, by).await
    }
    fn backend_id(&self) -> &'static str {
        self.inner.locks.backend_id()
    }
}

#[async_trait]
impl ReleaseWaiter for Faulty {
    async fn await_release(&self, key: &LockKey, since: &Observed, by: Deadline) -> WaitEnd {
        if self.falls_back.load(Ordering::Relaxed) {
            self.fallbacks.fetch_add(1, Ordering::Relaxed);
            return WaitEnd::Fallback;
        }
        self.waiter().await_release(key, since, by).await
    }
    fn waiters(&self, key: &LockKey) -> u32 {
        self.waiter().waiters(key)
    }
}

/// A metered service, its store and its clock.
pub(super) struct Bench {
    pub(super) clock: ManualClock,
    pub(super) store: Arc<Faulty>,
    pub(super) service: Arc<Service>,
    pub(super) metered: Arc<Metered>,
}

pub(super) fn key(name: &str) -> LockKey {
    LockKey::new(Namespace::default(), LockName::new(name).unwrap())
}

pub(super) fn private(owner: &str) -> SessionRef {
    let owner = OwnerId::new(owner).unwrap();
    SessionRef::Private { owner, ttl: Ttl::from_duration(TTL).unwrap() }
}

impl Bench {
    fn new() -> Self {
        let (clock, entropy) = (ManualClock::new(), Arc::new(SeededEntropy::new(7)));
        let inner = MemoryStore::new(Arc::new(clock.clone()), entropy.clone()).backend();
        let store = Arc::new(Faulty {
            inner: inner.clone(),
            failures: Mutex::default(),
            falls_back: AtomicBool::new(false),
            fallbacks: AtomicUsize::new(0),
        });
        let backend = Backend { locks: store.clone(), waiter: Some(store.clone() as _), ..inner };
        let config = ServiceConfig { max_waiters: 1, ..ServiceConfig::default() };
        let service = Service::new(backend, Arc::new(clock.clone()), entropy, config);
        let metered = Metered::new(service.clone(), Arc::new(clock.clone()), service.backend_id());
        Self { clock, store, service, metered: Arc::new(metered) }
    }

    pub(super) async fn open(&self, owner: &str) -> Session {
        let owner = OwnerId::new(owner).unwrap();
        self.metered.open_session(owner, Ttl::from_duration(TTL).unwrap()).await.unwrap()
    }

    pub(super) async fn ask(
        &self,
        name: &str,
        session: SessionRef,
        wait: Duration,
    ) -> Result<Acquired> {
        let request = AcquireRequest { key: key(name), session, attempt: None, max_wait: wait };
        self.metered.acquire(request).await
    }

    pub(super) async fn hold(&self, name: &str, session: SessionRef) -> LockHandle {
        match self.ask(name, session, Duration::ZERO).await.unwrap() {
            Acquired::Granted(handle) => handle,
            Acquired::NotGranted { holder } => panic!("held by {holder:?}"),
        }
    }

    pub(super) async fn revoke(&self, name: &str, expected: Option<u64>) -> Result<LockOutcome> {
        let request = RevokeRequest {
            actor: OwnerId::new("operator").unwrap(),
            reason: Reason::new("a test").unwrap(),
            expected: expected.map(|token| FencingToken::from_user(token).unwrap()),
        };
        self.metered.revoke(&key(name), request).await
    }

    /// Closes a session as another server would.
    pub(super) async fn close_elsewhere(&self, session: &SessionId) {
        let by = Deadline::at(Moment::NEVER);
        assert!(self.store.inner.sessions.close(session, by).await.unwrap());
    }

    /// Ends a grant as another server would.
    pub(super) async fn release_elsewhere(&self, held: &LockHandle) {
        let by = Deadline::at(Moment::NEVER);
        let ended = self.store.inner.locks.delete_if_owner(&held.key, held.token, by).await;
        assert!(ended.unwrap());
    }

    /// Lets the other tasks run until a call waits at the store for this lock.
    pub(super) async fn until_somebody_waits(&self, name: &str) {
        while self.store.waiters(&key(name)) == 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Lets the other tasks run until no call waits.
    pub(super) async fn until_nobody_waits(&self) {
        while self.service.load().waiting > 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// Runs work on a bench, on one thread, and answers what was recorded: after checking it against
/// the table.
pub(super) fn observe<F: Future<Output = ()>>(work: impl FnOnce(Arc<Bench>) -> F) -> Seen {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            describe();
            start("memory");
            work(Arc::new(Bench::new())).await;
        });
    });
    let mut seen = Seen::default();
    for (metric, unit, help, value) in snapshotter.snapshot().into_vec() {
        let labels = metric.key().labels().map(|label| (label.key().into(), label.value().into()));
        let (name, labels) = (metric.key().name().to_owned(), labels.collect());
        let described = table::ALL.iter().find(|metric| metric.name == name).unwrap();
        assert_eq!(help.as_deref(), Some(described.help));
        assert_eq!(unit, Some(described.unit));
        check_labels(described, &labels);
        seen.0.push((name, labels, value));
    }
    seen
}

/// C4: exactly the table's labels, and no value that is not in their closed sets.
fn check_labels(metric: &table::Metric, labels: &BTreeMap<String, String>) {
    let names: Vec<_> = labels.keys().map(String::as_str).collect();
    let mut expected: Vec<_> = metric.labels.iter().map(|label| label.name).collect();
    expected.sort_unstable();
    assert_eq!(names, expected, "{}", metric.name);
    for label in metric.labels {
        let value = labels[label.name].as_str();
        let known = match label.values {
            Values::Backend => value == "memory",
            Values::Of(values) => values.contains(&value),
        };
        assert!(known, "{}: {} = {value}", metric.name, label.name);
    }
}

/// What was recorded.
#[derive(Default)]
pub(super) struct Seen(Vec<(String, BTreeMap<String, String>, DebugValue)>);

impl Seen {
    fn value(&self, name: &str, label: &str, value: &str) -> Option<&DebugValue> {
        let found = self.0.iter().find(|(recorded, labels, _)| {
            recorded == name && labels.get(label).is_some_and(|labelled| labelled == value)
        });
        found.map(|(_, _, value)| value)
    }

    /// A histogram's values, in seconds.
    pub(super) fn samples(&self, name: &str, outcome: &str) -> Vec<f64> {
        match self.value(name, "outcome", outcome) {
            None => Vec::new(),
            Some(DebugValue::Histogram(values)) => values.iter().map(|v| v.into_inner()).collect(),
            Some(other) => panic!("{name} is {other:?}"),
        }
    }

    /// How many values a histogram has for each outcome.
    pub(super) fn counts(
        &self,
        name: &str,
        outcomes: &'static [&str],
    ) -> Vec<(&'static str, usize)> {
        outcomes.iter().map(|word| (*word, self.samples(name, word).len())).collect()
    }

    pub(super) fn counter(&self, name: &str, label: &str, value: &str) -> Option<u64> {
        match self.value(name, label, value)? {
            DebugValue::Counter(count) => Some(*count),
            other => panic!("{name} is {other:?}"),
        }
    }

    pub(super) fn gauge(&self, name: &str) -> Option<f64> {
        match self.value(name, "backend", "memory")? {
            DebugValue::Gauge(value) => Some(value.into_inner()),
            other => panic!("{name} is {other:?}"),
        }
    }
}

/// Each of them once.
pub(super) fn once(outcomes: &'static [&str]) -> Vec<(&'static str, usize)> {
    outcomes.iter().map(|word| (*word, 1)).collect()
}
