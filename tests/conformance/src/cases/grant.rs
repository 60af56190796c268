//! One shot at a lock: who gets it, and what the handle says.

use dlock_domain::{ErrorKind, WallTime};

use crate::{
    Harness,
    kit::{
        a, assert_refused, assert_set_between, attempt, b, key, key_in, long, of, owner, private,
        session_id,
    },
};

/// The handle names what is held, by whom, for how long; its deadline is INV-03's.
pub async fn a_free_lock_is_granted_and_the_handle_says_it_all<H: Harness>(h: &H) {
    let a = a(h);
    let opening = a.now();
    let wall = a.wall();
    let session = a.open("worker-1", long()).await;
    let opened = a.now();
    let handle = a.take(&key("k"), &of(&session)).await;

    assert_eq!(handle.key, key("k"));
    assert_eq!(handle.owner, owner("worker-1"));
    assert_eq!(handle.session, session.id);
    assert_eq!(handle.ttl, session.ttl);
    assert_set_between(opening, opened, long(), session.ttl, session.client_deadline);
    // The insert set no lease: what it may believe in is the rest of what `open` set.
    assert_set_between(opening, opened, long(), session.ttl, handle.client_deadline);
    assert_shown_expiry(handle.server_expiry, wall, a.wall(), &handle);
}

/// A private grant's lease begins with the grant.
pub async fn a_private_grant_has_a_session_of_its_own<H: Harness>(h: &H) {
    let a = a(h);
    let (before, wall) = (a.now(), a.wall());
    let first = a.take(&key("k1"), &private("worker-1")).await;
    let after = a.now();
    let second = a.take(&key("k2"), &private("worker-1")).await;

    assert_set_between(before, after, long(), first.ttl, first.client_deadline);
    assert_shown_expiry(first.server_expiry, wall, a.wall(), &first);
    assert_ne!(first.session, second.session, "each lock has its own");
    let (session, grants) = a.look(&first.session).await.expect("the session is there");
    assert_eq!((session.owner, session.ttl), (owner("worker-1"), first.ttl));
    assert_eq!(grants.len(), 1);
    assert_eq!((&grants[0].key, grants[0].token), (&key("k1"), first.token));
}

/// `server_expiry` is for people, yet it must not lie: between the lease's end and a little later.
fn assert_shown_expiry(
    shown: WallTime,
    before: WallTime,
    after: WallTime,
    handle: &dlock_domain::LockHandle,
) {
    let second = core::time::Duration::from_secs(1);
    let ttl = handle.ttl.as_duration();
    assert!(shown.after(second) >= before.after(ttl), "{shown:?} is early");
    assert!(shown <= after.after(ttl).after(second), "{shown:?} is late");
}

/// INV-01: one live grant, whoever else asks and through whomever, the holder's own session
/// included (a lock is not re-entrant).
pub async fn inv01_a_held_lock_is_held_for_everybody_else<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker-1", long()).await;
    let other = b.open("worker-2", long()).await;
    let handle = a.take(&key("k"), &of(&session)).await;

    a.meet(&key("k"), &of(&session)).await;
    a.meet(&key("k"), &of(&other)).await;
    b.meet(&key("k"), &of(&session)).await;
    b.meet(&key("k"), &of(&other)).await;
    b.meet(&key("k"), &private("worker-1")).await;

    let seen = b.read(&key("k")).await.expect("held");
    assert_eq!(seen.token, handle.token);
    assert!(a.extend(&handle).await.is_some(), "the holder was not disturbed");
}

/// A refused private shot leaves nothing that its key would be held by later.
pub async fn a_shot_that_met_a_holder_leaves_nothing<H: Harness>(h: &H) {
    let a = a(h);
    let handle = a.take(&key("k"), &private("holder")).await;
    for _ in 0..3 {
        a.meet(&key("k"), &private("contender")).await;
    }
    assert!(a.release(&handle).await);
    assert_eq!(a.read(&key("k")).await, None);
    a.take(&key("k"), &private("next")).await;
}

/// Other keys are other locks, also the same name elsewhere.
pub async fn locks_do_not_touch_each_other<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let keys = [key("k"), key("k2"), key_in("other", "k"), key_in("other.k", "k")];
    let mut handles = Vec::new();
    for key in &keys {
        handles.push(a.take(key, &of(&session)).await);
    }
    assert!(a.release(&handles[0]).await);
    assert_eq!(b.read(&keys[0]).await, None);
    for handle in &handles[1..] {
        assert_eq!(b.read(&handle.key).await.map(|info| info.token), Some(handle.token));
    }
}

/// C24: an owner is a label. Two sessions that share one are two holders in every respect, and so
/// are `worker-1` and `worker-10`.
pub async fn c24_an_owner_is_a_label_and_no_identity<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for (first, second) in [("worker-1", "worker-1"), ("worker-1", "worker-10")] {
        let one = a.open(first, long()).await;
        let two = b.open(second, long()).await;
        assert_ne!(one.id, two.id);
        let handle = a.take(&key("k"), &of(&one)).await;
        b.meet(&key("k"), &of(&two)).await;
        let lost = b.keep(&two.id, &[&handle]).await.expect("two is open").lost;
        assert_eq!(lost, [(handle.key.clone(), handle.token)], "not a grant of two's");
        assert!(b.close(&two.id).await);
        assert!(a.extend(&handle).await.is_some(), "closing two did nothing to one");
        assert!(a.close(&one.id).await);
    }
}

/// A session that is not there holds nothing: the error says so, and the lock stays free.
pub async fn a_session_that_is_not_there_is_granted_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let closed = a.open("worker", long()).await;
    assert!(b.close(&closed.id).await);
    let mut unknown = closed.clone();
    unknown.id = session_id();
    for session in [&closed, &unknown] {
        for caller in [&a, &b] {
            let answer = caller.insert(&key("k"), &of(session), attempt()).await;
            assert_refused(answer, ErrorKind::SessionExpired);
        }
    }
    assert_eq!(a.read(&key("k")).await, None);
    a.take(&key("k"), &private("somebody")).await;
}

/// A session opened through one may hold through the other.
pub async fn a_session_is_the_stores_not_the_servers<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let (seen, _) = b.look(&session.id).await.expect("b sees it");
    assert_eq!((&seen.owner, seen.ttl), (&session.owner, session.ttl));
    let handle = b.take(&key("k"), &of(&seen)).await;
    assert_eq!(handle.session, session.id);
    let kept = a.keep(&session.id, &[&handle]).await.expect("open");
    assert_eq!(kept.lost, []);
}
