//! Acquiring: granted, not granted, and what is said of either.

use core::time::Duration;

use dlock_domain::ErrorKind;
use dlock_ports::{AcquireRequest, Current, Released, SessionRef};

use crate::{
    ServiceHarness,
    kit::{
        assert_invalid, assert_refused, assert_set_between, drive, key, long, outlive, owner,
        session_id,
    },
    service_kit::{PATIENT, alone, alone_for, desk, desk_b, got, promptly, refused, wish},
};

/// A free lock is granted, with or without a wait, to a session or alone; released, it is free.
pub async fn a_free_lock_is_acquired_and_released<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let opening = desk.clock.now();
    let session = SessionRef::Id(desk.open("worker", long()).await);
    for (session, max_wait) in [
        (&session, Duration::ZERO),
        (&session, PATIENT),
        (&alone("worker"), Duration::ZERO),
        (&alone("worker"), PATIENT),
    ] {
        let handle = got(desk.front.acquire(wish(&key("k"), session, max_wait)).await);
        assert_eq!((&handle.key, &handle.owner), (&key("k"), &owner("worker")));
        if let SessionRef::Id(id) = session {
            assert_eq!(handle.session, *id);
        }
        let now = desk.clock.now();
        assert_set_between(opening, now, long(), handle.ttl, handle.client_deadline);
        let seen = desk.inspect(&key("k")).await.expect("held");
        assert_eq!((&seen.owner, seen.token), (&handle.owner, handle.token));
        assert_eq!(seen.session, h.shows_sessions().then_some(handle.session));
        let answer = desk.release(&handle).await;
        assert_eq!(answer, Released { released: true, current: Current::None });
        assert_eq!(desk.inspect(&key("k")).await, None);
    }
    assert_eq!(desk.service.load().waiting, 0);
}

/// Without a wait there is one shot, and the answer names the holder.
pub async fn without_a_wait_there_is_one_shot<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let handle = a.take(&key("k"), &alone("holder")).await;
    for (asked, wait) in [(1, Duration::ZERO), (2, PATIENT)] {
        // `try_acquire` never waits, whatever it is told.
        let request = wish(&key("k"), &alone("other"), wait);
        let holder = refused(b.front.try_acquire(request).await).expect("it is held");
        assert_eq!((&holder.owner, holder.token), (&owner("holder"), handle.token));
        assert_eq!(b.hand.shots().len(), asked);
    }
    let request = wish(&key("k"), &alone("other"), Duration::ZERO);
    assert!(refused(b.front.acquire(request).await).is_some());
    assert_eq!(b.hand.shots().len(), 3);
    assert!(a.renew(&handle).await.is_ok());
    // Nothing of those three is left.
    assert!(a.release(&handle).await.released);
    assert_eq!(b.inspect(&key("k")).await, None);
}

/// A lock is not re-entrant: its own session waits like any other.
pub async fn a_lock_is_not_reentrant<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let id = desk.open("worker", long()).await;
    let handle = desk.take(&key("k"), &SessionRef::Id(id)).await;
    let holder = desk.meet(&key("k"), &SessionRef::Id(id)).await.expect("held");
    assert_eq!(holder.token, handle.token);
}

/// INV-08: a release through the same service, without anybody moving the clock.
pub async fn inv08_a_release_here_is_granted_to_who_waits<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    for _ in 0..3 {
        let first = desk.take(&key("k"), &alone("holder")).await;
        let waiting = desk.wait(&key("k"), &alone("waiter"), PATIENT).await;
        assert_eq!(desk.inspect(&key("k")).await.expect("held").waiter_count, 1);
        assert!(desk.release(&first).await.released);
        let second = got(promptly("a waiter", waiting).await.expect("no panic"));
        assert!(second.token > first.token);
        assert!(desk.release(&second).await.released);
    }
    desk.at_rest().await;
}

/// INV-08: a release through another server on the same store.
pub async fn inv08_a_release_there_is_granted_to_who_waits_here<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let first = b.take(&key("k"), &alone("holder")).await;
    let waiting = a.wait(&key("k"), &alone("waiter"), PATIENT).await;
    assert!(b.release(&first).await.released);
    let answer = drive(h, Duration::from_secs(30), waiting).await.expect("it wakes");
    assert!(got(answer.expect("no panic")).token > first.token);
}

/// An expiry, which nobody announces.
pub async fn an_expired_lock_is_granted_to_who_waits<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let first = b.take(&key("k"), &alone_for("holder", h.short_ttl())).await;
    let waiting = a.wait(&key("k"), &alone("waiter"), PATIENT).await;
    outlive(h, first.ttl).await;
    let answer = drive(h, Duration::from_secs(30), waiting).await.expect("it wakes");
    assert!(got(answer.expect("no panic")).token > first.token);
}

/// A wait ends at its end, not before: not granted, with the holder, leaving nothing behind.
pub async fn a_wait_ends_at_its_end<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let handle = b.take(&key("k"), &alone("holder")).await;
    let began = a.clock.now();
    let max_wait = Duration::from_millis(700);
    let waiting = a.wait(&key("k"), &alone("waiter"), max_wait).await;
    let answer = drive(h, Duration::from_secs(30), waiting).await.expect("it ends");
    let holder = refused(answer.expect("no panic")).expect("it is held");
    assert_eq!((&holder.owner, holder.token), (&owner("holder"), handle.token));
    assert!(a.clock.now().since(began) >= max_wait, "not before its time");
    a.at_rest().await;
    assert!(b.release(&handle).await.released);
    assert_eq!(a.inspect(&key("k")).await, None, "nobody took it who had given up");
}

/// The longest wait is an hour; a longer one is refused before anything is done.
pub async fn c32_too_long_a_wait_is_refused<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    for more in [Duration::from_millis(1), Duration::MAX - AcquireRequest::MAX_WAIT] {
        let request = wish(&key("k"), &alone("worker"), AcquireRequest::MAX_WAIT + more);
        assert_invalid(desk.front.acquire(request).await, "max_wait_ms");
    }
    assert_eq!(desk.inspect(&key("k")).await, None);
    assert!(desk.hand.shots().is_empty());
}

/// A session that is not there acquires nothing, and is told so at once, also by a held lock.
pub async fn a_dead_session_is_told_at_once<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let closed = desk.open("worker", long()).await;
    assert!(desk.front.close_session(&closed).await.expect("close answers"));
    desk.take(&key("held"), &alone("holder")).await;
    for id in [closed, session_id()] {
        for name in ["free", "held"] {
            for max_wait in [Duration::ZERO, PATIENT] {
                let request = wish(&key(name), &SessionRef::Id(id), max_wait);
                let answer = promptly("a dead session", desk.front.acquire(request)).await;
                assert_refused(answer, ErrorKind::SessionExpired);
            }
        }
    }
    assert_eq!(desk.inspect(&key("free")).await, None);
}
