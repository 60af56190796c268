//! Limits: named when reached, harmless to what is there, gone when there is room again.

use dlock_domain::ErrorKind;

use crate::{
    Harness,
    harness::Limits,
    kit::{Caller, assert_refused, attempt, key, long, of, outlive, private},
    notes::lacks,
};

/// So many sessions and no more; a closed one makes room, and so does an ended one.
pub async fn sessions_are_limited<H: Harness>(h: &H) {
    let a = Caller::new(h, h.limited(Limits { max_locks: 100, max_sessions: 3 }).await);
    let first = a.open("worker", long()).await;
    let second = a.open("worker", h.short_ttl()).await;
    let third = a.open("worker", long()).await;
    if !h.expected().limits {
        lacks("limits");
        a.open("one more", long()).await;
        return;
    }
    let full = ErrorKind::Limit { limit: "lock.max_sessions" };
    assert_refused(a.try_open("worker", long(), None).await, full);
    let again = a.try_open("worker", long(), Some(first.id)).await;
    assert_eq!(again.expect("no new one").id, first.id);
    let handle = a.take(&key("k"), &of(&first)).await;
    assert!(a.keep(&first.id, &[&handle]).await.is_some(), "what is there is not disturbed");

    assert!(a.close(&third.id).await);
    a.open("worker", long()).await;
    assert_refused(a.try_open("worker", long(), None).await, full);
    outlive(h, second.ttl).await;
    a.open("worker", long()).await;
    assert_refused(a.try_open("worker", long(), None).await, full);
    assert!(a.extend(&handle).await.is_some());
}

/// So many locks and no more: known ones go on, a new one is refused and leaves nothing.
pub async fn locks_are_limited<H: Harness>(h: &H) {
    let a = Caller::new(h, h.limited(Limits { max_locks: 2, max_sessions: 100 }).await);
    let session = a.open("worker", long()).await;
    let first = a.take(&key("k1"), &of(&session)).await;
    let second = a.take(&key("k2"), &private("worker")).await;
    if !h.expected().limits {
        lacks("limits");
        a.take(&key("k3"), &of(&session)).await;
        a.take(&key("k4"), &private("worker")).await;
        return;
    }
    let full = ErrorKind::Limit { limit: "lock.max_locks" };
    for holder in [of(&session), private("worker")] {
        assert_refused(a.insert(&key("k3"), &holder, attempt()).await, full);
    }
    assert_eq!(a.read(&key("k3")).await, None);
    assert_eq!(a.look(&session.id).await.expect("open").1.len(), 1);
    a.meet(&key("k2"), &of(&session)).await;
    assert!(a.extend(&first).await.is_some());
    assert!(a.release(&second).await);
    let again = a.take(&key("k2"), &of(&session)).await;
    assert!(again.token > second.token);
}
