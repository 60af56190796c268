//! Sessions: opened, looked at, closed.

use std::collections::HashSet;

use dlock_domain::ErrorKind;
use dlock_ports::HeldGrant;

use crate::{
    Harness,
    kit::{
        a, assert_invalid, assert_refused, assert_set_between, attempt, b, key, key_in, long,
        millis, of, outlive, owner, private, session_id,
    },
};

/// A session says whose it is, how long it lives, and until when it may be believed in (INV-03).
pub async fn open_says_it_all<H: Harness>(h: &H) {
    let a = a(h);
    let before = a.now();
    let session = a.open("worker", long()).await;
    assert_eq!(session.owner, owner("worker"));
    assert_set_between(before, a.now(), long(), session.ttl, session.client_deadline);
}

/// Ids are drawn anew for every session.
pub async fn ids_are_unique<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let mut ids = HashSet::new();
    for caller in [&a, &b].into_iter().cycle().take(32) {
        ids.insert(caller.open("worker", long()).await.id);
    }
    assert_eq!(ids.len(), 32);
}

/// `open` with an id is idempotent: the same session, extended, with all that it holds.
pub async fn opening_an_open_id_extends_that_session<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let (id, ttl) = (session_id(), h.short_ttl());
    let first = a.try_open("worker", ttl, Some(id)).await.expect("opens");
    assert_eq!(first.id, id);
    let handle = a.take(&key("k"), &of(&first)).await;

    h.pass(first.ttl.as_duration() / 2).await;
    let before = b.now();
    let again = b.try_open("worker", ttl, Some(id)).await.expect("opens again");
    assert_eq!((again.id, &again.owner, again.ttl), (id, &first.owner, first.ttl));
    assert_set_between(before, b.now(), ttl, again.ttl, again.client_deadline);
    assert!(again.client_deadline > first.client_deadline);

    h.pass(first.ttl.as_duration() * 2 / 3).await;
    let (_, grants) = a.look(&id).await.expect("the first lease would have ended");
    assert_eq!(grants.len(), 1);
    assert!(a.extend(&handle).await.is_some());
}

/// An id that is open as something else is refused, and what is open stays as it is.
pub async fn opening_an_id_as_something_else_is_refused<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let id = session_id();
    let first = a.try_open("worker-1", long(), Some(id)).await.expect("opens");
    let handle = a.take(&key("k"), &of(&first)).await;
    for caller in [&a, &b] {
        assert_invalid(caller.try_open("worker-10", long(), Some(id)).await, "session_id");
        let longer = millis(long().as_millis() * 2);
        assert_invalid(caller.try_open("worker-1", longer, Some(id)).await, "session_id");
    }
    let (session, grants) = b.look(&id).await.expect("undisturbed");
    assert_eq!((&session.owner, session.ttl), (&first.owner, first.ttl));
    assert_eq!(grants.len(), 1);
    assert!(b.extend(&handle).await.is_some());
}

/// A look lists exactly what is held, with the attempts, whoever granted it.
pub async fn a_look_lists_exactly_what_is_held<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let other = a.open("worker", long()).await;
    a.take(&key("not mine"), &of(&other)).await;
    let (_, nothing) = b.look(&session.id).await.expect("open");
    assert_eq!(nothing, []);

    let mut expected = Vec::new();
    for (caller, key) in [(&a, key("1")), (&b, key("2")), (&a, key_in("other", "1"))] {
        let attempt = attempt();
        let handle = caller.take_as(&key, &of(&session), attempt).await;
        expected.push(HeldGrant { key, token: handle.token, attempt });
    }
    expected.sort_by(|x, y| x.key.cmp(&y.key));
    for caller in [&a, &b] {
        let (seen, grants) = caller.look(&session.id).await.expect("open");
        assert_eq!((seen.id, &seen.owner, seen.ttl), (session.id, &session.owner, session.ttl));
        assert_eq!(grants, expected);
    }
    let gone = expected.remove(0);
    assert!(a.release_token(&gone.key, gone.token).await);
    assert_eq!(b.look(&session.id).await.expect("open").1, expected);
}

/// A look extends nothing, however often, and never believes for longer than the lease lasts.
pub async fn a_look_extends_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let before = a.now();
    let session = a.open("worker", h.short_ttl()).await;
    let opened = a.now();
    for caller in [&a, &b, &a] {
        let (seen, _) = caller.look(&session.id).await.expect("live");
        assert_set_between(before, opened, h.short_ttl(), seen.ttl, seen.client_deadline);
        h.pass(session.ttl.as_duration() / 4).await;
    }
    outlive(h, session.ttl).await;
    assert_eq!(a.look(&session.id).await, None);
}

/// What is not there is not there.
pub async fn an_unknown_session_is_gone<H: Harness>(h: &H) {
    let a = a(h);
    assert_eq!(a.look(&session_id()).await, None);
    assert!(a.keep(&session_id(), &[]).await.is_none());
    assert!(!a.close(&session_id()).await);
}

/// Close ends the session and all that it holds, at once and for everybody; and nothing else.
pub async fn close_frees_all_locks_at_once<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let bystander = a.open("worker", long()).await;
    let kept = a.take(&key("kept"), &of(&bystander)).await;
    let mut handles = Vec::new();
    for n in 0..10 {
        handles.push(a.take(&key(&format!("k{n}")), &of(&session)).await);
    }
    assert!(b.close(&session.id).await);
    for handle in &handles {
        assert_eq!(a.read(&handle.key).await, None);
        assert_eq!(a.extend(handle).await, None);
        assert!(!a.release(handle).await);
    }
    assert_eq!(a.look(&session.id).await, None);
    assert!(a.keep(&session.id, &[]).await.is_none());
    assert!(!a.close(&session.id).await, "it was gone");
    let answer = a.insert(&key("k0"), &of(&session), attempt()).await;
    assert_refused(answer, ErrorKind::SessionExpired);
    let next = b.take(&key("k0"), &private("next")).await;
    assert!(next.token > handles[0].token);
    assert!(a.extend(&kept).await.is_some(), "the bystander was not disturbed");
}

/// A private session lives and dies with its lock: kept like any other, gone with the release.
pub async fn a_private_session_lives_and_dies_with_its_lock<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private("worker")).await;
    let kept = b.keep(&handle.session, &[&handle]).await.expect("live");
    assert_eq!(kept.lost, []);
    assert!(b.release(&handle).await);
    assert_eq!(a.look(&handle.session).await, None);
    assert!(a.keep(&handle.session, &[]).await.is_none());
    assert!(!a.close(&handle.session).await);

    let handle = a.take(&key("k"), &private("worker")).await;
    assert!(b.close(&handle.session).await);
    assert_eq!(a.read(&key("k")).await, None);
}

/// An open session outlives what it releases.
pub async fn an_open_session_outlives_its_locks<H: Harness>(h: &H) {
    let a = a(h);
    let session = a.open("worker", long()).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    assert!(a.release(&handle).await);
    assert_eq!(a.look(&session.id).await.expect("still open").1, []);
    a.take(&key("k"), &of(&session)).await;
}
