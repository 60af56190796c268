//! Revoking: the grant ends, the floor rises, in one step (C25).

use dlock_domain::{FencingToken, LockOutcome, TokenFloor};

use crate::{
    Harness,
    kit::{a, attempt, b, key, long, of, private, token},
};

fn floor_of(outcome: LockOutcome) -> TokenFloor {
    match outcome {
        LockOutcome::Revoked { floor, .. } | LockOutcome::Free { floor } => floor,
        LockOutcome::Mismatch { .. } => panic!("expected a revoke, got {outcome:?}"),
    }
}

/// C25: a wrong expectation is refused and changes nothing.
pub async fn c25_a_wrong_expectation_changes_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let first = a.take(&key("k"), &private("worker")).await;
    assert!(a.release(&first).await);
    let outcome = b.revoke(&key("k"), Some(first.token)).await;
    assert_eq!(outcome, LockOutcome::Mismatch { current: None });

    let handle = a.take(&key("k"), &private("worker")).await;
    for wrong in [first.token, token(FencingToken::MAX)] {
        let outcome = b.revoke(&key("k"), Some(wrong)).await;
        assert_eq!(outcome, LockOutcome::Mismatch { current: Some(handle.token) });
    }
    assert_eq!(a.extend(&handle).await.expect("undisturbed").token, handle.token);
}

/// C25: the second revoke says that nothing is held; the floor rises all the same.
pub async fn c25_revoking_twice_and_revoking_a_free_lock<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private("worker")).await;
    let first = b.revoke(&key("k"), Some(handle.token)).await;
    let floor = floor_of(first);
    assert_eq!(first, LockOutcome::Revoked { previous: handle.token, floor });
    assert!(floor.get() > handle.token.get(), "above the token that was ended");
    let second = a.revoke(&key("k"), None).await;
    let raised = floor_of(second);
    assert_eq!(second, LockOutcome::Free { floor: raised });
    assert!(raised > floor, "a repeat raises another floor");
    let next = b.take(&key("k"), &private("worker")).await;
    assert!(raised.admits(next.token), "INV-04: {} under floor {raised}", next.token);

    let untouched = a.revoke(&key("never held"), None).await;
    let floor = floor_of(untouched);
    assert_eq!(untouched, LockOutcome::Free { floor });
    assert!(floor > TokenFloor::NONE);
    let next = b.take(&key("never held"), &private("worker")).await;
    assert!(floor.admits(next.token), "INV-04: {} under floor {floor}", next.token);
}

/// Whoever was revoked is told so by everything it asks; its session and its other locks live on.
pub async fn a_revoked_holder_is_told_and_keeps_the_rest<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let revoked = a.take(&key("k1"), &of(&session)).await;
    let kept = a.take(&key("k2"), &of(&session)).await;
    floor_of(b.revoke(&key("k1"), None).await);
    assert_eq!(a.extend(&revoked).await, None);
    assert!(!a.release(&revoked).await);
    assert_eq!(a.read(&key("k1")).await, None);
    let answer = a.keep(&session.id, &[&revoked, &kept]).await.expect("the session lives on");
    assert_eq!(answer.lost, [(revoked.key.clone(), revoked.token)]);
    let (_, grants) = a.look(&session.id).await.expect("the session lives on");
    assert_eq!(grants.len(), 1);
    assert_eq!(grants[0].token, kept.token);
}

/// A private session dies with its lock, also by a revoke.
pub async fn a_private_session_dies_with_a_revoke<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private("worker")).await;
    floor_of(b.revoke(&key("k"), None).await);
    assert_eq!(a.look(&handle.session).await, None);
    assert!(a.keep(&handle.session, &[&handle]).await.is_none());
}

/// A revoke settles no attempt: whoever repeats it competes for the lock anew, above the floor.
pub async fn a_revoked_attempt_may_compete_anew<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let named = attempt();
    let first = a.take_as(&key("k"), &of(&session), named).await;
    let floor = floor_of(b.revoke(&key("k"), Some(first.token)).await);
    let second = a.take_as(&key("k"), &of(&session), named).await;
    assert!(floor.admits(second.token));
}

/// A revoke touches its own key's grant and no other.
pub async fn a_revoke_touches_one_key<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let k = a.take(&key("k"), &private("worker")).await;
    let longer = a.take(&key("k/longer"), &private("worker")).await;
    let namesake = a.take(&crate::kit::key_in("other", "k"), &private("worker")).await;
    floor_of(b.revoke(&key("k"), None).await);
    assert_eq!(a.extend(&k).await, None);
    assert!(a.extend(&longer).await.is_some());
    assert!(a.extend(&namesake).await.is_some());
}
