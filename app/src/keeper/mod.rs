//! The holder's side of a session: one task keeps it alive, says until when each of its grants may
//! be believed in, and says when one is lost.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod` | [`Keeper`], what its owner talks to |
//! | `state` | what watchers see: deadlines and losses |
//! | `plan` | when to call next, which deadline moves, what is lost: pure, time handed in |
//! | `strays` | which grants of the session nobody holds or waits for: pure |
//! | `task` | the task that carries the plan out, and the one that restarts it |
//!
//! Nothing here decides ownership. A grant is lost when the store says that it is not there, or
//! when its deadline has passed on the local clock (INV-03, INV-07); one failed keep-alive is
//! neither (C13, trap 36).

mod plan;
mod state;
mod strays;
mod task;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use dlock_domain::{AttemptId, FencingToken, LockKey, Moment, Session, SessionId};
use dlock_ports::{Clock, Entropy, LockService};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use plan::{Loss, Plan};
pub use state::{KeeperState, KeptGrant, LossReason};
use strays::Strays;

/// Keeps one session alive until it is stopped, dropped, or the session is lost.
///
/// Whoever acquires in this session after the start names the attempt, announces it by
/// [`expect`](Self::expect) *before* the call, and hands the grant over by [`add`](Self::add):
/// a grant that is neither kept nor expected is a stray, and strays are released (trap 13).
///
/// Dropping the keeper ends its task without waiting; [`stop`](Self::stop) waits.
pub struct Keeper {
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
}

/// What the keeper and its task share.
struct Shared {
    service: Arc<dyn LockService>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    session: SessionId,
    owner: String,
    books: Mutex<Books>,
    state: watch::Sender<KeeperState>,
    /// The plan was changed from outside: look at it again.
    changed: Notify,
    stop: CancellationToken,
}

/// The pure parts, under one lock that is never held over an await.
struct Books {
    plan: Plan,
    strays: Strays,
    restarts: u64,
}

/// While this lives, a grant to the attempt is not a stray. Dropping it gives the attempt up.
#[must_use = "the attempt is expected only as long as this lives"]
pub struct Expected {
    shared: Arc<Shared>,
    attempt: AttemptId,
}

impl Keeper {
    /// Starts to keep a session and what it holds; `held` is believed in until the session's
    /// `client_deadline`. Needs a tokio runtime.
    ///
    /// The first keep-alive leaves after about a third of the lifetime, or earlier if the deadline
    /// is near.
    #[must_use]
    pub fn start(
        service: Arc<dyn LockService>,
        session: Session,
        held: Vec<(LockKey, FencingToken)>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let plan =
            Plan::new(session.ttl, session.client_deadline, held, clock.now(), entropy.jitter());
        let books = Books { plan, strays: Strays::default(), restarts: 0 };
        let shared = Arc::new(Shared {
            service,
            clock,
            entropy,
            session: session.id,
            owner: session.owner.as_str().to_owned(),
            state: watch::Sender::new(books.view()),
            books: Mutex::new(books),
            changed: Notify::new(),
            stop: CancellationToken::new(),
        });
        let task = tokio::spawn(task::supervise(shared.clone()));
        Self { shared, task: Some(task) }
    }

    /// The last moment at which the grant of this key may be believed in; `None` if it is lost or
    /// not kept here. Compare it with the clock at the time of use (trap 35): a moment that has
    /// passed is not taken away at once.
    #[must_use]
    pub fn deadline(&self, key: &LockKey) -> Option<Moment> {
        self.shared.books().plan.deadline(key)
    }

    /// Follows deadlines and losses. The channel closes when the keeper and its task are gone.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<KeeperState> {
        self.shared.state.subscribe()
    }

    /// Keeps one more grant of this session, believed in until `deadline`. In a session that is
    /// lost it is lost at once.
    pub fn add(&self, key: LockKey, token: FencingToken, deadline: Moment) {
        let now = self.shared.clock.now();
        self.shared.change(|books| books.plan.add(key, token, deadline, now));
        self.shared.changed.notify_one();
    }

    /// Stops keeping the grant of this key, before it is released or because it was lost. A grant
    /// that is removed and not released becomes a stray.
    pub fn remove(&self, key: &LockKey) {
        self.shared.change(|books| books.plan.remove(key));
    }

    /// Announces an acquire in this session: its grant is no stray while the answer lives.
    pub fn expect(&self, attempt: AttemptId) -> Expected {
        self.shared.books().strays.expect(attempt);
        Expected { shared: self.shared.clone(), attempt }
    }

    /// Stops keeping, and returns when the task has ended: nothing renews afterwards (trap 37). A
    /// call under way is waited for, at most a third of the lifetime.
    ///
    /// Cancellation: the task is aborted, as by a drop.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        if let Some(task) = self.task.as_mut()
            && task.await.is_err()
        {
            // It only runs what it supervises: ending early means the runtime is going down.
            tracing::debug!("the keeper's task was cut off");
        }
        self.task = None;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("state", &*self.shared.state.borrow()).finish()
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.shared.books().strays.give_up(self.attempt);
    }
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expected({})", self.attempt)
    }
}

impl Books {
    fn view(&self) -> KeeperState {
        KeeperState { restarts: self.restarts, ..self.plan.view() }
    }
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        // Nothing that is done under the lock leaves the books half written.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the books, shows watchers what changed, and logs what was lost by it.
    fn change(&self, change: impl FnOnce(&mut Books) -> Vec<Loss>) {
        let mut books = self.books();
        let losses = change(&mut books);
        let view = books.view();
        // Sent under the lock, so that watchers see changes in their order.
        self.state.send_if_modified(|state| {
            let modified = *state != view;
            *state = view;
            modified
        });
        drop(books);
        for Loss { key, token, reason } in losses {
            // The holder's own line: a warning here, where somebody has to stop working.
            tracing::warn!(
                event = "lock_lost",
                namespace = %key.namespace(),
                key = %key.name(),
                owner = self.owner,
                token = token.get(),
                %reason,
            );
        }
    }
}
