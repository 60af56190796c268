//! The lock service at the other end of a wire.

use core::{fmt, time::Duration};
use std::sync::Arc;

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockOutcome, Namespace,
    OwnerId, Result, Session, SessionId, TokenFloor, Ttl,
};
use dlock_ports::{
    AcquireRequest, Acquired, Clock, Entropy, HeldGrant, Kept, ListRequest, LockService, Page,
    Raised, Released, RevokeRequest, SessionRef,
};

use crate::{ConfigError, RemoteConfig, acquire, core::Core, known::Known};

/// A [`LockService`] over HTTP to one or several dlock servers; clones are one client.
///
/// Dropping it stops nothing that is being settled: [`shutdown`](Self::shutdown) waits for that,
/// and whoever ends the process right after a call wants to.
#[derive(Clone)]
pub struct RemoteLocks {
    core: Arc<Core>,
}

impl RemoteLocks {
    /// A client, which asks nobody yet.
    ///
    /// Must be called within a tokio runtime, on which its tasks run, and in a process that has
    /// installed a TLS provider: this library installs none, whatever the addresses are.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn new(
        config: RemoteConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> core::result::Result<Self, ConfigError> {
        let core = Core::new(config, clock, entropy, Arc::new(Known::new()))?;
        Ok(Self { core: Arc::new(core) })
    }

    /// Another client, of other servers of the same store, that shares what this one remembers: a
    /// private attempt may be repeated and forgotten through either.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn beside(&self, config: RemoteConfig) -> core::result::Result<Self, ConfigError> {
        let Core { clock, entropy, known, .. } = &*self.core;
        let core = Core::new(config, Arc::clone(clock), Arc::clone(entropy), Arc::clone(known))?;
        Ok(Self { core: Arc::new(core) })
    }

    /// How many attempts and sessions that nobody claims are being settled.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.core.unsettled.count()
    }

    /// How many tasks of this client are under way: acquires, calls that are seen to their end, and
    /// what is being settled. 0 means that nothing will be sent any more by itself.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.core.tasks.len()
    }

    /// Waits at most `patience` for what is under way, settling included, then gives up whatever
    /// fails once more. Answers whether everything ended.
    ///
    /// # Cancellation
    /// What is being settled goes on.
    pub async fn shutdown(&self, patience: Duration) -> bool {
        let core = &self.core;
        core.tasks.close();
        let end = core.clock.now().after(patience);
        let ended = tokio::select! {
            () = core.tasks.wait() => true,
            () = core.clock.sleep_until(end) => core.tasks.is_empty(),
        };
        core.stopping.cancel();
        ended
    }
}

impl fmt::Debug for RemoteLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteLocks")
            .field("servers", &self.core.servers)
            .field("unsettled", &self.unsettled())
            .finish_non_exhaustive()
    }
}

/// What dropping a future means here: an acquire, and every call that changes something for good,
/// is seen to its end by a task of the client's; a keep-alive, a renewal and whatever only reads
/// ends with its future, so that nothing outlives its keeper (trap 37).
#[async_trait]
impl LockService for RemoteLocks {
    async fn open_session(&self, owner: OwnerId, ttl: Ttl) -> Result<Session> {
        let open = Arc::clone(&self.core).open_unclaimed(owner, ttl);
        let opened = self.core.run(open).await?;
        opened.claim().ok_or_else(|| LockError::contention("claimed twice"))
    }

    async fn keep_session(&self, id: &SessionId, held: &[(LockKey, FencingToken)]) -> Result<Kept> {
        self.core.keep(*id, held).await
    }

    async fn look_session(&self, id: &SessionId) -> Result<(Session, Vec<HeldGrant>)> {
        self.core.look(*id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<bool> {
        let (core, id) = (Arc::clone(&self.core), *id);
        self.core.run(async move { core.close(id).await }).await
    }

    async fn try_acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        acquire::acquire(&self.core, AcquireRequest { max_wait: Duration::ZERO, ..request }).await
    }

    async fn acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        acquire::acquire(&self.core, request).await
    }

    async fn renew(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<LockHandle> {
        self.core.renew(key, token, *session).await
    }

    async fn release(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<Released> {
        let release = Arc::clone(&self.core).release(key.clone(), token, *session);
        self.core.run(release).await
    }

    async fn forget(
        &self,
        key: &LockKey,
        session: &SessionRef,
        attempt: AttemptId,
    ) -> Result<Released> {
        let forget = Arc::clone(&self.core).forget(key.clone(), session.clone(), attempt);
        self.core.run(forget).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Option<LockInfo>> {
        self.core.inspect(key).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.core.list(&request).await
    }

    async fn revoke(&self, key: &LockKey, request: RevokeRequest) -> Result<LockOutcome> {
        let (core, key) = (Arc::clone(&self.core), key.clone());
        self.core.run(async move { core.revoke(&key, &request).await }).await
    }

    async fn raise_floor(&self, namespace: &Namespace, at_least: TokenFloor) -> Result<Raised> {
        let (core, namespace) = (Arc::clone(&self.core), namespace.clone());
        self.core.run(async move { core.raise(&namespace, at_least).await }).await
    }
}
