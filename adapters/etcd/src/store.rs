//! Grants: the port [`LockStore`].

use async_trait::async_trait;
use dlock_domain::{
    Deadline, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockOutcome, Result,
};
use dlock_ports::{Attempt, Consistency, InsertRequest, LockStore, RevokeRequest};
use etcd_client::{Compare, CompareOp, DeleteOptions, GetOptions, Txn, TxnOp};

use crate::{
    Inner,
    codec::{FloorRecord, GrantRecord},
    error::Effect,
    leases,
    numbering::Meta,
    wire::{Kv, Reply, Rest},
};

/// How often a call is repeated that used a numbering which has changed since.
const TRIES: u32 = 8;

#[async_trait]
impl LockStore for Inner {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        self.shoot(&request, by).await
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        self.wire.begin(by)?;
        for _ in 0..TRIES {
            let meta = self.numbering(key.namespace(), by).await?;
            let look = self.look_txn(key, token, meta);
            let reply = self.wire.txn(look.clone(), Effect::Reads, by).await?;
            let kv = match self.matched(key, &reply, meta)? {
                Matched::Yes(kv) => kv,
                Matched::No => return Ok(None),
                Matched::Renumbered => continue,
            };
            let record = GrantRecord::decode(&kv.key, &kv.value)?;
            let renewed = self.renew_then_look(kv.lease, &look, by).await?;
            let Some((beat, reply)) = renewed else {
                // Whoever answered knows no such lease. Only a linearizable look says that the
                // grant has ended.
                let reply = self.wire.txn(look, Effect::Reads, by).await?;
                return match self.matched(key, &reply, meta)? {
                    Matched::No => Ok(None),
                    Matched::Yes(_) | Matched::Renumbered => Err(leases::is_missing("grant")),
                };
            };
            return match self.matched(key, &reply, meta)? {
                Matched::Yes(_) => {
                    let deadline = beat.holder_deadline(record.asked, record.ttl);
                    Ok(Some(LockHandle {
                        key: key.clone(),
                        owner: record.owner,
                        session: record.session,
                        token,
                        ttl: record.ttl,
                        client_deadline: deadline,
                        server_expiry: self.shown_expiry(record.ttl.as_duration()),
                    }))
                }
                Matched::No => Ok(None),
                Matched::Renumbered => continue,
            };
        }
        Err(renumbered())
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        self.wire.begin(by)?;
        for _ in 0..TRIES {
            let meta = self.numbering(key.namespace(), by).await?;
            let txn = self.delete_txn(key, meta.revision(token), Some(meta));
            let reply = self.wire.txn(txn, Effect::Writes, by).await?;
            if reply.held {
                let (count, before) = reply.deleted(0);
                if let Some(before) = before {
                    self.end_private(before, by).await;
                }
                return Ok(count > 0);
            }
            match self.matched(key, &reply, meta)? {
                Matched::Renumbered => {}
                Matched::Yes(_) | Matched::No => return Ok(false),
            }
        }
        Err(renumbered())
    }

    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        self.wire.begin(by)?;
        let lock = self.keys.lock(key);
        let (kv, meta) = match consistency {
            Consistency::Follower => {
                let meta = self.numbering(key.namespace(), by).await?;
                (self.wire.peek(&lock, by).await?, meta)
            }
            Consistency::Linearizable => {
                let gets = [lock, self.keys.meta(key.namespace())].map(|key| TxnOp::get(key, None));
                let reply = self.wire.txn(Txn::new().and_then(gets), Effect::Reads, by).await?;
                (reply.one(0).cloned(), Meta::of(reply.one(1))?)
            }
        };
        match kv {
            Some(kv) => self.info(key, &kv, meta, by).await,
            None => Ok(None),
        }
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        self.wire.begin(by)?;
        for _ in 0..TRIES {
            let meta = self.numbering(key.namespace(), by).await?;
            let reply = self.wire.txn(self.revoke_txn(key, &request, meta), Effect::Writes, by);
            let reply = reply.await?;
            if reply.held {
                let (_, before) = reply.deleted(0);
                if let Some(before) = before {
                    self.end_private(before, by).await;
                }
                let floor = meta.floor(reply.revision)?;
                return Ok(match before {
                    Some(kv) => {
                        let previous = meta.token(kv.mod_revision)?;
                        LockOutcome::Revoked { previous, floor }
                    }
                    None => LockOutcome::Free { floor },
                });
            }
            let now = Meta::of(reply.one(1))?;
            if now == meta {
                let current = reply.one(0).map(|kv| meta.token(kv.mod_revision)).transpose()?;
                return Ok(LockOutcome::Mismatch { current });
            }
            self.learn(key.namespace(), now);
        }
        Err(renumbered())
    }

    /// Leases end by themselves, and what is attached to them goes with them: there is nothing to
    /// reap, and a reaper beside etcd's own could only be wrong. One linearizable look all the same:
    /// readiness asks by this call, and an idle server notices by it that the cluster has gone back.
    async fn reap_expired(&self, _limit: u32, by: Deadline) -> Result<u32> {
        self.wire.begin(by)?;
        let one = GetOptions::new().with_prefix().with_keys_only().with_limit(1);
        let look = Txn::new().and_then([TxnOp::get(self.keys.all(), Some(one))]);
        self.wire.txn(look, Effect::Reads, by).await?;
        Ok(0)
    }

    fn backend_id(&self) -> &'static str {
        "etcd"
    }
}

/// Whether a key still is the grant that a token names.
enum Matched {
    Yes(Kv),
    No,
    /// The namespace was renumbered since the token was mapped: map it anew.
    Renumbered,
}

impl Inner {
    /// A linearizable look at a grant: operations in both branches, since one without any is
    /// answered from what some member remembers (trap 5).
    fn look_txn(&self, key: &LockKey, token: FencingToken, meta: Meta) -> Txn {
        let (lock, numbering) = (self.keys.lock(key), self.keys.meta(key.namespace()));
        let revision = meta.revision(token);
        let gets = || [lock.clone(), numbering.clone()].map(|key| TxnOp::get(key, None));
        Txn::new()
            .when([
                Compare::mod_revision(lock.clone(), CompareOp::Equal, revision),
                meta.compare(numbering.clone()),
            ])
            .and_then(gets())
            .or_else(gets())
    }

    /// Reads the answer of [`look_txn`](Self::look_txn), or of a delete that was not done.
    fn matched(&self, key: &LockKey, reply: &Reply, meta: Meta) -> Result<Matched> {
        if reply.held {
            return Ok(reply.one(0).map_or(Matched::No, |kv| Matched::Yes(kv.clone())));
        }
        let now = Meta::of(reply.one(1))?;
        if now == meta {
            return Ok(Matched::No);
        }
        self.learn(key.namespace(), now);
        Ok(Matched::Renumbered)
    }

    /// Deletes the grant of this revision and nothing else (INV-06), as long as nobody renumbered
    /// the namespace since the revision was mapped.
    pub(crate) fn delete_txn(&self, key: &LockKey, revision: i64, meta: Option<Meta>) -> Txn {
        let (lock, numbering) = (self.keys.lock(key), self.keys.meta(key.namespace()));
        let mut compares = vec![Compare::mod_revision(lock.clone(), CompareOp::Equal, revision)];
        compares.extend(meta.map(|meta| meta.compare(numbering.clone())));
        let with_before = DeleteOptions::new().with_prev_key();
        Txn::new()
            .when(compares)
            .and_then([TxnOp::delete(lock.clone(), Some(with_before))])
            .or_else([lock, numbering].map(|key| TxnOp::get(key, None)))
    }

    /// Ends a grant, if its token is the expected one, and leaves a floor and a record, in one step.
    fn revoke_txn(&self, key: &LockKey, request: &RevokeRequest, meta: Meta) -> Txn {
        let (lock, numbering) = (self.keys.lock(key), self.keys.meta(key.namespace()));
        let mut compares = vec![meta.compare(numbering.clone())];
        compares.extend(request.expected.map(|token| {
            Compare::mod_revision(lock.clone(), CompareOp::Equal, meta.revision(token))
        }));
        let record = FloorRecord {
            actor: request.actor.as_str().to_owned(),
            reason: request.reason.as_str().to_owned(),
            at: self.wire.clock.wall(),
        };
        let with_before = DeleteOptions::new().with_prev_key();
        Txn::new()
            .when(compares)
            .and_then([
                TxnOp::delete(lock.clone(), Some(with_before)),
                TxnOp::put(self.keys.floor(key), record.encode(), None),
            ])
            .or_else([lock, numbering].map(|key| TxnOp::get(key, None)))
    }

    /// A private session ends with its lock. The lock has ended already: where this fails, an empty
    /// session ends with its lease.
    pub(crate) async fn end_private(&self, before: &Kv, by: Deadline) {
        let private = GrantRecord::decode(&before.key, &before.value).is_ok_and(|r| r.private);
        if !private {
            return;
        }
        // In a task of its own: whoever asked may go away.
        let (wire, lease) = (std::sync::Arc::clone(&self.wire), before.lease);
        let ending = tokio::spawn(async move { wire.revoke(lease, by).await });
        if let Ok(Err(error)) = ending.await {
            tracing::debug!(%error, "a private session is left to end by itself");
        }
    }

    /// A grant as others see it; `None` if it has ended meanwhile.
    pub(crate) async fn info(
        &self,
        key: &LockKey,
        kv: &Kv,
        meta: Meta,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        // An unreadable record is an incident, whatever became of its lease.
        let record = GrantRecord::decode(&kv.key, &kv.value)?;
        let rest = self.wire.rest(kv.lease, false, by).await?;
        rest.map(|rest| self.seen(key.clone(), kv, record, meta, &rest)).transpose()
    }

    /// A grant as others see it, with what is left of its lease.
    pub(crate) fn seen(
        &self,
        key: LockKey,
        kv: &Kv,
        record: GrantRecord,
        meta: Meta,
        rest: &Rest,
    ) -> Result<LockInfo> {
        Ok(LockInfo {
            key,
            owner: record.owner,
            session: Some(record.session),
            token: meta.token(kv.mod_revision)?,
            acquired_at: record.acquired_at,
            server_expiry: self.shown_expiry(rest.left()),
            waiter_count: self.hub.count(&kv.key),
        })
    }
}

fn renumbered() -> LockError {
    LockError::contention("the namespace was renumbered again and again")
}
