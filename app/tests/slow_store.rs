//! Calls on a store that takes its time: what belongs to one answer shares one budget (C2).

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use dlock::{
    AcquireRequest, Acquired, LockHandle, LockKey, LockName, LockService as _, Namespace, OwnerId,
    Service, ServiceConfig, SessionRef, Ttl,
};
use dlock_domain::{Deadline, FencingToken, LockError, LockInfo, LockOutcome, Result};
use dlock_memory::{ManualClock, MemoryStore, SeededEntropy};
use dlock_ports::{Attempt, Clock as _, Consistency, InsertRequest, LockStore, RevokeRequest};

/// Attempts and reads take so long, or as long as they may.
struct Slow {
    store: Arc<dyn LockStore>,
    clock: ManualClock,
    takes: Duration,
}

impl Slow {
    fn wait(&self, by: Deadline) -> Result<()> {
        let left = by.remaining(self.clock.now());
        self.clock.advance(self.takes.min(left));
        if left < self.takes { Err(LockError::contention("late")) } else { Ok(()) }
    }
}

#[async_trait]
impl LockStore for Slow {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        self.wait(by)?;
        self.store.try_insert(request, by).await
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        self.store.extend(key, token, by).await
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        self.store.delete_if_owner(key, token, by).await
    }

    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        self.wait(by)?;
        self.store.read(key, consistency, by).await
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        self.store.revoke(key, request, by).await
    }

    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        self.store.reap_expired(limit, by).await
    }

    fn backend_id(&self) -> &'static str {
        self.store.backend_id()
    }
}

/// A look at the holder comes with the refusal if there is time left for it, and never keeps the
/// refusal waiting.
#[tokio::test]
async fn who_is_refused_hears_it_within_the_budget() {
    for (takes, sees_the_holder) in [(1, true), (2, true), (4, false)] {
        let (clock, entropy) = (ManualClock::new(), Arc::new(SeededEntropy::new(1)));
        let mut backend = MemoryStore::new(Arc::new(clock.clone()), entropy.clone()).backend();
        let takes = Duration::from_secs(takes);
        backend.locks = Arc::new(Slow { store: backend.locks, clock: clock.clone(), takes });
        let config = ServiceConfig::default();
        let budget = config.call_budget;
        let service = Service::new(backend, Arc::new(clock.clone()), entropy, config);
        let wish = |owner: &str| AcquireRequest {
            key: LockKey::new(Namespace::new("default").unwrap(), LockName::new("k").unwrap()),
            session: SessionRef::Private {
                owner: OwnerId::new(owner).unwrap(),
                ttl: Ttl::from_millis(600_000).unwrap(),
            },
            attempt: None,
            max_wait: Duration::ZERO,
        };
        let held = service.acquire(wish("first")).await.unwrap();
        assert!(matches!(held, Acquired::Granted(_)));

        let began = clock.now();
        let refused = service.acquire(wish("second")).await.unwrap();
        let took = clock.now().since(began);
        let Acquired::NotGranted { holder } = refused else { unreachable!("it is held") };
        assert!(took <= budget, "{took:?} of {budget:?}");
        assert_eq!(holder.is_some(), sees_the_holder, "{takes:?} a call");
        service.shutdown(Duration::from_secs(1)).await;
    }
}
