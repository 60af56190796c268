//! Whose lock it is: renewing, releasing, and what a stranger or a stale holder is told.

use core::time::Duration;

use dlock_domain::{ErrorKind, FencingToken};
use dlock_ports::{Current, Released, SessionRef};

use crate::{
    ServiceHarness,
    kit::{assert_refused, assert_set_between, key, long, outlive, session_id, token},
    service_kit::{alone, alone_for, desk, desk_b},
};

/// Renewing: the same token, a later deadline, by INV-03.
pub async fn a_renewal_moves_the_deadline<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let mut last = a.take(&key("k"), &alone_for("worker", h.short_ttl())).await;
    for desk in [&b, &a, &b] {
        h.pass(last.ttl.as_duration() / 2).await;
        let before = desk.clock.now();
        let renewed = desk.renew(&last).await.expect("live");
        let deadline = renewed.client_deadline;
        assert_set_between(before, desk.clock.now(), h.short_ttl(), renewed.ttl, deadline);
        assert!(deadline > last.client_deadline);
        assert_eq!((renewed.token, renewed.session), (last.token, last.session));
        last = renewed;
    }
}

/// C14: renewing after expiry is lost, though nobody took the lock.
pub async fn c14_renewing_after_expiry_is_lost<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let handle = a.take(&key("k"), &alone_for("worker", h.short_ttl())).await;
    outlive(h, handle.ttl).await;
    for desk in [&a, &b, &a] {
        assert_refused(desk.renew(&handle).await, ErrorKind::LockLost);
    }
    let answer = b.release(&handle).await;
    assert_eq!(answer, Released { released: false, current: Current::None });
}

/// C22: A expires, B acquires, A comes back. A is told; B does not notice.
pub async fn c22_a_stale_holder_is_told<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let stale = a.take(&key("k"), &alone_for("a", h.short_ttl())).await;
    outlive(h, stale.ttl).await;
    let live = b.take(&key("k"), &alone("b")).await;
    assert!(live.token > stale.token);
    for desk in [&a, &b] {
        let answer = desk.release(&stale).await;
        assert_eq!(answer, Released { released: false, current: Current::Other });
        assert_refused(desk.renew(&stale).await, ErrorKind::LockLost);
        let kept = desk.front.keep_session(&stale.session, &[]).await;
        assert_refused(kept.map(drop), ErrorKind::SessionExpired);
    }
    assert_eq!(a.renew(&live).await.expect("undisturbed").token, live.token);
}

/// C24: one label, two holders. The other's token is denied, and nothing happens to it.
pub async fn c24_a_token_of_another_session_is_denied<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    for (first, second) in [("worker-1", "worker-1"), ("worker-1", "worker-10")] {
        let one = a.open(first, long()).await;
        let two = b.open(second, long()).await;
        let handle = a.take(&key("k"), &SessionRef::Id(one)).await;
        assert!(b.meet(&key("k"), &SessionRef::Id(two)).await.is_some());
        for desk in [&a, &b] {
            for stranger in [two, session_id()] {
                let renewed = desk.front.renew(&key("k"), handle.token, &stranger).await;
                assert_refused(renewed, ErrorKind::Denied);
                let released = desk.front.release(&key("k"), handle.token, &stranger).await;
                assert_refused(released, ErrorKind::Denied);
            }
        }
        assert_eq!(b.renew(&handle).await.expect("undisturbed").token, handle.token);
        assert!(b.release(&handle).await.released);
        // The server that granted it remembers whose it was.
        let released = a.front.release(&key("k"), handle.token, &two).await;
        assert_refused(released, ErrorKind::Denied);
    }
}

/// What a release finds afterwards: nobody, the same session under a newer token, another.
pub async fn a_release_says_what_it_found<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let id = a.open("worker", long()).await;
    let session = SessionRef::Id(id);
    let first = a.take(&key("k"), &session).await;
    let found = |released, current| Released { released, current };
    assert_eq!(b.release(&first).await, found(true, Current::None));
    assert_eq!(b.release(&first).await, found(false, Current::None));
    let second = a.take(&key("k"), &session).await;
    for desk in [&a, &b] {
        assert_eq!(desk.release(&first).await, found(false, Current::Same));
    }
    assert_eq!(a.release(&second).await, found(true, Current::None));
    b.take(&key("k"), &alone("other")).await;
    for desk in [&a, &b] {
        assert_eq!(desk.release(&second).await, found(false, Current::Other));
    }
}

/// A token that nobody ever had: lost, and nothing is released.
pub async fn an_unknown_token_is_lost<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let id = desk.open("worker", long()).await;
    let live = desk.take(&key("held"), &SessionRef::Id(id)).await;
    for name in ["held", "free"] {
        for number in [token(FencingToken::MAX), token(FencingToken::MAX - 1)] {
            let renewed = desk.front.renew(&key(name), number, &id).await;
            assert_refused(renewed, ErrorKind::LockLost);
            let released = desk.front.release(&key(name), number, &id).await;
            assert!(!released.expect("release answers").released);
        }
    }
    assert!(desk.renew(&live).await.is_ok());
}

/// What is lost is named by the keep-alive, for exactly what was listed.
pub async fn a_keep_alive_names_what_is_lost<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let id = a.open("worker", long()).await;
    let session = SessionRef::Id(id);
    let kept = a.take(&key("kept"), &session).await;
    let gone = a.take(&key("gone"), &session).await;
    a.take(&key("unlisted"), &session).await;
    let revoked = b.front.revoke(&key("gone"), crate::kit::revocation(None)).await;
    assert!(revoked.is_ok());
    let listed = [(kept.key.clone(), kept.token), (gone.key.clone(), gone.token)];
    let before = a.clock.now();
    let answer = a.front.keep_session(&id, &listed).await.expect("live");
    assert_eq!(answer.lost, [(gone.key.clone(), gone.token)]);
    let (deadline, ttl) = (answer.session.client_deadline, answer.session.ttl);
    assert_set_between(before, a.clock.now(), long(), ttl, deadline);
    h.pass(Duration::from_millis(1)).await;
    assert_refused(a.renew(&gone).await, ErrorKind::LockLost);
}
