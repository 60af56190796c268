//! Odd input: names are opaque bytes, labels come back as they went in, extremes are ordinary.

use std::collections::HashSet;

use dlock_domain::{FencingToken, LockName, LockOutcome, OwnerId, Reason, Ttl};
use dlock_ports::RevokeRequest;

use crate::{
    Harness,
    kit::{
        a, assert_set_between, b, key, key_in, long, millis, odd_names, of, owner, private, token,
    },
};

/// C30: held all at once, each with a token of its own, each released alone.
pub async fn c30_odd_names_are_different_locks<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let names = odd_names();
    let mut handles = Vec::new();
    for name in &names {
        let handle = a.take(&key(name), &of(&session)).await;
        assert_eq!(handle.key.name().as_str(), name);
        handles.push(handle);
    }
    let tokens: HashSet<_> = handles.iter().map(|handle| handle.token).collect();
    assert_eq!(tokens.len(), names.len());
    let (_, grants) = b.look(&session.id).await.expect("open");
    let looked: HashSet<_> = grants.iter().map(|g| (g.key.clone(), g.token)).collect();
    assert_eq!(looked, handles.iter().map(|x| (x.key.clone(), x.token)).collect());
    for (n, handle) in handles.iter().enumerate() {
        let seen = b.read(&handle.key).await.expect("held");
        assert_eq!((&seen.key, seen.token), (&handle.key, handle.token));
        assert!(b.release(handle).await);
        assert_eq!(a.read(&handle.key).await, None);
        if let Some(next) = handles.get(n + 1) {
            assert_eq!(a.read(&next.key).await.map(|info| info.token), Some(next.token));
        }
    }
}

/// The longest names, in bytes, and two of them that differ in the last one only.
pub async fn the_longest_names_are_different_locks<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let stem = "x".repeat(LockName::MAX_BYTES - 1);
    let names = [
        format!("{stem}1"),
        format!("{stem}2"),
        stem,
        "\u{1f980}".repeat(LockName::MAX_BYTES / 4),
        "\u{e9}".repeat(LockName::MAX_BYTES / 2),
    ];
    let mut handles = Vec::new();
    for name in &names {
        handles.push(a.take(&key(name), &private("worker")).await);
    }
    for handle in &handles {
        let seen = b.read(&handle.key).await.expect("held");
        assert_eq!((&seen.key, seen.token), (&handle.key, handle.token));
    }
}

/// Namespace and name are two parts: no pair of them runs together with another.
pub async fn namespace_and_name_do_not_run_together<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let longest = "n".repeat(63);
    let pairs = [
        ("a", "b"),
        ("a.b", "c"),
        ("a", "b.c"),
        ("a", "b/c"),
        ("a", "/b"),
        ("ab", "c"),
        ("a", "bc"),
        ("a-", "b"),
        ("a_", "b"),
        (longest.as_str(), "k"),
        ("default", "default"),
        ("0", "0"),
    ];
    let mut handles = Vec::new();
    for (namespace, name) in pairs {
        handles.push(a.take(&key_in(namespace, name), &private("worker")).await);
    }
    for handle in &handles {
        let seen = b.read(&handle.key).await.expect("held");
        assert_eq!((&seen.key, seen.token), (&handle.key, handle.token));
        assert!(b.release(handle).await);
    }
}

/// Owners come back as they went in, from everywhere that shows them.
pub async fn owners_come_back_as_they_went_in<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let longest = "\u{e9}".repeat(OwnerId::MAX_BYTES / 2);
    for label in ["user@host:42", "Zo\u{eb} (nightly)", "'; --", "%", "\\", " ", longest.as_str()] {
        let session = a.open(label, long()).await;
        let handle = a.take(&key("k"), &of(&session)).await;
        assert_eq!(handle.owner, owner(label));
        assert_eq!(b.read(&key("k")).await.expect("held").owner, owner(label));
        assert_eq!(b.look(&session.id).await.expect("open").0.owner, owner(label));
        assert_eq!(b.extend(&handle).await.expect("live").owner, owner(label));
        assert!(b.close(&session.id).await);
    }
}

/// The longest and oddest reason is a reason.
pub async fn reasons_are_taken_as_they_are<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for text in ["x".repeat(Reason::MAX_BYTES), "'; DROP TABLE revocations; --".to_owned()] {
        let handle = a.take(&key("k"), &private("worker")).await;
        let request = RevokeRequest {
            actor: owner("%s {} \u{eb}"),
            reason: Reason::new(&text).expect("a reason"),
            expected: None,
        };
        let outcome = b.backend.locks.revoke(&key("k"), request, b.by()).await;
        let outcome = outcome.expect("revoke answers");
        assert!(
            matches!(outcome, LockOutcome::Revoked { previous, .. } if previous == handle.token)
        );
    }
}

/// The shortest and the longest lifetime are lifetimes, and nothing between is rounded down.
pub async fn extreme_lifetimes_are_kept<H: Harness>(h: &H) {
    let a = a(h);
    for asked in [millis(Ttl::MIN_MILLIS), millis(1_001), millis(Ttl::MAX_MILLIS)] {
        let before = a.now();
        let session = a.open("worker", asked).await;
        let deadline = session.client_deadline;
        assert_set_between(before, a.now(), asked, session.ttl, deadline);
        let before = a.now();
        let handle = a.take(&key("k"), &crate::kit::private_for("worker", asked)).await;
        assert_set_between(before, a.now(), asked, handle.ttl, handle.client_deadline);
        // A second may be over before a busy machine's server has released it.
        assert!(a.release(&handle).await || a.now() >= handle.client_deadline);
    }
}

/// The greatest token is a token that nobody holds.
pub async fn the_greatest_token_is_nobodys<H: Harness>(h: &H) {
    let a = a(h);
    let greatest = token(FencingToken::MAX);
    let handle = a.take(&key("k"), &private("worker")).await;
    assert!(!a.release_token(&key("k"), greatest).await);
    assert_eq!(a.extend_token(&key("k"), greatest).await, None);
    let kept = a.keep_listed(&handle.session, &[(key("k"), greatest)]).await.expect("live");
    assert_eq!(kept.lost, [(key("k"), greatest)]);
    assert!(a.extend(&handle).await.is_some());
}
