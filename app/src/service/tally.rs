//! What this server granted and opened and has not seen end: numbers for people, and whose a token
//! was for log lines. Never the basis of ownership.
//!
//! It counts by leases. A grant ends with its session's lease, so that the end of a session ends
//! the count of all that it held in one step; grants that are left over without a lease go with
//! the next sweep. Each call touches one grant and one lease; a sweep and a raised floor look at
//! all of them.
//!
//! It errs where the store knows more than this server has seen: a session that another server
//! keeps alive counts as ended when the lease that was seen here has passed, and a grant that was
//! ended elsewhere counts until then.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlock_domain::{
    AttemptId, FencingToken, LockHandle, LockKey, Moment, Namespace, OwnerId, Session, SessionId,
    TokenFloor, Ttl,
};

/// Grants, and sessions, that are counted at the most; further ones are not.
const MOST: usize = 1_000_000;

/// The count.
pub(crate) struct Tally {
    inner: Mutex<Inner>,
}

struct Inner {
    /// At most one per key is live in the store, so that a newer one tells of the older one's end.
    grants: HashMap<LockKey, Grant>,
    leases: HashMap<SessionId, Lease>,
    held: usize,
    opened: usize,
    most: usize,
}

struct Grant {
    token: FencingToken,
    attempt: AttemptId,
    session: SessionId,
}

struct Lease {
    owner: OwnerId,
    until: Moment,
    /// Opened here, as a session; else it is known by what it holds only.
    opened: bool,
    held: usize,
}

/// The lease of which this is the holder's deadline ends no earlier than that.
fn lease_end(client_deadline: Moment, ttl: Ttl) -> Moment {
    client_deadline.after(ttl.margin())
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self::with_most(MOST)
    }

    fn with_most(most: usize) -> Self {
        let inner =
            Inner { grants: HashMap::new(), leases: HashMap::new(), held: 0, opened: 0, most };
        Self { inner: Mutex::new(inner) }
    }

    /// A session was opened here.
    pub(crate) fn opened(&self, session: &Session) {
        let inner = &mut *self.inner();
        if inner.opened >= inner.most {
            return;
        }
        let lease = inner.leases.entry(session.id).or_insert_with(|| Lease {
            owner: session.owner.clone(),
            until: Moment::from_nanos(0),
            opened: false,
            held: 0,
        });
        lease.until = lease.until.max(lease_end(session.client_deadline, session.ttl));
        inner.opened += usize::from(!lease.opened);
        lease.opened = true;
    }

    /// A lock was granted here; the same grant again counts once.
    pub(crate) fn granted(&self, handle: &LockHandle, attempt: AttemptId) {
        let inner = &mut *self.inner();
        let until = lease_end(handle.client_deadline, handle.ttl);
        match inner.grants.get(&handle.key).map(|grant| grant.token) {
            // A newer grant was seen before the news of this one.
            Some(token) if token > handle.token => return,
            Some(token) if token == handle.token && inner.extend(&handle.session, until) => return,
            Some(_) => drop(inner.end(&handle.key)),
            None if inner.grants.len() >= inner.most => return,
            None => {}
        }
        let lease = inner.leases.entry(handle.session).or_insert_with(|| Lease {
            owner: handle.owner.clone(),
            until,
            opened: false,
            held: 0,
        });
        lease.until = lease.until.max(until);
        lease.held += 1;
        inner.held += 1;
        let grant = Grant { token: handle.token, attempt, session: handle.session };
        inner.grants.insert(handle.key.clone(), grant);
    }

    /// A session's lease was extended, by whatever call.
    pub(crate) fn extended(&self, session: &SessionId, client_deadline: Moment, ttl: Ttl) {
        self.inner().extend(session, lease_end(client_deadline, ttl));
    }

    /// The grant under this token has ended; its owner, if it was counted.
    pub(crate) fn ended(&self, key: &LockKey, token: FencingToken) -> Option<OwnerId> {
        self.inner().end_if(key, |grant| grant.token == token).map(|(_, owner)| owner)
    }

    /// The grant of this attempt has ended; its token, if it was counted.
    pub(crate) fn settled(&self, key: &LockKey, attempt: AttemptId) -> Option<FencingToken> {
        self.inner().end_if(key, |grant| grant.attempt == attempt).map(|(token, _)| token)
    }

    /// The key's floor was raised: what it no longer admits has ended. The owner, if it was
    /// counted.
    pub(crate) fn revoked(&self, key: &LockKey, floor: TokenFloor) -> Option<OwnerId> {
        self.inner().end_if(key, |grant| !floor.admits(grant.token)).map(|(_, owner)| owner)
    }

    /// The namespace's floor was raised, as [`revoked`](Self::revoked).
    pub(crate) fn floor_raised(&self, namespace: &Namespace, floor: TokenFloor) {
        let mut inner = self.inner();
        let ends = |(key, grant): &(&LockKey, &Grant)| {
            key.namespace() == namespace && !floor.admits(grant.token)
        };
        let ended: Vec<_> = inner.grants.iter().filter(ends).map(|(key, _)| key.clone()).collect();
        for key in ended {
            inner.end(&key);
        }
    }

    /// The session has ended, and all that it held; its owner, if it was counted.
    pub(crate) fn session_ended(&self, session: &SessionId) -> Option<OwnerId> {
        let mut inner = self.inner();
        let lease = inner.leases.remove(session)?;
        inner.held -= lease.held;
        inner.opened -= usize::from(lease.opened);
        Some(lease.owner)
    }

    /// Lets go of the leases that have passed, and of the grants without a lease.
    pub(crate) fn sweep(&self, now: Moment) {
        let Inner { grants, leases, held, opened, .. } = &mut *self.inner();
        leases.retain(|_, lease| {
            let live = lease.until > now;
            if !live {
                *held -= lease.held;
                *opened -= usize::from(lease.opened);
            }
            live
        });
        grants.retain(|_, grant| leases.contains_key(&grant.session));
    }

    /// Grants, and opened sessions.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.held, inner.opened)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing that is done under the lock panics half way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn extend(&mut self, session: &SessionId, until: Moment) -> bool {
        let Some(lease) = self.leases.get_mut(session) else { return false };
        lease.until = lease.until.max(until);
        true
    }

    fn end_if(
        &mut self,
        key: &LockKey,
        ends: impl FnOnce(&Grant) -> bool,
    ) -> Option<(FencingToken, OwnerId)> {
        let token = self.grants.get(key).filter(|grant| ends(grant))?.token;
        Some((token, self.end(key)?))
    }

    /// Stops counting this key's grant; its owner, if its lease was still counted.
    fn end(&mut self, key: &LockKey) -> Option<OwnerId> {
        let grant = self.grants.remove(key)?;
        let lease = self.leases.get_mut(&grant.session)?;
        lease.held -= 1;
        self.held -= 1;
        let owner = lease.owner.clone();
        if lease.held == 0 && !lease.opened {
            self.leases.remove(&grant.session);
        }
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dlock_domain::{LockName, WallTime};

    use super::*;

    fn ttl() -> Ttl {
        Ttl::from_millis(10_000).unwrap()
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(0).after(Duration::from_secs(seconds))
    }

    fn key(name: &str) -> LockKey {
        LockKey::new(Namespace::default(), LockName::new(name).unwrap())
    }

    fn session(id: u128) -> Session {
        let client_deadline = at(0).after(ttl().reliable());
        let owner = OwnerId::new(&format!("owner-{id}")).unwrap();
        Session { id: SessionId::from_bits(id), owner, ttl: ttl(), client_deadline }
    }

    fn grant(name: &str, token: u64, id: u128) -> LockHandle {
        let Session { id, owner, ttl, client_deadline } = session(id);
        LockHandle {
            key: key(name),
            owner,
            session: id,
            token: FencingToken::from_user(token).unwrap(),
            ttl,
            client_deadline,
            server_expiry: WallTime::from_unix_millis(0),
        }
    }

    fn give(tally: &Tally, name: &str, token: u64, id: u128) {
        tally.granted(&grant(name, token, id), AttemptId::from_bits(token.into()));
    }

    fn end(tally: &Tally, name: &str, token: u64) -> Option<String> {
        let token = FencingToken::from_user(token).unwrap();
        tally.ended(&key(name), token).map(|owner| owner.as_str().to_owned())
    }

    /// Entries: what takes memory.
    fn kept(tally: &Tally) -> (usize, usize) {
        let inner = tally.inner();
        (inner.grants.len(), inner.leases.len())
    }

    #[test]
    fn a_grant_counts_once_and_ends_once_under_its_own_token() {
        let tally = Tally::new();
        give(&tally, "a", 1, 1);
        give(&tally, "a", 1, 1);
        assert_eq!(tally.counts(), (1, 0), "a private session is no session of its own");
        assert_eq!(end(&tally, "a", 2), None);
        assert_eq!(end(&tally, "a", 1).as_deref(), Some("owner-1"));
        assert_eq!(end(&tally, "a", 1), None);
        assert_eq!(tally.counts(), (0, 0));
        assert_eq!(kept(&tally), (0, 0));
    }

    #[test]
    fn a_newer_grant_tells_of_the_older_ones_end_and_late_news_changes_nothing() {
        let tally = Tally::new();
        give(&tally, "a", 5, 1);
        give(&tally, "a", 7, 2);
        give(&tally, "a", 5, 1);
        assert_eq!(tally.counts(), (1, 0));
        assert_eq!(end(&tally, "a", 5), None);
        assert_eq!(end(&tally, "a", 7).as_deref(), Some("owner-2"));
    }

    #[test]
    fn the_end_of_a_session_ends_what_it_held_and_nothing_else() {
        let tally = Tally::new();
        tally.opened(&session(1));
        tally.opened(&session(1));
        for (name, id) in [("a", 1), ("b", 1), ("c", 2)] {
            give(&tally, name, 1, id);
        }
        assert_eq!(tally.counts(), (3, 1));
        let owner = tally.session_ended(&SessionId::from_bits(1));
        assert_eq!(owner.as_ref().map(OwnerId::as_str), Some("owner-1"));
        assert_eq!(tally.session_ended(&SessionId::from_bits(1)), None);
        assert_eq!(tally.counts(), (1, 0));
        // Left over without a lease: neither its end nor the next grant counts it again.
        assert_eq!(end(&tally, "a", 1), None);
        give(&tally, "b", 2, 2);
        assert_eq!(tally.counts(), (2, 0));
    }

    #[test]
    fn an_open_session_stays_when_its_last_grant_ends() {
        let tally = Tally::new();
        give(&tally, "a", 1, 1);
        tally.opened(&session(1));
        end(&tally, "a", 1);
        assert_eq!(tally.counts(), (0, 1));
    }

    #[test]
    fn what_is_not_extended_ends_with_its_lease() {
        let tally = Tally::new();
        tally.opened(&session(1));
        give(&tally, "a", 1, 1);
        give(&tally, "b", 2, 2);
        let later = at(5).after(ttl().reliable());
        tally.extended(&SessionId::from_bits(1), later, ttl());
        tally.sweep(at(9));
        assert_eq!(tally.counts(), (2, 1));
        tally.sweep(at(10));
        assert_eq!(tally.counts(), (1, 1));
        tally.sweep(at(15));
        assert_eq!(tally.counts(), (0, 0));
        assert_eq!(kept(&tally), (0, 0));
        tally.extended(&SessionId::from_bits(1), later, ttl());
        assert_eq!(tally.counts(), (0, 0));
    }

    #[test]
    fn floors_and_settled_attempts_end_what_they_ended_in_the_store() {
        let tally = Tally::new();
        for (name, token) in [("a", 1), ("b", 2), ("c", 9)] {
            give(&tally, name, token, token.into());
        }
        let floor = TokenFloor::new(5).unwrap();
        assert_eq!(tally.revoked(&key("c"), floor), None, "granted after the revoke");
        assert!(tally.revoked(&key("a"), floor).is_some());
        tally.floor_raised(&Namespace::new("elsewhere").unwrap(), floor);
        assert_eq!(tally.counts(), (2, 0));
        tally.floor_raised(&Namespace::default(), floor);
        assert_eq!(tally.counts(), (1, 0));
        assert_eq!(tally.settled(&key("c"), AttemptId::from_bits(1)), None);
        let token = tally.settled(&key("c"), AttemptId::from_bits(9));
        assert_eq!(token.map(FencingToken::get), Some(9));
        assert_eq!(tally.counts(), (0, 0));
    }

    #[test]
    fn inv10_it_counts_no_more_than_its_bound() {
        let tally = Tally::with_most(2);
        for number in 1..=3 {
            give(&tally, &format!("lock-{number}"), number, 1);
            tally.opened(&session(10 + u128::from(number)));
        }
        assert_eq!(tally.counts(), (2, 2));
        assert_eq!(kept(&tally), (2, 3));
        assert_eq!(end(&tally, "lock-3", 3), None);
    }
}
