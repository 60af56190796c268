//! The driving port: what transports, the keeper and the guard talk to (C2).

use core::time::Duration;

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, FencingToken, LockHandle, LockInfo, LockKey, LockOutcome, Namespace, OwnerId,
    Result, Session, SessionId, TokenFloor, Ttl,
};

use crate::{HeldGrant, Kept, ListRequest, Page, Raised, RevokeRequest};

/// For whom to acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRef {
    /// An open session.
    Id(SessionId),
    /// A session of the lock's own.
    Private {
        /// Its owner.
        owner: OwnerId,
        /// Its lifetime.
        ttl: Ttl,
    },
}

/// A wish to hold a lock.
#[derive(Clone, Debug)]
pub struct AcquireRequest {
    /// What to lock.
    pub key: LockKey,
    /// For whom.
    pub session: SessionRef,
    /// The call's name, if the caller chose one and may repeat it. A call without is settled and
    /// released when its caller goes away, since nobody can ask for it again.
    pub attempt: Option<AttemptId>,
    /// How long to wait, 0 to [`MAX_WAIT`](Self::MAX_WAIT).
    pub max_wait: Duration,
}

impl AcquireRequest {
    /// The longest wait, 1 hour.
    pub const MAX_WAIT: Duration = Duration::from_secs(60 * 60);
}

/// What an acquire came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The lock is the caller's.
    Granted(LockHandle),
    /// Somebody else has it.
    NotGranted {
        /// Who, if that could still be seen.
        holder: Option<LockInfo>,
    },
}

/// What a look after a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Current {
    /// Nobody holds the lock.
    None,
    /// The same session holds it, under another token or because nothing was released.
    Same,
    /// Another session holds it.
    Other,
    /// The release was answered, the look was not.
    Unknown,
}

/// What a release came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Whether this call ended a grant. After an earlier try of unknown outcome `false` may be
    /// the repeat of a release that did happen.
    pub released: bool,
    /// What was found afterwards.
    pub current: Current,
}

/// The lock service.
///
/// No deadline arguments: each call has a configured budget, [`acquire`](Self::acquire) its
/// `max_wait` besides. Every method may fail with `Contention` or `NotLeader` (repeat), with
/// `Draining` where it would start something new, and with `InvariantViolated` (an incident).
///
/// # Cancellation
/// Dropping a future gives up the answer, not the operation: what was handed to the store is seen
/// to its end, and what nobody can claim is released (INV-09).
#[async_trait]
pub trait LockService: Send + Sync {
    /// Opens a session.
    ///
    /// # Errors
    /// `Limit`.
    async fn open_session(&self, owner: OwnerId, ttl: Ttl) -> Result<Session>;

    /// Keeps a session's lease and says which of `held` are lost. Each call moves only the
    /// deadlines of the grants that it lists.
    ///
    /// # Errors
    /// `SessionExpired`.
    async fn keep_session(&self, id: &SessionId, held: &[(LockKey, FencingToken)]) -> Result<Kept>;

    /// A session and its grants, extending nothing.
    ///
    /// # Errors
    /// `SessionExpired`.
    async fn look_session(&self, id: &SessionId) -> Result<(Session, Vec<HeldGrant>)>;

    /// Closes a session and frees its locks; `false` if it was gone.
    ///
    /// # Errors
    /// As every method.
    async fn close_session(&self, id: &SessionId) -> Result<bool>;

    /// [`acquire`](Self::acquire) that never waits, whatever `max_wait` says.
    ///
    /// # Errors
    /// As `acquire`.
    async fn try_acquire(&self, request: AcquireRequest) -> Result<Acquired>;

    /// Acquires a lock, waiting at most `max_wait`: the only method that blocks.
    ///
    /// The first attempt is always made; no later one starts in the last 50 ms (C07). Waiters of
    /// one service are served in order.
    ///
    /// # Errors
    /// `SessionExpired` as soon as the session is found dead, at the latest a third of its
    /// lifetime later (C01, C02); `InvalidArgument`; `Limit` (C09); `Draining`.
    async fn acquire(&self, request: AcquireRequest) -> Result<Acquired>;

    /// Extends the lease behind a grant.
    ///
    /// # Errors
    /// `LockLost`; `Denied` where the token is known to be another session's.
    async fn renew(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<LockHandle>;

    /// Releases a grant.
    ///
    /// # Errors
    /// `Denied` where the token is known to be another session's.
    async fn release(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<Released>;

    /// Settles an attempt for good, and releases what it was granted.
    ///
    /// # Errors
    /// `Limit` when the session has settled too many.
    async fn forget(
        &self,
        key: &LockKey,
        session: &SessionRef,
        attempt: AttemptId,
    ) -> Result<Released>;

    /// The live grant, read linearizably.
    ///
    /// # Errors
    /// As every method.
    async fn inspect(&self, key: &LockKey) -> Result<Option<LockInfo>>;

    /// Live locks, page by page.
    ///
    /// # Errors
    /// `Unsupported` where the store cannot.
    async fn list(&self, request: ListRequest) -> Result<Page>;

    /// Breaks a lock.
    ///
    /// # Errors
    /// As every method.
    async fn revoke(&self, key: &LockKey, request: RevokeRequest) -> Result<LockOutcome>;

    /// Raises a namespace's floor.
    ///
    /// # Errors
    /// `InvalidArgument` (`at_least`); `Unsupported` where the store cannot.
    async fn raise_floor(&self, namespace: &Namespace, at_least: TokenFloor) -> Result<Raised>;
}
