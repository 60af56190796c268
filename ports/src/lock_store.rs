//! The store of grants: seven methods, closed (C2).

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockHandle, LockInfo, LockKey, LockOutcome, OwnerId, Reason,
    Result, Session, Ttl,
};

use crate::Observed;

/// What a single shot at a lock came to. Held is a decision, not an error.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// The lock is the caller's, under this handle's token.
    Granted(LockHandle),
    /// A live grant of somebody else holds it (for [`Intent::Recover`]: the attempt has no grant),
    /// as of this place in the store's history.
    Held(Observed),
}

/// Who would hold the lock.
#[derive(Clone, Debug)]
pub enum Holder {
    /// An open session.
    Session(Session),
    /// A session that the store makes for this lock: it lives and dies with it.
    Private {
        /// Its owner.
        owner: OwnerId,
        /// Its lifetime.
        ttl: Ttl,
    },
}

/// What a shot may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Take the lock if it is free, or find the attempt's own grant.
    Acquire,
    /// Only find the attempt's own grant; never create one.
    Recover,
}

/// A single shot at a lock.
#[derive(Clone, Debug)]
pub struct InsertRequest {
    /// What to lock.
    pub key: LockKey,
    /// For whom.
    pub holder: Holder,
    /// The name of this acquire call, the same in every repeat of it.
    pub attempt: AttemptId,
    /// What the shot may do.
    pub intent: Intent,
}

/// How fresh a read must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// Whatever the nearest copy says.
    Follower,
    /// At least everything that was answered before the read began.
    Linearizable,
}

/// An operator's wish to break a lock.
#[derive(Clone, Debug)]
pub struct RevokeRequest {
    /// Who wishes it.
    pub actor: OwnerId,
    /// Why.
    pub reason: Reason,
    /// Only if this is the live grant's token.
    pub expected: Option<FencingToken>,
}

/// A store of grants.
///
/// Ownership is decided here and nowhere else, each decision in one atomic operation of the store
/// (INV-01, INV-02). Destructive methods compare key and token and nothing else about the holder
/// (INV-06). No transport failure is ever answered as held, lost or released (INV-07).
#[async_trait]
pub trait LockStore: Send + Sync {
    /// One atomic shot; never waits for a holder.
    ///
    /// Granted: the token is drawn in that operation and exceeds every token and floor before it
    /// for this key (INV-04); the handle's deadline is INV-03's. A repeat of an attempt that holds
    /// the lock is granted its own token again, with the deadline that a look would give.
    ///
    /// Idempotence: repeat with the same attempt as often as needed. After the grant has ended a
    /// repeat would be a new grant, unless the attempt was settled by
    /// [`SessionStore::forget`](crate::SessionStore::forget).
    ///
    /// # Errors
    /// `SessionExpired`; `InvalidArgument` (`session_id`) for a private session that was made for
    /// another lock; `InvalidArgument` (`attempt_id`) when the attempt was settled, or holds
    /// this lock for another session, owner or lifetime; `Limit`; `Contention` and `NotLeader`,
    /// whose [`applied`](dlock_domain::LockError::applied) says whether the grant may exist;
    /// `InvariantViolated` instead of any handle that would break INV-04.
    ///
    /// # Cancellation
    /// The grant may exist, or still come to exist: repeat the attempt, or settle it by `forget`.
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt>;

    /// Extends the lease behind a grant: same token, later expiry. `None`: lost *now*.
    ///
    /// An expired grant is never revived, even if nobody took the lock since (C14).
    ///
    /// # Errors
    /// `Contention`, `NotLeader`: the grant may be live or not; the deadline has not moved.
    ///
    /// # Cancellation
    /// The lease may have been extended. Harmless: repeat, or let it end.
    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>>;

    /// Compare-and-delete on key and token, nothing else. `false` only where no live grant matches.
    /// A private session ends with its lock.
    ///
    /// Idempotence: safe to repeat; a repeat after an unknown outcome may answer `false` for a
    /// release that did happen.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`: it may have been released.
    ///
    /// # Cancellation
    /// It may have been released: repeat.
    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool>;

    /// The live grant, for people and for hints; never decides ownership.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`; `InvariantViolated` for a record that cannot be read.
    ///
    /// # Cancellation
    /// Leaves nothing.
    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>>;

    /// Ends the live grant, raises the key's floor above every token before, and appends a
    /// [`RevocationRecord`](dlock_domain::RevocationRecord), in one transaction (C25). A free key's
    /// floor is raised too. With `expected`, a different or absent grant changes nothing.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`: it may have been revoked; a repeat is harmless (another floor).
    ///
    /// # Cancellation
    /// It may have been revoked: repeat, or read.
    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome>;

    /// Removes at most `limit` sessions whose lease has ended, and says how many. Expiry never
    /// waits for it: whoever meets an ended lease ends it. Stores whose leases end by themselves
    /// answer 0.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`.
    ///
    /// # Cancellation
    /// Leaves nothing that matters.
    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32>;

    /// The store's name in metrics and logs: `etcd`, `postgres`, `embedded`, `memory`, or the name
    /// of a store that others brought.
    fn backend_id(&self) -> &'static str;
}
