//! Forgetting: an attempt of unknown outcome is settled for good (traps 12, 13; INV-09).

use dlock_domain::{ErrorKind, LockKey};
use dlock_ports::{Holder, Intent};

use crate::{
    Harness,
    kit::{Caller, a, assert_invalid, assert_refused, attempt, b, key, long, of, outlive, private},
};

/// Asserts that the attempt can never be granted, whatever is asked and through whomever.
async fn assert_settled(
    callers: [&Caller; 2],
    key: &LockKey,
    holder: &Holder,
    attempt: dlock_domain::AttemptId,
) {
    for caller in callers {
        for intent in [Intent::Acquire, Intent::Recover] {
            assert_invalid(caller.shot(key, holder, attempt, intent).await, "attempt_id");
        }
    }
}

/// A live grant ends with its attempt: the lock is free at once, the attempt is dead.
pub async fn forgetting_ends_the_grant<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        let handle = a.take_as(&key("k"), &holder, named).await;
        assert!(b.forget(&key("k"), &holder, named).await, "a live grant was ended");
        assert_eq!(a.read(&key("k")).await, None);
        assert_eq!(a.extend(&handle).await, None);
        assert!(!a.release(&handle).await);
        assert!(!a.forget(&key("k"), &holder, named).await, "a repeat finds nothing to end");
        assert_settled([&a, &b], &key("k"), &holder, named).await;
        let next = a.take(&key("k"), &holder).await;
        assert!(next.token > handle.token);
        assert_settled([&a, &b], &key("k"), &holder, named).await;
        assert_eq!(b.extend(&next).await.expect("undisturbed").token, next.token);
        assert!(a.release(&next).await);
    }
    assert_eq!(a.look(&session.id).await.expect("still open").1, []);
}

/// Trap 12: a request that comes after its attempt was settled is granted nothing.
pub async fn a_late_request_of_a_settled_attempt_is_refused<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        assert!(!b.forget(&key("k"), &holder, named).await, "there was nothing to end");
        assert_settled([&a, &b], &key("k"), &holder, named).await;
        assert_eq!(b.read(&key("k")).await, None);
        let handle = a.take(&key("k"), &holder).await;
        assert!(a.release(&handle).await);
    }
}

/// Trap 13: a duplicate that comes after the release is refused once the attempt is settled.
pub async fn a_duplicate_after_the_release_is_refused_once_settled<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        let handle = a.take_as(&key("k"), &holder, named).await;
        assert!(a.release(&handle).await);
        assert!(!b.forget(&key("k"), &holder, named).await);
        assert_settled([&a, &b], &key("k"), &holder, named).await;
        assert_eq!(a.read(&key("k")).await, None);
    }
}

/// Over a wire a private attempt is settled by the session id that its grant came with: the session
/// ends with it, and a repeat, which comes without a session, is refused.
pub async fn a_private_attempt_is_settled_by_its_session_too<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let named = attempt();
    let handle = a.take_as(&key("k"), &private("worker"), named).await;
    let (session, _) = b.look(&handle.session).await.expect("open");
    assert!(b.forget(&key("k"), &of(&session), named).await, "a live grant was ended");
    assert_eq!(a.read(&key("k")).await, None);
    assert!(a.look(&handle.session).await.is_none(), "it was the lock's own");
    assert_settled([&a, &b], &key("k"), &private("worker"), named).await;
    let next = b.take(&key("k"), &private("worker")).await;
    assert!(next.token > handle.token);
}

/// A private session belongs to one lock: another cannot be taken with it.
pub async fn a_private_session_takes_no_other_lock<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private("worker")).await;
    let (session, _) = b.look(&handle.session).await.expect("open");
    assert_invalid(b.insert(&key("other"), &of(&session), attempt()).await, "session_id");
    assert_eq!(a.read(&key("other")).await, None);
    assert!(a.extend(&handle).await.is_some(), "undisturbed");
}

/// A private session that was made for a settled attempt ends with it.
pub async fn a_private_session_ends_with_its_attempt<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let named = attempt();
    let handle = a.take_as(&key("k"), &private("worker"), named).await;
    assert!(b.forget(&key("k"), &private("worker"), named).await);
    assert_eq!(a.look(&handle.session).await, None);
    assert!(a.keep(&handle.session, &[]).await.is_none());
}

/// Settling one's own attempt touches nobody else's grant, not even one's own under another.
pub async fn forgetting_touches_no_other_grant<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let loser = a.open("worker", long()).await;
    let winner = b.open("worker", long()).await;
    let handle = b.take(&key("k"), &of(&winner)).await;
    let elsewhere = a.take(&key("elsewhere"), &of(&loser)).await;
    assert!(!a.forget(&key("k"), &of(&loser), attempt()).await);
    assert!(!a.forget(&key("k"), &private("worker"), attempt()).await);
    assert!(!a.forget(&key("elsewhere"), &of(&loser), attempt()).await);
    assert!(b.extend(&handle).await.is_some());
    assert!(b.extend(&elsewhere).await.is_some());
}

/// A session that is gone holds nothing, so there is nothing to end and nothing to fear.
pub async fn forgetting_for_a_session_that_is_gone_is_no_error<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let closed = a.open("worker", long()).await;
    let expired = a.open("worker", h.short_ttl()).await;
    let (one, two) = (attempt(), attempt());
    a.take_as(&key("k1"), &of(&closed), one).await;
    a.take_as(&key("k2"), &of(&expired), two).await;
    assert!(a.close(&closed.id).await);
    outlive(h, expired.ttl).await;
    for (key, session, named) in [(key("k1"), &closed, one), (key("k2"), &expired, two)] {
        assert!(!b.forget(&key, &of(session), named).await);
        let answer = a.insert(&key, &of(session), named).await;
        assert_refused(answer, ErrorKind::SessionExpired);
        assert_eq!(a.read(&key).await, None);
    }
}

/// A session settles so many attempts and no more; all of them stay settled, it goes on working,
/// and another session starts anew.
pub async fn a_session_settles_only_so_many<H: Harness>(h: &H) {
    let a = a(h);
    let session = a.open("worker", long()).await;
    let holder = of(&session);
    let first = attempt();
    assert!(!a.forget(&key("k"), &holder, first).await);
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..16_u32 {
        let (a, holder) = (a.clone(), holder.clone());
        let mine = (1..h.expected().max_settled).filter(|n| n % 16 == lane).count();
        tasks.spawn(async move {
            for _ in 0..mine {
                assert!(!a.forget(&key("k"), &holder, attempt()).await);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("every one is settled");
    }
    let answer = a.try_forget(&key("k"), &holder, attempt()).await;
    assert_refused(answer, ErrorKind::Limit { limit: "lock.max_settled_attempts" });
    assert!(!a.forget(&key("k"), &holder, first).await, "a repeat needs no more room");
    assert_invalid(a.insert(&key("k"), &holder, first).await, "attempt_id");
    let handle = a.take(&key("k"), &holder).await;
    assert!(a.release(&handle).await);
    // Without room for a mark the grant ends all the same (INV-09).
    let named = attempt();
    a.take_as(&key("k"), &holder, named).await;
    let answer = a.try_forget(&key("k"), &holder, named).await;
    assert_refused(answer, ErrorKind::Limit { limit: "lock.max_settled_attempts" });
    assert_eq!(a.read(&key("k")).await, None);
    let other = a.open("worker", long()).await;
    assert!(!a.forget(&key("k"), &of(&other), attempt()).await);
}
