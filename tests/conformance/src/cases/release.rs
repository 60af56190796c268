//! Releasing: key and token, and nothing else (INV-06).

use dlock_domain::FencingToken;

use crate::{
    Harness,
    kit::{a, b, key, key_in, long, of, outlive, private, private_for, token},
};

/// Released once, by whoever has key and token, through whomever.
pub async fn a_release_frees_the_lock_once<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let handle = a.take(&key("k"), &holder).await;
        assert!(b.release(&handle).await);
        assert_eq!(a.read(&key("k")).await, None);
        assert_eq!(a.extend(&handle).await, None);
        for caller in [&a, &b] {
            assert!(!caller.release(&handle).await);
        }
    }
}

/// A token that is not the live grant's releases nothing: lower, higher, another key's.
pub async fn inv06_only_the_very_token_releases<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let elsewhere = a.take(&key("elsewhere"), &of(&session)).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    let namesake = a.take(&key_in("other", "k"), &of(&session)).await;
    let wrong = [elsewhere.token, namesake.token, token(1), token(FencingToken::MAX)];
    for other in wrong.into_iter().filter(|other| *other != handle.token) {
        for caller in [&a, &b] {
            assert!(!caller.release_token(&key("k"), other).await, "{other}");
            assert_eq!(caller.extend_token(&key("k"), other).await, None, "{other}");
        }
    }
    assert!(!a.release_token(&key("never held"), handle.token).await);
    assert_eq!(a.extend_token(&key("never held"), handle.token).await, None);
    for live in [&elsewhere, &handle, &namesake] {
        assert_eq!(b.extend(live).await.expect("undisturbed").token, live.token);
    }
}

/// C22: A expires, B acquires, A comes back. A is told that it lost; B does not notice.
pub async fn c22_a_stale_holder_touches_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let stale = a.take(&key("k"), &private_for("a", h.short_ttl())).await;
    outlive(h, stale.ttl).await;
    let live = b.take(&key("k"), &private("b")).await;
    assert!(live.token > stale.token);
    for caller in [&a, &b] {
        assert!(!caller.release(&stale).await);
        assert_eq!(caller.extend(&stale).await, None);
        assert!(caller.keep(&stale.session, &[&stale]).await.is_none());
        assert!(!caller.close(&stale.session).await);
    }
    assert_eq!(b.extend(&live).await.expect("undisturbed").token, live.token);
    assert_eq!(a.read(&key("k")).await.map(|info| info.token), Some(live.token));
}

/// One lock's release leaves its session and the session's other locks alone.
pub async fn a_release_frees_only_its_lock<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let first = a.take(&key("k1"), &of(&session)).await;
    let second = a.take(&key("k2"), &of(&session)).await;
    assert!(b.release(&first).await);
    let kept = b.keep(&session.id, &[&first, &second]).await.expect("still open");
    assert_eq!(kept.lost, [(first.key, first.token)]);
    assert_eq!(b.read(&key("k2")).await.map(|info| info.token), Some(second.token));
}
