//! Attempts that are settled for good (traps 12 and 13).
//!
//! There is no last moment at which a request that was not answered could be committed. So a mark is
//! written, and every grant compares that its attempt has none: once the mark is there, the attempt
//! holds what it holds now, which is looked at once and deleted, and nothing ever again.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use dlock_domain::{AttemptId, Deadline, LockError, LockKey, Moment, Result, SessionId};
use etcd_client::{Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};

use crate::{
    Inner,
    codec::{GrantRecord, SessionRecord},
    error::{Effect, Fail},
    grant::text,
    wire::{Kv, Reply},
};

/// How many attempts one session may settle in one namespace.
const MOST: i64 = 4_096;

/// How long the mark of a private attempt stands: far beyond any repeat of an acquire call, which
/// waits an hour at most.
const STANDS_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long one lease takes in marks: few leases for many marks.
const TAKES_IN: Duration = Duration::from_secs(60 * 60);

/// The lease under which this process puts the marks of private attempts.
#[derive(Default)]
pub(crate) struct Marks(Mutex<Option<(Moment, i64)>>);

impl Inner {
    /// Settles an attempt of a session's. Its mark ends with the session, and so does all that it
    /// could be granted.
    pub(crate) async fn forget_for(
        &self,
        key: &LockKey,
        id: SessionId,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let namespace = key.namespace();
        let mark = self.keys.dead(namespace, id, attempt);
        let all = GetOptions::new().with_prefix().with_count_only();
        let gets = [
            TxnOp::get(self.keys.dead_of(namespace, id), Some(all)),
            TxnOp::get(mark.clone(), None),
            TxnOp::get(self.keys.private(id), None),
        ];
        let reply = self.wire.txn(Txn::new().and_then(gets), Effect::Reads, by).await?;
        if let Some(private) = reply.one(2) {
            let made_for = SessionRecord::decode(&private.key, &private.value)?.lock;
            return self.forget_of_private(key, id, made_for, attempt, by).await;
        }
        let full = reply.count(0) >= MOST && reply.one(1).is_none();
        let (session, lock) = (self.keys.session(id), self.keys.lock(key));
        let look = TxnOp::get(lock, None);
        let mut ops = vec![look.clone()];
        if !full {
            let under = PutOptions::new().with_lease(self.keys.lease(id));
            ops.push(TxnOp::put(mark, "", Some(under)));
        }
        let txn = Txn::new()
            .when([Compare::create_revision(session, CompareOp::Greater, 0)])
            .and_then(ops)
            .or_else([look]);
        let reply = match self.wire.txn(txn, Effect::Writes, by).await {
            Ok(reply) if reply.held => reply,
            // With its session an attempt is settled already.
            Ok(_) | Err(Fail::NoLease) => return Ok(false),
            Err(other) => {
                let error = other.into_error();
                self.end_unmarked(key, |r| r.session == id, attempt, by).await;
                return Err(error);
            }
        };
        let ended = self.end_attempt(key, &reply, |r| r.session == id, attempt, by).await?;
        if full {
            return Err(LockError::limit(
                "lock.max_settled_attempts",
                "this session has settled too many attempts: close it",
            ));
        }
        Ok(ended)
    }

    /// Settles a private attempt by the session that its grant came with. Repeats come without a
    /// session, so the mark is the private one.
    async fn forget_of_private(
        &self,
        key: &LockKey,
        id: SessionId,
        made_for: Option<String>,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        if made_for != Some(text(&self.keys.lock(key))) {
            return Ok(false);
        }
        let reply = self.mark_private(key, attempt, by).await?;
        self.end_attempt(key, &reply, |r| r.session == id, attempt, by).await
    }

    /// Settles an attempt with a session of its own, whichever sessions were made for it.
    pub(crate) async fn forget_private(
        &self,
        key: &LockKey,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        // One that was made here, whose outcome nobody knows: with its lease it ends, and a late
        // request of its finds none.
        if let Some(session) = self.privates.take(attempt) {
            self.let_go(self.keys.lease(session));
        }
        let is_own = |record: &GrantRecord| record.private;
        match self.mark_private(key, attempt, by).await {
            Ok(reply) => self.end_attempt(key, &reply, is_own, attempt, by).await,
            Err(error) => {
                self.end_unmarked(key, is_own, attempt, by).await;
                Err(error)
            }
        }
    }

    /// Writes the mark and looks at the lock, in one transaction.
    async fn mark_private(&self, key: &LockKey, attempt: AttemptId, by: Deadline) -> Result<Reply> {
        let mark = self.keys.dead_private(key.namespace(), attempt);
        for fresh in [false, true] {
            let lease = self.marks_lease(fresh, by).await?;
            let put = TxnOp::put(mark.clone(), "", Some(PutOptions::new().with_lease(lease)));
            let txn = Txn::new().and_then([TxnOp::get(self.keys.lock(key), None), put]);
            match self.wire.txn(txn, Effect::Writes, by).await {
                Err(Fail::NoLease) => {}
                answer => return Ok(answer?),
            }
        }
        Err(LockError::contention("the lease for marks ended as soon as it was made"))
    }

    /// A lease for marks, made anew once an hour.
    async fn marks_lease(&self, fresh: bool, by: Deadline) -> Result<i64> {
        let now = self.wire.clock.now();
        let current = *self.marks.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, lease)) = current
            && !fresh
            && now.since(since) < TAKES_IN
        {
            return Ok(lease);
        }
        let lease = self.keys.lease(SessionId::from_bits(self.entropy.bits()));
        let seconds = i64::try_from((STANDS_FOR + TAKES_IN).as_secs()).unwrap_or(i64::MAX);
        let (since, _) = self.wire.grant(lease, seconds, by).await?;
        *self.marks.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((since, lease));
        Ok(lease)
    }

    /// Where the mark could not be written (a cluster without space takes no writes but deletes): at
    /// least nothing stays held that nobody claims. The attempt is unresolved all the same, and the
    /// caller is told so by the error that brought it here.
    async fn end_unmarked(
        &self,
        key: &LockKey,
        is_own: impl Fn(&GrantRecord) -> bool,
        attempt: AttemptId,
        by: Deadline,
    ) {
        let look = Txn::new().and_then([TxnOp::get(self.keys.lock(key), None)]);
        let ended = match self.wire.txn(look, Effect::Reads, by).await {
            Ok(reply) => self.end_attempt(key, &reply, is_own, attempt, by).await,
            Err(other) => Err(other.into_error()),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "what an unsettled attempt holds ends with its lease");
        }
    }

    /// Ends what the attempt holds, if it is this holder's: nobody ends another's grant by knowing
    /// its name. `reply`: the look that was made with the mark.
    async fn end_attempt(
        &self,
        key: &LockKey,
        reply: &Reply,
        is_own: impl Fn(&GrantRecord) -> bool,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let Some(Kv { key: at, value, mod_revision, .. }) = reply.one(0) else { return Ok(false) };
        let record = GrantRecord::decode(at, value)?;
        if record.attempt != attempt || !is_own(&record) {
            return Ok(false);
        }
        // By the very revision that was seen: no token is mapped, so no numbering is compared.
        let txn = self.delete_txn(key, *mod_revision, None);
        let reply = self.wire.txn(txn, Effect::Writes, by).await?;
        let (count, before) = reply.deleted(0);
        if let Some(before) = before {
            self.end_private(before, by).await;
        }
        Ok(count > 0)
    }
}
