//! INV-04: every token exceeds every token and floor before it for its key.

use dlock_domain::{FencingToken, LockHandle, LockOutcome};

use crate::{
    Harness,
    kit::{Caller, a, attempt, b, key, long, of, outlive, private, private_for},
};

/// The next grant of `k`, checked against the one before.
async fn next(caller: &Caller, before: FencingToken) -> LockHandle {
    let handle = caller.take(&key("k"), &private("worker")).await;
    assert!(handle.token > before, "INV-04: {} after {before}", handle.token);
    handle
}

/// Across every way in which a grant can end by somebody's will, through both in turn.
pub async fn inv04_tokens_rise_however_a_grant_ends<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let mut last = a.take(&key("k"), &private("worker")).await;
    for _ in 0..3 {
        assert!(b.release(&last).await);
        last = next(&b, last.token).await;

        assert!(a.close(&last.session).await);
        last = next(&a, last.token).await;

        let LockOutcome::Revoked { floor, .. } = b.revoke(&key("k"), None).await else {
            panic!("a held lock is revoked");
        };
        last = next(&a, last.token).await;
        assert!(floor.admits(last.token), "INV-04: {} under floor {floor}", last.token);

        assert!(a.release(&last).await);
        let named = attempt();
        let handle = b.take_as(&key("k"), &private("worker"), named).await;
        assert!(handle.token > last.token);
        assert!(a.forget(&key("k"), &private("worker"), named).await);
        last = next(&b, handle.token).await;
    }
}

/// Across expiry, met by whoever comes next, and across reaping.
pub async fn inv04_tokens_rise_across_expiry_and_reaping<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let first = a.take(&key("k"), &private_for("worker", h.short_ttl())).await;
    outlive(h, first.ttl).await;
    let second = b.take(&key("k"), &private_for("worker", h.short_ttl())).await;
    assert!(second.token > first.token);
    outlive(h, second.ttl).await;
    a.reap(100).await;
    next(&b, second.token).await;
}

/// A session's locks have tokens that rise too, whichever of them comes first.
pub async fn inv04_tokens_rise_within_a_session<H: Harness>(h: &H) {
    let a = a(h);
    let session = a.open("worker", long()).await;
    let mut last = None;
    for _ in 0..10 {
        let handle = a.take(&key("k"), &of(&session)).await;
        assert!(Some(handle.token) > last);
        last = Some(handle.token);
        assert!(a.release(&handle).await);
    }
}

/// Failed shots may burn tokens; they never make the next one smaller.
pub async fn inv04_losing_shots_do_not_turn_tokens_back<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let mut last = a.take(&key("k"), &private("worker")).await;
    for _ in 0..5 {
        for caller in [&a, &b, &a] {
            caller.meet(&key("k"), &private("contender")).await;
        }
        assert!(a.release(&last).await);
        last = next(&b, last.token).await;
    }
}

/// The token is the grant's for life, wherever it is seen.
pub async fn a_grant_keeps_its_token_for_life<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let named = attempt();
    let handle = a.take_as(&key("k"), &of(&session), named).await;
    for caller in [&a, &b] {
        assert_eq!(caller.extend(&handle).await.expect("live").token, handle.token);
        let kept = caller.keep(&session.id, &[&handle]).await.expect("live");
        assert_eq!(kept.lost, []);
        assert_eq!(caller.read(&key("k")).await.expect("live").token, handle.token);
        let (_, grants) = caller.look(&session.id).await.expect("live");
        assert_eq!(grants[0].token, handle.token);
        assert_eq!(caller.take_as(&key("k"), &of(&session), named).await.token, handle.token);
    }
}
