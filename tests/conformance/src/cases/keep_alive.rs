//! Keep-alives: the lease goes on, and whatever is lost is named.

use dlock_domain::{FencingToken, LockKey};

use crate::{
    Harness,
    kit::{a, assert_set_between, b, key, long, of, outlive, private, token},
};

fn sorted(mut lost: Vec<(LockKey, FencingToken)>) -> Vec<(LockKey, FencingToken)> {
    lost.sort();
    lost
}

/// A session that is kept alive lives on, with its grants, listed or not.
pub async fn a_kept_session_lives_on<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", h.short_ttl()).await;
    let listed = a.take(&key("listed"), &of(&session)).await;
    let unlisted = a.take(&key("unlisted"), &of(&session)).await;
    for caller in [&a, &b, &a, &b] {
        h.pass(session.ttl.as_duration() / 2).await;
        let before = caller.now();
        let kept = caller.keep(&session.id, &[&listed]).await.expect("live");
        let deadline = kept.session.client_deadline;
        assert_set_between(before, caller.now(), h.short_ttl(), kept.session.ttl, deadline);
        assert_eq!(kept.session.id, session.id);
        assert_eq!((&kept.session.owner, kept.session.ttl), (&session.owner, session.ttl));
        assert_eq!(kept.lost, []);
    }
    for handle in [&listed, &unlisted] {
        assert_eq!(b.read(&handle.key).await.map(|info| info.token), Some(handle.token));
    }
}

/// C15: of a hundred grants one is deleted behind the holder's back. Exactly that one is lost.
pub async fn c15_exactly_the_lost_grant_is_named<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let mut handles = Vec::new();
    for n in 0..100 {
        handles.push(a.take(&key(&format!("k{n:02}")), &of(&session)).await);
    }
    let listed: Vec<_> = handles.iter().collect();
    assert!(b.release(&handles[41]).await);
    let kept = a.keep(&session.id, &listed).await.expect("live");
    assert_eq!(kept.lost, [(handles[41].key.clone(), handles[41].token)]);
    assert!(b.close(&session.id).await);
    assert!(a.keep(&session.id, &listed).await.is_none(), "then all are lost");
}

/// Every way of not being there: revoked, released, replaced, never there, another's.
pub async fn whatever_is_not_there_is_named<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let other = b.open("worker", long()).await;
    let held = a.take(&key("held"), &of(&session)).await;
    let revoked = a.take(&key("revoked"), &of(&session)).await;
    b.revoke(&key("revoked"), None).await;
    let replaced = a.take(&key("replaced"), &of(&session)).await;
    assert!(b.release(&replaced).await);
    let successor = b.take(&key("replaced"), &of(&other)).await;
    let taken_again = a.take(&key("taken again"), &of(&session)).await;
    assert!(a.release(&taken_again).await);
    let newer = a.take(&key("taken again"), &of(&session)).await;

    let lost = sorted(vec![
        (revoked.key.clone(), revoked.token),
        (replaced.key.clone(), replaced.token),
        (successor.key.clone(), successor.token),
        (taken_again.key.clone(), taken_again.token),
        (key("never"), held.token),
        (held.key.clone(), token(FencingToken::MAX)),
    ]);
    let mut listed = lost.clone();
    listed.push((held.key.clone(), held.token));
    listed.push((newer.key.clone(), newer.token));
    for caller in [&a, &b] {
        let kept = caller.keep_listed(&session.id, &listed).await.expect("live");
        assert_eq!(sorted(kept.lost), lost);
    }
    assert!(b.extend(&successor).await.is_some(), "a check takes nothing away");
}

/// A session that has ended is not kept alive: never revived, even if nobody took its locks.
pub async fn an_ended_session_is_never_revived<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", h.short_ttl()).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    outlive(h, session.ttl).await;
    for caller in [&a, &b, &a] {
        assert!(caller.keep(&session.id, &[&handle]).await.is_none());
    }
    assert_eq!(a.look(&session.id).await, None);
    assert_eq!(a.read(&key("k")).await, None);
    let next = b.take(&key("k"), &private("next")).await;
    assert!(a.keep(&session.id, &[&handle]).await.is_none());
    assert!(b.extend(&next).await.is_some());
}

/// One keep-alive extends the whole session: extending a grant does, too, and its handle says how
/// far.
pub async fn extending_a_grant_extends_its_lease<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let first = a.take(&key("k"), &crate::kit::private_for("worker", h.short_ttl())).await;
    let mut last = first.clone();
    for caller in [&b, &a, &b, &a] {
        h.pass(first.ttl.as_duration() / 2).await;
        let before = caller.now();
        let extended = caller.extend(&last).await.expect("live");
        let deadline = extended.client_deadline;
        assert_set_between(before, caller.now(), h.short_ttl(), extended.ttl, deadline);
        assert!(deadline > last.client_deadline);
        assert!(extended.server_expiry > last.server_expiry);
        assert_eq!(
            (&extended.key, &extended.owner, extended.session, extended.token, extended.ttl),
            (&first.key, &first.owner, first.session, first.token, first.ttl)
        );
        last = extended;
    }
}
