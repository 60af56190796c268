//! A session of a lock's own.
//!
//! Over HTTP an attempt can be settled only by its session's id, and a session that the server
//! makes for a lock is not known until the lock is granted. So the client opens one itself, keeps
//! it alive while it waits, and closes it with the lock. One attempt has one session, however
//! often it is repeated.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dlock_domain::{LockError, LockKey, OwnerId, Result, SessionId, Ttl};
use tokio::sync::OnceCell;

/// A private attempt: for what, by which session, and how far it has come.
pub(crate) struct Private {
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Ttl,
    pub(crate) session: OnceCell<SessionId>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Calls under way.
    active: u32,
    /// A caller has the lock.
    granted: bool,
    /// Answered for good: the attempt's id is spent.
    ended: bool,
    closed: bool,
}

impl State {
    fn spend(&mut self, session: Option<&SessionId>) -> Option<SessionId> {
        let idle = self.ended && !self.granted && !self.closed && self.active == 0;
        let session = session.filter(|_| idle)?;
        self.closed = true;
        Some(*session)
    }
}

impl Private {
    pub(crate) fn new(key: LockKey, owner: OwnerId, ttl: Ttl) -> Self {
        let (session, state) = (OnceCell::new(), Mutex::default());
        Self { key, owner, ttl, session, state }
    }

    pub(crate) fn is_for(&self, key: &LockKey, owner: &OwnerId, ttl: Ttl) -> bool {
        self.key == *key && self.owner == *owner && self.ttl == ttl
    }

    /// A call begins, and ends by [`leave`](Self::leave).
    ///
    /// # Errors
    /// `InvalidArgument` (`attempt_id`) when the attempt is spent.
    pub(crate) fn enter(&self) -> Result<()> {
        self.check()?;
        self.state().active += 1;
        Ok(())
    }

    /// # Errors
    /// `InvalidArgument` (`attempt_id`) when the attempt is spent.
    pub(crate) fn check(&self) -> Result<()> {
        if self.state().ended {
            return Err(LockError::invalid(
                "attempt_id",
                "this attempt has ended: choose a new one",
            ));
        }
        Ok(())
    }

    /// A call ends without a grant; `spent` if no repeat of it can have one. Answers the session
    /// that is to be closed now.
    pub(crate) fn leave(&self, spent: bool) -> Option<SessionId> {
        let mut state = self.state();
        state.active = state.active.saturating_sub(1);
        state.ended |= spent;
        state.spend(self.session.get())
    }

    /// A call ends with a grant.
    pub(crate) fn granted(&self) {
        let mut state = self.state();
        state.active = state.active.saturating_sub(1);
        state.granted = true;
    }

    /// Whatever was granted is nobody's any more, and the attempt is spent. Answers the session
    /// that is to be closed now; a call that is still under way closes it when it ends.
    pub(crate) fn end(&self) -> Option<SessionId> {
        let mut state = self.state();
        state.granted = false;
        state.ended = true;
        state.spend(self.session.get())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use dlock_domain::{LockName, Namespace};

    use super::*;

    fn private() -> Private {
        let key = LockKey::new(Namespace::default(), LockName::new("k").unwrap());
        let ttl = Ttl::from_millis(1_000).unwrap();
        let private = Private::new(key, OwnerId::new("me").unwrap(), ttl);
        private.session.set(SessionId::from_bits(7)).unwrap();
        private
    }

    const SESSION: Option<SessionId> = Some(SessionId::from_bits(7));

    #[test]
    fn a_session_is_closed_once_and_by_the_last_who_leaves() {
        let private = private();
        private.enter().unwrap();
        private.enter().unwrap();
        assert_eq!(private.leave(true), None, "another call is under way");
        assert_eq!(private.enter().unwrap_err().field(), Some("attempt_id"));
        assert_eq!(private.leave(true), SESSION);
        assert_eq!(private.end(), None, "once");
        assert!(private.is_closed());
    }

    #[test]
    fn what_can_be_repeated_keeps_its_session() {
        let private = private();
        private.enter().unwrap();
        assert_eq!(private.leave(false), None);
        private.enter().unwrap();
        private.granted();
        private.enter().unwrap();
        assert_eq!(private.leave(true), None, "the grant lives by it");
        assert_eq!(private.end(), SESSION);
    }
}
