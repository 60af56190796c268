//! How a grant is made, or an attempt's own grant found again.

use std::{num::NonZeroUsize, sync::Mutex};

use diesel::{
    sql_query,
    sql_types::{BigInt, Binary, Bool, Nullable, Text},
};
use dlock_domain::{
    Deadline, FencingToken, Invariant, LockError, LockHandle, LockKey, Moment, Result, SessionId,
};
use dlock_ports::{Attempt, Holder, InsertRequest, Intent, Observed};
use futures_util::{FutureExt, TryFutureExt};
use lru::LruCache;

use crate::{
    Inner, codec,
    connection::Line,
    error::Failure,
    key::Key,
    rows::{GrantRow, HolderRow, SessionRow, There},
    sql,
    wire::{Terms, Work},
};

/// How many locks are remembered as recently found held.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();

/// How often an attempt begins again whose row was forgotten under its hands.
const TRIES: u32 = 3;

/// Locks that were found held: the next attempt looks before it writes (trap 28).
pub(crate) struct RecentlyHeld(Mutex<LruCache<LockKey, ()>>);

impl Default for RecentlyHeld {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(REMEMBERED)))
    }
}

impl RecentlyHeld {
    fn contains(&self, key: &LockKey) -> bool {
        self.cache().get(key).is_some()
    }

    fn note(&self, key: &LockKey, held: bool) {
        if held {
            self.cache().put(key.clone(), ());
        } else {
            self.cache().pop(key);
        }
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, LruCache<LockKey, ()>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What is seen of a lock by an attempt for it.
struct Seen {
    /// The asking session, unless the attempt is a private one.
    own: Option<SessionRow>,
    /// Absent: nobody ever held the lock, or it was forgotten.
    holder: Option<HolderRow>,
}

impl Inner {
    pub(crate) async fn insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        let looks = request.intent == Intent::Recover || self.recently_held.contains(&request.key);
        if looks {
            let sent = self.wire.clock.now();
            let mut seen = self.wire.transact(Terms::LOOK, by, look(&request, false)).await?;
            // A keep-alive that is being committed hides what it keeps from those who only look.
            let hidden = is_open(&request.holder) && seen.own.is_none();
            if hidden || request.intent == Intent::Recover {
                seen = self.wire.transact(Terms::FIND_OUT, by, look(&request, true)).await?;
            }
            let found = self.judge(&request, &seen, sent)?;
            if let Some(attempt) = found {
                self.recently_held.note(&request.key, matches!(attempt, Attempt::Held(_)));
                return Ok(attempt);
            }
            if request.intent == Intent::Recover {
                return Ok(held(seen.holder.as_ref().map_or(0, |row| row.fence)));
            }
        }
        for _ in 0..TRIES {
            let sent = self.wire.clock.now();
            let fresh = SessionId::from_bits(self.entropy.bits());
            let work = self.take(&request, fresh);
            let (own, row) = self.wire.transact(Terms::TAKE, by, work).await?;
            if is_open(&request.holder) && own.is_none() {
                let granted = row.as_ref().is_some_and(|row| row.granted.is_some());
                return Err(if granted {
                    let opened = "the session was opened while it was asked for: repeat";
                    LockError::contention(opened).maybe_applied()
                } else {
                    LockError::session_expired()
                });
            }
            // Without a row the lock was forgotten between two statements: it is free, so again.
            let Some(row) = row else { continue };
            let attempt = self.granted_or_not(&request, fresh, own, row, sent)?;
            self.recently_held.note(&request.key, matches!(attempt, Attempt::Held(_)));
            return Ok(attempt);
        }
        Err(LockError::contention("the lock's row is forgotten again and again"))
    }

    /// The transaction that takes a free lock.
    fn take(
        &self,
        request: &InsertRequest,
        fresh: SessionId,
    ) -> Work<(Option<SessionRow>, Option<GrantRow>)> {
        let key = Key::of(&request.key);
        let attempt = codec::id_bytes(request.attempt.bits()).to_vec();
        let any_history = self.any_history;
        let mark = mark(&request.holder);
        let (id, private, owner, ttl) = match &request.holder {
            Holder::Session(session) => (session.id, false, session.owner.clone(), session.ttl),
            Holder::Private { owner, ttl } => (fresh, true, owner.clone(), *ttl),
        };
        let id = codec::id_bytes(id.bits()).to_vec();
        let (owner, ttl) = (owner.as_str().to_owned(), codec::column(ttl.as_millis()));
        Box::new(move |line: Line| {
            let expire = line.rows::<There>(key.ask(sql::EXPIRE_HOLDER));
            // Waits for a keep-alive that is being committed, so that none is called gone.
            let ended = line.rows::<There>(sql_query(sql::EXPIRE).bind::<Binary, _>(&id));
            let own = line.rows::<SessionRow>(sql_query(sql::SHARE_SESSION).bind::<Binary, _>(&id));
            let ensure = line.rows::<There>(
                key.ask(sql::ENSURE_LOCK).bind::<Nullable<Binary>, _>((!private).then_some(&id)),
            );
            let lock = line.rows::<There>(key.ask(sql::LOCK_LOCK));
            let grant = line.rows::<GrantRow>(
                key.ask(sql::GRANT)
                    .bind::<Binary, _>(&id)
                    .bind::<Binary, _>(&attempt)
                    .bind::<Bool, _>(private)
                    .bind::<Text, _>(&owner)
                    .bind::<BigInt, _>(ttl)
                    .bind::<Binary, _>(&mark)
                    .bind::<Bool, _>(any_history),
            );
            async move {
                let (_, _, own, _, _, grant) =
                    futures_util::try_join!(expire, ended, own, ensure, lock, grant)?;
                Ok((own.into_iter().next(), grant.into_iter().next()))
            }
            .boxed()
        })
    }

    fn granted_or_not(
        &self,
        request: &InsertRequest,
        fresh: SessionId,
        own: Option<SessionRow>,
        row: GrantRow,
        sent: Moment,
    ) -> Result<Attempt> {
        let GrantRow { holder, floor, same_history, fit, drawn, granted } = row;
        if let Some(granted) = granted {
            let token = codec::token(granted)?;
            let (session, left) = match (&request.holder, &own) {
                (Holder::Session(session), Some(own)) => {
                    (own.looked(session.id, sent)?, codec::left(own.left_ms))
                }
                (Holder::Session(_), None) => return Err(LockError::session_expired()),
                (Holder::Private { owner, ttl }, _) => {
                    let client_deadline = sent.holder_deadline(*ttl, *ttl);
                    let session = dlock_domain::Session {
                        id: fresh,
                        owner: owner.clone(),
                        ttl: *ttl,
                        client_deadline,
                    };
                    (session, ttl.as_duration())
                }
            };
            return Ok(Attempt::Granted(self.handle(&request.key, session, token, left)));
        }
        let fence = holder.fence;
        let seen = Seen { own, holder: Some(holder) };
        if let Some(attempt) = self.judge(request, &seen, sent)? {
            return Ok(attempt);
        }
        if let Some(drawn) = drawn {
            return Err(gone_back(&request.key, drawn, fence, floor));
        }
        if !same_history {
            return Err(LockError::incident(
                Invariant::TokensRise,
                format!(
                    "the database is another one than the one that gave the last tokens, or has gone \
                     over to another timeline, and may have lost some: raise the floor of namespace \
                     {} above every token that a resource has accepted (`dlock floor raise`) before \
                     anything is granted, or say `postgres.after_failover = \"trust\"` where no \
                     commit can be lost",
                    request.key.namespace(),
                ),
            ));
        }
        if !fit {
            // It ended between two statements.
            return Err(LockError::session_expired());
        }
        // Its holder's session ended between two statements: the next attempt finds it free.
        Ok(held(fence))
    }

    /// What there is to say without granting anything; `None`: the lock is free.
    fn judge(&self, request: &InsertRequest, seen: &Seen, sent: Moment) -> Result<Option<Attempt>> {
        if is_open(&request.holder) && seen.own.is_none() {
            return Err(LockError::session_expired());
        }
        let of = codec::place(&request.key);
        let live = match &seen.holder {
            Some(row) if row.settled => {
                return Err(LockError::invalid(
                    "attempt_id",
                    "this attempt was settled: it can never be granted; choose a new id",
                ));
            }
            Some(row) => row.session(&of)?.map(|live| (row, live)),
            None => None,
        };
        let asks = match &request.holder {
            Holder::Session(session) => Some(session.id),
            Holder::Private { .. } => None,
        };
        if seen.own.as_ref().is_some_and(|own| own.private)
            && live.as_ref().is_none_or(|(_, (id, _))| Some(*id) != asks)
        {
            return Err(LockError::invalid(
                "session_id",
                "this session was made for another lock: open one for several",
            ));
        }
        let Some((row, (id, session))) = live else { return Ok(None) };
        let attempt = codec::id_bytes(request.attempt.bits());
        if row.attempt.as_deref() != Some(&attempt) {
            return Ok(Some(held(row.fence)));
        }
        let found = session.looked(id, sent)?;
        let same = match &request.holder {
            Holder::Session(asked) => asked.id == id,
            Holder::Private { owner, ttl } => {
                session.private && found.owner == *owner && found.ttl == *ttl
            }
        };
        if !same {
            return Err(LockError::invalid(
                "attempt_id",
                "this attempt holds the lock for another session, owner or lifetime",
            ));
        }
        let left = codec::left(session.left_ms);
        let token = codec::token(row.fence)?;
        Ok(Some(Attempt::Granted(self.handle(&request.key, found, token, left))))
    }

    pub(crate) fn handle(
        &self,
        key: &LockKey,
        session: dlock_domain::Session,
        token: FencingToken,
        left: std::time::Duration,
    ) -> LockHandle {
        LockHandle {
            key: key.clone(),
            owner: session.owner,
            session: session.id,
            token,
            ttl: session.ttl,
            client_deadline: session.client_deadline,
            server_expiry: self.wire.clock.wall().after(left),
        }
    }
}

/// Looks at a lock and at the asking session.
///
/// Where it is to be certain, it comes after whoever is just keeping them alive.
fn look(request: &InsertRequest, certain: bool) -> Work<Seen> {
    let key = Key::of(&request.key);
    let attempt = codec::id_bytes(request.attempt.bits()).to_vec();
    let mark = mark(&request.holder);
    let own = match &request.holder {
        Holder::Session(session) => Some(codec::id_bytes(session.id.bits()).to_vec()),
        Holder::Private { .. } => None,
    };
    Box::new(move |line: Line| {
        let first = certain.then(|| {
            let id = own.as_deref().unwrap_or(codec::NO_SESSION);
            let ended = line.rows::<There>(sql_query(sql::EXPIRE).bind::<Binary, _>(id));
            futures_util::future::try_join(line.rows::<There>(key.ask(sql::EXPIRE_HOLDER)), ended)
        });
        let first = async move {
            match first {
                Some(first) => first.await.map(drop),
                None => Ok(()),
            }
        };
        let own = own
            .as_ref()
            .map(|id| line.rows::<SessionRow>(sql_query(sql::LOOK_SESSION).bind::<Binary, _>(id)));
        let own = async move {
            match own {
                Some(own) => Ok::<_, Failure>(own.await?.into_iter().next()),
                None => Ok(None),
            }
        };
        let holder = line
            .rows::<HolderRow>(
                key.ask(sql::LOOK_LOCK).bind::<Binary, _>(&mark).bind::<Binary, _>(&attempt),
            )
            .map_ok(|rows| rows.into_iter().next());
        async move {
            let ((), own, holder) = futures_util::try_join!(first, own, holder)?;
            Ok(Seen { own, holder })
        }
        .boxed()
    })
}

fn held(fence: i64) -> Attempt {
    Attempt::Held(Observed::new(codec::number(fence)))
}

/// The sequence gave a number that the lock has seen already, or that lies below the floor (C44); or
/// nobody knows the floor any more.
pub(crate) fn gone_back(key: &LockKey, drawn: i64, fence: i64, floor: Option<i64>) -> LockError {
    let place = codec::place(key);
    let what = match floor {
        Some(floor) => format!(
            "the sequence of tokens has gone back: it gave {drawn} for {place}, which has seen {}",
            fence.max(floor)
        ),
        None => "the row of dlock_meta is gone, and with it the floor below all tokens".to_owned(),
    };
    let namespace = key.namespace();
    let way_out = format!("raise the floor of namespace {namespace} (`dlock floor raise`)");
    LockError::incident(Invariant::TokensRise, format!("{what}; {way_out}"))
}

fn is_open(holder: &Holder) -> bool {
    matches!(holder, Holder::Session(_))
}

/// Under which session an attempt's mark stands.
fn mark(holder: &Holder) -> Vec<u8> {
    match holder {
        Holder::Session(session) => codec::id_bytes(session.id.bits()).to_vec(),
        Holder::Private { .. } => codec::NO_SESSION.to_vec(),
    }
}
