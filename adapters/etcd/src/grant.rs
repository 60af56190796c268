//! The one transaction that grants, and what is read when it does not.

use std::{
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
};

use dlock_domain::{
    AttemptId, Deadline, Invariant, LockError, LockHandle, LockKey, Moment, OwnerId, Result,
    Session, SessionId, Ttl,
};
use dlock_ports::{Attempt, Holder, InsertRequest, Intent, Observed};
use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp};
use lru::LruCache;

use crate::{
    Inner,
    codec::{GrantRecord, SessionRecord},
    error::{Effect, Fail},
    leases,
    numbering::Meta,
    wait::Place,
    wire::{Kv, Reply},
};

/// How often a shot is repeated that met something which has changed since: another numbering, or
/// a holder that has just gone.
const SHOTS: u32 = 8;

/// The sessions made for private attempts whose outcome this process does not know, so that
/// [`forget`](dlock_ports::SessionStore::forget) can end them at once; the oldest give way and end
/// with their leases.
pub(crate) struct PrivateAttempts(Mutex<LruCache<AttemptId, SessionId>>);

impl PrivateAttempts {
    pub(crate) fn new() -> Self {
        const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
        Self(Mutex::new(LruCache::new(REMEMBERED)))
    }

    fn begun(&self, attempt: AttemptId, session: SessionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(attempt, session);
    }

    fn known(&self, attempt: AttemptId, session: SessionId) {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if attempts.peek(&attempt) == Some(&session) {
            attempts.pop(&attempt);
        }
    }

    pub(crate) fn take(&self, attempt: AttemptId) -> Option<SessionId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop(&attempt)
    }
}

/// What a shot that was not granted met, all at one revision.
struct Met {
    revision: i64,
    lock: Option<(Kv, GrantRecord)>,
    settled: bool,
    meta: Meta,
    /// Whether the session that was to hold the lock is open.
    open: bool,
    /// The lock that it was made for, if it is private.
    made_for: Option<String>,
}

/// Who shoots, as far as the transaction is concerned.
struct Shooter<'a> {
    request: &'a InsertRequest,
    owner: &'a OwnerId,
    asked: Ttl,
    ttl: Ttl,
    session: SessionId,
    private: bool,
}

impl Inner {
    pub(crate) async fn shoot(&self, request: &InsertRequest, by: Deadline) -> Result<Attempt> {
        self.wire.begin(by)?;
        for _ in 0..SHOTS {
            let shot = match &request.holder {
                Holder::Session(session) => self.shoot_for(request, session, by).await?,
                Holder::Private { owner, ttl } => {
                    self.shoot_privately(request, owner, *ttl, by).await?
                }
            };
            if let Some(attempt) = shot {
                return Ok(attempt);
            }
        }
        Err(LockError::contention("the lock changed hands faster than it could be looked at"))
    }

    /// One transaction for an open session; `None`: what stood in the way has gone.
    async fn shoot_for(
        &self,
        request: &InsertRequest,
        session: &Session,
        by: Deadline,
    ) -> Result<Option<Attempt>> {
        let meta = self.numbering(request.key.namespace(), by).await?;
        let shooter = Shooter {
            request,
            owner: &session.owner,
            // The deadline that comes with the session has the asked lifetime in it.
            asked: session.ttl,
            ttl: session.ttl,
            session: session.id,
            private: false,
        };
        if request.intent == Intent::Recover {
            return self.recover(&shooter, by).await;
        }
        let open = Compare::create_revision(self.keys.session(session.id), CompareOp::Greater, 0);
        let txn = self.grant_txn(&shooter, meta, [open], None);
        match self.wire.txn(txn, Effect::Writes, by).await {
            Ok(reply) if reply.held => {
                let deadline = session.client_deadline;
                self.granted(&shooter, meta, &reply, 1, deadline, by).await.map(Some)
            }
            Ok(reply) => self.decide(&shooter, meta, &reply, by).await,
            // The whole transaction fails with its lease, and does nothing.
            Err(Fail::NoLease) => Err(LockError::session_expired()),
            Err(other) => Err(other.into_error()),
        }
    }

    /// A look first, and only at a free lock a lease and the transaction; `None`: what stood in the
    /// way has gone.
    async fn shoot_privately(
        &self,
        request: &InsertRequest,
        owner: &OwnerId,
        asked: Ttl,
        by: Deadline,
    ) -> Result<Option<Attempt>> {
        let id = SessionId::from_bits(self.entropy.bits());
        let mut shooter = Shooter { request, owner, asked, ttl: asked, session: id, private: true };
        let meta = self.numbering(request.key.namespace(), by).await?;
        let look = Txn::new().and_then(self.met_gets(&shooter));
        let reply = self.wire.txn(look, Effect::Reads, by).await?;
        let met = self.met(&shooter, &reply)?;
        self.still_ahead(request.key.namespace(), met.meta)?;
        let free = met.lock.is_none() && !met.settled && met.meta == meta;
        if !free || request.intent == Intent::Recover {
            return self.decide_on(&shooter, meta, met, by).await;
        }
        let lease = self.keys.lease(id);
        self.privates.begun(request.attempt, id);
        let (sent, seconds) = self.wire.grant(lease, leases::seconds(asked), by).await?;
        shooter.ttl = leases::lifetime(seconds).unwrap_or(asked);
        let session = SessionRecord {
            owner: owner.clone(),
            asked,
            ttl: shooter.ttl,
            lock: Some(text(&self.keys.lock(&request.key))),
        };
        let new = Compare::create_revision(self.keys.private(id), CompareOp::Equal, 0);
        let txn = self.grant_txn(&shooter, meta, [new], Some(session));
        let answer = match self.wire.txn(txn, Effect::Writes, by).await {
            Ok(reply) if reply.held => {
                let deadline = sent.holder_deadline(asked, shooter.ttl);
                self.granted(&shooter, meta, &reply, 2, deadline, by).await.map(Some)
            }
            Ok(reply) => {
                self.let_go(lease);
                self.decide(&shooter, meta, &reply, by).await
            }
            // Somebody settled the attempt meanwhile.
            Err(Fail::NoLease) => Ok(None),
            // Unknown: the session stays remembered for `forget`.
            Err(other) => return Err(other.into_error()),
        };
        self.privates.known(request.attempt, id);
        answer
    }

    /// If the lock is free, the attempt unsettled and the numbering as it was: the grant, under the
    /// session's lease. Else what stands in the way.
    fn grant_txn<const N: usize>(
        &self,
        shooter: &Shooter<'_>,
        meta: Meta,
        more: [Compare; N],
        session: Option<SessionRecord>,
    ) -> Txn {
        let InsertRequest { key, attempt, .. } = shooter.request;
        let absent = |key| Compare::create_revision(key, CompareOp::Equal, 0);
        let mut compares = vec![
            absent(self.keys.lock(key)),
            absent(self.mark_of(shooter)),
            meta.compare(self.keys.meta(key.namespace())),
        ];
        compares.extend(more);
        let record = GrantRecord {
            owner: shooter.owner.clone(),
            session: shooter.session,
            private: shooter.private,
            attempt: *attempt,
            acquired_at: self.wire.clock.wall(),
            asked: shooter.asked,
            ttl: shooter.ttl,
        };
        let under = || Some(PutOptions::new().with_lease(self.keys.lease(shooter.session)));
        let mut puts = vec![TxnOp::put(self.keys.lock(key), record.encode(), under())];
        if let Some(session) = session {
            let key = self.keys.private(shooter.session);
            puts.push(TxnOp::put(key, session.encode(), under()));
        }
        puts.push(TxnOp::get(self.keys.floor(key), None));
        Txn::new().when(compares).and_then(puts).or_else(self.met_gets(shooter))
    }

    fn mark_of(&self, shooter: &Shooter<'_>) -> Vec<u8> {
        let namespace = shooter.request.key.namespace();
        let attempt = shooter.request.attempt;
        match shooter.private {
            true => self.keys.dead_private(namespace, attempt),
            false => self.keys.dead(namespace, shooter.session, attempt),
        }
    }

    /// The reads that [`Met`] is made of.
    fn met_gets(&self, shooter: &Shooter<'_>) -> Vec<TxnOp> {
        let key = &shooter.request.key;
        [
            self.keys.lock(key),
            self.mark_of(shooter),
            self.keys.meta(key.namespace()),
            self.keys.session(shooter.session),
            self.keys.private(shooter.session),
        ]
        .map(|key| TxnOp::get(key, None))
        .into()
    }

    fn met(&self, shooter: &Shooter<'_>, reply: &Reply) -> Result<Met> {
        let lock = match reply.one(0) {
            Some(kv) => Some((kv.clone(), GrantRecord::decode(&kv.key, &kv.value)?)),
            None => None,
        };
        let private = match reply.one(4) {
            Some(kv) => Some(SessionRecord::decode(&kv.key, &kv.value)?),
            None => None,
        };
        let meta = Meta::of(reply.one(2))?;
        self.numberings.learn(shooter.request.key.namespace(), meta);
        Ok(Met {
            revision: reply.revision,
            lock,
            settled: reply.one(1).is_some(),
            meta,
            open: reply.one(3).is_some() || private.is_some(),
            made_for: private.and_then(|record| record.lock),
        })
    }

    async fn recover(&self, shooter: &Shooter<'_>, by: Deadline) -> Result<Option<Attempt>> {
        let look = Txn::new().and_then(self.met_gets(shooter));
        let reply = self.wire.txn(look, Effect::Reads, by).await?;
        let met = self.met(shooter, &reply)?;
        let meta = met.meta;
        self.decide_on(shooter, meta, met, by).await
    }

    async fn decide(
        &self,
        shooter: &Shooter<'_>,
        used: Meta,
        reply: &Reply,
        by: Deadline,
    ) -> Result<Option<Attempt>> {
        let met = self.met(shooter, reply)?;
        self.decide_on(shooter, used, met, by).await
    }

    /// What a shot that was not granted came to.
    async fn decide_on(
        &self,
        shooter: &Shooter<'_>,
        used: Meta,
        met: Met,
        by: Deadline,
    ) -> Result<Option<Attempt>> {
        let InsertRequest { key, attempt, intent, .. } = shooter.request;
        if !shooter.private {
            if !met.open {
                return Err(LockError::session_expired());
            }
            if met.made_for.as_ref().is_some_and(|lock| *lock != text(&self.keys.lock(key))) {
                return Err(LockError::invalid(
                    "session_id",
                    "this session was made for another lock: open one for several",
                ));
            }
        }
        if met.settled {
            return Err(LockError::invalid("attempt_id", "this attempt was settled"));
        }
        let Some((kv, record)) = met.lock else {
            let nothing_to_find = *intent == Intent::Recover
                // A private session without its lock is about to end.
                || (met.made_for.is_some() && !shooter.private);
            let place = Place { revision: met.revision, grant: None };
            return Ok(nothing_to_find.then(|| Attempt::Held(Observed::new(place))));
        };
        if record.attempt != *attempt {
            let place = Place { revision: met.revision, grant: Some(kv.mod_revision) };
            return Ok(Some(Attempt::Held(Observed::new(place))));
        }
        let own = match shooter.private {
            true => {
                record.private && record.owner == *shooter.owner && record.asked == shooter.asked
            }
            false => record.session == shooter.session,
        };
        if !own {
            let text = "this attempt holds the lock for another";
            return Err(LockError::invalid("attempt_id", text));
        }
        if met.meta != used {
            return Ok(None);
        }
        self.recognise(key, &kv, record, met.meta, by).await
    }

    /// The attempt's own grant, found again: the deadline is what a look gives (INV-03). `None`: it
    /// has ended meanwhile.
    async fn recognise(
        &self,
        key: &LockKey,
        kv: &Kv,
        record: GrantRecord,
        meta: Meta,
        by: Deadline,
    ) -> Result<Option<Attempt>> {
        let lock = self.keys.lock(key);
        let still = Compare::mod_revision(lock.clone(), CompareOp::Equal, kv.mod_revision);
        let same = meta.compare(self.keys.meta(key.namespace()));
        let look = Txn::new()
            .when([still, same])
            .and_then([TxnOp::get(lock.clone(), None)])
            .or_else([TxnOp::get(lock, None)]);
        let Some((rest, reply)) = self.rest_then_look(kv.lease, false, &look, by).await? else {
            return Ok(None);
        };
        if !reply.held {
            return Ok(None);
        }
        Ok(Some(Attempt::Granted(LockHandle {
            key: key.clone(),
            token: meta.token(kv.mod_revision)?,
            ttl: record.ttl,
            client_deadline: rest.holder_deadline(record.asked.min(record.ttl)),
            server_expiry: self.shown_expiry(rest.left()),
            owner: record.owner,
            session: record.session,
        })))
    }

    /// A new grant: its token is the revision of this very answer (INV-02), and is checked against
    /// the floors that were read with it (INV-04, trap 16).
    async fn granted(
        &self,
        shooter: &Shooter<'_>,
        meta: Meta,
        reply: &Reply,
        floor_at: usize,
        deadline: Moment,
        by: Deadline,
    ) -> Result<Attempt> {
        let key = &shooter.request.key;
        let number = meta.number(reply.revision);
        let floor = reply.one(floor_at).map_or(0, |floor| meta.number(floor.mod_revision));
        let floor = floor.max(meta.namespace_floor());
        // The answer itself may be the first to show that the cluster went back.
        if let Err(incident) = self.still_ahead(key.namespace(), meta) {
            self.take_back(key, reply.revision, by).await;
            return Err(incident);
        }
        if number <= floor {
            self.take_back(key, reply.revision, by).await;
            return Err(LockError::incident(
                Invariant::TokensRise,
                format!("etcd granted {key:?} at {number}, which is not above its floor {floor}"),
            ));
        }
        let left = shooter.ttl.as_duration();
        Ok(Attempt::Granted(LockHandle {
            key: key.clone(),
            owner: shooter.owner.clone(),
            session: shooter.session,
            token: meta.token(reply.revision)?,
            ttl: shooter.ttl,
            client_deadline: deadline,
            server_expiry: match shooter.private {
                true => self.shown_expiry(left),
                false => {
                    let now = self.wire.clock.now();
                    self.shown_expiry(deadline.since(now).saturating_add(shooter.ttl.margin()))
                }
            },
        }))
    }

    /// Deletes the grant of this revision, if it can be.
    async fn take_back(&self, key: &LockKey, revision: i64, by: Deadline) {
        let txn = self.delete_txn(key, revision, None);
        if let Err(error) = self.wire.txn(txn, Effect::Writes, by).await {
            let error = error.into_error();
            tracing::error!(event = "lock_incident", %error, ?key, "a wrong grant stays until its lease ends");
        }
    }
}

/// A key in etcd as text: ours are all text.
pub(crate) fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
