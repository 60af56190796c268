//! A session in its holder's hand: one keeper, and which grants it keeps for whom.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use dlock_domain::{
    AttemptId, FencingToken, LockHandle, LockKey, OwnerId, Result, Session, SessionId, Ttl,
};
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    locks::Shared,
    repeat::{Said, repeat},
    view::View,
};
use crate::keeper::{Expected, Keeper, KeeperState};

/// What a session is for.
pub(super) enum Kind {
    /// This one lock; it ends with it.
    OneLock(LockKey, FencingToken),
    /// Any number of locks; it is closed when nobody needs it any more.
    Many,
}

/// One session with its one keeper. Shared by everything that lives in the session; when the last
/// of it is gone, so is the keeper.
pub(super) struct Hold {
    shared: Arc<Shared>,
    runtime: Handle,
    id: SessionId,
    owner: OwnerId,
    ttl: Ttl,
    many: bool,
    state: watch::Receiver<KeeperState>,
    /// Cancelled once the session is given up on purpose.
    closed: CancellationToken,
    books: Mutex<Books>,
}

struct Books {
    /// Gone once nothing may be renewed any more.
    keeper: Option<Keeper>,
    /// Whose token each key is kept for: an old guard must not let go of a newer grant.
    held: HashMap<LockKey, FencingToken>,
}

impl Hold {
    pub(super) fn start(
        shared: Arc<Shared>,
        runtime: Handle,
        session: Session,
        kind: Kind,
    ) -> Arc<Self> {
        let (id, owner, ttl) = (session.id, session.owner.clone(), session.ttl);
        let (many, held) = match kind {
            Kind::OneLock(key, token) => (false, vec![(key, token)]),
            Kind::Many => (true, Vec::new()),
        };
        let books = held.iter().cloned().collect();
        let keeper = {
            let _inside = runtime.enter();
            let Shared { service, clock, entropy, .. } = &*shared;
            Keeper::start(service.clone(), session, held, clock.clone(), entropy.clone())
        };
        Arc::new(Self {
            id,
            owner,
            ttl,
            many,
            state: keeper.watch(),
            closed: CancellationToken::new(),
            books: Mutex::new(Books { keeper: Some(keeper), held: books }),
            shared,
            runtime,
        })
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(super) const fn session(&self) -> SessionId {
        self.id
    }

    pub(super) const fn owner(&self) -> &OwnerId {
        &self.owner
    }

    pub(super) const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Announces an acquire in this session.
    pub(super) fn expect(&self, attempt: AttemptId) -> Option<Expected> {
        self.books().keeper.as_ref().map(|keeper| keeper.expect(attempt))
    }

    /// Keeps one more grant.
    pub(super) fn add(&self, handle: &LockHandle) {
        let mut books = self.books();
        books.held.insert(handle.key.clone(), handle.token);
        if let Some(keeper) = &books.keeper {
            keeper.add(handle.key.clone(), handle.token, handle.client_deadline);
        }
    }

    /// Stops renewing a grant that is about to be released (trap 37). What comes back keeps the
    /// session's keeper from taking it for a stray.
    pub(super) fn part(
        &self,
        key: &LockKey,
        token: FencingToken,
        attempt: AttemptId,
    ) -> Option<Expected> {
        let mut books = self.books();
        if !self.many {
            // The session lives for this grant alone. A keep-alive under way can extend the
            // session at most; it brings nothing back that is released.
            books.keeper = None;
            return None;
        }
        let expected = books.keeper.as_ref().map(|keeper| keeper.expect(attempt));
        if books.held.get(key) == Some(&token) {
            books.held.remove(key);
            if let Some(keeper) = &books.keeper {
                keeper.remove(key);
            }
        }
        expected
    }

    pub(super) fn view(&self, key: LockKey, token: FencingToken) -> View {
        View {
            state: self.state.clone(),
            closed: self.closed.clone(),
            clock: self.shared.clock.clone(),
            key,
            token,
        }
    }

    /// Gives the session up: no guard in it is held any more, nothing is renewed, and the store is
    /// told, again until the lease must have ended.
    pub(super) fn close(&self) -> JoinHandle<Result<bool>> {
        self.closed.cancel();
        self.books().keeper = None;
        let (shared, id, ttl) = (self.shared.clone(), self.id, self.ttl);
        let close = async move {
            let until = shared.clock.now().after(ttl.as_duration());
            let mut unknown = false;
            let call = || shared.service.close_session(&id);
            repeat(&shared, ttl, until, call, |said| match said {
                Said::Answer(Ok(closed)) => Some(Ok(closed || unknown)),
                Said::Answer(Err(error)) if !error.is_transient() => Some(Err(error)),
                Said::Answer(Err(_)) | Said::Nothing => {
                    unknown = true;
                    None
                }
            })
            .await
        };
        self.shared.tasks.spawn_on(close, &self.runtime)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // Nothing that is done under the lock leaves the books half written.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.many && !self.closed.is_cancelled() {
            // Nobody waits for the answer: what cannot be closed ends with its lease.
            drop(self.close());
        }
    }
}
