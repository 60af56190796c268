//! The independent judge: what the next answer must be, from the answers before it.
//!
//! Written from the contracts (C1, C2) and sharing no code with any store or with the domain's
//! transition table: a mistake there is not repeated here by construction. It needs the stores'
//! real answers only for what they choose freely: tokens, floors, ids.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use dlock_domain::{
    Applied, AttemptId, ErrorKind, FencingToken, LockHandle, LockKey, LockOutcome, Moment,
    Namespace, OwnerId, Session, SessionId, Ttl,
};
use dlock_ports::{HeldGrant, Holder, InsertRequest, Intent, Kept, Raised};

use crate::call::{Answer, Call};

/// How often each thing was seen, by name.
pub type Seen = BTreeMap<&'static str, u64>;

/// A verdict: `Err` says in words which promise does not hold.
pub(crate) type Verdict = Result<(), String>;

/// What must be so in one store.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Whether holders' deadlines and the store's time are on the ledger's clock.
    exact: bool,
    keys: BTreeMap<LockKey, KeyBook>,
    /// By namespace (INV-04).
    floors: BTreeMap<Namespace, u64>,
    sessions: HashMap<SessionId, Lease>,
    settled: HashSet<(Option<SessionId>, LockKey, AttemptId)>,
    /// The highest token or floor answered so far for any key.
    highest: u64,
    seen: Seen,
}

#[derive(Clone, Debug, Default)]
struct KeyBook {
    /// The highest token ever granted or floor ever set (INV-04).
    highest: u64,
    live: Option<Live>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Live {
    token: FencingToken,
    session: SessionId,
    attempt: AttemptId,
}

#[derive(Clone, Debug)]
struct Lease {
    owner: OwnerId,
    /// What was asked.
    asked: Ttl,
    /// What the store made of it.
    ttl: Ttl,
    ends: Moment,
    private_to: Option<LockKey>,
}

/// The farthest that a floor may leap (C2).
const MAX_LEAP: u64 = 1 << 40;

impl Ledger {
    /// An empty ledger; `exact` where the store's leases end by the clock whose moments
    /// [`check`](Self::check) is given.
    #[must_use]
    pub fn new(exact: bool) -> Self {
        Self {
            exact,
            keys: BTreeMap::new(),
            floors: BTreeMap::new(),
            sessions: HashMap::new(),
            settled: HashSet::new(),
            highest: 0,
            seen: Seen::new(),
        }
    }

    /// How often each thing was seen.
    #[must_use]
    pub const fn seen(&self) -> &Seen {
        &self.seen
    }

    /// When the open sessions' leases end.
    pub(crate) fn lease_ends(&self) -> impl Iterator<Item = Moment> + '_ {
        self.sessions.values().map(|lease| lease.ends)
    }

    /// A call whose reply nobody will see, supposed to have been done now.
    pub(crate) fn suppose(&mut self, call: &Call, now: Moment) {
        self.sweep(now);
        match call {
            Call::Open { owner, ttl, id: Some(id), .. } => {
                if let Some(lease) = self.sessions.get_mut(id)
                    && lease.owner == *owner
                    && lease.asked == *ttl
                {
                    lease.ends = now.after(lease.ttl.as_duration());
                }
            }
            Call::KeepAlive(id, _) => self.extend(id, now),
            Call::Close(id) => {
                self.end_session(id);
            }
            Call::Forget(key, holder, attempt) => {
                self.settle(key, holder, *attempt);
            }
            Call::Extend(key, token) => {
                if let Some(live) = self.live(key).filter(|live| live.token == *token) {
                    self.extend(&live.session, now);
                }
            }
            Call::Delete(key, token) if self.is_live(key, *token) => self.end_grant(key),
            Call::Revoke(key, expected) => {
                let current = self.live(key).map(|live| live.token);
                if expected.is_none() || *expected == current {
                    self.end_grant(key);
                }
            }
            Call::Raise(namespace, at_least) if at_least.get() <= self.highest + MAX_LEAP => {
                self.end_namespace(namespace);
            }
            _ => {}
        }
    }

    /// Checks an answer that was given at `now` and takes note of it.
    ///
    /// # Errors
    /// Which promise it breaks.
    pub fn check(&mut self, call: &Call, answer: &Answer, now: Moment) -> Result<(), String> {
        self.sweep(now);
        if let Answer::Failed(kind, applied) = answer
            && *applied == Applied::Unknown
        {
            return Err(format!("{kind:?} of unknown outcome, with nothing to disturb the store"));
        }
        match (call, answer) {
            (Call::Open { owner, ttl, id, .. }, answer) => {
                self.opened(owner, *ttl, *id, answer, now)
            }
            (Call::KeepAlive(id, held), Answer::Kept(kept)) => {
                self.kept(id, held, kept.as_ref(), now)
            }
            (Call::Look(id), Answer::Looked(looked)) => self.looked(id, looked.as_ref(), now),
            (Call::Close(id), Answer::Did(did)) => {
                let alive = self.end_session(id);
                self.note("closed", "close of nothing", alive);
                same("close", &alive, did)
            }
            (Call::Forget(key, holder, attempt), Answer::Did(did)) => {
                let ended = self.settle(key, holder, *attempt);
                self.note("settled a grant", "settled nothing", ended);
                same("forget", &ended, did)
            }
            (Call::Insert(request), answer) => self.inserted(request, answer, now),
            (Call::Extend(key, token), Answer::Extended(handle)) => {
                self.extended(key, *token, handle.as_ref(), now)
            }
            (Call::Delete(key, token), Answer::Did(did)) => {
                let owner = self.is_live(key, *token);
                if owner {
                    self.end_grant(key);
                }
                self.note("released", "release refused", owner);
                same("INV-06: delete_if_owner", &owner, did)
            }
            (Call::Read(key), Answer::Info(info)) => {
                let live = self.live(key).map(|live| (live.token, Some(live.session)));
                self.note("read a holder", "read free", live.is_some());
                let told = info.as_ref().map(|info| (info.token, info.session));
                same("read", &live, &told)
            }
            (Call::Revoke(key, expected), Answer::Revoked(outcome)) => {
                self.revoked(key, *expected, outcome)
            }
            (Call::Reap(limit), Answer::Reaped(count)) if count <= limit => Ok(()),
            (Call::Raise(namespace, at_least), answer) => {
                self.raised(namespace, at_least.get(), answer)
            }
            (Call::List { namespace, prefix, after, limit }, Answer::Listed(page)) => {
                let mut expected: Vec<_> = self
                    .keys
                    .iter()
                    .filter(|(key, book)| key.namespace() == namespace && book.live.is_some())
                    .map(|(key, _)| key.name().clone())
                    .filter(|name| name.as_str().starts_with(&**prefix))
                    .filter(|name| after.as_ref().is_none_or(|after| name > after))
                    .collect();
                let most = usize::from(*limit).max(1);
                let more = expected.len() > most;
                expected.truncate(most);
                self.note("listed a part", "listed to the end", more);
                let told: Vec<_> = page.locks.iter().map(|info| info.key.name().clone()).collect();
                same("list", &expected, &told)?;
                same("list's next", &expected.last().filter(|_| more), &page.next.as_ref())
            }
            (_, answer) => Err(format!("unexpected {answer:?}")),
        }
    }

    fn opened(
        &mut self,
        owner: &OwnerId,
        asked: Ttl,
        id: Option<SessionId>,
        answer: &Answer,
        now: Moment,
    ) -> Verdict {
        let open = id.and_then(|id| self.sessions.get(&id));
        let other = open.is_some_and(|lease| lease.owner != *owner || lease.asked != asked);
        let again = open.is_some();
        match answer {
            Answer::Failed(ErrorKind::InvalidArgument { field: "session_id" }, _) if other => {
                self.count("open refused");
                Ok(())
            }
            Answer::Opened(session) if !other => {
                self.note("opened again", "opened", again);
                if id.is_some_and(|id| id != session.id) {
                    return Err("opened under another id than asked".into());
                }
                if id.is_none() && self.sessions.contains_key(&session.id) {
                    return Err("drew the id of a session that is open".into());
                }
                let lease = Lease {
                    owner: owner.clone(),
                    asked,
                    ttl: session.ttl,
                    ends: now.after(session.ttl.as_duration()),
                    private_to: None,
                };
                self.sessions.insert(session.id, lease);
                self.believable(session, now)
            }
            answer => Err(format!("open over {open:?} answered {answer:?}")),
        }
    }

    fn kept(
        &mut self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        kept: Option<&Kept>,
        now: Moment,
    ) -> Verdict {
        let alive = self.sessions.contains_key(id);
        self.note("kept alive", "keep-alive of nothing", alive);
        same("keep_alive finds the session", &alive, &kept.is_some())?;
        let Some(kept) = kept else { return Ok(()) };
        self.extend(id, now);
        let lost: Vec<_> = held
            .iter()
            .filter(|(key, token)| {
                !self.live(key).is_some_and(|live| live.token == *token && live.session == *id)
            })
            .cloned()
            .collect();
        if !lost.is_empty() {
            self.count("kept, with losses");
        }
        same("keep_alive's lost grants", &lost, &kept.lost)?;
        self.believable(&kept.session, now)
    }

    fn looked(
        &mut self,
        id: &SessionId,
        looked: Option<&(Session, Vec<HeldGrant>)>,
        now: Moment,
    ) -> Verdict {
        let alive = self.sessions.contains_key(id);
        self.note("looked", "look at nothing", alive);
        same("look finds the session", &alive, &looked.is_some())?;
        let Some((session, grants)) = looked else { return Ok(()) };
        let expected: Vec<_> = self
            .keys
            .iter()
            .filter_map(|(key, book)| Some((key, book.live.as_ref()?)))
            .filter(|(_, live)| live.session == *id)
            .map(|(key, live)| (key.clone(), live.token, live.attempt))
            .collect();
        let mut told: Vec<_> =
            grants.iter().map(|grant| (grant.key.clone(), grant.token, grant.attempt)).collect();
        told.sort();
        same("look's grants", &expected, &told)?;
        self.believable(session, now)
    }

    fn inserted(&mut self, request: &InsertRequest, answer: &Answer, now: Moment) -> Verdict {
        let InsertRequest { key, holder, attempt, intent } = request;
        let refused =
            |kind: &ErrorKind| *kind == ErrorKind::InvalidArgument { field: "attempt_id" };
        let of = match holder {
            Holder::Session(session) => Some(session.id),
            Holder::Private { .. } => None,
        };
        if of.is_some_and(|id| !self.sessions.contains_key(&id)) {
            self.count("insert for a dead session");
            return match answer {
                Answer::Failed(ErrorKind::SessionExpired, _) => Ok(()),
                answer => Err(format!("a dead session's insert answered {answer:?}")),
            };
        }
        if self.settled.contains(&(of, key.clone(), *attempt)) {
            self.count("insert of a settled attempt");
            return match answer {
                Answer::Failed(kind, _) if refused(kind) => Ok(()),
                answer => Err(format!("a settled attempt's insert answered {answer:?}")),
            };
        }
        match self.live(key) {
            Some(live) if live.attempt == *attempt => {
                if !self.holds(&live.session, key, holder) {
                    self.count("insert of another's attempt");
                    return match answer {
                        Answer::Failed(kind, _) if refused(kind) => Ok(()),
                        answer => Err(format!("another's attempt answered {answer:?}")),
                    };
                }
                self.count("recognised");
                let Answer::Granted(handle) = answer else {
                    return Err(format!("a repeat did not find its own grant: {answer:?}"));
                };
                same("INV-02: a repeat's token", &live.token, &handle.token)?;
                same("a repeat's session", &live.session, &handle.session)?;
                self.handle(key, handle, now)
            }
            Some(_) => {
                self.count("held");
                match answer {
                    Answer::Held => Ok(()),
                    answer => Err(format!("INV-01: a held lock answered {answer:?}")),
                }
            }
            None if *intent == Intent::Recover => {
                self.count("nothing to recover");
                match answer {
                    Answer::Held => Ok(()),
                    answer => Err(format!("recovering nothing answered {answer:?}")),
                }
            }
            None => match answer {
                Answer::Granted(handle) => self.granted(request, handle, now),
                answer => Err(format!("a free lock answered {answer:?}")),
            },
        }
    }

    fn granted(&mut self, request: &InsertRequest, handle: &LockHandle, now: Moment) -> Verdict {
        let InsertRequest { key, holder, attempt, .. } = request;
        self.count("granted");
        let bound = self.bound(key);
        if handle.token.get() <= bound {
            return Err(format!("INV-04: token {} is not above {bound} of {key:?}", handle.token));
        }
        let book = self.keys.entry(key.clone()).or_default();
        book.highest = handle.token.get();
        book.live = Some(Live { token: handle.token, session: handle.session, attempt: *attempt });
        self.highest = self.highest.max(handle.token.get());
        match holder {
            Holder::Session(session) => same("the grant's session", &session.id, &handle.session)?,
            Holder::Private { owner, ttl } => {
                let lease = Lease {
                    owner: owner.clone(),
                    asked: *ttl,
                    ttl: handle.ttl,
                    ends: now.after(handle.ttl.as_duration()),
                    private_to: Some(key.clone()),
                };
                if self.sessions.insert(handle.session, lease).is_some() {
                    return Err("a private session has the id of one that is open".into());
                }
            }
        }
        self.handle(key, handle, now)
    }

    fn extended(
        &mut self,
        key: &LockKey,
        token: FencingToken,
        handle: Option<&LockHandle>,
        now: Moment,
    ) -> Verdict {
        let live = self.live(key).filter(|live| live.token == token);
        self.note("extended", "extend of a lost grant", live.is_some());
        same("INV-06: extend", &live.is_some(), &handle.is_some())?;
        let (Some(live), Some(handle)) = (live, handle) else { return Ok(()) };
        self.extend(&live.session, now);
        same("an extended grant's token", &token, &handle.token)?;
        same("an extended grant's session", &live.session, &handle.session)?;
        self.handle(key, handle, now)
    }

    fn revoked(
        &mut self,
        key: &LockKey,
        expected: Option<FencingToken>,
        outcome: &LockOutcome,
    ) -> Verdict {
        let current = self.live(key).map(|live| live.token);
        if expected.is_some() && expected != current {
            self.count("revoke mismatched");
            return same("revoke", &LockOutcome::Mismatch { current }, outcome);
        }
        self.note("revoked", "revoked a free lock", current.is_some());
        let (previous, floor) = match outcome {
            LockOutcome::Revoked { previous, floor } => (Some(*previous), floor.get()),
            LockOutcome::Free { floor } => (None, floor.get()),
            LockOutcome::Mismatch { .. } => {
                return Err(format!("revoke of {current:?} answered {outcome:?}"));
            }
        };
        same("the revoked token", &current, &previous)?;
        self.end_grant(key);
        let bound = self.bound(key);
        if floor <= bound {
            return Err(format!("INV-04: floor {floor} is not above {bound} of {key:?}"));
        }
        self.keys.entry(key.clone()).or_default().highest = floor;
        self.highest = self.highest.max(floor);
        Ok(())
    }

    fn raised(&mut self, namespace: &Namespace, at_least: u64, answer: &Answer) -> Verdict {
        let too_far = at_least > self.highest + MAX_LEAP;
        match answer {
            Answer::Failed(ErrorKind::InvalidArgument { field: "at_least" }, _) if too_far => {
                self.count("raise refused");
                Ok(())
            }
            Answer::Raised(Raised { floor, grants_ended }) if !too_far => {
                let ended = self.end_namespace(namespace);
                self.note("raised over grants", "raised over nothing", ended > 0);
                same("grants ended by a raised floor", &ended, grants_ended)?;
                if floor.get() < at_least {
                    return Err(format!("floor {floor} is below the {at_least} asked for"));
                }
                let known = self.floors.entry(namespace.clone()).or_default();
                if floor.get() < *known {
                    return Err(format!("INV-04: floor {floor} is below {known}"));
                }
                *known = floor.get();
                self.highest = self.highest.max(floor.get());
                Ok(())
            }
            answer => Err(format!("raise to {at_least} answered {answer:?}")),
        }
    }

    /// What must be true of any handle to a live grant.
    fn handle(&self, key: &LockKey, handle: &LockHandle, now: Moment) -> Verdict {
        same("a handle's key", key, &handle.key)?;
        let session = Session {
            id: handle.session,
            owner: handle.owner.clone(),
            ttl: handle.ttl,
            client_deadline: handle.client_deadline,
        };
        self.believable(&session, now)
    }

    /// A session as it was answered: whose it is, and that its holder believes in it no longer
    /// than the lease lasts, less the margin (INV-03).
    fn believable(&self, session: &Session, now: Moment) -> Verdict {
        let Some(lease) = self.sessions.get(&session.id) else {
            return Err("INV-01: a dead session was answered as live".into());
        };
        same("a session's owner", &lease.owner, &session.owner)?;
        if session.ttl < lease.asked {
            return Err(format!("{:?} was asked, {:?} given", lease.asked, session.ttl));
        }
        let margin = Duration::from_millis(50).max(session.ttl.as_duration() / 50);
        let latest = lease.ends.before(margin).max(now);
        if self.exact && session.client_deadline > latest {
            return Err(format!(
                "INV-03: believed in for {:?}, where {:?} of the lease are left",
                session.client_deadline.since(now),
                lease.ends.since(now)
            ));
        }
        Ok(())
    }

    /// Whether this session is the one that the holder means.
    fn holds(&self, session: &SessionId, key: &LockKey, holder: &Holder) -> bool {
        match holder {
            Holder::Session(asked) => asked.id == *session,
            Holder::Private { owner, ttl } => self.sessions.get(session).is_some_and(|lease| {
                lease.private_to.as_ref() == Some(key)
                    && lease.owner == *owner
                    && lease.asked == *ttl
            }),
        }
    }

    /// Settles an attempt; whether that ended a grant. A dead session's attempts are settled.
    fn settle(&mut self, key: &LockKey, holder: &Holder, attempt: AttemptId) -> bool {
        let of = match holder {
            Holder::Session(session) if !self.sessions.contains_key(&session.id) => return false,
            Holder::Session(session) => Some(session.id),
            Holder::Private { .. } => None,
        };
        self.settled.insert((of, key.clone(), attempt));
        let own = self.live(key).filter(|live| live.attempt == attempt).is_some_and(|live| {
            of.map_or_else(
                || self.sessions.get(&live.session).is_some_and(|l| l.private_to.is_some()),
                |id| id == live.session,
            )
        });
        if own {
            self.end_grant(key);
        }
        own
    }

    /// What the key's next token must exceed (INV-04).
    fn bound(&self, key: &LockKey) -> u64 {
        let own = self.keys.get(key).map_or(0, |book| book.highest);
        own.max(self.floors.get(key.namespace()).copied().unwrap_or(0))
    }

    fn is_live(&self, key: &LockKey, token: FencingToken) -> bool {
        self.live(key).is_some_and(|live| live.token == token)
    }

    fn live(&self, key: &LockKey) -> Option<Live> {
        self.keys.get(key)?.live.clone()
    }

    fn extend(&mut self, id: &SessionId, now: Moment) {
        if let Some(lease) = self.sessions.get_mut(id) {
            lease.ends = now.after(lease.ttl.as_duration());
        }
    }

    fn end_grant(&mut self, key: &LockKey) {
        let Some(live) = self.keys.get_mut(key).and_then(|book| book.live.take()) else { return };
        if self.sessions.get(&live.session).is_some_and(|l| l.private_to.as_ref() == Some(key)) {
            self.end_session(&live.session);
        }
    }

    fn end_namespace(&mut self, namespace: &Namespace) -> u64 {
        let held: Vec<_> = self
            .keys
            .iter()
            .filter(|(key, book)| key.namespace() == namespace && book.live.is_some())
            .map(|(key, _)| key.clone())
            .collect();
        for key in &held {
            self.end_grant(key);
        }
        u64::try_from(held.len()).unwrap_or(u64::MAX)
    }

    /// A session's death frees all that it held.
    fn end_session(&mut self, id: &SessionId) -> bool {
        for book in self.keys.values_mut() {
            book.live.take_if(|live| live.session == *id);
        }
        self.settled.retain(|(of, ..)| *of != Some(*id));
        self.sessions.remove(id).is_some()
    }

    /// Ends every lease whose moment has come.
    fn sweep(&mut self, now: Moment) {
        let ended: Vec<_> =
            self.sessions.iter().filter(|(_, l)| now >= l.ends).map(|(id, _)| *id).collect();
        for id in &ended {
            if self.keys.values().any(|b| b.live.as_ref().is_some_and(|l| l.session == *id)) {
                self.count("expired with grants");
            }
            self.end_session(id);
        }
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn note(&mut self, yes: &'static str, no: &'static str, which: bool) {
        self.count(if which { yes } else { no });
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: &T, told: &T) -> Verdict {
    if expected == told {
        return Ok(());
    }
    Err(format!("{what}: must be {expected:?}, was {told:?}"))
}
