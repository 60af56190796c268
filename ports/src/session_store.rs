//! The store of sessions: leases, and what they hold (C2).

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockKey, OwnerId, Result, Session, SessionId, Ttl,
};

use crate::Holder;

/// What a keep-alive answers.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The session, with its new deadline. That deadline counts for the grants that were listed
    /// and are not lost (INV-03).
    pub session: Session,
    /// Those of the listed grants that are not there.
    pub lost: Vec<(LockKey, FencingToken)>,
}

/// A live grant of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldGrant {
    /// What is held.
    pub key: LockKey,
    /// Its token.
    pub token: FencingToken,
    /// The acquire call that was given it, by which its keeper tells a stray.
    pub attempt: AttemptId,
}

/// A store of sessions.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Opens a session. With an `id` that is open already under the same owner and lifetime: that
    /// session again, extended.
    ///
    /// # Errors
    /// `InvalidArgument` (`session_id`) when the id is open under another owner or lifetime;
    /// `Limit`; `Contention`, `NotLeader`: it may be open, so repeat with the id, or let its lease
    /// end.
    ///
    /// # Cancellation
    /// It may be open: as above.
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session>;

    /// Extends the session's lease, *then* checks every held grant linearizably. `None`: the
    /// session is gone; it is never revived. Store writes don't grow with the number of grants.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`: no deadline has moved.
    ///
    /// # Cancellation
    /// The lease may have been extended; harmless.
    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>>;

    /// The session and what it holds, extending nothing. `None`: gone.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`.
    ///
    /// # Cancellation
    /// Leaves nothing.
    async fn look(&self, id: &SessionId, by: Deadline)
    -> Result<Option<(Session, Vec<HeldGrant>)>>;

    /// Settles an attempt of unknown outcome for good: afterwards it holds nothing and can never
    /// be granted (traps 12, 13). Answers whether it ended a live grant. For
    /// [`Holder::Private`] the adapter remembers the session that it made for the attempt, if any.
    ///
    /// The mark stands for the attempt under this holder, whatever the key: an attempt id is used
    /// for one call only.
    ///
    /// Idempotence: safe to repeat.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`: unresolved until a repeat succeeds. `Limit` when a session has
    /// settled too many attempts: the attempt's grant has ended all the same, but a late copy of it
    /// could be granted, so close the session.
    ///
    /// # Cancellation
    /// Unresolved: repeat.
    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool>;

    /// Ends the session and frees all its locks in one store operation; `false` if it was gone.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`: it may be closed; repeat.
    ///
    /// # Cancellation
    /// It may be closed: repeat.
    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool>;
}
