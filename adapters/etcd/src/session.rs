//! Sessions: the port [`SessionStore`].

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockError, LockKey, Namespace, OwnerId, Result, Session,
    SessionId, Ttl,
};
use dlock_ports::{HeldGrant, Holder, Kept, SessionStore};
use etcd_client::{Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};

use crate::{
    Inner,
    codec::{GrantRecord, SessionRecord},
    error::{Effect, Fail},
    leases,
    members::Line,
    numbering::Meta,
    wire::{Kv, Reply},
};

/// How many locks one transaction looks at: etcd takes 128 operations in one by default
/// (`max-txn-ops`), of which two are for the session, and each lock may be of another namespace.
const PER_TXN: usize = 63;

/// How often opening is begun anew when the session goes and comes meanwhile.
const TRIES: u32 = 4;

#[async_trait]
impl SessionStore for Inner {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        self.wire.begin(by)?;
        let chosen = id.unwrap_or_else(|| SessionId::from_bits(self.entropy.bits()));
        for _ in 0..TRIES {
            match self.wire.grant(self.keys.lease(chosen), leases::seconds(ttl), by).await {
                Ok((sent, seconds)) => {
                    let record = record_of(&owner, ttl, seconds);
                    let session = Session {
                        id: chosen,
                        owner: owner.clone(),
                        ttl: record.ttl,
                        client_deadline: sent.holder_deadline(ttl, record.ttl),
                    };
                    match self.write_session(chosen, &record, by).await? {
                        Written::New => return Ok(session),
                        // Somebody opened the very id at once, under our lease.
                        Written::Found(_) | Written::Gone => {}
                    }
                }
                Err(Fail::LeaseExists) if id.is_some() => {
                    if let Some(session) = self.open_again(chosen, &owner, ttl, by).await? {
                        return Ok(session);
                    }
                }
                Err(other) => return Err(other.into_error()),
            }
        }
        Err(LockError::contention("the session came and went while it was being opened")
            .maybe_applied())
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        self.wire.begin(by)?;
        let lease = self.keys.lease(*id);
        // The first look belongs to the keep-alive; more of them only where much is held, and all of
        // one term.
        let mut chunks = held.chunks(PER_TXN);
        let first = chunks.next().unwrap_or_default();
        let renewed = self.renew_then_look(lease, &self.held_txn(*id, first), by).await?;
        let Some((beat, reply)) = renewed else { return self.is_gone(*id, by).await };
        let Some(record) = session_in(&reply)? else { return Ok(None) };
        let mut lost = self.lost_of(first, lease, &reply)?;
        for chunk in chunks {
            let look = self.held_txn(*id, chunk);
            let reply = self.wire.txn_on(Line::Beats, look, Effect::Reads, by).await?;
            if reply.term != beat.term {
                return Err(LockError::contention(
                    "etcd's leader changed between the keep-alive and the look that confirms it",
                ));
            }
            if session_in(&reply)?.is_none() {
                return Ok(None);
            }
            lost.extend(self.lost_of(chunk, lease, &reply)?);
        }
        if record.lock.is_some()
            && lost.len() == held.len()
            && !self.lives(*id, &record, by).await?
        {
            return Ok(None);
        }
        let session = Session {
            id: *id,
            client_deadline: beat.holder_deadline(record.asked, record.ttl),
            owner: record.owner,
            ttl: record.ttl,
        };
        Ok(Some(Kept { session, lost }))
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        self.wire.begin(by)?;
        let look = Txn::new().and_then(self.session_gets(*id));
        let found = self.rest_then_look(self.keys.lease(*id), true, &look, by).await?;
        let Some((rest, reply)) = found else { return self.is_gone(*id, by).await };
        let Some(record) = session_in(&reply)? else { return Ok(None) };
        let keys: Vec<LockKey> =
            rest.keys.iter().filter_map(|key| self.keys.parse_lock(key)).collect();
        let mut grants = Vec::with_capacity(keys.len());
        for chunk in keys.chunks(PER_TXN) {
            grants.extend(self.grants_of(*id, chunk, by).await?);
        }
        // The list of keys is the leader's memory: only a look says that the lock is gone.
        if grants.is_empty() && !self.lives(*id, &record, by).await? {
            return Ok(None);
        }
        let session = Session {
            id: *id,
            client_deadline: rest.holder_deadline(record.asked.min(record.ttl)),
            owner: record.owner,
            ttl: record.ttl,
        };
        Ok(Some((session, grants)))
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        self.wire.begin(by)?;
        match holder {
            Holder::Session(session) => self.forget_for(key, session.id, attempt, by).await,
            Holder::Private { .. } => self.forget_private(key, attempt, by).await,
        }
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        self.wire.begin(by)?;
        self.wire.revoke(self.keys.lease(*id), by).await
    }
}

/// What writing a session's key came to.
enum Written {
    New,
    Found(SessionRecord),
    /// The lease has ended.
    Gone,
}

impl Inner {
    /// Opens a session whose lease is there already: it is open, or somebody died half way.
    async fn open_again(
        &self,
        id: SessionId,
        owner: &OwnerId,
        ttl: Ttl,
        by: Deadline,
    ) -> Result<Option<Session>> {
        let reply = self.session_reply(id, by).await?;
        if let Some(found) = session_in(&reply)?
            && (found.owner != *owner || found.asked != ttl || found.lock.is_some())
        {
            return Err(opened_otherwise());
        }
        let Some(beat) = self.wire.beat(self.keys.lease(id), by).await? else { return Ok(None) };
        let record = record_of(owner, ttl, beat.seconds);
        let found = match self.write_session(id, &record, by).await? {
            Written::New => record,
            Written::Found(found) if found.lock.is_none() => found,
            Written::Found(_) => return Err(opened_otherwise()),
            Written::Gone => return Ok(None),
        };
        if found.owner != *owner || found.asked != ttl {
            return Err(opened_otherwise());
        }
        // What the keep-alive said counts only once a look of the same term has confirmed it.
        let look = Txn::new().and_then(self.session_gets(id));
        let renewed = self.renew_then_look(self.keys.lease(id), &look, by).await?;
        let Some((beat, reply)) = renewed else { return Ok(None) };
        Ok(session_in(&reply)?.map(|record| Session {
            id,
            client_deadline: beat.holder_deadline(record.asked, record.ttl),
            owner: record.owner,
            ttl: record.ttl,
        }))
    }

    async fn write_session(
        &self,
        id: SessionId,
        record: &SessionRecord,
        by: Deadline,
    ) -> Result<Written> {
        let (session, private) = (self.keys.session(id), self.keys.private(id));
        let absent = |key: &Vec<u8>| Compare::create_revision(key.clone(), CompareOp::Equal, 0);
        let under = PutOptions::new().with_lease(self.keys.lease(id));
        let txn = Txn::new()
            .when([absent(&session), absent(&private)])
            .and_then([TxnOp::put(session, record.encode(), Some(under))])
            .or_else(self.session_gets(id));
        match self.wire.txn(txn, Effect::Writes, by).await {
            Ok(reply) if reply.held => Ok(Written::New),
            Ok(reply) => Ok(session_in(&reply)?.map_or(Written::Gone, Written::Found)),
            Err(Fail::NoLease) => Ok(Written::Gone),
            Err(other) => Err(other.into_error()),
        }
    }

    /// The reads that [`session_in`] is made of.
    pub(crate) fn session_gets(&self, id: SessionId) -> Vec<TxnOp> {
        [self.keys.session(id), self.keys.private(id)].map(|key| TxnOp::get(key, None)).into()
    }

    async fn session_reply(&self, id: SessionId, by: Deadline) -> Result<Reply> {
        let txn = Txn::new().and_then(self.session_gets(id));
        Ok(self.wire.txn(txn, Effect::Reads, by).await?)
    }

    /// Whoever was asked about the lease knows none: `Ok(None)` only if a linearizable look agrees.
    async fn is_gone<T>(&self, id: SessionId, by: Deadline) -> Result<Option<T>> {
        match session_in(&self.session_reply(id, by).await?)? {
            None => Ok(None),
            Some(_) => Err(leases::is_missing("session")),
        }
    }

    /// Whether a private session's lock is still its own: it dies with it, however the lock went.
    async fn lives(&self, id: SessionId, record: &SessionRecord, by: Deadline) -> Result<bool> {
        let Some(lock) = &record.lock else { return Ok(true) };
        let txn = Txn::new().and_then([TxnOp::get(lock.as_bytes(), None)]);
        let reply = self.wire.txn(txn, Effect::Reads, by).await?;
        let lives = reply.one(0).is_some_and(|kv| kv.lease == self.keys.lease(id));
        if !lives {
            self.let_go(self.keys.lease(id));
        }
        Ok(lives)
    }

    /// A look at the session and at what it is to hold: never nested, or it would cost a round of
    /// consensus (trap 8).
    fn held_txn(&self, id: SessionId, held: &[(LockKey, FencingToken)]) -> Txn {
        let mut gets = self.session_gets(id);
        let bare = || Some(GetOptions::new().with_keys_only());
        gets.extend(held.iter().map(|(key, _)| TxnOp::get(self.keys.lock(key), bare())));
        let namespaces = namespaces_of(held.iter().map(|(key, _)| key));
        gets.extend(namespaces.iter().map(|name| TxnOp::get(self.keys.meta(name), None)));
        Txn::new().and_then(gets)
    }

    /// Those that are not there, not of this number, or another session's.
    fn lost_of(
        &self,
        held: &[(LockKey, FencingToken)],
        lease: i64,
        reply: &Reply,
    ) -> Result<Vec<(LockKey, FencingToken)>> {
        let metas = self.metas_in(held.iter().map(|(key, _)| key), 2 + held.len(), reply)?;
        let mut lost = Vec::new();
        for (n, (key, token)) in held.iter().enumerate() {
            let meta = metas.get(key.namespace()).copied().unwrap_or_default();
            let there = reply
                .one(2 + n)
                .is_some_and(|kv| kv.lease == lease && kv.mod_revision == meta.revision(*token));
            if !there {
                lost.push((key.clone(), *token));
            }
        }
        Ok(lost)
    }

    /// The numberings that a look brought, which begin at its nth answer.
    fn metas_in<'a>(
        &self,
        keys: impl Iterator<Item = &'a LockKey>,
        first: usize,
        reply: &Reply,
    ) -> Result<HashMap<Namespace, Meta>> {
        let mut metas = HashMap::new();
        for (n, namespace) in namespaces_of(keys).into_iter().enumerate() {
            let meta = Meta::of(reply.one(first + n))?;
            self.learn(namespace, meta);
            metas.insert(namespace.clone(), meta);
        }
        Ok(metas)
    }

    /// The session's grants among these keys.
    async fn grants_of(
        &self,
        id: SessionId,
        keys: &[LockKey],
        by: Deadline,
    ) -> Result<Vec<HeldGrant>> {
        let mut gets: Vec<TxnOp> =
            keys.iter().map(|key| TxnOp::get(self.keys.lock(key), None)).collect();
        let namespaces = namespaces_of(keys.iter());
        gets.extend(namespaces.iter().map(|name| TxnOp::get(self.keys.meta(name), None)));
        let reply = self.wire.txn(Txn::new().and_then(gets), Effect::Reads, by).await?;
        let metas = self.metas_in(keys.iter(), keys.len(), &reply)?;
        let mut grants = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            let Some(Kv { key: at, value, mod_revision, .. }) = reply.one(n) else { continue };
            let record = GrantRecord::decode(at, value)?;
            if record.session == id {
                let meta = metas.get(key.namespace()).copied().unwrap_or_default();
                let token = meta.token(*mod_revision)?;
                grants.push(HeldGrant { key: key.clone(), token, attempt: record.attempt });
            }
        }
        Ok(grants)
    }
}

/// The namespaces of these keys, each once, in the order of their names.
fn namespaces_of<'a>(keys: impl Iterator<Item = &'a LockKey>) -> BTreeSet<&'a Namespace> {
    keys.map(LockKey::namespace).collect()
}

/// The session that a transaction with [`Inner::session_gets`] first found, private or not.
pub(crate) fn session_in(reply: &Reply) -> Result<Option<SessionRecord>> {
    let found = reply.one(0).or_else(|| reply.one(1));
    found.map(|kv| SessionRecord::decode(&kv.key, &kv.value)).transpose()
}

fn record_of(owner: &OwnerId, asked: Ttl, seconds: i64) -> SessionRecord {
    let ttl = leases::lifetime(seconds).unwrap_or(asked);
    SessionRecord { owner: owner.clone(), asked, ttl, lock: None }
}

fn opened_otherwise() -> LockError {
    LockError::invalid("session_id", "is open under another owner or lifetime")
}
