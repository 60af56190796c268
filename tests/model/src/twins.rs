//! The comparison with the reference: the same answers, up to the names that stores choose.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use dlock_domain::{
    FencingToken, LockHandle, LockInfo, LockKey, LockOutcome, Moment, Session, SessionId,
    TokenFloor, WallTime,
};

use crate::{
    call::{Answer, Call},
    ledger::Verdict,
};

/// Which token and which session of the one store is which of the other.
#[derive(Clone, Debug)]
pub struct Twins {
    /// Whether both stores run on one clock, so that moments can be compared.
    exact: bool,
    /// By key: the reference's token to the subject's, both rising.
    tokens: BTreeMap<LockKey, BTreeMap<FencingToken, FencingToken>>,
    sessions: HashMap<SessionId, SessionId>,
    back: HashMap<SessionId, SessionId>,
}

impl Twins {
    /// Nothing matched yet; `exact` where both stores run on one clock.
    #[must_use]
    pub fn new(exact: bool) -> Self {
        Self { exact, tokens: BTreeMap::new(), sessions: HashMap::new(), back: HashMap::new() }
    }

    /// Whether two answers to the same call, here in the reference's terms, mean the same.
    ///
    /// # Errors
    /// What differs.
    pub fn same(
        &mut self,
        call: &Call,
        reference: &Answer,
        subject: &Answer,
    ) -> Result<(), String> {
        match (reference, subject) {
            (Answer::Failed(rk, ra), Answer::Failed(sk, sa)) => {
                equal("error", &(rk, ra), &(sk, sa))
            }
            (Answer::Opened(r), Answer::Opened(s)) => self.session(r, s),
            (Answer::Kept(r), Answer::Kept(s)) => both(r.as_ref(), s.as_ref(), |r, s| {
                self.session(&r.session, &s.session)?;
                equal("number of lost grants", &r.lost.len(), &s.lost.len())?;
                for ((rk, _), (sk, _)) in r.lost.iter().zip(&s.lost) {
                    equal("lost key", rk, sk)?;
                }
                Ok(())
            }),
            (Answer::Looked(r), Answer::Looked(s)) => both(r.as_ref(), s.as_ref(), |r, s| {
                self.session(&r.0, &s.0)?;
                equal("number of grants", &r.1.len(), &s.1.len())?;
                for (r, s) in r.1.iter().zip(&s.1) {
                    equal("grant", &(&r.key, r.attempt), &(&s.key, s.attempt))?;
                    self.token(&r.key, r.token, s.token)?;
                }
                Ok(())
            }),
            (Answer::Did(r), Answer::Did(s)) => equal("answer", r, s),
            (Answer::Granted(r), Answer::Granted(s)) => self.handle(r, s),
            (Answer::Held, Answer::Held) => Ok(()),
            (Answer::Extended(r), Answer::Extended(s)) => {
                both(r.as_ref(), s.as_ref(), |r, s| self.handle(r, s))
            }
            (Answer::Info(r), Answer::Info(s)) => {
                both(r.as_ref(), s.as_ref(), |r, s| self.info(r, s))
            }
            (Answer::Revoked(r), Answer::Revoked(s)) => match call {
                Call::Revoke(key, _) => self.outcome(key, r, s),
                _ => Err("a revocation where none was asked for".into()),
            },
            // Who has met which ended lease before is each store's own affair.
            (Answer::Reaped(_), Answer::Reaped(_)) => Ok(()),
            (Answer::Raised(r), Answer::Raised(s)) => {
                equal("grants ended", &r.grants_ended, &s.grants_ended)
            }
            (Answer::Listed(r), Answer::Listed(s)) => {
                equal("length of the page", &r.locks.len(), &s.locks.len())?;
                for (r, s) in r.locks.iter().zip(&s.locks) {
                    self.info(r, s)?;
                }
                equal("next page", &r.next, &s.next)
            }
            (r, s) => Err(format!("the reference answered {r:?}, the store {s:?}")),
        }
    }

    fn session(&mut self, r: &Session, s: &Session) -> Verdict {
        equal("owner", &r.owner, &s.owner)?;
        self.lease("session", r.client_deadline, s.client_deadline)?;
        if self.exact {
            equal("ttl", &r.ttl, &s.ttl)?;
        }
        self.id(r.id, s.id)
    }

    fn handle(&mut self, r: &LockHandle, s: &LockHandle) -> Verdict {
        equal("key", &r.key, &s.key)?;
        equal("owner", &r.owner, &s.owner)?;
        self.lease("handle", r.client_deadline, s.client_deadline)?;
        self.shown("server_expiry", r.server_expiry, s.server_expiry)?;
        if self.exact {
            equal("ttl", &r.ttl, &s.ttl)?;
        }
        self.id(r.session, s.session)?;
        self.token(&r.key, r.token, s.token)
    }

    fn info(&mut self, r: &LockInfo, s: &LockInfo) -> Verdict {
        equal("key", &r.key, &s.key)?;
        equal("owner", &r.owner, &s.owner)?;
        equal("waiters", &r.waiter_count, &s.waiter_count)?;
        self.shown("acquired_at", r.acquired_at, s.acquired_at)?;
        self.shown("server_expiry", r.server_expiry, s.server_expiry)?;
        if let (Some(r), Some(s)) = (r.session, s.session) {
            self.id(r, s)?;
        }
        self.token(&r.key, r.token, s.token)
    }

    fn outcome(&mut self, key: &LockKey, r: &LockOutcome, s: &LockOutcome) -> Verdict {
        // How high a floor lies is each store's own; that it lies above every token is not.
        let highest = |twins: &Self| {
            let last = twins.tokens.get(key).and_then(|known| known.values().next_back());
            last.map_or(0, |token| token.get())
        };
        let above = |twins: &Self, floor: &TokenFloor| {
            if floor.get() > highest(twins) {
                return Ok(());
            }
            Err(format!("floor {floor} is not above token {}", highest(twins)))
        };
        match (r, s) {
            (
                LockOutcome::Revoked { previous: r, .. },
                LockOutcome::Revoked { previous: s, floor },
            ) => {
                self.token(key, *r, *s)?;
                above(self, floor)
            }
            (LockOutcome::Free { .. }, LockOutcome::Free { floor }) => above(self, floor),
            (LockOutcome::Mismatch { current: r }, LockOutcome::Mismatch { current: s }) => {
                match (r, s) {
                    (Some(r), Some(s)) => self.token(key, *r, *s),
                    (r, s) => equal("current token", r, s),
                }
            }
            (r, s) => Err(format!("the reference answered {r:?}, the store {s:?}")),
        }
    }

    /// Holders' deadlines, where both count on one clock.
    fn lease(&self, what: &str, r: Moment, s: Moment) -> Verdict {
        if self.exact { equal(what, &r, &s) } else { Ok(()) }
    }

    /// Wall times, for display: to the millisecond that rounding may cost.
    fn shown(&self, what: &str, r: WallTime, s: WallTime) -> Verdict {
        let apart = r.as_unix_millis().abs_diff(s.as_unix_millis());
        if self.exact && apart > 1 {
            return Err(format!("{what}: the reference shows {r:?}, the store {s:?}"));
        }
        Ok(())
    }

    /// One token of the one is one token of the other, in the same order.
    fn token(&mut self, key: &LockKey, r: FencingToken, s: FencingToken) -> Verdict {
        let known = self.tokens.entry(key.clone()).or_default();
        if let Some(twin) = known.get(&r) {
            return equal("token", twin, &s);
        }
        let below = known.range(..r).next_back().is_none_or(|(_, twin)| *twin < s);
        let above = known.range(r..).next().is_none_or(|(_, twin)| s < *twin);
        if !(below && above) {
            return Err(format!("token {s} breaks the order that the reference has at {r}"));
        }
        known.insert(r, s);
        Ok(())
    }

    fn id(&mut self, r: SessionId, s: SessionId) -> Verdict {
        let there = *self.sessions.entry(r).or_insert(s) == s;
        let back = *self.back.entry(s).or_insert(r) == r;
        if there && back { Ok(()) } else { Err("a session's id is another's".into()) }
    }
}

fn equal<T: PartialEq + Debug>(what: &str, reference: &T, subject: &T) -> Verdict {
    if reference == subject {
        return Ok(());
    }
    Err(format!("{what}: the reference answered {reference:?}, the store {subject:?}"))
}

fn both<T: Debug>(
    reference: Option<&T>,
    subject: Option<&T>,
    compare: impl FnOnce(&T, &T) -> Verdict,
) -> Verdict {
    match (reference, subject) {
        (Some(reference), Some(subject)) => compare(reference, subject),
        (None, None) => Ok(()),
        (reference, subject) => {
            Err(format!("the reference answered {reference:?}, the store {subject:?}"))
        }
    }
}
