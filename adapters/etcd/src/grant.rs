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

/// The sessions made for private attempts that were not granted yet, as far as this process knows;
/// [`forget`](dlock_ports::SessionStore::forget) ends them at once, the oldest give way and end with
/// their leases.
pub(crate) struct PrivateAttempts(Mutex<LruCache<AttemptId, SessionId>>);

impl PrivateAttempts {
    pub(crate) fn new() -> Self {
        const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
        Self(Mutex::new(LruCache::new(REMEMBERED)))
    }

    /// The session of this attempt's shots: all of them have one, so that the end of its lease ends
    /// whichever of them was granted, and a late copy of any finds no lease.
    fn session_of(&self, attempt: AttemptId, fresh: SessionId) -> SessionId {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *attempts.get_or_insert(attempt, || fresh)
    }

    /// The attempt was granted: its session is the grant's from now on, and a repeat after that has
    /// ended is a new one's.
    fn granted(&self, attempt: AttemptId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop(&attempt);
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
                self.granted(&shooter, meta, &reply, deadline, by).await.map(Some)
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
        let fresh = SessionId::from_bits(self.entropy.bits());
        let id = self.privates.session_of(request.attempt, fresh);
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
        let (set, seconds) = match self.wire.grant(lease, leases::seconds(asked), by).await {
            Ok((sent, seconds)) => (Some(sent), seconds),
            // Another shot of this attempt made it, before or at this very moment. It serves them all.
            Err(Fail::LeaseExists) => match self.wire.rest(lease, false, by).await? {
                Some(rest) => (None, rest.whole),
                None => return Ok(None),
            },
            Err(other) => return Err(other.into_error()),
        };
        shooter.ttl = leases::lifetime(seconds).unwrap_or(asked);
        let session = SessionRecord {
            owner: owner.clone(),
            asked,
            ttl: shooter.ttl,
            lock: Some(text(&self.keys.lock(&request.key))),
        };
        let new = Compare::create_revision(self.keys.private(id), CompareOp::Equal, 0);
        let txn = self.grant_txn(&shooter, meta, [new], Some(session));
        match self.wire.txn(txn, Effect::Writes, by).await {
            Ok(reply) if reply.held => {
                // Who set the lease counts from before that (INV-03).
                let deadline = set
                    .map_or(Moment::from_nanos(0), |sent| sent.holder_deadline(asked, shooter.ttl));
                let granted = self.granted(&shooter, meta, &reply, deadline, by).await?;
                self.privates.granted(request.attempt);
                match set {
                    Some(_) => Ok(Some(granted)),
                    // Who did not looks what is left of it.
                    None => {
                        let at = self.keys.lock(&request.key);
                        let (mod_revision, record) = (reply.revision, self.record_of(&shooter));
                        let kv = Kv { key: at, value: Vec::new(), mod_revision, lease };
                        self.recognise(&request.key, &kv, record, meta, by).await
                    }
                }
            }
            Ok(reply) => {
                let decided = self.decide(&shooter, meta, &reply, by).await;
                // Unless an earlier shot holds the lock by this very lease.
                if !matches!(decided, Ok(Some(Attempt::Granted(_)))) {
                    self.let_go(lease);
                }
                decided
            }
            // Somebody settled the attempt meanwhile.
            Err(Fail::NoLease) => Ok(None),
            Err(other) => Err(other.into_error()),
        }
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
        let key = &shooter.request.key;
        let absent = |key| Compare::create_revision(key, CompareOp::Equal, 0);
        let mut compares = vec![
            absent(self.keys.lock(key)),
            absent(self.mark_of(shooter)),
            meta.compare(self.keys.meta(key.namespace())),
        ];
        compares.extend(more);
        let record = self.record_of(shooter);
        let under = || Some(PutOptions::new().with_lease(self.keys.lease(shooter.session)));
        let mut ops = vec![
            TxnOp::get(self.keys.floor(key), None),
            TxnOp::put(self.keys.lock(key), record.encode(), under()),
        ];
        if let Some(session) = session {
            let key = self.keys.private(shooter.session);
            ops.push(TxnOp::put(key, session.encode(), under()));
        }
        Txn::new().when(compares).and_then(ops).or_else(self.met_gets(shooter))
    }

    fn record_of(&self, shooter: &Shooter<'_>) -> GrantRecord {
        GrantRecord {
            owner: shooter.owner.clone(),
            session: shooter.session,
            private: shooter.private,
            attempt: shooter.request.attempt,
            acquired_at: self.wire.clock.wall(),
            asked: shooter.asked,
            ttl: shooter.ttl,
        }
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
        self.learn(shooter.request.key.namespace(), meta);
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
        deadline: Moment,
        by: Deadline,
    ) -> Result<Attempt> {
        let key = &shooter.request.key;
        let number = meta.number(reply.revision);
        let floor = reply.one(0).map_or(0, |floor| meta.number(floor.mod_revision));
        let floor = floor.max(meta.namespace_floor());
        // The answer itself may be the first to show that the cluster went back.
        let checked = self.still_ahead(key.namespace(), meta).and_then(|()| {
            if number > floor {
                return meta.token(reply.revision);
            }
            let text = format!("etcd granted {key:?} at {number}, not above its floor {floor}");
            Err(LockError::incident(Invariant::TokensRise, text))
        });
        let token = match checked {
            Ok(token) => token,
            Err(incident) if self.take_back(key, reply.revision, by).await => return Err(incident),
            Err(incident) => return Err(incident.maybe_applied()),
        };
        let left = shooter.ttl.as_duration();
        Ok(Attempt::Granted(LockHandle {
            key: key.clone(),
            owner: shooter.owner.clone(),
            session: shooter.session,
            token,
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

    /// Deletes the grant of this revision; whether it is gone for certain.
    async fn take_back(&self, key: &LockKey, revision: i64, by: Deadline) -> bool {
        let txn = self.delete_txn(key, revision, None);
        match self.wire.txn(txn, Effect::Writes, by).await {
            Ok(_) => true,
            Err(other) => {
                let error = other.into_error();
                let text = "a wrong grant stays until its lease ends";
                tracing::error!(event = "lock_incident", %error, ?key, "{text}");
                false
            }
        }
    }
}

/// A key in etcd as text: ours are all text.
pub(crate) fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
