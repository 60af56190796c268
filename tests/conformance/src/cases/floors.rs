//! Raising a namespace's floor: afterwards every token is greater, and nothing is held.

use dlock_domain::{FencingToken, Namespace, Result, TokenFloor};
use dlock_ports::Raised;

use crate::{
    Harness,
    kit::{Caller, a, assert_invalid, b, key, key_in, long, ns, of, private},
    notes::lacks,
};

/// Raises, or asserts that the store is expected not to and does not: `None`.
async fn raise<H: Harness>(
    h: &H,
    caller: &Caller,
    namespace: &str,
    at_least: u64,
) -> Option<Result<Raised>> {
    let floors = caller.backend.floors.as_ref();
    assert_eq!(floors.is_some(), h.expected().floors, "the expected capability");
    if floors.is_none() {
        lacks("floors");
    }
    let floor = TokenFloor::new(at_least).expect("a floor");
    Some(floors?.raise(&ns(namespace), floor, caller.by()).await)
}

/// Every later token of the namespace is greater, and its live grants have ended; other namespaces
/// and all sessions are left alone.
pub async fn a_raise_ends_grants_and_lifts_tokens<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let mut ended = Vec::new();
    for name in ["k1", "k2"] {
        ended.push(a.take(&key(name), &of(&session)).await);
    }
    let private_grant = b.take(&key("k3"), &private("worker")).await;
    let released = a.take(&key("k4"), &of(&session)).await;
    assert!(a.release(&released).await);
    let elsewhere = a.take(&key_in("other", "k1"), &of(&session)).await;

    let at_least = released.token.get() + 1_000;
    let Some(raised) = raise(h, &b, Namespace::DEFAULT, at_least).await else { return };
    let raised = raised.expect("raised");
    assert_eq!(raised.grants_ended, 3);
    assert!(raised.floor.get() >= at_least);

    let listed = [&ended[0], &ended[1], &elsewhere];
    let kept = a.keep(&session.id, &listed).await.expect("the session lives on");
    let mut lost = kept.lost;
    lost.sort();
    assert_eq!(lost, [(key("k1"), ended[0].token), (key("k2"), ended[1].token)]);
    assert!(a.extend(&elsewhere).await.is_some(), "another namespace");
    assert_eq!(a.look(&private_grant.session).await, None, "it dies with its lock");
    for name in ["k1", "k2", "k3", "k4", "never held"] {
        assert_eq!(a.read(&key(name)).await, None);
        let handle = a.take(&key(name), &private("next")).await;
        assert!(raised.floor.admits(handle.token), "INV-04: {} is not above", handle.token);
    }
}

/// Asked for less than is known already, a raise still ends the grants and lowers nothing.
pub async fn a_low_raise_lowers_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let first = a.take(&key("k"), &private("worker")).await;
    let Some(raised) = raise(h, &b, Namespace::DEFAULT, 0).await else { return };
    assert_eq!(raised.expect("raised").grants_ended, 1);
    assert_eq!(a.extend(&first).await, None);
    let second = a.take(&key("k"), &private("worker")).await;
    assert!(second.token > first.token);
    assert!(a.release(&second).await);
    let again = raise(h, &a, Namespace::DEFAULT, 1).await.expect("as before").expect("raised");
    assert_eq!(again.grants_ended, 0);
    let third = b.take(&key("k"), &private("worker")).await;
    assert!(third.token > second.token && again.floor.admits(third.token));
}

/// A raise of an unused namespace holds for its first lock; a repeat is harmless.
pub async fn a_raise_holds_before_the_first_lock<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let Some(first) = raise(h, &a, "fresh", 5_000_000).await else { return };
    let first = first.expect("raised");
    let second = raise(h, &b, "fresh", 5_000_000).await.expect("as before").expect("raised");
    assert_eq!((first.grants_ended, second.grants_ended), (0, 0));
    assert!(first.floor.get() >= 5_000_000 && second.floor >= first.floor);
    let handle = b.take(&key_in("fresh", "k"), &private("worker")).await;
    assert!(second.floor.admits(handle.token));
}

/// A slip of the hand is refused: more than 2^40 beyond what is known, and nothing happens.
pub async fn a_leap_is_refused<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private("worker")).await;
    for leap in [FencingToken::MAX, FencingToken::MAX - 1, 1 << 52] {
        let Some(answer) = raise(h, &b, Namespace::DEFAULT, leap).await else { return };
        assert_invalid(answer, "at_least");
    }
    assert!(a.extend(&handle).await.is_some(), "nothing happened");
    let farthest = handle.token.get() + TokenFloor::MAX_LEAP;
    let raised = raise(h, &b, Namespace::DEFAULT, farthest).await.expect("as before");
    assert_eq!(raised.expect("just within reach").grants_ended, 1);
    let next = a.take(&key("k"), &private("worker")).await;
    assert!(next.token.get() > farthest);
}

/// C69: through one the floor is raised, through the other a holder of the old numbering comes
/// late. Nothing of the new numbering is deleted, no live token is called lost.
pub async fn c69_a_stale_holder_meets_the_new_numbering<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = b.open("worker", long()).await;
    let stale = b.take(&key("k"), &of(&session)).await;
    let Some(raised) = raise(h, &a, Namespace::DEFAULT, stale.token.get() + 50).await else {
        return;
    };
    assert_eq!(raised.expect("raised").grants_ended, 1);
    let live = a.take(&key("k"), &of(&session)).await;
    assert!(!b.release(&stale).await);
    assert_eq!(b.extend(&stale).await, None);
    let kept = b.keep(&session.id, &[&stale, &live]).await.expect("live");
    assert_eq!(kept.lost, [(stale.key, stale.token)]);
    assert_eq!(b.extend(&live).await.expect("undisturbed").token, live.token);
}
