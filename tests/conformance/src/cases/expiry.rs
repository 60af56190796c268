//! Leases that end: for everybody, for good, and without anybody sweeping up.

use core::time::Duration;

use dlock_domain::{ErrorKind, LockOutcome};

use crate::{
    Harness,
    kit::{a, assert_refused, attempt, b, key, long, of, outlive, private, private_for},
    notes::lacks,
};

/// C14: an expired grant is lost, even if nobody took the lock since; asking revives nothing.
pub async fn c14_renewing_after_expiry_is_lost_though_nobody_took_it<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private_for("worker", h.short_ttl())).await;
    outlive(h, handle.ttl).await;
    for caller in [&a, &b, &a] {
        assert_eq!(caller.extend(&handle).await, None);
    }
    assert!(a.keep(&handle.session, &[&handle]).await.is_none());
    assert_eq!(b.read(&key("k")).await, None);
    let next = b.take(&key("k"), &private("next")).await;
    assert!(next.token > handle.token);
    assert_eq!(a.extend(&handle).await, None);
}

/// A lease lasts: halfway through, its lock is held.
pub async fn a_lease_lasts<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private_for("worker", h.short_ttl())).await;
    h.pass(handle.ttl.as_duration() / 2).await;
    b.meet(&key("k"), &private("contender")).await;
    assert_eq!(b.read(&key("k")).await.map(|info| info.token), Some(handle.token));
}

/// Expiry waits for no reaping: whoever comes finds all the session's locks free.
pub async fn expiry_frees_every_lock_of_the_session<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", h.short_ttl()).await;
    let mut handles = Vec::new();
    for n in 0..5 {
        handles.push(a.take(&key(&format!("k{n}")), &of(&session)).await);
    }
    let lasting = a.take(&key("lasting"), &private("other")).await;
    outlive(h, session.ttl).await;
    for (n, handle) in handles.iter().enumerate() {
        if n % 2 == 0 {
            assert_eq!(b.read(&handle.key).await, None);
        }
        assert!(!a.release(handle).await, "an ended lease left nothing to release");
        let next = b.take(&handle.key, &private("next")).await;
        assert!(next.token > handle.token);
    }
    assert_eq!(a.look(&session.id).await, None);
    assert!(!a.close(&session.id).await);
    assert!(b.extend(&lasting).await.is_some(), "another lease was not disturbed");
}

/// An ended session is granted nothing, whatever its holder believes.
pub async fn an_ended_session_is_granted_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", h.short_ttl()).await;
    outlive(h, session.ttl).await;
    for caller in [&a, &b] {
        let answer = caller.insert(&key("k"), &of(&session), attempt()).await;
        assert_refused(answer, ErrorKind::SessionExpired);
    }
    assert_eq!(b.read(&key("k")).await, None);
}

/// Nothing that meets an ended lease mistakes it for a live one.
pub async fn operators_find_an_expired_lock_free<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let named = attempt();
    let holder = private_for("worker", h.short_ttl());
    let first = a.take(&key("k1"), &holder).await;
    let second = a.take_as(&key("k2"), &holder, named).await;
    outlive(h, first.ttl).await;
    let outcome = b.revoke(&key("k1"), Some(first.token)).await;
    assert_eq!(outcome, LockOutcome::Mismatch { current: None });
    let LockOutcome::Free { floor } = b.revoke(&key("k1"), None).await else {
        panic!("an expired lock is free");
    };
    assert!(floor.get() > first.token.get());
    assert!(!b.forget(&key("k2"), &holder, named).await, "no live grant was ended");
    let next = a.take(&key("k2"), &private("next")).await;
    assert!(next.token > second.token);
}

/// Reaping removes what has ended, no more than asked for, and says how many; where leases end by
/// themselves it answers 0.
pub async fn reaping_counts_what_has_ended<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let lasting = a.open("lasting", long()).await;
    let kept = a.take(&key("kept"), &of(&lasting)).await;
    let mut ended = Vec::new();
    for n in 0..5 {
        let session = a.open("worker", h.short_ttl()).await;
        let handle = a.take(&key(&format!("k{n}")), &of(&session)).await;
        ended.push((session, handle));
    }
    assert_eq!(a.reap(100).await, 0, "nothing has ended yet");
    outlive(h, ended[0].0.ttl).await;
    h.pass(Duration::from_secs(1)).await;

    let counts = [a.reap(0).await, a.reap(3).await, b.reap(100).await, a.reap(100).await];
    let expected = if h.expected().reaps { [0, 3, 2, 0] } else { [0; 4] };
    if !h.expected().reaps {
        lacks("reaping");
    }
    assert_eq!(counts, expected);
    for (session, handle) in &ended {
        assert_eq!(b.look(&session.id).await, None);
        let next = a.take(&handle.key, &private("next")).await;
        assert!(next.token > handle.token, "INV-04 across reaping");
    }
    assert!(b.extend(&kept).await.is_some(), "what lives is not reaped");
}
