//! Replies that never come (C20, INV-07, INV-09): the same call again finds out, or settles it.

use core::time::Duration;
use std::pin::pin;

use dlock_domain::{Applied, Deadline, ErrorKind, LockOutcome, Result};
use dlock_ports::{Holder, InsertRequest, Intent};

use crate::{
    Harness,
    kit::{
        Caller, assert_failed, assert_invalid, attempt, b, drive, key, long, of, owner, private,
        revocation, session_id,
    },
    swallow::{Fate, Method, Swallow},
};

/// A's calls go over a wire with a hand on it.
fn wired<H: Harness>(h: &H) -> (Caller, Swallow) {
    let (backend, hand) = Swallow::wrap(&h.backend(), h.clock());
    (Caller::new(h, backend), hand)
}

/// The budget of a call that is going to be spent: more than the call itself takes, on any machine.
const BUDGET: Duration = Duration::from_secs(3);

fn soon(caller: &Caller) -> Deadline {
    Deadline::at(caller.now().after(BUDGET))
}

/// The call ends at its deadline, knowing nothing; what was forwarded has been done by then.
async fn assert_unknown<H: Harness, T: core::fmt::Debug>(
    h: &H,
    hand: &Swallow,
    call: impl Future<Output = Result<T>>,
) {
    let done = hand.tally().done;
    let mut call = pin!(call);
    // No time passes before it is done: the store is not to run out of budget.
    tokio::select! {
        biased;
        answer = &mut call => panic!("its reply was to be lost: {answer:?}"),
        () = hand.seen("forwarded", |tally| tally.done > done) => {}
    }
    let answer = drive(h, Duration::from_secs(60), call).await.expect("it ends");
    assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
}

fn wish(holder: &Holder, attempt: dlock_domain::AttemptId) -> InsertRequest {
    InsertRequest { key: key("k"), holder: holder.clone(), attempt, intent: Intent::Acquire }
}

/// C20: granted, the reply swallowed. The same attempt again has the same token, immediately, and
/// there is one holder.
pub async fn c20_a_swallowed_grant_is_found_by_its_attempt<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        hand.next(Method::Insert, Fate::ReplyLost);
        let locks = &a.backend.locks;
        assert_unknown(h, &hand, locks.try_insert(wish(&holder, named), soon(&a))).await;
        let seen = b.read(&key("k")).await.expect("it was granted");
        b.meet(&key("k"), &private("contender")).await;
        let found = a.take_as(&key("k"), &holder, named).await;
        assert_eq!((found.token, Some(found.session)), (seen.token, seen.session));
        assert!(b.release(&found).await);
        assert_eq!(b.read(&key("k")).await, None, "one holder, one release");
    }
}

/// A request that never arrived is as unknown; its repeat is its first arrival.
pub async fn a_lost_request_is_made_good_by_its_repeat<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let named = attempt();
    hand.next(Method::Insert, Fate::RequestLost);
    let call = a.backend.locks.try_insert(wish(&private("worker"), named), soon(&a));
    let answer = drive(h, Duration::from_secs(60), call).await.expect("it ends");
    assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
    assert_eq!(b.read(&key("k")).await, None);
    a.take_as(&key("k"), &private("worker"), named).await;
}

/// INV-09: whatever became of the grant, `forget` leaves nothing held, also of a request that
/// arrives long after its deadline (trap 12).
pub async fn inv09_forget_settles_whatever_became_of_it<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        hand.next(Method::Insert, Fate::ReplyLost);
        let locks = &a.backend.locks;
        assert_unknown(h, &hand, locks.try_insert(wish(&holder, named), soon(&a))).await;
        assert!(b.forget(&key("k"), &holder, named).await, "a live grant was ended");
        assert_eq!(b.read(&key("k")).await, None);
        assert_invalid(a.insert(&key("k"), &holder, named).await, "attempt_id");
    }
    let mut late = Vec::new();
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        hand.next(Method::Insert, Fate::Late);
        let call = a.backend.locks.try_insert(wish(&holder, named), soon(&a));
        let answer = drive(h, Duration::from_secs(60), call).await.expect("it ends");
        assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
        assert!(!b.forget(&key("k"), &holder, named).await, "nothing was there yet");
        late.push((holder, named));
    }
    let done = hand.tally().done;
    hand.deliver();
    hand.seen("both arrived", |tally| tally.done == done + 2).await;
    assert_eq!(b.read(&key("k")).await, None, "the late grants never came to be");
    for (holder, named) in late {
        assert_invalid(b.insert(&key("k"), &holder, named).await, "attempt_id");
    }
    let (_, grants) = b.look(&session.id).await.expect("open");
    assert_eq!(grants, []);
}

/// A release whose reply was swallowed has freed the lock; its repeat finds nothing to free.
pub async fn a_swallowed_release_has_freed_the_lock<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let handle = a.take(&key("k"), &private("worker")).await;
    hand.next(Method::Delete, Fate::ReplyLost);
    let call = a.backend.locks.delete_if_owner(&handle.key, handle.token, soon(&a));
    assert_unknown(h, &hand, call).await;
    let next = b.take(&key("k"), &private("next")).await;
    assert!(!a.release(&handle).await);
    assert_eq!(b.extend(&next).await.expect("undisturbed").token, next.token);
}

/// INV-06: a release that arrives long after it was given up meets another holder and leaves it
/// alone.
pub async fn inv06_a_late_release_touches_no_successor<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let session = a.open("worker", long()).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    hand.next(Method::Delete, Fate::Late);
    let call = a.backend.locks.delete_if_owner(&handle.key, handle.token, soon(&a));
    let answer = drive(h, Duration::from_secs(60), call).await.expect("it ends");
    assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
    assert!(a.release(&handle).await, "the repeat arrives first");
    let next = b.take(&key("k"), &of(&session)).await;
    hand.deliver();
    hand.seen("the late one arrived", |tally| tally.done == 1).await;
    assert_eq!(b.extend(&next).await.expect("undisturbed").token, next.token);
}

/// Renewals whose replies were swallowed are repeated; the grant is there all the while.
pub async fn a_swallowed_renewal_is_repeated<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let session = a.open("worker", long()).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    hand.next(Method::Extend, Fate::ReplyLost);
    let call = a.backend.locks.extend(&handle.key, handle.token, soon(&a));
    assert_unknown(h, &hand, call).await;
    assert_eq!(a.extend(&handle).await.expect("live").token, handle.token);

    hand.next(Method::KeepAlive, Fate::ReplyLost);
    let listed = [(handle.key.clone(), handle.token)];
    let call = a.backend.sessions.keep_alive(&session.id, &listed, soon(&a));
    assert_unknown(h, &hand, async { call.await.map(drop) }).await;
    assert_eq!(a.keep(&session.id, &[&handle]).await.expect("live").lost, []);
    assert_eq!(b.read(&key("k")).await.map(|info| info.token), Some(handle.token));
}

/// A close whose reply was swallowed has freed everything; its repeat finds it gone.
pub async fn a_swallowed_close_has_freed_everything<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let session = a.open("worker", long()).await;
    a.take(&key("k"), &of(&session)).await;
    hand.next(Method::Close, Fate::ReplyLost);
    assert_unknown(h, &hand, a.backend.sessions.close(&session.id, soon(&a))).await;
    assert_eq!(b.read(&key("k")).await, None);
    assert!(!a.close(&session.id).await);
}

/// A forget whose reply was swallowed has settled the attempt; its repeat is harmless.
pub async fn a_swallowed_forget_has_settled_the_attempt<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        a.take_as(&key("k"), &holder, named).await;
        hand.next(Method::Forget, Fate::ReplyLost);
        let key = key("k");
        let call = a.backend.sessions.forget(&key, &holder, named, soon(&a));
        assert_unknown(h, &hand, call).await;
        assert_eq!(b.read(&key).await, None);
        assert!(!a.forget(&key, &holder, named).await);
        assert_invalid(a.insert(&key, &holder, named).await, "attempt_id");
    }
}

/// An open whose reply was swallowed is found by its id.
pub async fn a_swallowed_open_is_found_by_its_id<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let id = session_id();
    hand.next(Method::Open, Fate::ReplyLost);
    let call = a.backend.sessions.open(owner("worker"), long(), Some(id), soon(&a));
    assert_unknown(h, &hand, call).await;
    assert!(b.look(&id).await.is_some());
    let session = a.try_open("worker", long(), Some(id)).await.expect("the same again");
    assert_eq!(session.id, id);
    assert!(b.close(&id).await, "there is one");
}

/// A revoke whose reply was swallowed has revoked; its repeat finds a free lock and is harmless.
pub async fn a_swallowed_revoke_has_revoked<H: Harness>(h: &H) {
    let ((a, hand), b) = (wired(h), b(h));
    let handle = b.take(&key("k"), &private("worker")).await;
    hand.next(Method::Revoke, Fate::ReplyLost);
    let call = a.backend.locks.revoke(&handle.key, revocation(Some(handle.token)), soon(&a));
    assert_unknown(h, &hand, call).await;
    assert_eq!(b.extend(&handle).await, None);
    let again = a.revoke(&handle.key, Some(handle.token)).await;
    assert_eq!(again, LockOutcome::Mismatch { current: None });
    assert!(matches!(a.revoke(&handle.key, None).await, LockOutcome::Free { .. }));
}
