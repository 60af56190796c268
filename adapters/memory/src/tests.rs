//! What is this store's own: bounds, the gap-free wait, the incident. The contract itself is
//! covered by the conformance suite.

use std::sync::Arc;
use std::time::Duration;

use dlock_domain::{
    AttemptId, Deadline, ErrorKind, FencingToken, Invariant, LockHandle, LockKey, LockName, Moment,
    Namespace, OwnerId, Reason, Result, SessionId, TokenFloor, Ttl,
};
use dlock_ports::{
    Attempt, FloorControl, Holder, InsertRequest, Intent, LockStore, Observed, ReleaseWaiter,
    RevokeRequest, SessionStore, WaitEnd,
};

use crate::{Limits, ManualClock, MemoryStore, SeededEntropy};

const NEVER: Deadline = Deadline::at(Moment::NEVER);

fn limited(limits: Limits) -> (MemoryStore, ManualClock) {
    let clock = ManualClock::new();
    let entropy = Arc::new(SeededEntropy::new(1));
    (MemoryStore::with_limits(Arc::new(clock.clone()), entropy, limits), clock)
}

fn store() -> (MemoryStore, ManualClock) {
    limited(Limits::default())
}

fn key(name: &str) -> LockKey {
    LockKey::new(Namespace::default(), LockName::new(name).unwrap())
}

fn owner() -> OwnerId {
    OwnerId::new("somebody").unwrap()
}

fn ttl() -> Ttl {
    Ttl::from_millis(10_000).unwrap()
}

fn private() -> Holder {
    Holder::Private { owner: owner(), ttl: ttl() }
}

async fn shoot(store: &MemoryStore, name: &str, holder: Holder, bits: u128) -> Result<Attempt> {
    let attempt = AttemptId::from_bits(bits);
    let request = InsertRequest { key: key(name), holder, attempt, intent: Intent::Acquire };
    store.try_insert(request, NEVER).await
}

async fn grant(store: &MemoryStore, name: &str, bits: u128) -> LockHandle {
    match shoot(store, name, private(), bits).await.unwrap() {
        Attempt::Granted(handle) => handle,
        Attempt::Held(_) => panic!("{name} is held"),
    }
}

async fn held(store: &MemoryStore, name: &str, bits: u128) -> Observed {
    match shoot(store, name, private(), bits).await.unwrap() {
        Attempt::Held(observed) => observed,
        Attempt::Granted(_) => panic!("{name} was free"),
    }
}

fn revoke() -> RevokeRequest {
    RevokeRequest { actor: owner(), reason: Reason::new("broken").unwrap(), expected: None }
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[tokio::test]
async fn inv04_a_source_that_fell_behind_is_an_incident_and_never_a_handle() {
    let (store, _) = store();
    let first = grant(&store, "a", 1).await;
    assert!(store.delete_if_owner(&first.key, first.token, NEVER).await.unwrap());
    store.lock().counter = 0;
    let incident = ErrorKind::InvariantViolated(Invariant::TokensRise);
    assert_eq!(kind(shoot(&store, "a", private(), 2).await), incident);
    assert_eq!(kind(store.revoke(&key("a"), revoke(), NEVER).await), incident);
    assert!(store.lock().sessions.is_empty(), "a private session for nothing");
    store.lock().counter = FencingToken::MAX;
    assert_eq!(kind(shoot(&store, "b", private(), 3).await), incident);
}

#[tokio::test]
async fn inv04_records_dropped_for_room_leave_their_fence_behind() {
    let (store, _) = limited(Limits { max_locks: 2, ..Limits::default() });
    let first = grant(&store, "a", 1).await;
    store.delete_if_owner(&first.key, first.token, NEVER).await.unwrap();
    grant(&store, "b", 2).await;
    grant(&store, "c", 3).await;
    let full = ErrorKind::Limit { limit: "lock.max_locks" };
    assert_eq!(kind(shoot(&store, "a", private(), 4).await), full);
    assert_eq!(kind(store.revoke(&key("a"), revoke(), NEVER).await), full);
    let b = store.revoke(&key("b"), revoke(), NEVER).await;
    assert!(b.is_ok(), "a known key needs no room");
    store.lock().counter = 0;
    let incident = ErrorKind::InvariantViolated(Invariant::TokensRise);
    assert_eq!(kind(shoot(&store, "a", private(), 5).await), incident);
}

#[tokio::test]
async fn sessions_whose_lease_has_ended_make_room() {
    let (store, clock) = limited(Limits { max_sessions: 2, ..Limits::default() });
    grant(&store, "a", 1).await;
    store.open(owner(), ttl(), None, NEVER).await.unwrap();
    let full = ErrorKind::Limit { limit: "lock.max_sessions" };
    assert_eq!(kind(store.open(owner(), ttl(), None, NEVER).await), full);
    assert_eq!(kind(shoot(&store, "b", private(), 2).await), full);
    clock.advance(ttl().as_duration());
    assert!(store.open(owner(), ttl(), None, NEVER).await.is_ok());
    grant(&store, "b", 2).await;
}

#[tokio::test]
async fn a_private_session_lives_and_dies_with_its_lock() {
    let (store, _) = store();
    let count = || store.lock().sessions.len();
    let first = grant(&store, "a", 1).await;
    held(&store, "a", 2).await;
    assert_eq!(count(), 1, "the loser left a session");
    assert!(store.delete_if_owner(&first.key, first.token, NEVER).await.unwrap());
    assert_eq!(count(), 0);
    grant(&store, "a", 3).await;
    store.revoke(&key("a"), revoke(), NEVER).await.unwrap();
    assert_eq!(count(), 0);
    grant(&store, "a", 4).await;
    assert!(store.forget(&key("a"), &private(), AttemptId::from_bits(4), NEVER).await.unwrap());
    assert_eq!(count(), 0);
    grant(&store, "a", 5).await;
    let raised = store.raise(&Namespace::default(), TokenFloor::NONE, NEVER).await.unwrap();
    assert_eq!((raised.grants_ended, count()), (1, 0));
}

#[tokio::test]
async fn settled_attempts_of_a_session_are_bounded() {
    let (store, _) = limited(Limits { max_settled_attempts: 2, ..Limits::default() });
    let session = store.open(owner(), ttl(), None, NEVER).await.unwrap();
    let holder = Holder::Session(session);
    let forget = |bits| {
        let holder = holder.clone();
        let store = store.clone();
        async move { store.forget(&key("a"), &holder, AttemptId::from_bits(bits), NEVER).await }
    };
    assert!(!forget(1).await.unwrap());
    assert!(!forget(2).await.unwrap());
    let full = ErrorKind::Limit { limit: "lock.max_settled_attempts" };
    assert_eq!(kind(forget(3).await), full);
    assert!(!forget(1).await.unwrap(), "a repeat takes no room");
}

#[tokio::test]
async fn c25_the_newest_revocations_are_kept() {
    let (store, _) = limited(Limits { max_revocations: 2, ..Limits::default() });
    let first = grant(&store, "a", 1).await;
    for name in ["z", "a", "b"] {
        store.revoke(&key(name), revoke(), NEVER).await.unwrap();
    }
    let records = store.revocations();
    let seen: Vec<_> = records.iter().map(|r| (r.key.clone(), r.previous)).collect();
    assert_eq!(seen, [(key("a"), Some(first.token)), (key("b"), None)]);
    assert!(records[1].floor > records[0].floor);
}

#[tokio::test]
async fn inv08_a_release_between_the_attempt_and_the_wait_counts() {
    let (store, _) = store();
    let first = grant(&store, "a", 1).await;
    let observed = held(&store, "a", 2).await;
    store.delete_if_owner(&first.key, first.token, NEVER).await.unwrap();
    assert_eq!(store.await_release(&key("a"), &observed, NEVER).await, WaitEnd::Released);
    grant(&store, "a", 3).await;
    assert_eq!(store.await_release(&key("a"), &observed, NEVER).await, WaitEnd::Released);
    let stranger = Observed::new(7_u8);
    assert_eq!(store.await_release(&key("a"), &stranger, NEVER).await, WaitEnd::Fallback);
}

#[tokio::test]
async fn a_wait_ends_with_the_lease_or_the_deadline_and_no_renew_ends_it() {
    let (store, clock) = store();
    let first = grant(&store, "a", 1).await;
    let observed = held(&store, "a", 2).await;
    let wait = |by| {
        let (store, observed) = (store.clone(), observed.clone());
        tokio::spawn(async move { store.await_release(&key("a"), &observed, by).await })
    };
    let start = first.client_deadline.before(ttl().reliable());
    let short = wait(Deadline::at(start.after(Duration::from_secs(5))));
    let long = wait(NEVER);
    settle().await;
    assert_eq!(store.waiters(&key("a")), 2);
    let step = || {
        clock.advance(Duration::from_secs(5));
        settle()
    };
    step().await;
    assert_eq!(short.await.unwrap(), WaitEnd::Deadline);
    assert!(store.extend(&key("a"), first.token, NEVER).await.unwrap().is_some());
    step().await;
    assert!(!long.is_finished(), "the old end of the lease, or the renew, ended the wait");
    step().await;
    assert_eq!(long.await.unwrap(), WaitEnd::Released);
    assert!(store.lock().waiting.is_empty());
    let past = store.await_release(&key("a"), &held_again(&store).await, Deadline::at(start)).await;
    assert_eq!(past, WaitEnd::Deadline);
}

async fn held_again(store: &MemoryStore) -> Observed {
    grant(store, "a", 8).await;
    held(store, "a", 9).await
}

#[tokio::test]
async fn inv10_a_dropped_wait_leaves_nothing() {
    let (store, _) = store();
    grant(&store, "a", 1).await;
    let observed = held(&store, "a", 2).await;
    let task = tokio::spawn({
        let store = store.clone();
        async move { store.await_release(&key("a"), &observed, NEVER).await }
    });
    settle().await;
    assert_eq!(store.waiters(&key("a")), 1);
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(store.waiters(&key("a")), 0);
    assert!(store.lock().waiting.is_empty());
}

#[tokio::test]
async fn a_call_after_its_deadline_does_nothing() {
    let (store, clock) = store();
    let past = {
        use dlock_ports::Clock as _;
        Deadline::at(clock.now())
    };
    let id = SessionId::from_bits(1);
    let error = store.open(owner(), ttl(), Some(id), past).await.unwrap_err();
    assert_eq!((error.kind(), error.applied()), (ErrorKind::Contention, dlock_domain::Applied::No));
    assert!(store.look(&id, NEVER).await.unwrap().is_none());
}

/// Lets every task that can run do so: the runtime of these tests has one thread.
async fn settle() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}
